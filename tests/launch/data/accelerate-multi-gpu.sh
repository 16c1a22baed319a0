#!/bin/bash
accelerate launch --multi_gpu --num_processes 8 --num_machines 1 --mixed_precision bf16 --dynamo_backend no train.py \
  --model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 4 --gradient_accumulation_steps 2 \
  --max_seq_length 2048 --learning_rate 2e-5 --num_train_epochs 1 --output_dir out \
  --eval_strategy steps --eval_steps 200 --per_device_eval_batch_size 8
