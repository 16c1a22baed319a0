#!/bin/bash
# Preferences with adapters: the reference is the base.
accelerate launch --num_processes 8 -m trl dpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name ours \
  --use_peft --lora_r 32 --lora_target_modules all-linear --beta 0.1 --max_length 2048 \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16
