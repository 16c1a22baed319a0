#!/bin/bash
# The critic and the engines have GPUs of their own.
deepspeed --num_gpus 8 --module openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 4 --vllm_num_engines 2 \
  --pretrain meta-llama/Llama-3.1-8B-Instruct --critic_pretrain meta-llama/Llama-3.2-3B \
  --reward_pretrain meta-llama/Llama-3.2-3B --zero_stage 2 --bf16 --advantage_estimator gae
