// Facts of a launch that have no key of a scenario, between its flags and the keys. Other facts have the name of the
// scenario's key that they are: "model.tensor_parallel".
#pragma once

#include <string_view>

namespace spillway::launch::facts {

using Name = const std::string_view;

// How many GPUs.
inline constexpr Name visible_gpus = "launch.visible_gpus";  // their numbers
inline constexpr Name gpus = "launch.gpus", nodes = "launch.nodes", gpus_per_node = "launch.gpus_per_node";
// Replicas: copies of what is split, and ranks that split it.
inline constexpr Name replicas = "launch.replicas", shards = "launch.shards", reshard = "launch.reshard";
// Ranks of each of several groups that share out a copy; below 1: all.
inline constexpr Name shard_size = "launch.shard_size";
inline constexpr Name fsdp = "launch.fsdp", fsdp2 = "launch.fsdp2", sharding = "launch.sharding";
// Batches: of one replica at once, of one pass through a pipeline.
inline constexpr Name local_batch = "launch.local_batch", pass_batch = "launch.pass_batch";
// Tokens of a pass and of a step; a packed sequence's.
inline constexpr Name pass_tokens = "launch.pass_tokens", step_tokens = "launch.step_tokens", packed = "launch.packed";
// Recomputation of some layers: which, how many of a chunk; of every n-th; and what becomes of the inputs that stay.
inline constexpr Name recompute_method = "launch.recompute_method", recompute_count = "launch.recompute_count",
                      recompute_every = "launch.recompute_every", checkpointing = "launch.checkpointing";
inline constexpr Name layers_per_chunk = "launch.layers_per_chunk";
inline constexpr Name leaf_classes = "launch.leaf_classes";
inline constexpr Name bucket_elements = "launch.bucket_elements", bucket_mib = "launch.bucket_mib";
inline constexpr Name fp8 = "launch.fp8", fp8_recipe = "launch.fp8_recipe", bf16_ends = "launch.bf16_ends",
                      bf16_first = "launch.bf16_first", bf16_last = "launch.bf16_last",
                      weights_type = "launch.weights_type", tf32 = "launch.tf32", half = "launch.half";
inline constexpr Name hidden_dropout = "launch.hidden_dropout", attention_dropout = "launch.attention_dropout";
inline constexpr Name attention_backend = "launch.attention_backend";
inline constexpr Name offload_everything = "launch.offload_everything";
// Whole weights come together as the model is saved, if stage 3 shares them out.
inline constexpr Name whole_save = "launch.whole_save";
inline constexpr Name fsdp_version = "launch.fsdp_version";
// The place of the inputs of recomputed layers, or of all activations: host, drive.
inline constexpr Name offload_inputs = "launch.offload_inputs";
inline constexpr Name plugins = "launch.plugins";
// The exchange that carries tokens to experts: a kind, and for the kind flex its backend.
inline constexpr Name dispatcher = "launch.dispatcher", flex_backend = "launch.flex_backend";
inline constexpr Name reduce_type = "launch.reduce_type";
inline constexpr Name allocator_settings = "launch.allocator_settings";
// Evaluation: whether and when; global batches.
inline constexpr Name eval_when = "launch.eval_when", eval_iterations = "launch.eval_iterations";
// CUDA graphs: whether, and of what.
inline constexpr Name graphs = "launch.graphs", graph_scope = "launch.graph_scope";
// An optimizer, a slash, and how its update runs.
inline constexpr Name optimizer = "launch.optimizer";
// Its arguments, with commas; whether one layer is trained at a time.
inline constexpr Name optimizer_args = "launch.optimizer_args", block = "launch.block";
// Adapters: who says them (peft, lora, qlora, factory; factory_full, factory_freeze: none), of what, and how their base
// is kept.
inline constexpr Name adapter = "launch.adapter", adapter_modules = "launch.adapter_modules",
                      saved_modules = "launch.saved_modules", base_bits = "launch.base_bits",
                      base_fp8 = "launch.base_fp8", double_quant = "launch.double_quant";
// The loss: preference, unpaired, group. Whether a reference model's log-probabilities are in the data: none. The
// weight of the divergence from it.
inline constexpr Name objective = "launch.objective", known_reference = "launch.known_reference",
                      divergence = "launch.divergence";
// A model that answers while it is trained: whether vLLM gives the answers, and where (colocate, server). Its share of
// the memory, sleep level and GPUs. Answers to a prompt. The most tokens of a prompt and of an answer.
inline constexpr Name vllm = "launch.vllm", vllm_mode = "launch.vllm_mode", vllm_memory = "launch.vllm_memory",
                      vllm_sleep = "launch.vllm_sleep", vllm_parallel = "launch.vllm_parallel",
                      answers_each = "launch.answers_each", prompt_tokens = "launch.prompt_tokens",
                      answer_tokens = "launch.answer_tokens";
// Reinforcement: prompts of an update; whether batches count tokens. How advantages are estimated, gae with a value
// model. The paths of that and of the reward model, whether there is one, a server in its place. Whether rewards have
// the divergence from a reference.
inline constexpr Name prompt_batch = "launch.prompt_batch", dynamic_batch = "launch.dynamic_batch",
                      advantage = "launch.advantage", critic = "launch.critic", reward = "launch.reward",
                      reward_on = "launch.reward_on", reward_server = "launch.reward_server",
                      reward_divergence = "launch.reward_divergence";
// All of Liger's kernels that it puts in by itself; fused: its cross-entropy on whole logits in place of the chunked.
inline constexpr Name liger = "launch.liger";
// The length that the tokenizer's calls cut texts to.
inline constexpr Name tokenizer_length = "launch.tokenizer_length";
// How many of the last layers are trained, with the others frozen; below 0: of the first.
inline constexpr Name trained_layers = "launch.trained_layers";
// Vision towers: whether the tower and the projector into the text are frozen; the most pixels of an image.
inline constexpr Name frozen_tower = "launch.frozen_tower", frozen_projector = "launch.frozen_projector",
                      image_pixels = "launch.image_pixels";
// The matrices that have adapters, each by itself.
inline constexpr Name adapters_of_query = "launch.adapters_of_query", adapters_of_key = "launch.adapters_of_key",
                      adapters_of_value = "launch.adapters_of_value", adapters_of_output = "launch.adapters_of_output",
                      adapters_of_mlp = "launch.adapters_of_mlp";
// Modules of a decoder with rotary positions and gated products, as transformers names them; a word for all.
inline constexpr Name qkv_modules = "q_proj k_proj v_proj", output_module = "o_proj",
                      mlp_modules = "gate_proj up_proj down_proj", all_modules = "all-linear";
// The model.
inline constexpr Name model = "launch.model", flavor = "launch.flavor";
// A recipe or builder with a name that says the model.
inline constexpr Name recipe = "launch.recipe";

// Of a model's shape.
inline constexpr std::string_view shape_prefix = "shape.";
inline constexpr Name layers = "shape.layers", hidden = "shape.hidden", feed_forward = "shape.feed_forward",
                      heads = "shape.heads", grouped = "shape.grouped", kv_heads = "shape.kv_heads",
                      head_dim = "shape.head_dim", vocabulary = "shape.vocabulary",
                      padded_vocabulary = "shape.padded_vocabulary", vocabulary_multiple = "shape.vocabulary_multiple",
                      max_positions = "shape.max_positions", positions = "shape.positions", norm = "shape.norm",
                      activation = "shape.activation", gated = "shape.gated", untied = "shape.untied",
                      no_bias = "shape.no_bias", qkv_bias = "shape.qkv_bias", query_key_norm = "shape.query_key_norm",
                      parallel_blocks = "shape.parallel_blocks", window = "shape.window", tokenizer = "shape.tokenizer";
// Sizes of a model of another kind than the program's usual one.
inline constexpr Name other_kind = "shape.other_kind";
inline constexpr Name experts = "shape.experts", active_experts = "shape.active_experts",
                      expert_width = "shape.expert_width", shared_width = "shape.shared_width",
                      expert_layers = "shape.expert_layers", selection_bias = "shape.selection_bias",
                      shared_gate = "shape.shared_gate";
inline constexpr Name hybrid_layers = "shape.hybrid_layers", state_heads = "shape.state_heads",
                      state_head_dim = "shape.state_head_dim", state_groups = "shape.state_groups",
                      state_width = "shape.state_width";
inline constexpr Name latent = "shape.latent", query_rank = "shape.query_rank", kv_rank = "shape.kv_rank",
                      nope_dim = "shape.nope_dim", rope_dim = "shape.rope_dim", value_dim = "shape.value_dim";

}  // namespace spillway::launch::facts
