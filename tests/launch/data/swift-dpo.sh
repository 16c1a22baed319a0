#!/bin/bash
# Pairs, with adapters and a trained copy of the embedding and the head.
NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model meta-llama/Llama-3.1-8B-Instruct --dataset ours --tuner_type lora \
  --lora_rank 16 --target_modules all-linear --modules_to_save embed_tokens lm_head --torch_dtype bfloat16 \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_length 2048 --output_dir x --rpo_alpha 0.1
