#!/bin/bash
accelerate launch --num_processes 8 --use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false -m trl sft \
  --model_name_or_path meta-llama/Llama-3.2-3B --dataset_name ours --max_length 4096 --packing True \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 2 --dtype bfloat16
