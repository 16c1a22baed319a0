#include "models/spec/training_setup_fields.h"

#include "base/field_setter.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/pipeline/named_schedules.h"

namespace spillway::models {

const Words& fp8_recipe_words() {
  static const Words words = {{"delayed", "the last passes' largest values"},
                              {"tensorwise", "the tensor"},
                              {"rowwise", "each row along k"},
                              {"blockwise", "blocks of 128"},
                              {"mxfp8", "32 elements"}};
  return words;
}

const Words& precision_words() {
  static const Words words = {
      {"fp32", "weights, gradients and optimizer state of 4 bytes"},
      {"bf16_mixed", "2-byte weights, gradients and activations, fp32 master weights and state"},
      {"bf16", "everything of 2 bytes"},
      {"tf32", "fp32 with matrix products in tf32"},
      {"fp16_mixed", "as bf16_mixed, in fp16"},
      {"fp8_mixed", "as bf16_mixed, the linear layers' products in fp8"},
      {"nvfp4_mixed", "the same in NVFP4"}};
  return words;
}

const Words& optimizer_words() {
  static const Words words = {{"adamw", "two moments"},
                              {"sgd", "no state"},
                              {"adam", "two moments"},
                              {"sgd_momentum", "one moment"},
                              {"adafactor", "row and column factors"},
                              {"adamw_8bit", "two moments of a byte"},
                              {"muon", "one moment of matrices in layers"},
                              {"torchao_8bit", "two moments of a byte, torchao's"},
                              {"torchao_4bit", "two moments of half a byte, torchao's"},
                              {"galore_adamw", "GaLore: two moments of projected gradients and the projection"},
                              {"apollo_adamw", "APOLLO: two moments of randomly projected gradients"},
                              {"lomo", "no state, updated during the backward"},
                              {"adalomo", "row and column factors, updated during the backward"}};
  return words;
}

const Words& optimizer_form_words() {
  static const Words words = {{"foreach", "list by list with temporaries as large as the parameters"},
                              {"fused", "one kernel without"}};
  return words;
}

const Words& trainable_words() {
  static const Words words = {{"full", "every parameter"},
                              {"lora", "low-rank adapters, the rest frozen"},
                              {"qlora", "the same on a base in NF4"}};
  return words;
}

const Words& lora_target_words() {
  static const Words words = {{"attention", "projections of attention"},
                              {"qkv", "those of queries, keys and values"},
                              {"mlp", "feed-forward blocks and experts"},
                              {"all_linear", "both"}};
  return words;
}

const Words& train_tower_words() {
  static const Words words = {
      {"frozen", "nothing of it"}, {"projector", "the projector into the text"}, {"whole", "all of it"}};
  return words;
}

const Words& lora_weight_words() {
  static const Words words = {{"fp32", "4 bytes, as PEFT keeps adapters"}, {"same", "as other weights"}};
  return words;
}

const Words& saved_module_words() {
  static const Words words = {{"none", "adapters alone are trained"},
                              {"embedding", "a copy of the embedding, too"},
                              {"head", "a copy of the head"},
                              {"both", "copies of both"}};
  return words;
}

const Words& base_weight_words() {
  static const Words words = {{"same", "as trained ones; nf4_double with qlora"},
                              {"nf4", "4 bits, a fp32 scale per 64 weights"},
                              {"nf4_double", "4 bits, the scales in a byte each"},
                              {"int8", "a byte, a fp32 scale per row"},
                              {"fp8", "a byte, a fp32 scale per 128 x 128 weights"}};
  return words;
}

const Words& recompute_words() {
  static const Words words = {{"none"},
                              {"selective", "what recompute_modules names"},
                              {"full", "whole layers"},
                              {"operators", "all but attention and every second linear layer (torchtitan's op)"}};
  return words;
}

const Words& state_type_words() {
  static const Words words = {{"usual", "as precision and framework have it"}, {"fp32"}, {"bf16"}, {"fp8", "a byte"}};
  return words;
}

const Words& attention_kernel_words() {
  static const Words words = {{"best", "the fastest of the GPU"},
                              {"flash2", "FlashAttention 2"},
                              {"triton", "the first FlashAttention in Triton"}};
  return words;
}

const Words& context_exchange_words() {
  static const Words words = {{"p2p", "keys and values go round a ring"},
                              {"a2a", "heads for whole sequences, all to all (Ulysses)"},
                              {"all_gather", "PyTorch's: repeated keys and values gathered, results merged in fp32"}};
  return words;
}

const Words& expert_dispatcher_words() {
  static const Words words = {{"nccl", "a row per token and expert, all to all"},
                              {"deepep", "DeepEP: a token once per rank and NVLink domain"},
                              {"hybridep", "Hybrid-EP: the same by another kernel"}};
  return words;
}

const Words& loss_words() {
  static const Words words = {{"fp32", "PyTorch's kernels on a fp32 copy of the logits (autocast)"},
                              {"native", "on the logits as they are"},
                              {"fused", "one kernel each way"},
                              {"chunked", "with the head's product, chunk by chunk of the tokens (Liger)"},
                              {"sliced", "as fp32, on a copy of logits[:, :-1]"},
                              {"preference", "DPO's: log-probabilities sequence by sequence, of pairs"},
                              {"unpaired", "KTO's: the same of single answers, and of others without gradients"},
                              {"group", "GRPO's: the same of the model's own answers"}};
  return words;
}

const Words& reference_words() {
  static const Words words = {{"none", "they are in the data"},
                              {"base", "the same weights without adapters"},
                              {"model", "a second model of the same shape"}};
  return words;
}

const Words& evaluation_keeps_words() {
  static const Words words = {{"loss", "losses alone"}, {"logits", "the logits of all batches and replicas, in fp32"}};
  return words;
}

const Words& loading_words() {
  static const Words words = {{"shares", "each process reads what it keeps"},
                              {"first", "one process of each machine has all in host memory"},
                              {"each", "every process has"}};
  return words;
}

const Words& saving_words() {
  static const Words words = {{"shares", "each process writes what it has"},
                              {"first", "gathered layer by layer into one process's host memory"},
                              {"gpu", "gathered whole on every GPU"}};
  return words;
}

const Words& expert_spread_words() {
  static const Words words = {{"even", "every expert gets as many rows"},
                              {"lognormal", "exponentials of normal numbers"},
                              {"dirichlet", "the symmetric Dirichlet distribution"}};
  return words;
}

const Words& framework_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (const FrameworkTraits& row : framework_table) list.push_back({row.word, row.about});
    return Words(std::move(list));
  }();
  return words;
}

const Words& state_device_words() {
  static const Words words = {{"gpu", "device memory"},
                              {"cpu", "host memory, Adam on the CPU (ZeRO-Offload)"},
                              {"drives", "drives, streamed through host memory (ZeRO-Infinity)"}};
  return words;
}

const Words& schedule_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (const NamedSchedule& named : named_schedules()) list.push_back({named.name, named.about, named.alias});
    return Words(std::move(list));
  }();
  return words;
}

namespace {

void describe_batch(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "micro_batch",
                   .min = 1,
                   .max = 65536,
                   .about = "Sequences per micro-batch.",
                   .label = "micro-batch",
                   .unit = "seq."},
                  setup.micro_batch);
  fields::integer(
      visitor,
      {.key = "sequence",
       .dimension = Dimension::sequence,
       .max = 0x1p24,
       .about = "Tokens per sequence, 8k for 8192; 0: the model's longest. Not above that for learned positions. "
                "micro_batch x sequence at most 2^28.",
       .label = "sequence",
       .unit = "tokens"},
      setup.sequence);
  fields::integer(visitor,
                  {.key = "gradient_accumulation",
                   .min = 1,
                   .max = 65534,
                   .about = "Micro-batches per optimizer step.",
                   .label = "accumulation",
                   .unit = "batches"},
                  setup.gradient_accumulation);
}

void describe_optimizer(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "precision", .about = "Of weights, gradients and activations.", .label = "precision"},
               setup.precision, precision_words());
  fields::flag(visitor,
               {.key = "fp32_gradients",
                .about = "With mixed precision only: gradients accumulate in fp32 buffers that live all the time."},
               setup.fp32_gradients);
  fields::word(visitor, {.key = "optimizer", .about = "Decides how much state a parameter has.", .label = "optimizer"},
               setup.optimizer, optimizer_words());
  fields::word(visitor, {.key = "optimizer_form", .about = "How the update runs."}, setup.optimizer_form,
               optimizer_form_words());
  fields::integer(visitor,
                  {.key = "optimizer_rank",
                   .min = 1,
                   .max = 65536,
                   .about = "With galore_adamw and apollo_adamw: width that gradients of matrices in layers are "
                            "projected to."},
                  setup.optimizer_rank);
}

void describe_trained(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor,
               {.key = "trainable",
                .about = "What is trained: frozen parameters have no gradients and no optimizer state.",
                .label = "trained"},
               setup.trainable, trainable_words());
  fields::integer(visitor,
                  {.key = "lora_rank",
                   .min = 1,
                   .max = 65536,
                   .about = "Rank of adapters, at most the model's width.",
                   .label = "rank of adapters"},
                  setup.lora_rank);
  fields::word(visitor, {.key = "lora_targets", .about = "Linear layers inside layers that have adapters."},
               setup.lora_targets, lora_target_words());
  fields::word(visitor,
               {.key = "lora_weights", .about = "How adapters are stored; their gradients and moments follow."},
               setup.lora_weights, lora_weight_words());
  fields::number(visitor,
                 {.key = "lora_dropout",
                  .max = 0.99,
                  .about = "Dropout of adapters' inputs. Each adapted layer keeps its own copy and mask.",
                  .label = "dropout of adapters"},
                 setup.lora_dropout);
  fields::word(visitor,
               {.key = "modules_to_save",
                .about = "With adapters: whole copies that are trained beside them; the originals stay (PEFT)."},
               setup.modules_to_save, saved_module_words());
  fields::word(visitor,
               {.key = "base_weights",
                .about = "With adapters: how the frozen matrices inside layers are stored. In fewer bits than the "
                         "precision has, each is unpacked for every product."},
               setup.base_weights, base_weight_words());
  fields::flag(visitor,
               {.key = "keeps_packed_inputs",
                .about = "With base_weights in fewer bits: their products keep their inputs for the backward, as "
                         "bitsandbytes did until 2024."},
               setup.keeps_packed_inputs);
  fields::flag(visitor,
               {.key = "fp32_unpacked",
                .about = "With base_weights in fewer bits and precision bf16: all else is in fp32, as PEFT's "
                         "prepare_model_for_kbit_training makes it."},
               setup.fp32_unpacked);
  fields::integer(visitor,
                  {.key = "frozen_layers",
                   .max = 100'000,
                   .about = "The first so many layers, and the embeddings before them, are not trained and get no "
                            "gradients.",
                   .label = "frozen layers",
                   .unit = "layers"},
                  setup.frozen_layers);
  fields::integer(visitor,
                  {.key = "trained_layers",
                   .max = 100'000,
                   .about = "So many layers behind the frozen ones are trained and nothing else; 0: all that isn't "
                            "frozen. 1 is a block of BAdam's.",
                   .label = "trained layers",
                   .unit = "layers"},
                  setup.trained_layers);
  fields::integer(visitor,
                  {.key = "mtp_layers",
                   .max = 16,
                   .about = "Multi-token prediction of so many tokens further on, each by a layer behind the last one, "
                            "as Megatron-core trains it.",
                   .label = "tokens further on",
                   .unit = "layers"},
                  setup.mtp_layers);
  fields::integer(visitor,
                  {.key = "images",
                   .max = 65'536,
                   .about = "Images of a sequence, which the model's vision tower turns into tokens of it; 0: text "
                            "alone, the tower is held and not run.",
                   .label = "images",
                   .unit = "a seq."},
                  setup.images);
  fields::integer(visitor,
                  {.key = "image_tokens",
                   .max = 0x1p24,
                   .about = "Tokens of the text that an image becomes; 0: the tower's, where its images have one size.",
                   .label = "an image's tokens",
                   .unit = "tokens"},
                  setup.image_tokens);
  fields::word(visitor, {.key = "train_tower", .about = "With images: what is trained of the vision tower."},
               setup.train_tower, train_tower_words());
}

void describe_stored(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor,
               {.key = "main_gradients",
                .about = "Of gradient buffers that live all the time (framework megatron): fp32 or bf16."},
               setup.main_gradients, state_type_words());
  fields::word(visitor, {.key = "moments", .about = "How Adam's two moments are stored."}, setup.moments,
               state_type_words());
  fields::flag(visitor,
               {.key = "fp8_weights",
                .about = "With fp8_mixed: weights of fp8 products are stored in fp8 alone (--fp8-param-gather)."},
               setup.fp8_weights);
  fields::word(visitor,
               {.key = "fp8_recipe",
                .about = "With fp8_mixed: what a scale is taken from (Megatron's --fp8-recipe, torchao's recipe)."},
               setup.fp8_recipe, fp8_recipe_words());
  fields::integer(visitor,
                  {.key = "bf16_layers_first",
                   .max = 4096,
                   .about = "With fp8_mixed or nvfp4_mixed: products of so many first layers are in bf16 (Megatron's "
                            "--first-last-layers-bf16).",
                   .label = "first layers in bf16",
                   .unit = "layers"},
                  setup.bf16_layers_first);
  fields::integer(visitor,
                  {.key = "bf16_layers_last",
                   .max = 4096,
                   .about = "The same of the last layers. Recipes of NVFP4 leave a few of them in bf16.",
                   .label = "last layers in bf16",
                   .unit = "layers"},
                  setup.bf16_layers_last);
  fields::flag(
      visitor,
      {.key = "master_remainders",
       .about = "Of master weights only the 16 bits that the bf16 weights haven't (precision-aware optimizer)."},
      setup.master_remainders);
}

void describe_recompute(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor,
               {.key = "recompute",
                .about = "Activations recomputed in the backward (activation checkpointing).",
                .label = "activations"},
               setup.recompute, recompute_words());
  fields::text(visitor,
               {.key = "recompute_modules",
                .about = "With selective, words between commas: core_attn; PyTorch modules also attention, with its "
                         "projections; framework megatron also layernorm, moe_act, mla_up_proj, shared_experts, mlp, "
                         "moe."},
               setup.recompute_modules);
  fields::integer(visitor,
                  {.key = "recompute_layers",
                   .max = 100'000,
                   .about = "With full: the first so many layers of each stage's chunk; 0: all.",
                   .label = "recomputed layers",
                   .unit = "layers"},
                  setup.recompute_layers);
  fields::integer(visitor,
                  {.key = "recompute_every", .min = 1, .max = 100'000, .about = "With full: every n-th layer."},
                  setup.recompute_every);
}

void describe_kernels(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::flag(visitor,
               {.key = "flash_attention",
                .about = "false: scores and probabilities are written to memory.",
                .label = "flash attention"},
               setup.flash_attention);
  fields::integer(visitor,
                  {.key = "document_tokens",
                   .dimension = Dimension::sequence,
                   .max = 0x1p24,
                   .about = "Sequences are packed with documents of so many tokens, which attention stays within; a "
                            "divisor of sequence. 0: a sequence is one.",
                   .label = "packed documents",
                   .unit = "tokens"},
                  setup.document_tokens);
  fields::word(visitor, {.key = "attention_kernel", .about = "Which fused kernel computes attention."},
               setup.attention_kernel, attention_kernel_words());
  fields::flag(visitor,
               {.key = "fused_kernels",
                .about = "RMSNorm, rotary embedding and gelu_new as one kernel each; false: elementwise kernel by "
                         "kernel, with the copies around attention that Hugging Face's code makes."},
               setup.fused_kernels);
  fields::flag(visitor,
               {.key = "fused_rotary",
                .about = "The rotary embedding is one kernel though fused_kernels is false, as with Qwen's modules and "
                         "flash-attn."},
               setup.fused_rotary);
  fields::flag(
      visitor,
      {.key = "fused_norms", .about = "RMSNorm is one kernel though fused_kernels is false, as Liger's rms_norm."},
      setup.fused_norms);
  fields::flag(visitor,
               {.key = "fused_gate",
                .about = "Gate, activation and product of a dense feed-forward block are one kernel that keeps its two "
                         "inputs alone, as Liger's swiglu and geglu."},
               setup.fused_gate);
  fields::flag(
      visitor,
      {.key = "compile",
       .about = "PyTorch modules under torch.compile: fused_kernels, one kernel for a gated activation, and an "
                "fp32 loss without copies of the logits."},
      setup.compile);
  fields::flag(visitor,
               {.key = "autocast",
                .about = "PyTorch modules in mixed precision: torch.autocast over weights, residual stream and norms "
                         "in fp32."},
               setup.autocast);
  fields::word(visitor, {.key = "loss", .about = "Cross-entropy of the whole vocabulary."}, setup.loss, loss_words());
  fields::word(visitor,
               {.key = "reference",
                .about = "With losses preference, unpaired and group: the model that it compares with, by a "
                         "separate forward."},
               setup.reference, reference_words());
  fields::number(visitor,
                 {.key = "rollout_memory",
                  .max = 0.99,
                  .about = "With loss group: share of a GPU's memory that an inference engine on the same GPUs takes "
                           "for its weights and cache (vLLM's gpu_memory_utilization); 0: no engine."},
                 setup.rollout_memory);
  fields::integer(visitor,
                  {.key = "rollout_sleep",
                   .max = 2,
                   .about = "What the engine keeps while the model is trained. 0: all; 1: nothing, its weights are in "
                            "host memory; 2: nothing (vLLM's sleep levels)."},
                  setup.rollout_sleep);
  fields::integer(
      visitor,
      {.key = "rollout_parallel", .min = 1, .max = 1024, .about = "GPUs that split one engine.", .unit = "GPUs"},
      setup.rollout_parallel);
  fields::integer(visitor,
                  {.key = "rollout_group", .min = 1, .max = 65536, .about = "With an engine: answers to a prompt."},
                  setup.rollout_group);
  fields::text(visitor,
               {.key = "value_model",
                .about = "With loss group: PPO's value model (critic), trained beside it: same for its own shape, or a "
                         "model as model.name has it; empty: none."},
               setup.value_model);
  fields::integer(visitor,
                  {.key = "value_micro_batch",
                   .max = 65536,
                   .about = "Sequences in each of the value model's micro-batches; 0: micro_batch.",
                   .unit = "sequences"},
                  setup.value_micro_batch);
  fields::text(visitor,
               {.key = "reward_model",
                .about = "With loss group: a model that rates the answers and isn't trained: same, or a model; empty: "
                         "none."},
               setup.reward_model);
  fields::integer(visitor,
                  {.key = "prompt_tokens",
                   .dimension = Dimension::sequence,
                   .max = 0x1p40,
                   .about = "With an engine: the tokens of a sequence that are its prompt's.",
                   .unit = "tokens"},
                  setup.prompt_tokens);
  fields::flag(visitor,
               {.key = "holds_logits",
                .about = "The program's loop keeps the logits until the backward ends, as in logits = model(x)."},
               setup.holds_logits);
  fields::integer(visitor,
                  {.key = "loss_metrics",
                   .max = 8,
                   .about = "Metrics that compute the loss once more from each micro-batch's logits."},
                  setup.loss_metrics);
  fields::number(visitor,
                 {.key = "dropout",
                  .min = -1,
                  .max = 1,
                  .about = "Probability instead of the model's own, below 1; -1: the model's own."},
                 setup.dropout);
  fields::word(visitor, {.key = "framework", .about = "The framework: its kernels and buffers."}, setup.framework,
               framework_words());
}

void describe_split_layers(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "global_batch",
                   .max = 0x1p32,
                   .about = "Sequences of all replicas, a multiple of micro_batch x data_parallel; sets "
                            "gradient_accumulation. 0: not given."},
                  setup.global_batch);
  fields::integer(visitor,
                  {.key = "tensor_parallel",
                   .min = 1,
                   .max = 65536,
                   .about = "GPUs that split heads, feed-forward and vocabulary; a divisor of them. All parallel sizes "
                            "but expert_parallel multiply to at most 2^20 GPUs.",
                   .label = "tensor parallel",
                   .unit = "GPUs"},
                  setup.tensor_parallel);
  fields::flag(visitor,
               {.key = "sequence_parallel",
                .about = "Norms, dropouts and residuals are split over the tensor-parallel GPUs along the sequence."},
               setup.sequence_parallel);
  fields::integer(visitor,
                  {.key = "context_parallel",
                   .min = 1,
                   .max = 65536,
                   .about = "GPUs that split the whole network along the sequence; a divisor of sequence."},
                  setup.context_parallel);
  fields::word(visitor,
               {.key = "context_exchange",
                .about = "How context-parallel GPUs share attention. a2a: framework megatron, and context_parallel a "
                         "divisor of a GPU's key heads. all_gather: framework eager."},
               setup.context_exchange, context_exchange_words());
}

void describe_pipeline(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "pipeline_parallel",
                   .min = 1,
                   .max = 1024,
                   .about = "Pipeline stages.",
                   .label = "stages",
                   .unit = "GPUs"},
                  setup.pipeline_parallel);
  fields::integer(
      visitor,
      {.key = "pipeline_chunks",
       .min = 1,
       .max = 1024,
       .about = "Model chunks per stage; 1: as many as the schedule needs. 1f1b over several is interleaved.",
       .label = "chunks per stage"},
      setup.pipeline_chunks);
  fields::word_or_file(visitor,
                       {.key = "pipeline_schedule",
                        .about = "A schedule of docs/how-to/choose-a-pipeline-schedule.md, or a file as `spillway plan "
                                 "pipeline --format json` prints it.",
                        .label = "schedule",
                        .path = FieldPath::name_or_file},
                       setup.pipeline_schedule, schedule_words());
  fields::integer(visitor,
                  {.key = "sequence_slices",
                   .min = 1,
                   .max = 1024,
                   .about = "Slices of each sequence that go through the pipeline one after another: seq1f1b, "
                            "slimpipe. 1: as many as the schedule needs."},
                  setup.sequence_slices);
  fields::integer(visitor,
                  {.key = "recomputed_chunks",
                   .max = 64,
                   .about = "Of each stage, the first chunks that keep their input alone and run forward twice: "
                            "chronos, gis, gis-h, po-uniform.",
                   .label = "recomputed chunks"},
                  setup.recomputed_chunks);
  fields::flag(visitor,
               {.key = "split_backward",
                .about = "chronos: gradients of weights as a pass of their own.",
                .label = "split the backward"},
               setup.split_backward);
  fields::integer(
      visitor,
      {.key = "offloaded_states",
       .max = 64,
       .about = "How many last chunks of each stage keep optimizer states in host memory. They move between a chunk's "
                "last backward and its next first forward; optimizer_device says where they are updated."},
      setup.offloaded_states);
  fields::flag(visitor,
               {.key = "step_barrier",
                .about = "false: no stage waits for the others before it updates, as with Zero Bubble's "
                         "post-validation; a step is the longest time of any one stage."},
               setup.step_barrier);
  fields::integer(
      visitor,
      {.key = "pipeline_split",
       .max = 1023,
       .about =
           "Of a model with an encoder: stages of the encoder, the others being the decoder's; 0: by their layers."},
      setup.pipeline_split);
  fields::text(visitor,
               {.key = "stage_layers",
                .about = "Layers of each of the pipeline_parallel x pipeline_chunks parts of the model, first to last, "
                         "with commas; empty: as even as can be."},
               setup.stage_layers);
}

void describe_experts(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "expert_parallel",
                   .min = 1,
                   .max = 65536,
                   .about = "GPUs that split the experts, out of data_parallel x context_parallel."},
                  setup.expert_parallel);
  fields::integer(visitor,
                  {.key = "expert_tensor_parallel",
                   .max = 65536,
                   .about = "GPUs that split each expert: tensor_parallel, or 1, where expert_parallel counts tensor "
                            "ranks too. 0: tensor_parallel."},
                  setup.expert_tensor_parallel);
  fields::word(visitor, {.key = "expert_dispatcher", .about = "What carries tokens to their experts and back."},
               setup.expert_dispatcher, expert_dispatcher_words());
  fields::number(
      visitor,
      {.key = "expert_imbalance",
       .min = 1,
       .max = 65536,
       .about = "Rows of the fullest rank of experts over the mean, or a capacity factor that pads all ranks. "
                "The rank shown is that one.",
       .label = "fullest rank of experts over the mean"},
      setup.expert_imbalance);
  fields::word(visitor,
               {.key = "expert_load",
                .about = "How routers spread tokens over experts. Other than even: every layer draws its own shares in "
                         "every micro-batch; the rank shown is the one with most rows in the step, products and "
                         "exchanges take as long as those of the fullest."},
               setup.expert_load, expert_spread_words());
  fields::number(visitor,
                 {.key = "expert_load_cv",
                  .max = 4,
                  .about = "With expert_load: standard deviation over mean of one expert's share, above 0."},
                 setup.expert_load_cv);
  fields::integer(visitor, {.key = "expert_load_seed", .about = "With expert_load: other seeds, other draws."},
                  setup.expert_load_seed);
  fields::integer(visitor,
                  {.key = "expert_load_steps",
                   .max = 64,
                   .about = "With expert_load: steps with draws of their own that the allocator has run before the one "
                            "shown."},
                  setup.expert_load_steps);
  fields::number(visitor,
                 {.key = "expert_capacity",
                  .max = 65536,
                  .about = "Rows of an expert at most, over its even share; those beyond are dropped, or with "
                           "static_experts all are padded to it. 0: none is dropped."},
                 setup.expert_capacity);
  fields::flag(visitor,
               {.key = "overlap_experts",
                .about = "The exchange of one micro-batch's tokens runs beside another's computation."},
               setup.overlap_experts);
  fields::flag(visitor,
               {.key = "static_experts",
                .about = "The host knows how many rows experts get (capacity factor, padding). false: it waits for "
                         "the counts in every layer, with framework megatron."},
               setup.static_experts);
  fields::flag(visitor,
               {.key = "fused_experts",
                .about = "With framework megatron and fp8_mixed: experts' activation and casts are part of their "
                         "products."},
               setup.fused_experts);
  fields::flag(visitor,
               {.key = "router_fusion",
                .about = "With framework megatron: the router's scores and choice are one kernel. false: an operator "
                         "of PyTorch for each part, as Megatron-Bridge's library recipes have it."},
               setup.router_fusion);
  fields::flag(visitor,
               {.key = "permute_fusion",
                .about = "With framework megatron: tokens are permuted by fused kernels. false: by operators of "
                         "PyTorch, sorted piece by piece."},
               setup.permute_fusion);
  fields::flag(visitor,
               {.key = "overlap_shared_experts",
                .about = "With framework megatron and expert_dispatcher nccl: shared experts run beside the exchange "
                         "of tokens. false: before it."},
               setup.overlap_shared_experts);
}

void describe_launches(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::text(visitor,
               {.key = "cuda_graphs",
                .about = "What is replayed as CUDA graphs, with commas: attn, mamba, mlp, moe_router, "
                         "moe_preprocess, full_iteration."},
               setup.cuda_graphs);
  fields::flag(visitor,
               {.key = "graph_pool",
                .about = "With cuda_graphs: what captured parts allocate comes from a pool of their own, which other "
                         "work never uses. false: from the program's."},
               setup.graph_pool);
  fields::flag(visitor,
               {.key = "launch_blocking", .about = "Every launch waits for its kernel's end (CUDA_LAUNCH_BLOCKING=1)."},
               setup.launch_blocking);
  fields::flag(visitor,
               {.key = "overlap_tensor",
                .about = "With sequence_parallel: collectives of a tensor group run in pieces beside the products "
                         "they belong to."},
               setup.overlap_tensor);
  fields::flag(visitor,
               {.key = "whole_vocabulary",
                .about = "PyTorch modules: tensor ranks hold the embedding whole and gather the whole logits for the "
                         "loss. false: embedding, logits and loss are split."},
               setup.whole_vocabulary);
}

void describe_sharding(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "zero_stage",
                   .max = 3,
                   .about = "What is split over the replicas: 1 optimizer state and master weights, 2 gradients too, 3 "
                            "weights too (FSDP). One rank splits nothing.",
                   .label = "ZeRO stage"},
                  setup.zero_stage);
  fields::integer(
      visitor,
      {.key = "shard_groups",
       .min = 1,
       .max = 65536,
       .about = "With zero_stage 1 to 3: groups of replicas that each share out a whole copy, adding shares "
                "of gradients up over the groups (hybrid sharding, HSDP).",
       .label = "groups that shard"},
      setup.shard_groups);
  fields::integer(visitor,
                  {.key = "bucket_bytes",
                   .max = 0x1p40,
                   .about = "Gradients are reduced in buckets of at least so many bytes. 0: as the framework does, "
                            "PyTorch's DDP in 25 MiB, DeepSpeed in 500 million gradients, Megatron-LM "
                            "in 40 million or, if more, 1 million times data_parallel; with zero_stage 2 and 3 a layer "
                            "at a time (FSDP)."},
                  setup.bucket_bytes);
  fields::integer(visitor,
                  {.key = "prefetch",
                   .max = 8,
                   .about = "With zero_stage 3: layers with weights that are gathered ahead of their use."},
                  setup.prefetch);
  fields::integer(
      visitor,
      {.key = "sub_group",
       .min = 1,
       .max = 0x1p40,
       .about = "With framework deepspeed and zero_stage 3: parameters of a GPU's share that are updated at "
                "a time; their gradients are cast to fp32 meanwhile (sub_group_size)."},
      setup.sub_group);
  fields::integer(visitor,
                  {.key = "prefetch_elements",
                   .max = 0x1p40,
                   .about = "With framework deepspeed and zero_stage 3, in place of prefetch: elements of weights "
                            "gathered ahead of their use (stage3_prefetch_bucket_size)."},
                  setup.prefetch_elements);
  fields::flag(visitor,
               {.key = "leaf_modules",
                .about = "With framework deepspeed and zero_stage 3: a layer's experts are gathered together, not one "
                         "by one (leaf modules)."},
               setup.leaf_modules);
  fields::flag(visitor,
               {.key = "late_prefetch",
                .about = "With zero_stage 3: backwards, the next layer's weights are gathered after this layer's "
                         "gradients are reduced (FSDP's BACKWARD_POST)."},
               setup.late_prefetch);
  fields::flag(
      visitor,
      {.key = "fp32_reduction",
       .about =
           "With mixed precision or bf16, and zero_stage 2 or 3: gradients are cast to fp32 before they are reduced."},
      setup.fp32_reduction);
  fields::flag(
      visitor,
      {.key = "late_reduction",
       .about = "With zero_stage 2 or 3: whole gradients are added up over the micro-batches and reduced once, "
                "in the last (FSDP's no_sync)."},
      setup.late_reduction);
  fields::flag(visitor,
               {.key = "overlap_gradients",
                .about = "Gradients are reduced while the last backward still runs; false: after it."},
               setup.overlap_gradients);
  fields::flag(visitor,
               {.key = "phase_timers",
                .about = "The program waits for the device before and after every forward and backward, to time them."},
               setup.phase_timers);
}

void describe_host_update(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor,
               {.key = "optimizer_device",
                .about = "Where the optimizer state is, and who updates; other than gpu for adam and adamw only.",
                .label = "optimizer on"},
               setup.optimizer_device, state_device_words());
  fields::integer(
      visitor,
      {.key = "host_threads",
       .max = 4096,
       .about = "Threads of each process's update on the CPU (OMP_NUM_THREADS, which torchrun and accelerate "
                "set to 1). 0: its share of the cores."},
      setup.host_threads);
  fields::word(
      visitor,
      {.key = "weight_device",
       .about = "With zero_stage 3 or one rank, and the optimizer on the CPU: from where weights are fetched layer by "
                "layer."},
      setup.weight_device, state_device_words());
  fields::flag(visitor,
               {.key = "delayed_update",
                .about = "With optimizer_device cpu: the CPU updates with the last step's gradients beside this step's "
                         "forward and backward."},
               setup.delayed_update);
}

void describe_evaluation(TrainingSetup& setup, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "loading", .about = "Weights as they are loaded, before the first step."},
               setup.loading, loading_words());
  fields::word(visitor, {.key = "saving", .about = "With zero_stage 3: weights as they are saved, between steps."},
               setup.saving, saving_words());
  fields::integer(visitor,
                  {.key = "evaluate_every",
                   .max = 0x1p40,
                   .about = "Training steps between two evaluations; 0: none. What they allocate is part of the "
                            "allocator's history, their time is printed with the step's.",
                   .unit = "steps"},
                  setup.evaluate_every);
  fields::integer(visitor,
                  {.key = "evaluation_batches",
                   .min = 1,
                   .max = most_micro_batches,
                   .about = "With evaluate_every: micro-batches of a replica in one evaluation."},
                  setup.evaluation_batches);
  fields::integer(visitor,
                  {.key = "evaluation_micro_batch",
                   .max = 65536,
                   .about = "With evaluate_every: sequences of one of them; 0: micro_batch.",
                   .unit = "sequences"},
                  setup.evaluation_micro_batch);
  fields::word(visitor,
               {.key = "evaluation_keeps",
                .about = "With evaluate_every: what stays on the GPU until the evaluation's end; logits without "
                         "pipeline and tensor groups only."},
               setup.evaluation_keeps, evaluation_keeps_words());
  fields::integer(visitor,
                  {.key = "evaluation_flush",
                   .max = most_micro_batches,
                   .about = "With evaluation_keeps: batches after which it goes to the host (transformers' "
                            "eval_accumulation_steps); 0: at the end."},
                  setup.evaluation_flush);
}

}  // namespace

void describe(TrainingSetup& setup, FieldVisitor& visitor) {
  describe_batch(setup, visitor);
  describe_optimizer(setup, visitor);
  describe_trained(setup, visitor);
  describe_stored(setup, visitor);
  describe_recompute(setup, visitor);
  describe_kernels(setup, visitor);
  describe_split_layers(setup, visitor);
  describe_pipeline(setup, visitor);
  fields::integer(visitor,
                  {.key = "data_parallel",
                   .min = 1,
                   .max = 65536,
                   .about = "Replicas.",
                   .label = "data parallel",
                   .unit = "replicas"},
                  setup.data_parallel);
  describe_experts(setup, visitor);
  describe_launches(setup, visitor);
  describe_sharding(setup, visitor);
  describe_host_update(setup, visitor);
  describe_evaluation(setup, visitor);
}

const std::vector<std::string>& training_setup_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> result;
    for (const FieldRow& row : rows_of<TrainingSetup>()) result.push_back(row.path);
    return result;
  }();
  return keys;
}

void set_field(TrainingSetup& setup, std::string_view key, std::string_view text) {
  FieldSetter setter(key, text);
  describe(setup, setter);
  if (!setter.found())
    throw InputError("", std::string(key), "no such setting of a training set-up", suggest(key, training_setup_keys()));
}

std::string field_text(const TrainingSetup& setup, std::string_view key) {
  TrainingSetup copy = setup;  // visitors may change what they visit; this one does not
  FieldTexts texts(key);
  describe(copy, texts);
  return texts.take();
}

std::string_view to_string(TrainingPrecision precision) { return precision_words()[precision].name; }
std::string_view to_string(OptimizerKind optimizer) { return optimizer_words()[optimizer].name; }
std::string_view to_string(OptimizerForm form) { return optimizer_form_words()[form].name; }
std::string_view to_string(Trainable trainable) { return trainable_words()[trainable].name; }
std::string_view to_string(SavedModules modules) { return saved_module_words()[modules].name; }
std::string_view to_string(LoraTargets targets) { return lora_target_words()[targets].name; }
std::string_view to_string(TrainTower trained) { return train_tower_words()[trained].name; }
std::string_view to_string(LoraWeights weights) { return lora_weight_words()[weights].name; }
std::string_view to_string(BaseWeights weights) { return base_weight_words()[weights].name; }
std::string_view to_string(Recompute recompute) { return recompute_words()[recompute].name; }
std::string_view to_string(StateType type) { return state_type_words()[type].name; }
std::string_view to_string(ContextExchange exchange) { return context_exchange_words()[exchange].name; }
std::string_view to_string(ExpertDispatcher dispatcher) { return expert_dispatcher_words()[dispatcher].name; }
std::string_view to_string(AttentionKernel kernel) { return attention_kernel_words()[kernel].name; }
std::string_view to_string(EvaluationKeeps keeps) { return evaluation_keeps_words()[keeps].name; }
std::string_view to_string(Loading loading) { return loading_words()[loading].name; }
std::string_view to_string(Saving saving) { return saving_words()[saving].name; }
std::string_view to_string(ExpertSpread spread) { return expert_spread_words()[spread].name; }
std::string_view to_string(LossForm form) { return loss_words()[form].name; }
std::string_view to_string(Reference reference) { return reference_words()[reference].name; }
std::string_view to_string(StateDevice device) { return state_device_words()[device].name; }

}  // namespace spillway::models
