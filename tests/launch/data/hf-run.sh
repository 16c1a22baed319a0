#!/bin/bash
# The Trainer under DeepSpeed's launcher.
deepspeed --num_gpus 4 --num_nodes 2 --master_port 29501 run_clm.py \
  --deepspeed ds-zero3.json \
  --model_name_or_path mistralai/Mistral-7B-v0.1 \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --block_size 4096 \
  --bf16 True --torch_dtype bfloat16 --gradient_checkpointing \
  --optim adamw_torch_fused --learning_rate 2e-5 --do_train --output_dir out --save_strategy no
