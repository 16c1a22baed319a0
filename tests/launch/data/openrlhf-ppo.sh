#!/bin/bash
# Actor, critic, reward model, reference and engines share eight GPUs.
ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray \
  --ref_num_nodes 1 --ref_num_gpus_per_node 8 --reward_num_nodes 1 --reward_num_gpus_per_node 8 \
  --critic_num_nodes 1 --critic_num_gpus_per_node 8 --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
  --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --colocate_all_models --vllm_gpu_memory_utilization 0.5 \
  --pretrain meta-llama/Llama-3.1-8B-Instruct --critic_pretrain meta-llama/Llama-3.2-3B \
  --reward_pretrain meta-llama/Llama-3.2-3B --micro_train_batch_size 8 --train_batch_size 128 \
  --micro_rollout_batch_size 16 --rollout_batch_size 1024 --n_samples_per_prompt 1 --max_epochs 1 \
  --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 3 --bf16 --actor_learning_rate 5e-7 \
  --critic_learning_rate 9e-6 --init_kl_coef 0.01 --gradient_checkpointing --packing_samples --adam_offload \
  --vllm_enable_sleep --deepspeed_enable_sleep
