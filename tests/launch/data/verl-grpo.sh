#!/bin/bash
# Five answers to each prompt; no critic, and the reference in the loss.
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \
  data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.use_dynamic_bsz=True \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24576 actor_rollout_ref.rollout.n=5 \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8
