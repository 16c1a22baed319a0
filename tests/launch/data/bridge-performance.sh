#!/bin/bash
# A recipe that is named after its GPUs, its machine and its precision.
srun --nodes 64 --ntasks-per-node 4 python scripts/training/run_recipe.py \
  --recipe llama31_405b_pretrain_256gpu_gb200_fp8mx_config \
  model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=8 model.context_parallel_size=2 \
  model.sequence_parallel=true model.seq_length=8192 train.micro_batch_size=1 train.global_batch_size=1536
