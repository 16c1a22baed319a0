#!/bin/bash
trl grpo --model_name_or_path Qwen/Qwen2.5-3B-Instruct --dataset_name ours --num_generations 8 \
  --max_prompt_length 512 --max_completion_length 1024 --per_device_train_batch_size 8 --bf16 --use_vllm
