#!/bin/bash
# The flags before they had dots.
deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain meta-llama/Llama-3.1-8B --dataset ours \
  --input_key question --output_key answer --max_len 2048 --train_batch_size 256 --micro_train_batch_size 4 \
  --zero_stage 2 --bf16 --flash_attn --gradient_checkpointing --packing_samples --learning_rate 5e-6 \
  --lora_rank 16 --lora_alpha 32 --target_modules all-linear
