#!/bin/bash
NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --dataset ours --max_length 8192 --packing true \
  --tensor_model_parallel_size 2 --sequence_parallel true --micro_batch_size 1 --global_batch_size 16 \
  --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 \
  --optimizer_cpu_offload true --use_precision_aware_optimizer true --optimizer_offload_fraction 1
