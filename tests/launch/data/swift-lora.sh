#!/bin/bash
# Its defaults are adapters of all linear layers.
CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --dataset ours \
  --torch_dtype bfloat16 --max_length 2048 --lora_rank 16 --lora_alpha 32 --target_modules all-linear \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --learning_rate 1e-4
