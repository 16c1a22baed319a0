#!/bin/bash
# The engine's answers and the training on the same GPUs.
accelerate launch --num_processes 8 -m trl grpo --model_name_or_path Qwen/Qwen2.5-3B-Instruct --dataset_name ours \
  --use_vllm --vllm_mode colocate --num_generations 8 --max_prompt_length 512 --max_completion_length 1024 --beta 0 \
  --per_device_train_batch_size 8 --gradient_accumulation_steps 4 --bf16
