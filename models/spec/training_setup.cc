#include "models/spec/training_setup.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/input_error.h"
#include "models/spec/expert_setup.h"
#include "models/spec/model_spec.h"
#include "models/spec/pipeline_setup.h"
#include "models/spec/setup_checks.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

void check_range(const char* name, std::int64_t value, std::int64_t high) {
  if (value < 1 || value > high)
    throw InputError("", name, fmt::format("{} is out of range", value), fmt::format("give 1 .. {}", high));
}

// What a token is multiplied by at most: no layer has more than seven matrices outside its experts, and three for each
// expert that sees the token. matmul_parameter_count() lists every parameter; this costs nothing.
double most_matmul_parameters(const ModelSpec& model, double widest) {
  const std::int64_t experts = model.experts.active + (model.experts.shared_width > 0 ? 1 : 0);
  const auto layers = static_cast<double>(model.all_layers() + model.encoder_layers);
  return layers * static_cast<double>(7 + 3 * experts) * widest *
             static_cast<double>(std::max(model.hidden, model.query_width())) +
         static_cast<double>(model.vocabulary * model.hidden);
}

// Of blocks with sizes of their own.
std::int64_t widest_block(const ModelSpec& model) {
  std::int64_t widest = 0;
  for (const Block& block : model.blocks)
    widest = std::max({widest, block.width, block.query_width() + 2 * block.key_width()});
  return widest;
}

// Keeps every count of one kernel within 64 bits, a step within the clock's 106 days on the slowest GPU worth the name,
// and a trace within a few gigabytes.
void check_size(const TrainingSetup& setup, const ModelSpec& model) {
  constexpr double most_per_kernel = 4e18, most_per_step = 5e19;
  constexpr std::int64_t most_layer_runs = 200'000;
  const auto tokens = static_cast<double>(setup.tokens());
  const auto widest =
      static_cast<double>(std::max({model.vocabulary, model.feed_forward, model.experts.width, model.mamba.projected(),
                                    widest_block(model), model.query_width() + 2 * model.kv_width(), model.hidden}));
  const double product = 2 * tokens * widest * static_cast<double>(std::max(model.hidden, model.query_width()));
  const double square = tokens * static_cast<double>(setup.sequence) * static_cast<double>(model.heads);
  const double attention = 10 * square * static_cast<double>(std::max<std::int64_t>(model.head_dim, 2));
  const auto step_with = [&](double parameters) {
    return (6 * tokens * parameters + attention * static_cast<double>(model.all_layers() + model.encoder_layers)) *
           static_cast<double>(setup.gradient_accumulation);
  };
  double step = step_with(most_matmul_parameters(model, widest));
  if (step > most_per_step) step = step_with(static_cast<double>(matmul_parameter_count(model)));
  if (product > most_per_kernel || attention > most_per_kernel || step > most_per_step)
    throw InputError("", "micro_batch x sequence", fmt::format("one step would be {:.1e} operations", step),
                     fmt::format("stay below {:.0e} in all and {:.0e} in one kernel", most_per_step, most_per_kernel));
  if (model.all_layers() * setup.gradient_accumulation > most_layer_runs)
    throw InputError("", "gradient_accumulation",
                     fmt::format("{} layers x {} micro-batches make too long a trace", model.all_layers(),
                                 setup.gradient_accumulation),
                     fmt::format("stay below {} layer runs", most_layer_runs));
}

std::int64_t moment_bytes(const TrainingSetup& setup) {
  switch (setup.optimizer) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return 2 * setup.state_bytes();
    case OptimizerKind::sgd_momentum:
    case OptimizerKind::muon:
      return setup.state_bytes();
    case OptimizerKind::adamw_8bit:
    case OptimizerKind::torchao_8bit:
      return 2;
    case OptimizerKind::torchao_4bit:
      return 1;
    case OptimizerKind::sgd:
    case OptimizerKind::adafactor:
    case OptimizerKind::galore_adamw:
    case OptimizerKind::apollo_adamw:
    case OptimizerKind::lomo:
    case OptimizerKind::adalomo:
      return 0;
  }
  return 0;
}

// Stages of the encoder: in proportion to its layers, rounded, at least one for each stack.
void apply_split(TrainingSetup& setup, const ModelSpec& model) {
  const std::int64_t p = setup.pipeline_parallel;
  if (setup.pipeline_split != 0 && (!model.has_encoder() || setup.pipeline_split < 0 || setup.pipeline_split >= p))
    throw InputError("", "pipeline_split",
                     model.has_encoder()
                         ? fmt::format("{} of {} stages can't be the encoder's", setup.pipeline_split, p)
                         : model.title + " has no encoder",
                     "leave it at 0, or give 1 .. pipeline_parallel - 1 for a model with an encoder");
  if (!model.has_encoder() || p == 1) return;
  if (setup.pipeline_split == 0) {
    const std::int64_t whole = model.all_layers();
    const std::int64_t least = std::max<std::int64_t>(1, p - model.layers);
    const std::int64_t most = std::max(least, std::min(p - 1, model.encoder_layers));
    setup.pipeline_split = std::clamp((2 * p * model.encoder_layers + whole) / (2 * whole), least, most);
  }
  if (setup.pipeline_split > model.encoder_layers || p - setup.pipeline_split > model.layers)
    throw InputError(
        "", "pipeline_parallel",
        fmt::format("{} stages of the encoder and {} of the decoder, but {} has {} and {} layers", setup.pipeline_split,
                    p - setup.pipeline_split, model.title, model.encoder_layers, model.layers),
        "use fewer stages");
}

void check_pipeline(TrainingSetup& setup, const ModelSpec& model) {
  resolve_pipeline(setup);
  const std::int64_t chunks = setup.pipeline_parallel * setup.pipeline_chunks;
  if (chunks > model.all_layers() + 2)  // the embedding and the head may be chunks of their own
    throw InputError("", "pipeline_parallel",
                     fmt::format("{} stages x {} chunks, but {} has {} layers", setup.pipeline_parallel,
                                 setup.pipeline_chunks, model.title, model.all_layers()),
                     "use fewer stages or chunks");
}

// Attention within documents is a call of FlashAttention for lengths that vary.
void check_documents(const TrainingSetup& setup, const ModelSpec& model) {
  if (setup.document_tokens == 0) return;
  const auto refuse = [](const char* cause, const char* remedy) {
    throw InputError("", "document_tokens", cause, remedy);
  };
  if (setup.document_tokens < 0 || setup.sequence % setup.document_tokens != 0)
    refuse("does not divide the tokens of a sequence", "give a divisor, the documents' mean length or near it");
  if (!setup.flash_attention) refuse("plain attention computes the whole square", "set flash_attention to true");
  if (setup.context_parallel > 1 || setup.sequence_slices > 1)
    refuse("documents with parts on several ranks are not modelled", "set context_parallel and sequence_slices to 1");
  if (model.mask != AttentionMask::causal || model.has_encoder() || model.reads_images() ||
      model.positions == Positions::relative_bias || model.has_indexer())
    refuse("packed documents are modelled in causal decoders", "leave it out");
}

// LOMO: a gradient is gone before another pass, or another rank, could add to it.
void check_updates_in_backward(const TrainingSetup& setup) {
  if (!setup.updates_in_backward()) return;
  const auto refuse = [](const char* place, const char* cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (setup.gradient_accumulation > 1)
    refuse("gradient_accumulation", "LOMO updates in every backward, nothing is added up", "set it to 1");
  if (setup.gpus() > 1)
    refuse("optimizer", "LOMO's update within the backward is modelled on one GPU",
           "set the parallel sizes to 1 or choose another optimizer");
  if (setup.is_wide() || setup.has_master_weights() || setup.has_main_gradients())
    refuse("precision", "LOMO updates weights in 16 bits in place, without masters or gradient buffers",
           "set precision to bf16 and fp32_gradients to false");
}

// Slices of a sequence see those before them, and only flash attention's kernel is there for that.
void check_slices(const TrainingSetup& setup, const ModelSpec& model) {
  if (setup.sequence_slices == 1) return;
  check_divides("sequence_slices", setup.sequence_slices, "tokens of a sequence", setup.sequence);
  const auto refuse = [](const char* place, const std::string& cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (model.mask != AttentionMask::causal || model.has_encoder() || model.reads_images() || model.has_latent() ||
      model.any_block([](const Block& b) { return b.mixer != Mixer::attention || b.window > 0; }) ||
      model.positions == Positions::relative_bias)
    refuse("sequence_slices", model.title + " does not attend causally to all tokens before, with keys of its own",
           "take a schedule without slices");
  if (!setup.flash_attention || setup.context_parallel > 1)
    refuse(setup.flash_attention ? "context_parallel" : "flash_attention",
           "slices of a sequence are attended to by flash attention on one rank",
           "set flash_attention to true and context_parallel to 1");
  if (setup.recomputed_chunks > 0 || setup.loss_metrics > 0)
    refuse(setup.loss_metrics > 0 ? "loss_metrics" : "recomputed_chunks", "not with slices of sequences",
           "set it to 0");
  if (setup.sequence_parallel)
    check_divides("sequence_parallel", setup.tensor_parallel, "tokens of a slice", setup.slice_tokens());
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(", "), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

void check_graphs(const TrainingSetup& setup) {
  for (const std::string_view word : words_of(setup.cuda_graphs))
    if (!is_graph_scope(word))
      throw InputError("", "cuda_graphs", fmt::format("no scope '{}'", word),
                       fmt::format("use some of {}", fmt::join(graph_scopes, ", ")));
}

void check_stage_layers(const TrainingSetup& setup, const ModelSpec& model) {
  if (setup.stage_layers.empty()) return;
  std::int64_t sum = 0, parts = 0;
  for (const std::string_view word : words_of(setup.stage_layers)) {
    std::int64_t layers = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), layers);
    if (error != std::errc() || end != word.data() + word.size() || layers < 0 || layers > model.all_layers())
      throw InputError("", "stage_layers", fmt::format("'{}' is no number of layers", word),
                       "give whole numbers with commas");
    sum += layers;
    ++parts;
  }
  const std::int64_t wanted = setup.pipeline_parallel * setup.pipeline_chunks;
  if (parts != wanted || sum != model.all_layers() || model.has_encoder())
    throw InputError(
        "", "stage_layers",
        fmt::format("{} parts with {} layers, for {} parts and a model of {}", parts, sum, wanted, model.all_layers()),
        "give pipeline_parallel x pipeline_chunks numbers that sum up to the decoder's layers");
}

void check_shard_groups(const TrainingSetup& setup) {
  check_range("shard_groups", setup.shard_groups, 1 << 16);
  check_divides("shard_groups", setup.shard_groups, "data_parallel", setup.data_parallel);
  if (setup.shard_groups > 1 && setup.shards() == 1)
    throw InputError("", "shard_groups", "groups of one rank share nothing out",
                     "set zero_stage to 0, or fewer groups");
  if (setup.shard_groups > 1 && setup.expert_replicas() % setup.shard_groups != 0)
    throw InputError("", "shard_groups",
                     fmt::format("{} ranks hold the same experts, which {} groups can't share", setup.expert_replicas(),
                                 setup.shard_groups),
                     "let expert_parallel x shard_groups divide data_parallel x context_parallel");
}

void check_layout(TrainingSetup& setup, const ModelSpec& model) {
  constexpr std::int64_t most = 1 << 16;
  check_range("tensor_parallel", setup.tensor_parallel, most);
  check_range("context_parallel", setup.context_parallel, most);
  check_range("pipeline_parallel", setup.pipeline_parallel, 1024);
  check_range("pipeline_chunks", setup.pipeline_chunks, 1024);
  check_range("data_parallel", setup.data_parallel, most);
  check_range("expert_parallel", setup.expert_parallel, most);
  check_range("tensor_parallel x context_parallel x pipeline_parallel x data_parallel", setup.gpus(), 1 << 20);
  if (setup.prefetch < 0 || setup.prefetch > 8)
    throw InputError("", "prefetch", fmt::format("{} is out of range", setup.prefetch), "give 0 .. 8");
  if (setup.loss_metrics < 0 || setup.loss_metrics > 8)
    throw InputError("", "loss_metrics", fmt::format("{} is out of range", setup.loss_metrics), "give 0 .. 8");
  const std::int64_t t = setup.tensor_parallel;
  check_divides("tensor_parallel", t, "attention heads", model.heads);
  // Megatron-core since 0.16 shares a key head among ranks (transformer_config.py: one a multiple of the other).
  if (!setup.shares_key_heads(model.kv_heads) || model.has_latent())
    check_divides("tensor_parallel", t, "key-value heads", model.kv_heads);
  check_divides("tensor_parallel", t, "rows of the feed-forward block", model.feed_forward);
  check_divides("tensor_parallel", t, "rows of an expert", model.experts.width);
  check_divides("tensor_parallel", t, "rows of the shared experts", model.experts.shared_width);
  check_divides("context_parallel", setup.context_parallel, "tokens of a sequence", setup.sequence);
  if (setup.sequence_parallel)
    check_divides("tensor_parallel", t, "tokens of a sequence's part", setup.local_sequence());
  check_experts(setup);
  check_shard_groups(setup);
  if (setup.context_parallel > 1 && !setup.flash_attention)
    throw InputError("", "context_parallel", "ring attention is a form of flash attention",
                     "set flash_attention to true or context_parallel to 1");
  if ((setup.sequence_parallel || setup.context_parallel > 1) && model.pretraining_heads)
    throw InputError("", setup.sequence_parallel ? "sequence_parallel" : "context_parallel",
                     model.title + " has heads that see whole sequences", "split it over tensors only");
  if (setup.context_parallel > 1 && setup.context_exchange == ContextExchange::a2a) {
    if (!setup.traits().core || model.has_latent())
      throw InputError("", "context_exchange", "heads are exchanged in Megatron-core's attention alone",
                       "set framework to megatron or context_exchange to p2p");
    check_divides("context_parallel", setup.context_parallel, "key-value heads of a rank",
                  setup.local_key_heads(model.kv_heads));
  }
  if (projects_gradients(setup.optimizer) && (setup.zero_stage > 0 || setup.traits().deepspeed))
    throw InputError("", "optimizer", "gradients of whole matrices are projected, ZeRO shares them out",
                     "set zero_stage to 0 or choose another optimizer");
  check_updates_in_backward(setup);
  check_documents(setup, model);
  if (setup.context_parallel > 1 && setup.context_exchange == ContextExchange::all_gather &&
      !setup.traits().gathers_context)
    throw InputError("", "context_exchange", "gathered keys and values are PyTorch's, not Megatron-core's",
                     "set framework to eager or context_exchange to p2p");
  check_graphs(setup);
  check_pipeline(setup, model);
  check_stage_layers(setup, model);
  check_slices(setup, model);
}

// Chronos-Offload.
void check_offloaded_states(const TrainingSetup& setup) {
  const auto refuse = [](const char* cause, const char* remedy) {
    throw InputError("", "offloaded_states", cause, remedy);
  };
  if (setup.offloaded_states < 0 || setup.offloaded_states > setup.pipeline_chunks)
    refuse("a stage has no so many chunks", "give 0 .. pipeline_chunks");
  if (setup.pipeline_parallel == 1) refuse("chunks are a pipeline's", "set pipeline_parallel");
  if (setup.optimizer != OptimizerKind::adamw && setup.optimizer != OptimizerKind::adam)
    refuse("only Adam's states are moved", "set optimizer to adamw or adam");
  if (setup.optimizer_device == StateDevice::drives || setup.delayed_update)
    refuse("states go to host memory, and come back within a step's time",
           "set optimizer_device to gpu or cpu and delayed_update to false");
  if (setup.zero_stage == 3)
    refuse("the weights of ZeRO stage 3 are gathered for each pass, not once behind an update",
           "set zero_stage to 0, 1 or 2");
  if (setup.zero_stage > 0 && setup.has_flat_states())
    refuse("DeepSpeed's ZeRO keeps the states of all chunks in one buffer", "set zero_stage to 0");
  if (!setup.overlap_gradients)
    refuse("a chunk's gradients leave when its last backward is done", "set overlap_gradients to true");
}

void check_state_devices(const TrainingSetup& setup) {
  if (setup.offloaded_states != 0) check_offloaded_states(setup);
  const bool on_cpu = setup.optimizer_device != StateDevice::gpu;
  if (on_cpu && setup.optimizer != OptimizerKind::adamw && setup.optimizer != OptimizerKind::adam)
    throw InputError("", "optimizer_device", "only Adam has an implementation on the CPU",
                     "set optimizer to adamw or adam, or optimizer_device to gpu");
  if (setup.host_threads < 0)
    throw InputError("", "host_threads", "below 0", "give a number of threads, or 0 for a share of the cores");
  if (setup.weight_device != StateDevice::gpu && (setup.zero_stage != 3 || !on_cpu))
    throw InputError(
        "", "weight_device",
        "weights of several ranks leave the GPU under ZeRO stage 3 only, and with the optimizer on the CPU",
        "set zero_stage to 3 and optimizer_device to cpu or drives");
  if (setup.delayed_update && setup.optimizer_device != StateDevice::cpu)
    throw InputError("", "delayed_update", "an update is delayed while the CPU computes it from host memory",
                     "set optimizer_device to cpu or delayed_update to false");
  if (on_cpu && !setup.step_barrier)
    throw InputError("", "step_barrier", "steps without a barrier need the optimizer on the GPU",
                     "set optimizer_device to gpu or step_barrier to true");
  if (setup.delayed_update && setup.weight_device != StateDevice::gpu)
    throw InputError("", "delayed_update", "weights that are fetched for each use can't be updated beside it",
                     "set weight_device to gpu or delayed_update to false");
}

void check_saved_modules(const TrainingSetup& setup, const ModelSpec& model) {
  if (setup.modules_to_save == SavedModules::none) return;
  const auto refuse = [](const char* cause, const char* remedy) {
    throw InputError("", "modules_to_save", cause, remedy);
  };
  if (!setup.has_adapters()) refuse("without adapters every weight is trained as it is", "set trainable to lora");
  if (model.tied_embeddings)
    refuse("this model's head is its embedding, of which a copy would no longer be one", "set it to none");
  if (model.reads_images() || model.has_encoder() || model.pretraining_heads || model.masked_lm_head)
    refuse("it is modelled for decoders with a head of their own", "set it to none");
  if (setup.base_weights != BaseWeights::same && setup.fp32_unpacked)
    refuse("a base with all else in fp32 is not modelled beside it", "set fp32_unpacked to false");
}

void check_trainable(TrainingSetup& setup, const ModelSpec& model) {
  if (setup.frozen_layers < 0 || setup.frozen_layers > model.all_layers())
    throw InputError(
        "", "frozen_layers",
        fmt::format("{} of {}'s {} layers can't be frozen", setup.frozen_layers, model.title, model.all_layers()),
        fmt::format("give 0 .. {}", model.all_layers()));
  if (setup.trained_layers < 0 || setup.frozen_layers + setup.trained_layers > model.all_layers())
    throw InputError("", "trained_layers",
                     fmt::format("{} of {}'s {} layers don't lie behind {} frozen ones", setup.trained_layers,
                                 model.title, model.all_layers(), setup.frozen_layers),
                     fmt::format("give 0 .. {}", model.all_layers() - setup.frozen_layers));
  if (setup.trained_layers > 0 && setup.has_adapters())
    throw InputError("", "trained_layers", "adapters are trained beside frozen layers, not in some of them",
                     "set trainable to full, or trained_layers to 0");
  if (setup.trainable == Trainable::qlora) {
    if (setup.base_weights == BaseWeights::int8 || setup.base_weights == BaseWeights::fp8)
      throw InputError("", "base_weights", "QLoRA's base is in NF4", "set trainable to lora, or leave it out");
    if (setup.base_weights == BaseWeights::same) setup.base_weights = BaseWeights::nf4_double;
  }
  if (model.stored_nf4) {
    if (!setup.has_adapters())
      throw InputError("", "trainable", model.title + " is published in 4 bits, which can't be trained",
                       "set it to qlora, or name the model without -bnb-4bit");
    if (setup.base_weights == BaseWeights::same) setup.base_weights = BaseWeights::nf4_double;
  }
  if (!setup.has_adapters() && setup.base_weights != BaseWeights::same)
    throw InputError("", "base_weights", "weights that are trained are not stored in so few bits",
                     "set trainable to lora, or leave it out");
  check_saved_modules(setup, model);
  if (setup.trains_all()) return;
  const char* const place = setup.has_adapters()       ? "trainable"
                            : setup.trained_layers > 0 ? "trained_layers"
                                                       : "frozen_layers";
  if (setup.has_adapters()) check_range("lora_rank", setup.lora_rank, model.hidden);
  if (setup.has_adapters() && setup.frozen_layers == model.all_layers())
    throw InputError("", "frozen_layers", "no layer is left to have adapters", "leave some out");
  if (has_narrow_products(setup.precision))
    throw InputError("", place, "frozen weights in fp8 are not modelled", "set precision to bf16_mixed");
  if ((setup.frozen_layers > 0 || setup.trained_layers > 0) && setup.pipeline_parallel > 1)
    throw InputError("", place, "a pipeline of which stages have no backward, or no gradients, is not modelled",
                     fmt::format("set pipeline_parallel to 1 or {} to 0", place));
  if (setup.offloaded_states > 0)
    throw InputError("", "offloaded_states", "only a fully trained chunk's states are moved", "set it to 0");
}

void check_state_types(const TrainingSetup& setup) {
  const bool is_adam = setup.optimizer == OptimizerKind::adamw || setup.optimizer == OptimizerKind::adam;
  const bool on_gpu = setup.optimizer_device == StateDevice::gpu && setup.offloaded_states == 0;
  if (setup.moments != StateType::usual && (!is_adam || !on_gpu))
    throw InputError("", "moments", "only Adam's on the GPU have a type of their own",
                     "set optimizer to adamw or adam and optimizer_device to gpu, or leave it out");
  const bool has_type = setup.main_gradients == StateType::fp32 || setup.main_gradients == StateType::bf16;
  if (setup.main_gradients != StateType::usual && (!has_type || !setup.has_main_gradients() || !on_gpu))
    throw InputError("", "main_gradients", "gradient buffers are fp32 or bf16, and not all frameworks have any",
                     "set framework to megatron, or leave it out");
  if (setup.fp8_weights && (setup.precision != TrainingPrecision::fp8_mixed || setup.zero_stage == 3 || !on_gpu))
    throw InputError("", "fp8_weights", "weights in fp8 need products in fp8, and are gathered as a whole",
                     "set precision to fp8_mixed, zero_stage below 3 and optimizer_device to gpu");
  if (setup.fp8_recipe != Fp8Recipe::delayed && setup.precision != TrainingPrecision::fp8_mixed)
    throw InputError("", "fp8_recipe", "no product is in fp8", "set precision to fp8_mixed, or leave it out");
  const std::int64_t wide_layers = setup.bf16_layers_first + setup.bf16_layers_last;
  if (wide_layers > 0 && !has_narrow_products(setup.precision))
    throw InputError("", setup.bf16_layers_first > 0 ? "bf16_layers_first" : "bf16_layers_last",
                     "no product is in fp8 or NVFP4", "set precision to fp8_mixed or nvfp4_mixed, or leave it out");
  if (setup.fp8_recipe == Fp8Recipe::rowwise && (setup.traits().megatron || setup.fp8_weights))
    throw InputError("", "fp8_recipe", "Transformer Engine has no scales per row, nor can weights be kept so",
                     "take tensorwise or blockwise, or leave out framework and fp8_weights");
  if (setup.fp8_weights && setup.master_remainders)
    throw InputError("", "master_remainders", "weights in fp8 are no upper half of a master weight", "leave it out");
  if (setup.master_remainders &&
      (setup.precision == TrainingPrecision::fp16_mixed || !setup.has_master_weights() || !on_gpu))
    throw InputError("", "master_remainders", "a bf16 weight and 16 bits more make a master weight",
                     "set precision to bf16_mixed and optimizer_device to gpu");
}

void check_recompute(const TrainingSetup& setup) {
  static const std::vector<std::string_view> known = {"core_attn",   "attention",      "layernorm", "moe_act",
                                                      "mla_up_proj", "shared_experts", "mlp",       "moe"};
  for (const std::string_view word : words_of(setup.recompute_modules)) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw InputError("", "recompute_modules", fmt::format("no module '{}'", word),
                       "use some of core_attn, attention, layernorm, moe_act, mla_up_proj, shared_experts, mlp, moe");
    if (word == "attention" && setup.recompute == Recompute::selective && !setup.traits().pytorch)
      throw InputError("", "recompute_modules", "'attention' is one of PyTorch's modules",
                       "set framework to eager or huggingface, or recompute_modules to core_attn");
    if (word != "core_attn" && word != "attention" && setup.recompute == Recompute::selective && !setup.traits().core)
      throw InputError("", "recompute_modules", fmt::format("'{}' is one of Megatron-core's layers", word),
                       "set framework to megatron or recompute_modules to core_attn or attention");
  }
  if (setup.recompute == Recompute::operators && !setup.traits().keeps_operators)
    throw InputError("", "recompute", "operators' results are kept by torchtitan, not by Megatron-LM",
                     "set framework to eager, or recompute to selective with recompute_modules");
  if (setup.recompute_layers < 0 || setup.recompute_every < 1 ||
      (setup.recompute_layers > 0 && setup.recompute_every > 1))
    throw InputError("", setup.recompute_layers < 0 ? "recompute_layers" : "recompute_every",
                     "the first layers or every n-th are recomputed", "give one of them, not below 0 and 1");
}

// Tensor and pipeline ranks of DeepSpeed's are its own engines'; DeepSpeed-MoE spreads experts.
void check_deepspeed(const TrainingSetup& setup) {
  if (!setup.traits().deepspeed) return;
  for (const auto& [key, value] : {std::pair{"tensor_parallel", setup.tensor_parallel},
                                   {"pipeline_parallel", setup.pipeline_parallel},
                                   {"expert_parallel", setup.expert_parallel}})
    if (value > 1)
      throw InputError("", key, "DeepSpeed's ZeRO is modelled over data-parallel and context-parallel ranks",
                       fmt::format("set {} to 1, or framework to huggingface", key));
  for (const auto& [key, is_on] :
       {std::pair{"fp32_reduction", setup.fp32_reduction}, {"late_reduction", setup.late_reduction}})
    if (is_on)
      throw InputError("", key, "it is FSDP's: DeepSpeed reduces every micro-batch's gradients, in their own type",
                       fmt::format("set {} to false, or framework to huggingface", key));
  check_range("sub_group", setup.sub_group, std::int64_t{1} << 40);
  if (setup.prefetch_elements < 0)
    throw InputError("", "prefetch_elements", "below 0", "give a number of elements, 0 for none");
}

// One rank shares nothing out. Weights that live elsewhere are fetched as stage 3 gathers them.
void settle_sharding(TrainingSetup& setup) {
  if (setup.zero_stage < 0 || setup.zero_stage > 3)
    throw InputError("", "zero_stage", fmt::format("there is no ZeRO stage {}", setup.zero_stage), "give 0 .. 3");
  if (setup.data_parallel == 1 && setup.context_parallel == 1) {
    setup.zero_stage = setup.weight_device == StateDevice::gpu ? 0 : 3;
    setup.shard_groups = 1;
    setup.fp32_reduction = setup.late_reduction = false;
  }
  if (setup.zero_stage == 0) setup.shard_groups = 1;
}

void apply_global_batch(TrainingSetup& setup) {
  if (setup.global_batch == 0) return;
  check_range("global_batch", setup.global_batch, std::int64_t{1} << 32);
  const std::int64_t at_once = setup.micro_batch * setup.data_parallel;
  if (setup.global_batch % at_once != 0)
    throw InputError(
        "", "global_batch",
        fmt::format("{} sequences are no multiple of micro_batch x data_parallel = {}", setup.global_batch, at_once),
        "choose a multiple");
  setup.gradient_accumulation = setup.global_batch / at_once;
}

void apply_compile(TrainingSetup& setup) {
  if (!setup.compile) return;
  if (!setup.traits().pytorch)
    throw InputError("", "compile", fmt::format("torch.compile is for PyTorch modules, not {}'s", setup.traits().word),
                     "set framework to eager or huggingface, or compile to false");
  setup.fused_kernels = true;
  if (setup.loss == LossForm::fp32) setup.loss = LossForm::fused;
}

void check_vocabulary(const TrainingSetup& setup, const ModelSpec& model) {
  if (!setup.whole_vocabulary) return;
  if (!setup.traits().pytorch)
    throw InputError("", "whole_vocabulary", fmt::format("{} splits the vocabulary", setup.traits().word),
                     "set framework to eager or huggingface, or whole_vocabulary to false");
  if (model.tied_embeddings || model.pretraining_heads || model.masked_lm_head || model.reads_images())
    throw InputError("", "whole_vocabulary", "it is simulated with a head that is not the embedding",
                     "set whole_vocabulary to false");
}

void check_engine(const TrainingSetup& setup) {
  const auto refuse = [](const char* place, const std::string& cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (!setup.has_engine()) return;
  if (setup.loss != LossForm::group)
    refuse("rollout_memory", "an inference engine gives the answers of a group loss", "set loss to group, or it to 0");
  if (!(setup.rollout_memory < 1)) refuse("rollout_memory", "it is a share of the memory", "give less than 1");
  check_range("rollout_sleep", setup.rollout_sleep + 1, 3);
  check_range("rollout_group", setup.rollout_group, setup.step_sequences());
  check_range("rollout_parallel", setup.rollout_parallel, setup.gpus());
  if (setup.gpus() % setup.rollout_parallel != 0)
    refuse("rollout_parallel",
           fmt::format("{} GPUs don't divide into engines of {}", setup.gpus(), setup.rollout_parallel),
           "give a divisor of the GPUs");
  if (setup.step_sequences() % setup.rollout_group != 0)
    refuse(
        "rollout_group",
        fmt::format("a step's {} answers don't divide into groups of {}", setup.step_sequences(), setup.rollout_group),
        "give a divisor of the step's sequences");
  if (setup.prompt_tokens < 1 || setup.prompt_tokens >= setup.sequence)
    refuse("prompt_tokens", fmt::format("a sequence of {} tokens has a prompt and an answer", setup.sequence),
           "give at least 1, and fewer than sequence");
}

void check_models_beside(const TrainingSetup& setup) {
  const auto refuse = [](const char* place, const std::string& cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (setup.value_micro_batch != 0 && setup.value_model.empty())
    refuse("value_micro_batch", "there is no value model", "name one in value_model, or leave it out");
  if (!setup.has_models_beside()) return;
  const char* const place = setup.value_model.empty() ? "reward_model" : "value_model";
  if (setup.loss != LossForm::group) refuse(place, "it is of a group loss", "set loss to group, or leave it out");
  if (setup.weight_device != StateDevice::gpu)
    refuse(place, "a model beside one with weights in host memory is not modelled", "set weight_device to gpu");
  if (setup.updates_in_backward())
    refuse(place, "updates in the backward are not modelled beside other models", "set optimizer to adamw");
  const std::int64_t sequences = setup.micro_batch * setup.gradient_accumulation, each = setup.value_micro_batch;
  if (each < 0 || (each > 0 && sequences % each != 0))
    refuse("value_micro_batch",
           fmt::format("a step's {} sequences of a replica are no multiple of {}", sequences, each),
           "give a divisor of micro_batch x gradient_accumulation");
}

// Sequences whole on each GPU.
void check_preference(const TrainingSetup& setup, const ModelSpec& model) {
  const auto refuse = [](const char* place, const char* cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  check_engine(setup);
  check_models_beside(setup);
  if (!setup.compares_answers()) {
    if (setup.reference != Reference::none)
      refuse("reference", "a reference model is for a loss that compares answers",
             "set loss to preference, unpaired or group, or leave it out");
    return;
  }
  if (!setup.traits().pytorch) refuse("loss", "answers are compared by TRL", "set framework to huggingface");
  const std::int64_t with_whole = setup.data_parallel * setup.tensor_parallel * setup.pipeline_parallel;
  if (setup.gpus() != with_whole || setup.sequence_slices > 1)
    refuse("loss", "a loss that compares answers needs whole sequences on each GPU",
           "set the parallel sizes but data_parallel, tensor_parallel and pipeline_parallel to 1");
  if (setup.tensor_parallel > 1 && !setup.whole_vocabulary)
    refuse("whole_vocabulary", "log-probabilities of answers are of the whole vocabulary's logits on each GPU",
           "set whole_vocabulary to true, or tensor_parallel to 1");
  if (model.reads_images() || model.pretraining_heads || model.masked_lm_head || model.has_encoder())
    refuse("loss", "this model has no language-model head that gives answers", "set loss to fp32");
  if (setup.loss == LossForm::preference && setup.micro_batch % 2 != 0)
    refuse("micro_batch", "a chosen and a rejected answer are a pair", "give an even number of sequences");
  if (setup.loss_metrics > 0 || setup.evaluate_every > 0)
    refuse("loss", "metrics and evaluations of answers are not modelled", "set loss_metrics and evaluate_every to 0");
  if (setup.reference == Reference::base && !setup.has_adapters())
    refuse("reference", "without adapters the base is the trained model", "set it to model, or to none");
  if (setup.reference != Reference::none && setup.weight_device != StateDevice::gpu)
    refuse("reference", "a reference model in host memory is not modelled", "set weight_device to gpu");
}

void check_wide_stream(const TrainingSetup& setup, const ModelSpec& model) {
  if (!setup.has_wide_stream()) return;
  const std::string key = setup.autocast ? "autocast" : "fp32_unpacked", off = ", or set " + key + " to false";
  const auto refuse = [&](const char* cause, const char* remedy) { throw InputError("", key, cause, remedy + off); };
  const bool is_packed = setup.base_weights != BaseWeights::same;
  if (!setup.traits().pytorch || setup.traits().deepspeed)
    refuse("it is of PyTorch modules", "set framework to eager or huggingface");
  if (setup.autocast && setup.precision != TrainingPrecision::bf16_mixed &&
      setup.precision != TrainingPrecision::fp16_mixed)
    refuse("torch.autocast casts to 16 bits", "set precision to bf16_mixed or fp16_mixed");
  if (setup.autocast && setup.has_adapters() && (is_packed || !setup.has_wide_adapters()))
    refuse("it is modelled for adapters in fp32 beside frozen weights in fp32",
           "set lora_weights to fp32 and base_weights to same");
  if (setup.fp32_unpacked && (!is_packed || !setup.has_wide_adapters() || setup.autocast ||
                              setup.precision != TrainingPrecision::bf16 || !setup.flash_attention))
    refuse("it is modelled for adapters in fp32 beside a packed base in bf16, with flash attention",
           "set trainable to qlora, precision to bf16 and flash_attention to true");
  if (setup.gpus() > setup.data_parallel || setup.zero_stage > 1)
    refuse("it is modelled for replicas of a whole model", "set data_parallel alone");
  const bool is_plain = !model.has_experts() && !model.has_latent() && !model.has_encoder() && !model.reads_images() &&
                        !model.has_linear() && !model.has_mamba() && !model.has_convolutions();
  if (!is_plain) refuse("it is modelled for dense decoders and encoders with attention alone", "name another model");
}

void check_loss(const TrainingSetup& setup, const ModelSpec& model) {
  check_preference(setup, model);
  if (setup.loss != LossForm::chunked && setup.loss != LossForm::sliced) return;
  const auto refuse = [](const char* cause, const char* remedy) { throw InputError("", "loss", cause, remedy); };
  if (!setup.traits().pytorch)
    refuse("chunks and slices of logits are for PyTorch modules",
           "set framework to eager or huggingface, or loss to fused");
  if (setup.tensor_parallel > 1)
    refuse("chunks and slices need the whole vocabulary", "set tensor_parallel to 1 or loss to fused");
  if (setup.loss == LossForm::sliced && (setup.context_parallel > 1 || setup.sequence_slices > 1 || setup.sequence < 2))
    refuse("the last token can be cut off whole sequences alone",
           "set context_parallel and sequence_slices to 1 and sequence to 2 or more, or loss to fp32");
  if (model.reads_images() || model.pretraining_heads || model.masked_lm_head)
    refuse("this model has no language-model head that could be cut up", "set loss to fused");
  if (setup.loss_metrics > 0) refuse("metrics need all logits", "set loss_metrics to 0 or loss to fused");
}

// Draws of experts' rows.
void check_expert_load(const TrainingSetup& setup, const ModelSpec& model) {
  if (!setup.has_expert_loads()) return;
  const char* const place = setup.expert_load != ExpertSpread::even ? "expert_load" : "expert_capacity";
  if (!model.has_experts()) throw InputError("", place, model.title + " has no experts", "leave it out");
  if (setup.expert_imbalance != 1)
    throw InputError("", "expert_imbalance", "loads are drawn, or follow from a capacity",
                     fmt::format("leave out expert_imbalance or {}", place));
  if (setup.expert_load != ExpertSpread::even && !(setup.expert_load_cv > 0 && setup.expert_load_cv <= 4))
    throw InputError("", "expert_load_cv", fmt::format("{} is no spread of shares", setup.expert_load_cv),
                     "give a number above 0, up to 4, or set expert_load to even");
  if (setup.expert_load_steps < 0 || setup.expert_load_steps > 64)
    throw InputError("", "expert_load_steps", fmt::format("{} steps before the one shown", setup.expert_load_steps),
                     "give 0 .. 64");
  if (setup.expert_capacity < 0 || setup.expert_capacity > static_cast<double>(model.experts.count))
    throw InputError("", "expert_capacity", fmt::format("{} times an even share", setup.expert_capacity),
                     fmt::format("give 0 .. {}, the number of experts", model.experts.count));
}

void check_saving(const TrainingSetup& setup) {
  if (setup.saving == Saving::shares || setup.zero_stage == 3) return;
  throw InputError("", "saving", "whole weights are gathered from shares that zero_stage 3 makes",
                   "set it to shares, or zero_stage to 3 over several GPUs");
}

void check_evaluation(const TrainingSetup& setup, const ModelSpec& model) {
  if (setup.evaluate_every == 0) {
    if (setup.evaluation_keeps == EvaluationKeeps::loss) return;
    throw InputError("", "evaluation_keeps", "there is no evaluation", "set evaluate_every, or leave it out");
  }
  const auto refuse = [](const char* place, const char* cause, const char* remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (setup.evaluate_every < 0) refuse("evaluate_every", "below 0", "give a number of steps, or 0 for none");
  check_range("evaluation_batches", setup.evaluation_batches, most_micro_batches);
  if (setup.evaluation_micro_batch != 0) check_range("evaluation_micro_batch", setup.evaluation_micro_batch, 1 << 16);
  if (setup.weight_device != StateDevice::gpu || setup.offloaded_states > 0)
    refuse("evaluate_every", "an evaluation with states that move between its steps is not modelled",
           "set weight_device to gpu and offloaded_states to 0, or evaluate_every to 0");
  TrainingSetup forwards = setup;
  if (setup.evaluation_micro_batch > 0) forwards.micro_batch = setup.evaluation_micro_batch;
  check_range("evaluation_micro_batch x sequence", forwards.tokens(), std::int64_t{1} << 28);
  const bool keeps = setup.evaluation_keeps == EvaluationKeeps::logits;
  forwards.gradient_accumulation = keeps ? setup.evaluation_batches : 1;
  check_size(forwards, model);
  if (setup.evaluation_flush < 0 || setup.evaluation_flush > most_micro_batches)
    refuse("evaluation_flush", "no number of batches", "give 0 for none, or how many are kept together");
  if (!keeps) return;
  if (!setup.traits().pytorch || setup.tensor_parallel * setup.context_parallel * setup.pipeline_parallel > 1)
    refuse("evaluation_keeps", "logits are kept by transformers' Trainer, whole on every GPU",
           "set framework to huggingface or eager, all parallel sizes but data_parallel to 1, or keep the loss");
  if (model.reads_images() || model.pretraining_heads || model.masked_lm_head || setup.loss == LossForm::chunked)
    refuse("evaluation_keeps", "there are no logits of a language model's head to keep",
           "keep the loss, or set loss to fp32");
}

}  // namespace

bool is_graph_scope(std::string_view word) {
  return std::find(graph_scopes.begin(), graph_scopes.end(), word) != graph_scopes.end();
}

bool TrainingSetup::captures(std::string_view scope) const {
  const std::vector<std::string_view> words = words_of(cuda_graphs);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return word == scope || word == whole_iteration; });
}

std::vector<std::int64_t> TrainingSetup::stated_layers() const {
  std::vector<std::int64_t> layers;
  for (const std::string_view word : words_of(stage_layers))
    std::from_chars(word.data(), word.data() + word.size(), layers.emplace_back());
  return layers;
}

bool TrainingSetup::recomputes_module(std::string_view module) const {
  if (recompute != Recompute::selective) return false;
  const std::vector<std::string_view> words = words_of(recompute_modules);
  return std::find(words.begin(), words.end(), module) != words.end();
}

std::int64_t TrainingSetup::optimizer_bytes_per_parameter() const { return master_bytes() + moment_bytes(*this); }

std::int64_t TrainingSetup::model_state_bytes_per_parameter() const {
  const std::int64_t gradient = updates_in_backward() ? 0 : gradient_bytes();
  return trained_weight_bytes() + gradient + optimizer_bytes_per_parameter();
}

std::int64_t default_bucket_bytes(const TrainingSetup& setup) {
  constexpr std::int64_t ddp = 25 << 20, deepspeed = 500'000'000, megatron = 40'000'000, megatron_rank = 1'000'000;
  if (setup.traits().deepspeed) return deepspeed * setup.gradient_bytes();
  if (setup.zero_stage >= 2) return whole_layers;
  if (setup.traits().megatron) return std::max(megatron, megatron_rank * setup.data_parallel) * setup.gradient_bytes();
  return setup.traits().pytorch && setup.zero_stage == 1 ? deepspeed * setup.gradient_bytes() : ddp;
}

TrainingSetup resolve(const TrainingSetup& setup, const ModelSpec& model) {
  TrainingSetup result = setup;
  settle_sharding(result);
  if (result.sequence == 0) result.sequence = model.max_positions;
  check_range("sequence", result.sequence, 1 << 24);
  check_range("micro_batch", result.micro_batch, 1 << 16);
  check_range("data_parallel", result.data_parallel, 1 << 16);
  apply_global_batch(result);
  check_range("gradient_accumulation", result.gradient_accumulation, most_micro_batches);
  check_range("micro_batch x sequence", result.tokens(), std::int64_t{1} << 28);
  if (model.positions == Positions::learned && result.sequence > model.max_positions)
    throw InputError(
        "", "sequence",
        fmt::format("{} tokens, but {} has {} learned positions", result.sequence, model.title, model.max_positions),
        "shorten the sequence or choose a model with rotary positions");
  if (result.dropout == -1) result.dropout = model.dropout;
  if (!(result.dropout >= 0 && result.dropout < 1))
    throw InputError("", "dropout", fmt::format("{} is not a probability", result.dropout), "give a number in [0, 1)");
  if (result.zero_stage > result.traits().most_zero_stage)
    throw InputError("", "zero_stage", fmt::format("{} shares out optimizer states alone", result.traits().word),
                     "set it to 0 or 1, or framework to eager");
  if (result.traits().gradients_at_end) {
    result.fp32_gradients = is_mixed(result.precision);
    if (result.zero_stage == 1) result.overlap_gradients = false;
  }
  if (result.fp32_gradients && !is_mixed(result.precision))
    throw InputError("", "fp32_gradients", "only mixed precision has gradients wider than its weights",
                     "set precision to bf16_mixed or fp32_gradients to false");
  const bool has_narrow = is_mixed(result.precision) || result.precision == TrainingPrecision::bf16;
  if (result.fp32_reduction && (!has_narrow || result.zero_stage < 2))
    throw InputError("", "fp32_reduction", "only gradients in 16 bits that ZeRO shares out are cast to be reduced",
                     "choose a mixed precision or bf16 with zero_stage 2 or 3, or set it to false");
  if (result.late_reduction && result.zero_stage < 2)
    throw InputError("", "late_reduction", "only gradients that ZeRO shares out can be reduced late",
                     "set zero_stage to 2 or 3, or it to false");
  if (!(result.lora_dropout >= 0 && result.lora_dropout < 1))
    throw InputError("", "lora_dropout", fmt::format("{} is not a probability", result.lora_dropout),
                     "give a number in [0, 1)");
  if (result.lora_dropout > 0 && !result.has_adapters())
    throw InputError("", "lora_dropout", "there are no adapters", "set trainable to lora or qlora");
  apply_compile(result);
  check_vocabulary(result, model);
  check_loss(result, model);
  if (!(result.expert_imbalance >= 1 && result.expert_imbalance <= static_cast<double>(result.expert_parallel)))
    throw InputError("", "expert_imbalance",
                     fmt::format("{} is none of 1 to expert_parallel = {}: the fullest rank has no more than all rows",
                                 result.expert_imbalance, result.expert_parallel),
                     "set it to 1, or set expert_parallel");
  check_trainable(result, model);
  check_tower(result, model);
  check_wide_stream(result, model);
  check_layout(result, model);
  check_state_devices(result);
  check_deepspeed(result);
  check_state_types(result);
  check_recompute(result);
  check_expert_load(result, model);
  if (result.bucket_bytes == 0) result.bucket_bytes = default_bucket_bytes(result);
  check_range("bucket_bytes", result.bucket_bytes, whole_layers);
  apply_split(result, model);
  check_size(result, model);
  check_saving(result);
  check_evaluation(result, model);
  return result;
}

}  // namespace spillway::models
