// PPO and its kin of OpenRLHF (openrlhf/cli/train_ppo_ray.py) and of verl (verl/trainer/config/ppo_trainer.yaml).
#include <string>

#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

constexpr std::string_view while_idle = "weights or states leave the GPU while other phases run";

std::vector<LaunchFlag> ray_rows() {
  FlagRows rows(LaunchFormat::openrlhf_rl);
  rows.read("pretrain", "model.name", facts::model, "", "")
      .read("critic_pretrain", "model.value_model", facts::critic, "", "the reward model's where it isn't given")
      .read("reward_pretrain", "model.reward_model", facts::reward, "", "")
      .read("remote_rm_url", "model.reward_model", facts::reward_server, "", "a server rates the answers")
      .read("advantage_estimator", "model.value_model", facts::advantage,
            "gae=gae reinforce=none rloo=none reinforce_baseline=none group_norm=none dr_grpo=none",
            "gae alone has a value model")
      .read("init_kl_coef", "model.reference", facts::divergence, "", "0 has no reference")
      .read("micro_train_batch_size", "model.micro_batch", whole)
      .read("train_batch_size", "model.global_batch", whole, "answers")
      .read("prompt_max_len", "model.prompt_tokens", facts::prompt_tokens, whole, "1024 where it isn't given")
      .read("generate_max_len", "model.sequence", facts::answer_tokens, whole, "1024 where it isn't given")
      .read("n_samples_per_prompt", "model.rollout_group", facts::answers_each, whole, "")
      .read("vllm_num_engines", "model.rollout_memory", facts::vllm, "0=- #", "")
      .read("colocate_all_models", "model.rollout_memory", facts::vllm_mode, "true=colocate false=-",
            "else critic, reward model and engines have GPUs of their own")
      .read("vllm_gpu_memory_utilization", "model.rollout_memory", facts::vllm_memory, "", "0.95 where it isn't given")
      .read("vllm_tensor_parallel_size", "model.rollout_parallel", facts::vllm_parallel, whole, "")
      .read("vllm_enable_sleep", "model.rollout_sleep", facts::vllm_sleep, "true=2 false=0", "")
      .read("actor_num_nodes", "model.data_parallel", facts::nodes, whole, "")
      .read("actor_num_gpus_per_node", "model.data_parallel", facts::gpus_per_node, whole, "")
      .read("zero_stage", "model.zero_stage", whole)
      .read("adam_offload", "model.optimizer_device", "true=cpu false=-")
      .read("param_dtype", "model.precision", "bf16=bf16_mixed fp16=fp16_mixed")
      .read("overlap_comm", "model.overlap_gradients", on_off)
      .read("ds_tensor_parallel_size", "model.tensor_parallel", whole)
      .read("ring_attn_size", "model.context_parallel", whole)
      .read("gradient_checkpointing", "model.recompute", "true=full false=none")
      .read("attn_implementation", "model.flash_attention", facts::attention_backend,
            "flash_attention_2=flash2 flash_attention_3=best sdpa=best eager=none", "")
      .read("load_in_4bit", "model.base_weights", facts::base_bits, "true=4 false=-", "")
      .read("lora_rank", "model.lora_rank", "0=- #")
      .read("lora_dropout", "model.lora_dropout", "")
      .read("target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .as_modelled_if("bf16", "true", "bf16 under DeepSpeed")
      .read("flash_attn", "model.flash_attention", facts::attention_backend, "true=flash2 false=-", "")
      .as_modelled("packing_samples", "sequences are full")
      .as_modelled("colocate_actor_ref colocate_critic_reward", "colocate_all_models decides")
      .saves("deepspeed_enable_sleep", while_idle)
      .adds("enable_ema", "a copy more of the weights is held")
      .not_said(
          "use_dynamic_batch train_max_tokens_per_gpu rollout_max_tokens_per_gpu zpg grad_accum_dtype "
          "use_liger_kernel deepcompile async_train",
          "changes memory or time")
      .time(
          "rollout_batch_size vllm_generate_batch_size micro_rollout_batch_size max_epochs enable_prefix_caching "
          "enforce_eager enable_vllm_is_correction",
          "answers of one update are given at a time, and trained on once: changes time alone")
      .no_effect(
          "ref_num_nodes ref_num_gpus_per_node reward_num_nodes reward_num_gpus_per_node critic_num_nodes "
          "critic_num_gpus_per_node vllm_sync_* vllm_is_* rollout_tasks_per_gpu async_queue_size eval_* save_* "
          "logging_steps ckpt_path disable_ds_ckpt max_ckpt_* load_checkpoint use_ds_universal_ckpt local_rank "
          "ema_beta actor_init_on_gpu gradient_checkpointing_use_reentrant disable_fast_tokenizer lora_alpha "
          "num_episodes max_samples max_norm l2 ptx_coef eps_clip* dual_clip value_clip lambd gamma normalize_reward "
          "top_p temperature seed freezing_actor_steps actor_learning_rate critic_learning_rate lr_* kl_* "
          "aux_loss_coef adam_betas reward_clip_range use_kl_* entropy_* prompt_* label_key input_key input_template "
          "apply_chat_template tokenizer_chat_template use_wandb wandb_* use_tensorboard use_ms agent_func_path "
          "dynamic_filtering* overlong_* stop_properly_* max_len full_determinism no_advantage_std_norm",
          "of the run, of the data, of sampling, or a value");
  return rows.take();
}

void add_verl_batches(FlagRows& rows) {
  rows.read("actor_rollout_ref.actor.ppo_mini_batch_size", "model.global_batch", facts::prompt_batch, whole,
            "prompts, 256 where it isn't given")
      .read("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "model.micro_batch", whole)
      .read("actor_rollout_ref.actor.use_dynamic_bsz", "model.micro_batch", facts::dynamic_batch, on_off, "")
      .read("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "model.micro_batch", facts::pass_tokens, whole,
            "with dynamic batches")
      .read("critic.ppo_micro_batch_size_per_gpu", "model.value_micro_batch", whole)
      .read("data.max_prompt_length", "model.prompt_tokens", facts::prompt_tokens, whole, "512 where it isn't given")
      .read("data.max_response_length", "model.sequence", facts::answer_tokens, whole, "512 where it isn't given")
      .read("actor_rollout_ref.rollout.n", "model.rollout_group", facts::answers_each, whole, "")
      .read("trainer.n_gpus_per_node", "model.data_parallel", facts::gpus_per_node, whole, "")
      .read("trainer.nnodes", "model.data_parallel", facts::nodes, whole, "")
      .time("data.train_batch_size data.gen_batch_size actor_rollout_ref.actor.ppo_epochs critic.ppo_epochs",
            "answers of one update are given at a time, and trained on once: changes time alone")
      .not_said(
          "actor_rollout_ref.actor.ppo_micro_batch_size critic.ppo_micro_batch_size critic.use_dynamic_bsz "
          "critic.ppo_max_token_len_per_gpu",
          "changes the micro-batch");
}

void add_verl_models(FlagRows& rows) {
  rows.read("actor_rollout_ref.model.path", "model.name", facts::model, "", "")
      .read("critic.model.path", "model.value_model", facts::critic, "", "")
      .read("reward_model.model.path", "model.reward_model", facts::reward, "", "")
      .read("reward_model.enable", "model.reward_model", facts::reward_on, on_off, "")
      .read(
          "algorithm.adv_estimator", "model.value_model", facts::advantage,
          "gae=gae grpo=none reinforce_plus_plus=none reinforce_plus_plus_baseline=none remax=none rloo=none opo=none "
          "grpo_passk=none gpg=none",
          "gae alone has a value model")
      .read("actor_rollout_ref.actor.use_kl_loss", "model.reference", facts::divergence, on_off, "")
      .read("algorithm.use_kl_in_reward", "model.reference", facts::reward_divergence, on_off, "")
      .read("actor_rollout_ref.model.lora_rank", "model.lora_rank", "0=- #")
      .read("actor_rollout_ref.model.target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .read("actor_rollout_ref.rollout.name", "model.rollout_memory", facts::vllm, "vllm=true sglang=true hf=false", "")
      .read("actor_rollout_ref.rollout.gpu_memory_utilization", "model.rollout_memory", facts::vllm_memory, "",
            "0.5 where it isn't given")
      .read("actor_rollout_ref.rollout.free_cache_engine", "model.rollout_sleep", facts::vllm_sleep, "true=1 false=0",
            "")
      .read("actor_rollout_ref.rollout.tensor_model_parallel_size", "model.rollout_parallel", facts::vllm_parallel,
            whole, "2 where it isn't given")
      .as_modelled_if("critic.ppo_mini_batch_size", "${actor_rollout_ref.actor.ppo_mini_batch_size}", "the actor's");
}

std::vector<LaunchFlag> main_ppo_rows() {
  FlagRows rows(LaunchFormat::verl_rl);
  add_verl_batches(rows);
  add_verl_models(rows);
  for (const std::string_view strategy : {"actor_rollout_ref.actor.strategy", "actor_rollout_ref.ref.strategy",
                                          "critic.strategy", "reward_model.strategy"})
    rows.as_modelled_if(strategy, "fsdp fsdp2", "sharded by FSDP");
  rows.read("actor_rollout_ref.model.enable_gradient_checkpointing", "model.recompute", "true=full false=none")
      .as_modelled_if("critic.model.enable_gradient_checkpointing", "true", "as the trained model's, by default")
      .read("actor_rollout_ref.actor.fsdp_config.fsdp_size", "model.shard_groups", facts::shard_size, whole, "")
      .read("actor_rollout_ref.actor.fsdp_config.offload_policy", "model.optimizer_device", facts::offload_everything,
            if_on, "and model.weight_device")
      .read("actor_rollout_ref.actor.ulysses_sequence_parallel_size", "model.context_parallel", whole,
            "answers that are split aren't trained here")
      .as_modelled("actor_rollout_ref.model.use_remove_padding critic.model.use_remove_padding", "sequences are full")
      .saves(
          "actor_rollout_ref.actor.fsdp_config.param_offload actor_rollout_ref.actor.fsdp_config.optimizer_offload "
          "actor_rollout_ref.ref.fsdp_config.param_offload critic.model.fsdp_config.param_offload "
          "critic.model.fsdp_config.optimizer_offload critic.fsdp.param_offload critic.fsdp.optimizer_offload "
          "reward_model.model.fsdp_config.param_offload",
          while_idle)
      .saves(
          "actor_rollout_ref.model.use_liger actor_rollout_ref.model.use_fused_kernels "
          "actor_rollout_ref.actor.entropy_from_logits_with_chunking actor_rollout_ref.actor.entropy_checkpointing",
          "fewer logits are there at once")
      .not_said(
          "actor_rollout_ref.model.enable_activation_offload actor_rollout_ref.actor.fsdp_config.* "
          "actor_rollout_ref.ref.fsdp_config.* critic.model.fsdp_config.* critic.fsdp.* "
          "actor_rollout_ref.ref.ulysses_sequence_parallel_size critic.ulysses_sequence_parallel_size "
          "reward_model.*",
          "changes memory or time")
      .time(
          "actor_rollout_ref.ref.log_prob_* actor_rollout_ref.rollout.log_prob_* "
          "actor_rollout_ref.actor.use_torch_compile actor_rollout_ref.ref.use_torch_compile critic.forward_* "
          "actor_rollout_ref.rollout.enforce_eager actor_rollout_ref.rollout.max_num_* "
          "actor_rollout_ref.rollout.enable_* actor_rollout_ref.rollout.engine_kwargs.* trainer.critic_warmup",
          "forwards are of the training's micro-batches: changes time alone")
      .no_effect(
          "data.* algorithm.* trainer.* custom_reward_function.* ray_init.* ray_kwargs.* reward_manager.* hydra.* "
          "config_name config_path "
          "actor_rollout_ref.hybrid_engine actor_rollout_ref.model.external_lib actor_rollout_ref.model.use_shm "
          "actor_rollout_ref.model.trust_remote_code actor_rollout_ref.model.lora_alpha "
          "actor_rollout_ref.actor.optim.* actor_rollout_ref.actor.clip_* actor_rollout_ref.actor.grad_clip "
          "actor_rollout_ref.actor.entropy_coeff actor_rollout_ref.actor.kl_loss_* "
          "actor_rollout_ref.actor.loss_agg_mode actor_rollout_ref.actor.shuffle actor_rollout_ref.actor.checkpoint.* "
          "actor_rollout_ref.actor.policy_loss.* actor_rollout_ref.rollout.mode actor_rollout_ref.rollout.temperature "
          "actor_rollout_ref.rollout.top_* actor_rollout_ref.rollout.do_sample actor_rollout_ref.rollout.val_kwargs.* "
          "actor_rollout_ref.rollout.multi_turn.* actor_rollout_ref.rollout.prompt_length "
          "actor_rollout_ref.rollout.response_length actor_rollout_ref.rollout.ignore_eos "
          "actor_rollout_ref.rollout.load_format actor_rollout_ref.rollout.dtype actor_rollout_ref.rollout.agent.* "
          "actor_rollout_ref.rollout.disable_log_stats actor_rollout_ref.rollout.max_model_len "
          "actor_rollout_ref.rollout.chat_scheduler critic.rollout_n critic.optim.* critic.model.tokenizer_path "
          "critic.model.external_lib critic.model.trust_remote_code critic.grad_clip critic.cliprange_value "
          "critic.shuffle critic.checkpoint.* critic.loss_agg_mode critic.enable",
          "of the run, of the data, of sampling, or a value");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> reinforcement_flags() {
  std::vector<LaunchFlag> all = ray_rows();
  for (LaunchFlag& row : main_ppo_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
