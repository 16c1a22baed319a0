#!/bin/bash
# Answers by an engine on the same GPUs.
NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --dataset ours --tuner_type lora \
  --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --sleep_level 1 --torch_dtype bfloat16 \
  --max_length 1024 --max_completion_length 512 --num_generations 8 --reward_funcs accuracy format \
  --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --output_dir x
