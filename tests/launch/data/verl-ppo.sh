#!/bin/bash
# PPO with a critic of its own, a reference in the reward and a reward model, all on the same GPUs.
set -x
python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=gae algorithm.use_kl_in_reward=True algorithm.kl_ctrl.kl_coef=0.001 \
  data.train_files=$HOME/data/gsm8k/train.parquet data.val_files=$HOME/data/gsm8k/test.parquet \
  data.train_batch_size=1024 data.max_prompt_length=1024 data.max_response_length=512 \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.actor.optim.lr=1e-6 \
  actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=4 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32 \
  critic.optim.lr=1e-5 critic.model.path=Qwen/Qwen2.5-7B-Instruct critic.model.enable_gradient_checkpointing=True \
  critic.ppo_micro_batch_size_per_gpu=32 critic.model.fsdp_config.param_offload=False \
  reward_model.enable=True reward_model.model.path=Qwen/Qwen2.5-3B-Instruct \
  trainer.critic_warmup=0 trainer.logger=console trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.total_epochs=15
