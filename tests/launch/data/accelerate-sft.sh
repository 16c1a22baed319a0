#!/bin/bash
PER_DEVICE=4
accelerate launch --config_file fsdp.yaml --main_process_port 29502 sft.py \
    --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name trl-lib/Capybara \
    --per_device_train_batch_size $PER_DEVICE --gradient_accumulation_steps 2 \
    --max_length 2048 --packing True --gradient_checkpointing --use_liger_kernel --bf16 --learning_rate 2e-5
