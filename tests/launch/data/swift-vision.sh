#!/bin/bash
# The vision tower is trained too.
NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 swift sft \
  --model Qwen/Qwen3-VL-8B-Instruct --tuner_type full --torch_dtype bfloat16 --dataset ours --max_length 4096 \
  --freeze_vit false --freeze_llm false --max_pixels 1048576 --attn_impl flash_attn \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --deepspeed zero3
