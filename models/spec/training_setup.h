// TrainingSetup: how a model is trained: batch, precision, optimizer, recomputation, and the layout over GPUs.
//
// Sizes are per model replica: `micro_batch` sequences go through one pipeline at a time, `gradient_accumulation` of
// them make a step, and `data_parallel` replicas do so side by side:
//   global batch = micro_batch * gradient_accumulation * data_parallel
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/framework.h"

namespace spillway::models {

struct ModelSpec;
struct PipelinePlan;

enum class TrainingPrecision : std::uint8_t {
  fp32,         // weights, gradients, optimizer state 4 bytes
  bf16_mixed,   // bf16 weights and activations, fp32 master weights and optimizer state
  bf16,         // everything 2 bytes
  tf32,         // as fp32, matrix products in tf32
  fp16_mixed,   // as bf16_mixed, in fp16
  fp8_mixed,    // as bf16_mixed, products of the layers' linear layers in fp8; weights also kept in fp8, twice
  nvfp4_mixed,  // the same in NVFP4: 4 bits, a scale per 16 of them (Transformer Engine's NVFP4BlockScaling)
};
constexpr bool has_narrow_products(TrainingPrecision precision) {
  return precision == TrainingPrecision::fp8_mixed || precision == TrainingPrecision::nvfp4_mixed;
}
constexpr bool is_mixed(TrainingPrecision precision) {
  return precision == TrainingPrecision::bf16_mixed || precision == TrainingPrecision::fp16_mixed ||
         has_narrow_products(precision);
}

enum class OptimizerKind : std::uint8_t {
  adamw,         // two moments
  sgd,           // no momentum: no state
  adam,          // as adamw; the decay goes into the gradient
  sgd_momentum,  // one moment
  adafactor,     // matrices: a row and a column of second-moment factors; vectors: one moment (no first moment)
  adamw_8bit,    // two moments of one byte, a fp32 scale per block of 256; small tensors stay in 32 bits
  muon,          // matrices inside layers: one moment and five Newton-Schulz steps; the rest as adamw
  torchao_8bit,  // as adamw_8bit, but small tensors, and those that blocks don't divide, stay as they would be
  torchao_4bit,  // half a byte a moment, a scale per 128
  galore_adamw,  // matrices inside layers: adamw of the gradient in a space of optimizer_rank; the rest as adamw
  apollo_adamw,  // the same by random numbers; the moments scale the whole gradient's channels
  lomo,          // no state: a weight is updated as soon as its gradient is there, which then goes
  adalomo,       // the same with adafactor's second moments
};
// Products of a matrix with a narrow one before and after the update.
constexpr bool projects_gradients(OptimizerKind kind) {
  return kind == OptimizerKind::galore_adamw || kind == OptimizerKind::apollo_adamw;
}

// foreach: PyTorch's default, one pass over each list of tensors per elementary operation, with a temporary as big as
// the parameter group. fused: one kernel does the whole update, no temporary.
enum class OptimizerForm : std::uint8_t { foreach, fused };

// `none`: every activation the backward needs is kept.
// `selective`: what recompute_modules names is recomputed. Without Megatron-core's layers that is the attention core
// alone (scores, softmax, dropout, context; Korthikanti et al. 2022, section 5). Flash attention keeps its result and
// row sums of it, so little is gained and its forward runs again.
// `full`: only each layer's input is kept, of the layers that recompute_layers and recompute_every say.
// `operators`: the results of every second linear layer, of attention and of reduce-scatters are kept, all else is
// recomputed (torchtitan's selective activation checkpointing, option "op").
enum class Recompute : std::uint8_t { none, selective, full, operators };

// The source of an fp8 operand's scale, and how operands are made.
enum class Fp8Recipe : std::uint8_t {
  delayed,     // of the last passes (Transformer Engine's DelayedScaling): one pass casts and transposes
  tensorwise,  // of the tensor itself: a pass finds its largest value first (Float8CurrentScaling; torchao tensorwise)
  rowwise,     // of each row along the product's k: the operands of both products are cast apart, the backward's from
               // what is kept in 16 bits (torchao's rowwise)
  blockwise,   // of 1 x 128 and 128 x 128 elements: cast both ways in one pass (Float8BlockScaling, DeepSeek-V3)
  mxfp8,       // of 32 elements along k: both ways in one pass, nothing transposed (MXFP8BlockScaling)
};

// How numbers kept beside the weights are stored, other than by precision and framework (Megatron-core's
// --main-grads-dtype, --exp-avg-dtype, --exp-avg-sq-dtype). fp8: a byte, its scales not counted.
enum class StateType : std::uint8_t { usual, fp32, bf16, fp8 };

// The trained parameters. full: every parameter of the layers that aren't frozen. lora: low-rank adapters of the
// layers' linear layers (Hu et al. 2021, arXiv 2106.09685, section 4.1), everything else frozen. qlora: the same on a
// base in NF4 (Dettmers et al. 2023, arXiv 2305.14314, section 3).
enum class Trainable : std::uint8_t { full, lora, qlora };

// The linear layers that have adapters: attention's projections, those of queries, keys and values alone, those of
// feed-forward blocks and experts, or all of these. Routers, embeddings and heads never have.
enum class LoraTargets : std::uint8_t { attention, qkv, mlp, all_linear };

// The trained part of a vision tower that runs: nothing, the projector into the text, or all of it.
enum class TrainTower : std::uint8_t { frozen, projector, whole };

// Of adapters. fp32: 4 bytes in any precision, as PEFT keeps them (autocast_adapter_dtype); gradients and moments too.
// same: as the precision has other weights.
enum class LoraWeights : std::uint8_t { fp32, same };

// Whole copies of the embedding, the head, or both are trained beside adapters (PEFT's modules_to_save). The originals
// stay as they were published, frozen and unused (peft/utils/other.py, ModulesToSaveWrapper).
enum class SavedModules : std::uint8_t { none, embedding, head, both };

// How frozen matrices inside layers are stored (models/spec/trainable.h has the bytes).
enum class BaseWeights : std::uint8_t { same, nf4, nf4_double, int8, fp8 };

// The fused kernel that computes attention. best: the fastest measured on the GPU (cuDNN's on Hopper and Blackwell).
// flash2: FlashAttention 2. triton: the first FlashAttention in Triton, as trained with in 2022 and 2023.
enum class AttentionKernel : std::uint8_t { best, flash2, triton };

// How the context group shares attention. p2p: keys and values go round a ring (Liu et al. 2023). a2a: queries, keys
// and values are exchanged for whole sequences of some of the heads, as many key heads as ranks or more (DeepSpeed
// Ulysses, Jacobs et al. 2023). all_gather: PyTorch's context_parallel as torchtitan runs it: keys and values, repeated
// for every query head, are gathered, partial results are merged in fp32, gradients of keys go round in fp32.
enum class ContextExchange : std::uint8_t { p2p, a2a, all_gather };

// The exchange that carries tokens to the ranks of their experts and back (models/cost/token_exchange.h). `nccl`: a row
// per token and expert, in one all-to-all. `deepep` and `hybridep`: kernels that send a token once per rank, and across
// NVLink domains once per domain.
enum class ExpertDispatcher : std::uint8_t { nccl, deepep, hybridep };

// The cross-entropy of the whole vocabulary on one GPU.
// `fp32`: PyTorch's kernels on a fp32 copy of the logits, as under autocast.
// `native`: the same on the logits as they are.
// `fused`: one kernel each way that keeps a number per row (flash-attn, Apex).
// `chunked`: the head's product and the loss chunk by chunk of the tokens, gradients at once. The whole logits are
// never there (Liger's fused linear cross-entropy). `sliced`: as fp32, on a copy without each sequence's last position
// (logits[:, :-1]), the way scripts shift logits. `preference`: DPO's (Rafailov et al. 2023, arXiv 2305.18290).
// Log-probabilities of the labels, sequence by sequence (trl/trainer/utils.py, selective_log_softmax). Two of them, a
// chosen and a rejected answer, are a pair. `unpaired`: KTO's (Ethayarajh et al. 2024, arXiv 2402.01306). The same of
// single answers. As many other answers estimate a divergence, with the trained and the reference model
// (trl/trainer/kto_trainer.py). `group`: GRPO's (Shao et al. 2024, arXiv 2402.03300) and PPO's kin. The same of answers
// that the model gave itself. A separate phase before them has the reference's log-probabilities.
enum class LossForm : std::uint8_t { fp32, native, fused, chunked, sliced, preference, unpaired, group };

// Tensors that an evaluation keeps of its batches besides their losses. `loss`: none. `logits`: those of every batch,
// in fp32, gathered from all replicas and joined on the GPU, as transformers' Trainer does for compute_metrics.
enum class EvaluationKeeps : std::uint8_t { loss, logits };

// How routers spread tokens over experts (models/spec/expert_load.h). even: alike. lognormal: shares are exponentials
// of normal numbers. dirichlet: the symmetric Dirichlet distribution.
enum class ExpertSpread : std::uint8_t { even, lognormal, dirichlet };

// The reference of a preference loss. Its log-probabilities take a separate forward for each micro-batch, behind the
// trained model's. `none`: they are in the data. `base`: the same weights without their adapters. `model`: a second
// model of the same shape, in 16 bits, whole on every rank or shared out as zero_stage 3 has it.
enum class Reference : std::uint8_t { none, base, model };

// The place of a part of the model's state between its uses. cpu: in host memory. drives: on the machine's drives, with
// staging buffers in host memory.
enum class StateDevice : std::uint8_t { gpu, cpu, drives };

// Whole copies of the weights between steps (scenario/load_and_save.h). Of loading: `shares`, each process reads what
// it keeps; `first`, one process of each machine has the whole model in host memory, the others get it from there;
// `each`, every process has. Of saving: `shares`; `first`, weights are gathered a layer at a time and come together in
// one process's host memory; `gpu`, they come together on every GPU.
enum class Loading : std::uint8_t { shares, first, each };
enum class Saving : std::uint8_t { shares, first, gpu };

constexpr std::int64_t most_micro_batches = 65'534;  // of one step

// Of TrainingSetup::cuda_graphs (Megatron-core's --cuda-graph-scope).
inline constexpr std::string_view whole_iteration = "full_iteration";
inline constexpr std::array<std::string_view, 6> graph_scopes = {"attn",       "mamba",          "mlp",
                                                                 "moe_router", "moe_preprocess", whole_iteration};
bool is_graph_scope(std::string_view word);

struct TrainingSetup {
  std::int64_t micro_batch = 1;            // sequences per micro-batch, >= 1
  std::int64_t sequence = 0;               // tokens per sequence; 0: the model's longest
  std::int64_t gradient_accumulation = 1;  // micro-batches per optimizer step, 1 .. most_micro_batches
  TrainingPrecision precision = TrainingPrecision::bf16_mixed;
  bool fp32_gradients = false;  // bf16_mixed: accumulate gradients in fp32 buffers that live all the time
  OptimizerKind optimizer = OptimizerKind::adamw;
  OptimizerForm optimizer_form = OptimizerForm::foreach;
  std::int64_t optimizer_rank = 128;  // galore_adamw, apollo_adamw
  Trainable trainable = Trainable::full;
  std::int64_t lora_rank = 16;  // r; scaling by alpha / r is one kernel whatever alpha is
  LoraTargets lora_targets = LoraTargets::attention;
  LoraWeights lora_weights = LoraWeights::fp32;
  double lora_dropout = 0;  // of adapters' inputs, each its own, [0, 1)
  SavedModules modules_to_save = SavedModules::none;
  BaseWeights base_weights = BaseWeights::same;  // with adapters; qlora: same stands for nf4_double
  // Each product of such a base keeps its input until the backward, though a frozen weight has no use for it, as
  // bitsandbytes did until 2024 (bitsandbytes/autograd/_functions.py, MatMul4Bit).
  bool keeps_packed_inputs = false;
  // All that such a base doesn't pack is in fp32 though the precision is bf16: embeddings, norms, head and the residual
  // stream. Packed layers cast their input to 16 bits and their result back (PEFT's prepare_model_for_kbit_training,
  // peft/utils/other.py, and bitsandbytes' Linear4bit).
  bool fp32_unpacked = false;
  // The first so many layers, and what lies before them, have neither gradients nor adapters; an encoder's count first.
  std::int64_t frozen_layers = 0;
  // So many layers behind the frozen ones are trained and nothing else, neither embeddings nor head; 0: all that isn't
  // frozen. One at a time is BAdam's block (Luo et al. 2024, arXiv 2404.02827).
  std::int64_t trained_layers = 0;
  // Depths of multi-token prediction (ModelSpec::mtp_layers, which follows from it).
  std::int64_t mtp_layers = 0;
  // Images of a sequence, which a model's vision tower turns into tokens of it (models/spec/tower.h); 0: text alone,
  // and the tower is held frozen. Tokens of each; 0: as the tower makes them of images of its one size.
  std::int64_t images = 0, image_tokens = 0;
  TrainTower train_tower = TrainTower::frozen;
  StateType main_gradients = StateType::usual;  // of gradient buffers that live all the time: fp32 or bf16
  StateType moments = StateType::usual;         // Adam's
  // fp8_mixed: weights of the layers with products in fp8 are stored so, and not in 16 bits (Megatron-core's
  // --fp8-param-gather); the copy that backward products read stays.
  bool fp8_weights = false;
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;  // fp8_mixed
  // fp8_mixed, nvfp4_mixed: products of so many layers stay in 16 bits (Megatron-core's --first-last-layers-bf16).
  std::int64_t bf16_layers_first = 0, bf16_layers_last = 0;
  // bf16_mixed: of a master weight only the 16 bits that the weight itself hasn't (Megatron-core's precision-aware
  // optimizer, store_param_remainders).
  bool master_remainders = false;
  Recompute recompute = Recompute::none;
  // For selective, Megatron-core's words, with commas: core_attn, layernorm (those that are separate modules), moe_act,
  // mla_up_proj, shared_experts, mlp, moe. PyTorch modules also have attention, with its projections.
  std::string recompute_modules = "core_attn";
  std::int64_t recompute_layers = 0;  // full: the first so many of each stage's chunk (Megatron's "block"); 0: all
  std::int64_t recompute_every = 1;   // full: every n-th layer (torchtitan's selective, option n)
  bool flash_attention = true;
  // Sequences are packed with documents of so many tokens, and attention stays within each: FlashAttention's kernels
  // for lengths that vary, called with these. 0: a sequence is one document.
  std::int64_t document_tokens = 0;
  AttentionKernel attention_kernel = AttentionKernel::best;  // with flash_attention
  // RMSNorm, rotary embedding and gelu_new as one kernel each (Apex, Transformer Engine, a compiler), attention on
  // queries, keys and values as they come, scores masked and normed by one kernel. Else it is the sequence of
  // elementwise kernels of Hugging Face's code run eagerly, with its fp32 copies. Heads are moved before the sequence,
  // shared keys and values repeated, scores scaled, masked and normed kernel by kernel; slower and larger.
  bool fused_kernels = true;
  // The rotary embedding is one kernel where the others aren't: flash-attn's, which modules of their own call (Qwen).
  bool fused_rotary = false;
  // RMSNorm is one kernel where the others aren't. Gate, activation and product of a dense feed-forward block are one
  // kernel; its backward has gate and up alone. These are Liger's rms_norm and swiglu (linkedin/Liger-Kernel,
  // ops/swiglu.py keeps a and b and recomputes silu(a)). Experts and a joined gate_up stay as they are.
  bool fused_norms = false, fused_gate = false;
  // PyTorch modules under torch.compile: fused_kernels. Gate, activation and product of a feed-forward block are one
  // kernel; its backward has gate and up alone. An fp32 loss reads logits as they are and writes no copy of them
  // (Inductor's fusion of elementwise chains and reductions).
  bool compile = false;
  // bf16_mixed and fp16_mixed, PyTorch modules: weights, the residual stream and norms are in fp32. The inputs of a
  // product are cast for it, weights once a forward (torch.autocast over a model loaded in fp32).
  bool autocast = false;
  LossForm loss = LossForm::fp32;
  Reference reference = Reference::none;  // losses that compare answers
  // Loss group: an inference engine on the same GPUs gives the answers (models/step/inference_engine.h). Its share of a
  // GPU's memory, [0, 0.99], 0: no engine here. Asleep while the model is trained, it keeps: 0 all; 1 nothing, its
  // weights are in host memory; 2 nothing. The GPUs that split one engine. Answers to a prompt. The tokens of
  // `sequence` that are the prompt's.
  double rollout_memory = 0;
  std::int64_t rollout_sleep = 0;
  std::int64_t rollout_parallel = 1;  // a divisor of the GPUs
  std::int64_t rollout_group = 8;
  std::int64_t prompt_tokens = 512;
  // Loss group: PPO's other models (models/spec/models_beside.h), each "same" for the trained one's shape, or a model's
  // name; empty: none. Sequences of the value model's own micro-batch; 0: micro_batch.
  std::string value_model, reward_model;
  std::int64_t value_micro_batch = 0;
  bool holds_logits = false;      // the program has a name for the logits until the backward ends
  std::int64_t loss_metrics = 0;  // metrics that compute the loss once more from each micro-batch's logits, 0 .. 8
  double dropout = -1;            // [0, 1) replaces the model's; -1: the model's own

  Framework framework = Framework::eager;
  [[nodiscard]] const FrameworkTraits& traits() const { return traits_of(framework); }
  std::int64_t global_batch = 0;      // sequences of all replicas; when given, it sets gradient_accumulation
  std::int64_t tensor_parallel = 1;   // t: heads, feed-forward and vocabulary are split
  bool sequence_parallel = false;     // norms, dropouts and residuals are split t ways along the sequence as well
  std::int64_t context_parallel = 1;  // the whole network is split along the sequence; see ContextExchange
  ContextExchange context_exchange = ContextExchange::p2p;
  std::int64_t pipeline_parallel = 1;  // p stages
  std::int64_t pipeline_chunks = 1;    // v model chunks per stage; 1: as many as the schedule needs
  // A name of models/pipeline/named_schedules.h; 1f1b over several chunks is interleaved. Or a file NAME.json; its
  // reader sets pipeline_plan.
  std::string pipeline_schedule = "1f1b";
  std::shared_ptr<const PipelinePlan> pipeline_plan;
  // Slices of each sequence that go through the pipeline one after another (seq1f1b, slimpipe); 1: as many as the
  // schedule needs.
  std::int64_t sequence_slices = 1;
  std::int64_t recomputed_chunks = 0;  // of each stage, the first ones: kept as their input alone, run forward twice
  bool split_backward = false;         // chronos: W as a separate pass
  // How many last chunks of each stage keep optimizer states in host memory. The states move between a chunk's last
  // backward and its next first forward (models/step/chunk_states.h); the update runs on optimizer_device.
  std::int64_t offloaded_states = 0;
  // false: no stage waits for the others before it updates, so steps follow each other stage by stage. A step is then
  // the longest time of any one stage (the Zero Bubble papers' post-validation).
  bool step_barrier = true;
  // With an encoder: the first so many stages are the encoder's, the others the decoder's (Megatron-LM's
  // pipeline split rank), 1 .. p - 1; 0: by their layers.
  std::int64_t pipeline_split = 0;
  // Layers of each of the p v parts of the model, in the order of the forward, with commas. Empty: as even as can be,
  // fewer in the first and last.
  std::string stage_layers;
  std::int64_t data_parallel = 1;    // d replicas
  std::int64_t expert_parallel = 1;  // e: experts are spread over e of the d * context_parallel ranks
  // GPUs that split each expert's matrices: tensor_parallel, or 1: the experts are then spread over e of all the ranks
  // of a stage, t * context_parallel * d of them. 0: tensor_parallel.
  std::int64_t expert_tensor_parallel = 0;
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::nccl;
  // Rows of the fullest rank of experts over the mean of all, 1 .. expert_parallel; or what a capacity factor pads
  // every rank's to. The rank at hand is the fullest in every layer: all wait for it, and its memory is the largest.
  double expert_imbalance = 1;
  // Every expert layer draws its own shares in every micro-batch.
  ExpertSpread expert_load = ExpertSpread::even;
  double expert_load_cv = 0.6;         // of one expert's share: standard deviation over mean, (0, 4]
  std::int64_t expert_load_seed = 1;   // other seeds, other draws
  std::int64_t expert_load_steps = 1;  // with draws of their own, that run before the one shown, 0 .. 64
  // Rows of an expert are cut off at so many times its even share, rounded up per rank that sends them; padded to that
  // with static_experts. 0: none is dropped.
  double expert_capacity = 0;
  // The exchange of one micro-batch runs beside the computation of another (Megatron-core's
  // --overlap-moe-expert-parallel-comm).
  bool overlap_experts = false;
  // Rows of experts have shapes that the host knows: a capacity factor, padded or paged buffers. false: the host waits
  // for the counts of tokens in every layer (framework megatron).
  bool static_experts = false;
  // fp8_mixed, framework megatron: up product, activation and the cast of its result as one grouped kernel. The
  // GPU reads its shapes itself (Transformer Engine's cuteDSL grouped MLP).
  bool fused_experts = false;
  // Framework megatron: the router's scores and choice, and the permutation of tokens, as fused kernels
  // (--moe-router-fusion, --moe-permute-fusion).
  bool router_fusion = true, permute_fusion = true;
  // Framework megatron, dispatcher nccl: shared experts run beside the exchange (--moe-shared-expert-overlap).
  bool overlap_shared_experts = false;
  // Parts of a micro-batch that the program replays as CUDA graphs: some of graph_scopes, with commas. Their operators
  // cost the host next to nothing.
  std::string cuda_graphs;
  // Tensors of captured parts come from the graphs' own pool, which other work never uses (PyTorch's private
  // pools); false: from the program's.
  bool graph_pool = true;
  // CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel has ended, so the host's time is never hidden.
  bool launch_blocking = false;
  // Collectives of a tensor group are cut up and run beside the product that needs or makes them (Transformer Engine's
  // user buffers, torchtitan's asynchronous tensor parallelism); sequence_parallel only.
  bool overlap_tensor = false;
  // PyTorch modules: tensor ranks hold the embedding whole, and gather the whole vocabulary's logits for the loss
  // (KempnerForge; colwise_rep in transformers' plans).
  bool whole_vocabulary = false;
  // 0: every replica holds everything. 1: optimizer state and master weights are split over d * context_parallel
  // ranks; 2: gradients too; 3: weights too (FSDP). One rank splits nothing, whatever it says (resolve()).
  std::int64_t zero_stage = 0;
  // zero_stage 1 to 3: the ranks form so many groups of neighbours. Each group shares out a whole copy, and shares of
  // gradients are added up over the groups. It is FSDP's HYBRID_SHARD, torchtitan's data_parallel_replicate_degree,
  // Megatron-core's num-distributed-optimizer-instances, and MiCS (Zhang et al. 2022, arXiv 2205.00119). A divisor of
  // data_parallel that leaves every group several ranks.
  std::int64_t shard_groups = 1;
  // Gradients are reduced in buckets of at least so many bytes. 0: as the framework does, default_bucket_bytes().
  std::int64_t bucket_bytes = 0;
  std::int64_t prefetch = 1;  // zero_stage 3: layers with weights gathered ahead of their use, 0 .. 8
  // framework deepspeed, zero_stage 3: parameters of a share that are updated at a time (DeepSpeed's sub_group_size).
  // Elements of weights gathered ahead of their use (stage3_prefetch_bucket_size), in place of prefetch. Experts of a
  // layer are gathered together (leaf modules), not one by one.
  std::int64_t sub_group = 1'000'000'000;
  std::int64_t prefetch_elements = 50'000'000;
  bool leaf_modules = false;
  // zero_stage 3, backwards: the weights ahead are gathered after the gradients of the layer at hand are reduced, not
  // before (FSDP's BACKWARD_POST). On one communicator they wait for that reduction, so neither is hidden.
  bool late_prefetch = false;
  // zero_stage 2 and 3, 16-bit gradients: cast to fp32 before they are reduced (FSDP's reduce_dtype). Without master
  // weights (precision bf16) shares are cast back, as FSDP2 keeps them in the type of its shards.
  bool fp32_reduction = false;
  // zero_stage 2 and 3: whole gradients are added up over the micro-batches and reduced in the last one alone (FSDP's
  // no_sync, FSDP2's set_requires_gradient_sync). There is less to send, and a whole model's gradients stay in memory.
  // With fp32_reduction they are in fp32 (torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
  // to_accumulated_grad_if_needed).
  bool late_reduction = false;
  // Gradients are reduced while the last micro-batch's backward still runs; false: after it.
  bool overlap_gradients = true;
  // The program times every forward and backward of a micro-batch on the host, and waits for the device before and
  // after each. Host and device then don't run ahead of each other. Megatron-LM did so until August 2022.
  bool phase_timers = false;
  // cpu, drives: the optimizer runs on the CPU (models/step/host_optimizer.h); adam and adamw only.
  StateDevice optimizer_device = StateDevice::gpu;
  // Threads of a process's update on the CPU (OMP_NUM_THREADS; torchrun and accelerate give each of several processes
  // one unless it is set); 0: its share of the cores.
  std::int64_t host_threads = 0;
  // zero_stage 3, or one rank, with the optimizer on the CPU: weights are fetched for each use (WeightGatherer).
  StateDevice weight_device = StateDevice::gpu;
  // With optimizer_device cpu: the CPU updates with the gradients of the step before while this step's are made
  // (ZeRO-Offload's delayed parameter update).
  bool delayed_update = false;

  Loading loading = Loading::shares;
  Saving saving = Saving::shares;  // zero_stage 3

  // Training steps between two evaluations, which run forwards alone; 0: none. Their memory is part of the allocator's
  // history before the step shown, their time is printed beside the step's (models/step/evaluation_pass.h).
  std::int64_t evaluate_every = 0;
  std::int64_t evaluation_batches = 1;      // micro-batches of a replica in one evaluation, 1 .. most_micro_batches
  std::int64_t evaluation_micro_batch = 0;  // sequences of each; 0: micro_batch
  EvaluationKeeps evaluation_keeps = EvaluationKeeps::loss;
  std::int64_t evaluation_flush = 0;  // batches after which what is kept goes to the host; 0: at the end

  [[nodiscard]] std::int64_t tokens() const { return micro_batch * sequence; }  // of one micro-batch, all its ranks
  // Key-value heads: whether several tensor ranks hold the same one, and how many a rank's attention sees.
  [[nodiscard]] bool shares_key_heads(std::int64_t key_heads) const {
    return traits().core && key_heads > 0 && tensor_parallel > key_heads && tensor_parallel % key_heads == 0;
  }
  [[nodiscard]] std::int64_t local_key_heads(std::int64_t key_heads) const {
    return shares_key_heads(key_heads) ? 1 : key_heads / tensor_parallel;
  }
  // Log-probabilities of whole answers are the loss's input.
  [[nodiscard]] bool compares_answers() const {
    return loss == LossForm::preference || loss == LossForm::unpaired || loss == LossForm::group;
  }
  [[nodiscard]] bool has_engine() const { return rollout_memory > 0; }
  [[nodiscard]] bool has_models_beside() const { return !value_model.empty() || !reward_model.empty(); }
  // The step has phases, one behind the other (scenario/step_phases.h).
  [[nodiscard]] bool has_phases() const { return has_engine() || has_models_beside(); }
  [[nodiscard]] std::int64_t local_sequence() const { return sequence / context_parallel; }
  // The tokens that attention sees as one, and how many of these a sequence has.
  [[nodiscard]] std::int64_t document() const { return document_tokens > 0 ? document_tokens : sequence; }
  [[nodiscard]] std::int64_t documents() const { return sequence / document(); }
  // Tokens of one sequence on this rank, in one pass through a chunk.
  [[nodiscard]] std::int64_t slice_tokens() const { return local_sequence() / sequence_slices; }
  // Sequences of all replicas, whether given as such or by micro-batches.
  [[nodiscard]] std::int64_t step_sequences() const {
    return global_batch > 0 ? global_batch : micro_batch * gradient_accumulation * data_parallel;
  }
  [[nodiscard]] std::int64_t step_tokens() const { return tokens() * gradient_accumulation * data_parallel; }
  // expert_parallel reuses data-parallel ranks and does not count.
  [[nodiscard]] std::int64_t gpus() const {
    return tensor_parallel * context_parallel * pipeline_parallel * data_parallel;
  }
  // Elements of a parameter with their optimizer state on one rank (ZeRO stage 1 and up: a share, rounded up). Experts
  // spread over e ranks are held by e times fewer ranks.
  [[nodiscard]] std::int64_t optimizer_share(std::int64_t elements, bool is_expert = false) const {
    const std::int64_t ranks = optimizer_ranks(is_expert);
    return (elements + ranks - 1) / ranks;
  }
  // Ranks that share out a parameter's optimizer state: 1 without ZeRO.
  [[nodiscard]] std::int64_t optimizer_ranks(bool is_expert) const {
    return zero_stage == 0 ? 1 : is_expert ? expert_shards() : shards();
  }
  // zero_stage where there are ranks to share with; else 0. Names of set-ups use it.
  [[nodiscard]] std::int64_t shared_stage() const { return data_parallel > 1 || context_parallel > 1 ? zero_stage : 0; }
  // Ranks of a stage that share out one copy of what zero_stage says, and those that do so with a rank's experts.
  [[nodiscard]] std::int64_t shards() const { return data_parallel * context_parallel / shard_groups; }
  [[nodiscard]] std::int64_t expert_shards() const { return expert_replicas() / shard_groups; }
  // Ranks of a stage that hold the same part of the same experts.
  [[nodiscard]] std::int64_t expert_replicas() const {
    return data_parallel * context_parallel * (has_whole_experts() ? tensor_parallel : 1) / expert_parallel;
  }
  // Tensor ranks share out the experts, not each expert's matrices.
  [[nodiscard]] bool has_whole_experts() const { return tensor_parallel > 1 && expert_tensor_parallel == 1; }
  [[nodiscard]] bool captures(std::string_view scope) const;  // one of cuda_graphs, or all
  // Layers of experts do not all have the same rows in every micro-batch, or not as many as their tokens ask for.
  [[nodiscard]] bool has_expert_loads() const { return expert_load != ExpertSpread::even || expert_capacity > 0; }
  // The numbers of stage_layers, which resolve() checked; empty: none stated.
  [[nodiscard]] std::vector<std::int64_t> stated_layers() const;
  [[nodiscard]] bool is_wide() const {
    return precision == TrainingPrecision::fp32 || precision == TrainingPrecision::tf32;
  }
  [[nodiscard]] bool has_adapters() const { return trainable != Trainable::full; }
  [[nodiscard]] bool trains_all() const { return !has_adapters() && frozen_layers == 0 && trained_layers == 0; }
  // DeepSpeed casts adapters as it casts everything.
  [[nodiscard]] bool has_wide_adapters() const {
    return has_adapters() && lora_weights == LoraWeights::fp32 && !traits().deepspeed;
  }
  // Weights, norms and the residual stream are in fp32 while products are in 16 bits.
  [[nodiscard]] bool has_wide_stream() const { return autocast || fp32_unpacked; }
  [[nodiscard]] std::int64_t weight_bytes() const { return is_wide() || has_wide_stream() ? 4 : 2; }
  // Types of trained parameters: an fp32 copy beside the weight; the weight; its gradient; one moment.
  [[nodiscard]] bool has_master_weights() const { return is_mixed(precision) && !has_wide_adapters() && !autocast; }
  // FSDP: the shards are the fp32 weights themselves, gradients' shards are in fp32 too, and weights in 16 bits are
  // there while they are gathered.
  [[nodiscard]] bool has_wide_shards() const {
    return zero_stage == 3 && traits().fsdp && has_master_weights() && !master_remainders &&
           optimizer_device == StateDevice::gpu && weight_device == StateDevice::gpu && !has_narrow_products(precision);
  }
  // DeepSpeed's, on the GPU: DeepspeedZero has them. Other optimizers than these step parameter by parameter there too.
  [[nodiscard]] bool has_flat_states() const {
    return traits().deepspeed && zero_stage > 0 && optimizer_device == StateDevice::gpu &&
           (optimizer == OptimizerKind::adam || optimizer == OptimizerKind::adamw || optimizer == OptimizerKind::sgd ||
            optimizer == OptimizerKind::sgd_momentum);
  }
  [[nodiscard]] std::int64_t trained_weight_bytes() const { return has_wide_adapters() ? 4 : weight_bytes(); }
  [[nodiscard]] bool has_main_gradients() const { return fp32_gradients || traits().gradient_buffers; }
  [[nodiscard]] std::int64_t gradient_bytes() const {
    if (has_main_gradients() && main_gradients == StateType::bf16) return 2;
    return has_main_gradients() || (fp32_reduction && is_mixed(precision)) || has_wide_shards()
               ? 4
               : trained_weight_bytes();
  }
  [[nodiscard]] std::int64_t master_bytes() const { return has_master_weights() ? master_remainders ? 2 : 4 : 0; }
  [[nodiscard]] bool recomputes_module(std::string_view module) const;
  [[nodiscard]] std::int64_t state_bytes() const {
    if (moments != StateType::usual) return moments == StateType::fp32 ? 4 : moments == StateType::bf16 ? 2 : 1;
    return precision == TrainingPrecision::bf16 && !has_wide_adapters() ? 2 : 4;
  }
  // Weights are updated during the backward, gradient by gradient.
  [[nodiscard]] bool updates_in_backward() const {
    return optimizer == OptimizerKind::lomo || optimizer == OptimizerKind::adalomo;
  }
  // Master weights and optimizer state per trained parameter: 12 for bf16_mixed AdamW. Without the small extras: 0 of
  // state for Adafactor and projected gradients, 2 for 8-bit AdamW, one moment for Muon.
  [[nodiscard]] std::int64_t optimizer_bytes_per_parameter() const;
  // These, weights and gradients: 16 for bf16_mixed AdamW.
  [[nodiscard]] std::int64_t model_state_bytes_per_parameter() const;
};

// Buckets that no layer fills: gradients are reduced a layer at a time, as FSDP and Megatron-FSDP do.
constexpr std::int64_t whole_layers = std::int64_t{1} << 40;

// The meaning of a bucket_bytes of 0, by framework, zero_stage and data_parallel:
//   zero_stage 2, 3   whole_layers (torch/distributed/fsdp: one reduce-scatter per unit)
//   Megatron-LM       max(40 million, 1 million x data_parallel) gradients, in the type they are kept in
//                     (megatron/core/distributed/distributed_data_parallel.py; what follows the first stage and chunk
//                     is one bucket there, and cut up here). Without overlap_gradients it has no buckets at all
//   deepspeed         its 500 million gradients (reduce_bucket_size), whatever the stage; PyTorch's stage 1 too
//   else              25 MiB, the bucket_cap_mb of PyTorch's DDP, which transformers and nanotron leave as it is
std::int64_t default_bucket_bytes(const TrainingSetup& setup);

// Fills the defaults in from the model (sequence, dropout), from global_batch and from the framework (bucket_bytes). A
// ZeRO stage over one rank becomes none, with what it says of reductions. If weights live elsewhere it becomes 3, which
// fetches them. Throws InputError, naming the value, when the set-up is out of range, when the step is too large to
// count in 64 bits, or when the model can't run it: a sequence longer than a learned position table; heads, widths or
// layers that don't divide.
TrainingSetup resolve(const TrainingSetup& setup, const ModelSpec& model);

// A field by its name and a text, for scenario files and --set: "micro_batch" "4", "precision" "fp32", "recompute"
// "full", "flash_attention" "true". Throws InputError (place = key) for an unknown key, with the nearest one offered,
// or a text that is no value of it. Ranges are resolve()'s.
void set_field(TrainingSetup& setup, std::string_view key, std::string_view text);
[[nodiscard]] std::string field_text(const TrainingSetup& setup, std::string_view key);
// In the order of the struct.
const std::vector<std::string>& training_setup_keys();

std::string_view to_string(TrainingPrecision precision);
std::string_view to_string(OptimizerKind optimizer);
std::string_view to_string(OptimizerForm form);
std::string_view to_string(Trainable trainable);
std::string_view to_string(LoraTargets targets);
std::string_view to_string(TrainTower trained);
std::string_view to_string(LoraWeights weights);
std::string_view to_string(SavedModules modules);
std::string_view to_string(BaseWeights weights);
std::string_view to_string(Recompute recompute);
std::string_view to_string(AttentionKernel kernel);
std::string_view to_string(ContextExchange exchange);
std::string_view to_string(ExpertDispatcher dispatcher);
std::string_view to_string(StateType type);
std::string_view to_string(LossForm form);
std::string_view to_string(Reference reference);
std::string_view to_string(EvaluationKeeps keeps);
std::string_view to_string(ExpertSpread spread);
std::string_view to_string(Loading loading);
std::string_view to_string(Saving saving);
std::string_view to_string(StateDevice device);

}  // namespace spillway::models
