// The operators transformers are made of, each with its forward kernels, what it saves and its backward kernels.
//
// Activations are [rows, width], rows = tokens. Flops are counted for matrix products and attention only (a
// multiply-add is two); other kernels have bytes alone. A backward does two products of the forward's size per linear
// layer (data and weight gradient); flash attention's backward does five where its forward does two.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/network/workspaces.h"
#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/session/eager_session.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// What plain attention does between its two products. fused: one kernel masks, scales and norms (Megatron-LM, a
// compiler). eager: as scripts write it, (q @ k^T) * scale, masked_fill, softmax. transformers: as Hugging Face's
// modules do, whose masks are added and whose softmax is in fp32.
enum class ScoreKernels : std::uint8_t { fused, eager, transformers };

struct OpsOptions {
  DataType type = DataType::bf16;   // of activations and weights
  DataType narrow = DataType::fp8;  // of operands of parameters in_fp8
  Fp8Recipe recipe = Fp8Recipe::delayed;
  DataType product = DataType::bf16;  // of products: type, or tf32 on fp32 data; parameters in_fp8 have fp8 ones
  bool sequence_parallel = false;
  // Gradients are added into buffers that live all the time by the products that make them (Megatron-LM).
  bool fused_accumulation = false;
  LossForm loss = LossForm::fp32;  // of cross_entropy
  // Biases of split layers are added, and contexts of plain attention moved behind each other, by kernels of their own
  // (Megatron-LM's layers, whether they are split or not).
  bool separate_passes = false;
  bool recomputes_shared_experts = false, recomputes_expert_activation = false, recomputes_norms = false;
  bool merged_experts = false;       // gate and up of experts are one matrix (models/spec/model_part.h)
  bool wide_adapters = false;        // adapters' products are done in fp32, with everything else in 16 bits
  bool casts_adapters = false;       // fp32 adapters under autocast: a cast of their input back and forth
  double adapter_dropout = 0;        // of their inputs
  bool keeps_packed_inputs = false;  // products of frozen weights in fewer bits keep theirs for the backward
  std::int64_t sequences = 1;        // of a micro-batch
  bool copies_logits = false;        // to shift them by a token
  bool loops_experts = false;        // experts run one after another
  bool widens_logits = false;        // a model's result is cast to fp32 when its forward ends
  bool keeps_gathered = false;       // sequence parallel: inputs are kept whole, not gathered once more backwards
  bool whole_experts = false;        // tensor ranks share out the experts, and each keeps its part of the sequence
  double expert_imbalance = 1;       // rows that come to this rank's experts over the mean
  bool fused_experts = false;        // casts and activations of experts are part of their products
  bool waits_for_counts = false;     // the host waits for the number of rows each expert gets
  ExpertDispatcher dispatcher = ExpertDispatcher::nccl;
  bool captures_router = false, captures_preprocess = false;  // a CUDA graph has them
  // Megatron-core's: scores and selection, permutation, are kernels of their own; shared experts run beside the
  // exchange.
  bool fused_router = true, fused_permute = true, overlaps_shared_experts = false;
  bool overlap_tensor = false;  // collectives of the tensor group are cut up beside their products
  // Collectives of parts of a sequence are torch.distributed's, which know the first side only; casts to fp8 are
  // torchao's.
  bool dtensor = false;
  // Kernels wait for the keys and values of the context group, and for their gradients: functional collectives that
  // torch.compile traces are waited for where they are issued (_functional_collectives.py, _maybe_wrap_tensor).
  bool waits_for_context = false;
  bool softmax_limits = false;  // shapes that Megatron-LM's fused softmax does not take get PyTorch's, in fp32
  bool before_cuda_12 = false;  // products are those of cuBLAS 11 (KernelCost::before_cuda_12)
  // torch.autocast: weights, norms and the residual stream are in fp32, `type` is that of products and what they make.
  bool autocast = false;
  bool narrow_norms = false;  // autocast under a compiler: norms write their result in `type`
  ScoreKernels scores = ScoreKernels::fused;
  // Sides of products are padded to eight elements, by what makes the operands (Inductor's shape_padding, on since
  // PyTorch 2.1).
  bool pads_products = false;
};

// What a selectively recomputed block keeps of its forward, in the order in which it was made; taken again, in that
// order, when the block is run once more.
class KeptResults {
 public:
  void begin(bool replays) {
    replays_ = replays;
    next_ = products_ = 0;
  }
  [[nodiscard]] bool replays() const { return replays_; }
  // Of every second product; counts them.
  [[nodiscard]] bool is_kept_product() { return products_++ % 2 == 0; }
  void put(Tensor result) { results_.push_back(std::move(result)); }
  Tensor take() { return std::move(results_.at(next_++)); }

 private:
  std::vector<Tensor> results_;
  std::size_t next_ = 0, products_ = 0;
  bool replays_ = false;
};

class EagerOps {
 public:
  // `communication`: null on a GPU of its own.
  EagerOps(EagerSession& session, Autograd& autograd, const OpsOptions& options, Communication* communication = nullptr)
      : session_(session), autograd_(autograd), options_(options), type_(options.type), communication_(communication) {}

  [[nodiscard]] std::int64_t tensor_ranks() const {
    return communication_ == nullptr ? 1 : communication_->shape(CommGroup::tensor).ranks;
  }
  // rows of `table` picked by `ids`.
  Tensor embedding(const std::string& name, const Tensor& ids, TrainedParameter& table);

  // Tensor parallel (Megatron-LM, Shoeybi et al. 2019, section 3; with sequence parallelism Korthikanti et al. 2022,
  // section 4.2). In a group of one they are plain linear layers.
  struct Linear {
    std::string name;
    TrainedParameter* weight = nullptr;
    TrainedParameter* bias = nullptr;
    // In fp8: keeps the input as it came, which something else keeps anyway or which is discarded, and casts it again
    // backwards (Transformer Engine: save_original_input).
    bool keeps_input = false;
  };
  // x [rows, in] times weight^T [in, out], plus bias when there is one. Saves x; in fp8 its transposed cast.
  Tensor linear(const Linear& layer, const Tensor& x);
  // Layers split by outputs that read the same x. Backwards the sum of their input gradients is all-reduced while the
  // last weight gradient is computed. Sequence parallel: x is gathered first, kept in parts and gathered once more
  // backwards; its gradient is reduce-scattered. In fp8 x is cast once for all layers, before it is gathered.
  std::vector<Tensor> column_linears(const std::vector<Linear>& layers, const Tensor& x);
  // Split by inputs: partial sums, then all-reduce or reduce-scatter, then the bias.
  Tensor row_linear(const Linear& layer, const Tensor& x);
  // Into what each rank of a tensor group does apart: x itself, whose gradient is then summed over the group; sequence
  // parallel: gathered, the gradient reduce-scattered.
  // `beside`: the product that reads it, whose pieces hide the collectives where OpsOptions::overlap_tensor says so.
  struct Sides {
    std::int64_t rows = 0, inputs = 0, outputs = 0;  // 0: none
    std::int64_t products = 1;                       // so many have these outputs together
    bool in_fp8 = false;
  };
  Tensor enter_tensor_region(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside);
  Tensor enter_tensor_region(const std::string& name, const Tensor& x, TensorRole role) {
    return enter_tensor_region(name, x, role, {});
  }
  // Partial sums of a tensor group to their sum; `scatter`: this rank's part of the sequence. `beside`: the product
  // that made them.
  Tensor leave_tensor_region(const std::string& name, const Tensor& x, bool scatter, const Sides& beside);
  Tensor leave_tensor_region(const std::string& name, const Tensor& x, bool scatter) {
    return leave_tensor_region(name, x, scatter, {});
  }
  // This rank's columns of a tensor and those of the other ranks of the tensor group.
  Tensor gather_columns(const std::string& name, const Tensor& x);
  // This rank's part of the sequence of a tensor all ranks have.
  Tensor split_sequence(const std::string& name, const Tensor& x);

  // A frozen layer's result and that of its adapters, weight.adapter_a and adapter_b (eager_lora.cc): out + scaled B A
  // x. `x` has a gradient of its own from them.
  Tensor add_adapter(const std::string& name, const Tensor& out, const Tensor& adapted);
  // What the adapters of `weight` read: x, or a copy of it cast and with dropout.
  Tensor adapter_input(const std::string& name, const Tensor& x, const TrainedParameter& weight);
  [[nodiscard]] bool adapter_reads_input(const TrainedParameter& weight) const;  // x itself
  // The weight as a product of this type reads it: as it is, cast, or unpacked into a temporary.
  Tensor weight_operand(const TrainedParameter& weight, DataType type, std::int64_t parts = 1);
  // Takes a weight's gradient; in the weight's own type.
  void accumulate(TrainedParameter& weight, Tensor gradient);

  // Narrow operands (eager_fp8.cc). x cast, and the same transposed for a product of the backward. `rows`: of x, where
  // torch.compile makes the kernels; else 0.
  struct Narrowed {
    Tensor rows, columns;
  };
  Narrowed narrow(const std::string& name, const Tensor& x, TensorRole role, TrainedParameter* bias,
                  std::int64_t rows = 0);
  // The one or the other alone.
  Tensor narrow_rows(const std::string& name, const Tensor& x, TensorRole role);
  Tensor narrow_columns(const std::string& name, const Tensor& x, std::int64_t rows = 0);
  Tensor narrow_weight(TrainedParameter& weight, bool transposed);
  [[nodiscard]] DataType narrow_type() const { return options_.narrow; }
  [[nodiscard]] ProductScaling scaling() const;
  void cast_rows(const std::string& name, const Tensor& x, const Tensor& rows);
  void cast_columns(const std::string& name, const Tensor& x, const Tensor& columns, std::int64_t rows = 0);
  void cast_both(const std::string& name, const Tensor& x, const Tensor& rows, const Tensor& columns,
                 std::int64_t count = 0);

  // Megatron-LM's fused kernels.
  Tensor bias_gelu(const std::string& name, const Tensor& x, TrainedParameter& bias);  // saves x
  // residual + dropout(x + bias); saves a mask of one byte per element.
  Tensor bias_dropout_add(const std::string& name, const Tensor& x, TrainedParameter* bias, const Tensor& residual,
                          double probability);
  // silu(first half of each row) * second half; saves x.
  Tensor swiglu(const std::string& name, const Tensor& x);
  // function(gate) * up as a compiler fuses it.
  Tensor compiled_gate(const std::string& name, const Tensor& gate, const Tensor& up);

  // Over the last `weight` elements of each row. Saves x and the row statistics in fp32. `bias`: LayerNorm.
  Tensor norm(const std::string& name, const Tensor& x, TrainedParameter& weight, TrainedParameter* bias);
  // Its forward kernel alone.
  void norm_forward(const Tensor& x, const TrainedParameter& weight, const TrainedParameter* bias,
                    std::vector<Tensor> writes);
  // RMSNorm over rows of which each rank of the tensor group has a part, as it has of the weight.
  Tensor split_rms_norm(const std::string& name, const Tensor& x, TrainedParameter& weight);
  // gelu, silu, relu_squared save x; relu, tanh save their result.
  enum class Pointwise : std::uint8_t { gelu, silu, relu, tanh, relu_squared };
  Tensor pointwise(const std::string& name, const Tensor& x, Pointwise function);
  // GELU's tanh form operator by operator: eight kernels forwards where pointwise has one
  // (models/network/eager_unfused.cc).
  Tensor gelu_new(const std::string& name, const Tensor& x);
  Tensor multiply(const std::string& name, const Tensor& x, const Tensor& y);
  Tensor add(const std::string& name, const Tensor& x, const Tensor& y);
  // By a constant. Saves nothing.
  Tensor scale(const std::string& name, const Tensor& x);
  // `part` repeats along the rows of x (positions of each sequence).
  Tensor add_broadcast(const std::string& name, const Tensor& x, const Tensor& part);
  // Saves a mask of one byte per element. probability 0: x itself.
  Tensor dropout(const std::string& name, const Tensor& x, double probability);
  // Rotary positions; `angles` is the table of cosines and sines. Saves nothing.
  Tensor rotary(const std::string& name, const Tensor& x, const Tensor& angles);
  // The same two as sequences of elementwise kernels. The norm saves x in fp32, a factor per row and the normalised x.
  Tensor unfused_rms_norm(const std::string& name, const Tensor& x, TrainedParameter& weight);
  Tensor unfused_rotary(const std::string& name, const Tensor& x, const Tensor& angles);
  // The first token of each sequence of `tokens`.
  Tensor first_tokens(const std::string& name, const Tensor& x, std::int64_t tokens);

  // Queries, keys and values: one packed tensor or three. One fused kernel; saves them, the result and the row
  // statistics. `bias` [heads, sequence, sequence], if any, is added to the scores of every sequence and has a gradient
  // of its own (memory-efficient attention of PyTorch and xFormers; its reading is not in the kernel's time).
  Tensor flash_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                         const Tensor& bias = {});
  // The same with the sequence split over the context group (ring attention, Liu et al. 2023): keys and values go
  // round the ring while the part at hand is worked on, backwards with their gradients. The causal work is balanced:
  // every rank does 1 / c of it in every turn. `shape`: of this rank's queries.
  Tensor ring_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape);
  // The same as PyTorch's context_parallel has it (torch/distributed/tensor/experimental/_attention.py at the end of
  // 2024, as torchtitan calls it): keys and values are repeated for every query head, and gathered while this rank's
  // own are worked on; partial results are merged in fp32 by elementwise kernels, turn by turn. Backwards keys and
  // values are gathered again, and their gradients go round in fp32, turn by turn, all the way home.
  Tensor gathered_attention(const std::string& name, std::vector<Tensor> qkv, AttentionShape shape);
  // Keys and values of one layer and micro-batch whose sequence comes in slices, and their gradient.
  struct SlicedKeys {
    Tensor kept, gradient;
  };
  // The same of one slice of a causal sequence of `sequence` tokens, first tokens first; shape.keys counts its own and
  // those before it. Each slice copies its keys and values to where all are, in one tensor that the first slice makes,
  // and reads them there. Backwards, last slice first, gradients of keys are added up likewise; the first slice frees
  // both. `keys` must outlive the graph.
  Tensor flash_slice(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                     std::int64_t sequence, SlicedKeys& keys);
  // A copy in another layout, and one of its gradient backwards.
  Tensor copied(const std::string& name, const Tensor& x);
  // flash_attention between the copies that Hugging Face's code makes (transformers 4.48 to 4.52,
  // integrations/sdpa_attention.py): queries and the result with heads before the sequence and back, shared keys and
  // values repeated for every head; backwards a copy of each gradient. Three tensors.
  Tensor copying_flash_attention(const std::string& name, std::vector<Tensor> qkv, AttentionShape shape);
  // flash_attention on shared keys and values repeated for every head (transformers before 4.48).
  Tensor repeating_flash_attention(const std::string& name, std::vector<Tensor> qkv, AttentionShape shape);
  // scores, softmax, dropout, context as four kernels; the whole square of scores whatever the mask. Saves queries,
  // keys, values, the softmax and, with dropout, its mask and result. Shared keys and values are repeated first. Values
  // may have a width of their own. `capped`: scores are c tanh(score / c); saves the tanh.
  Tensor plain_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                         double dropout, const Tensor& bias = {}, bool capped = false);

  // Mean cross-entropy of logits [rows, classes] against labels, in OpsOptions::loss. fp32: a copy of the logits, the
  // log-softmax (saved), the loss; backwards their gradients. native: without the copy. fused: saves the logits and a
  // number per row.
  Tensor cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels);
  // LossForm::preference: of each sequence by itself the log-softmax, which is kept, and what its labels have of it.
  Tensor preference_loss(const std::string& name, const Tensor& logits, const Tensor& labels);
  // The same with the product of the head before it (LossForm::chunked). Its gradients are there after the forward.
  Tensor chunked_cross_entropy(const std::string& name, const Linear& head, const Tensor& x, const Tensor& labels);
  // A product of some rows or matrices of its tensors: what it moves is said by its shape.
  void part_product(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write);
  void widen_result(const std::string& name, const Tensor& result);  // where the program does that
  // The same sum once more with PyTorch's kernels and without a backward, as a metric takes it.
  void loss_metric(const std::string& name, const Tensor& logits, const Tensor& labels);
  // The same with classes split over the tensor group, as Megatron-LM computes it: the row maximum, the logit of the
  // label and the sum of exponentials are all-reduced; saves the softmax in fp32, which becomes the gradient in place.
  Tensor split_cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels);

  // In fp32; its gradient comes in x's type.
  Tensor widened(const std::string& name, const Tensor& x);

  // Linear layers, attention and reduce-scatters keep their results there, or take them; null: off. Gives what was set.
  KeptResults* keep(KeptResults* results) { return std::exchange(kept_, results); }

  // Megatron-LM's global memory buffer (core/utils.py, GlobalMemoryBuffer). Inputs of split layers are gathered into
  // it, forwards and backwards, one after the other. An input of another size gets a tensor each time.
  void set_gather_buffer(Tensor buffer) { gather_buffer_ = std::move(buffer); }

  // Transformer Engine's layers and Megatron-core's head and losses (te_ops.cc). They need workspaces.
  void set_workspaces(Workspaces* workspaces) { workspaces_ = workspaces; }
  [[nodiscard]] Workspaces* workspaces() const { return workspaces_; }
  struct NormedLinear {
    std::string norm;
    TrainedParameter *norm_weight = nullptr, *norm_bias = nullptr;
    Linear linear;
  };
  // A norm and the layer behind it, split by outputs, as one function. Saves x, the norm's result (this rank's part of
  // the sequence; in fp8 as weight gradients read it) and the statistics.
  // `kept`: gives what is saved of the norm's result too.
  Tensor norm_linear(const NormedLinear& both, const Tensor& x, Tensor* kept = nullptr);
  // Once more, into the same tensors.
  void norm_linear_again(const NormedLinear& both, const Tensor& x, const Tensor& kept, const Tensor& out);
  // Queries, keys and values in one tensor, whose queries and keys are rotated first. Saves all three apart, the result
  // and the row statistics; not `mixed`.
  struct NormWeights {
    TrainedParameter *weight = nullptr, *bias = nullptr;
  };
  struct RotaryOptions {
    bool exchanges = false;      // over the context group, all to all
    bool recomputes = false;     // the kernel runs again before its backward, and what it gave isn't saved
    NormWeights q_norm, k_norm;  // of each head before it is rotated; saves queries and keys as they came, too
  };
  // The packed projections of all tensor ranks side by side, of which each then takes its own queries and the one key
  // head that it shares with others (Megatron-core 0.16, transformer/attention.py). Backwards what ranks share is
  // summed.
  Tensor gather_heads(const std::string& name, const Tensor& mixed);
  Tensor rotary_attention(const std::string& name, const Tensor& mixed, const Tensor& angles,
                          const AttentionShape& local, const RotaryOptions& options);
  Tensor head(const Linear& layer, const Tensor& x);
  // Losses over a split vocabulary. In place: saves the logits, which become their gradient. Of a copy: saves it, in
  // fp32; `logits` go when the caller holds them no longer.
  Tensor cross_entropy_in_place(const std::string& name, const Tensor& logits, const Tensor& labels);
  Tensor cross_entropy_of_copy(const std::string& name, Tensor logits, const Tensor& labels);

 private:
  // What the weight gradients of layers that share an input need of it.
  struct SavedInput {
    Tensor kept;             // whole, or this rank's part of the sequence; in fp8 the whole is transposed
    bool parts = false;      // kept is a part
    bool casts = false;      // kept is in 16 bits and cast to fp8 for them
    bool turns = false;      // kept is whole, in fp8 along rows
    std::int64_t width = 0;  // of a row, where it is cast late
    std::size_t users = 1;
    bool wants_gradient = true;
    Tensor whole;   // what they read, from the first use of the backward to the last, where it isn't `kept`
    Tensor weight;  // autocast: as the forward cast it
  };
  struct Core;  // what plain attention's backward needs
  // Whether a layer with narrow operands keeps its input as it came.
  [[nodiscard]] bool keeps_wide(const Linear& layer) const {
    return layer.keeps_input || options_.recipe == Fp8Recipe::rowwise;
  }
  // Whether what was sent along rows is turned for the weight gradient; else it comes along columns as well.
  [[nodiscard]] bool transposes() const { return options_.recipe != Fp8Recipe::mxfp8; }
  Tensor narrow_copy(const std::string& name, const char* suffix, std::int64_t elements, TensorRole role);
  void find_largest(const std::string& name, const Tensor& x);
  [[nodiscard]] KernelCost turning() const;  // of a kernel that writes a transposed copy
  Tensor softmax(const std::string& name, Core& core, Tensor scores);
  Tensor softmax_backward(const std::string& name, Core& core, Tensor gradient);
  Tensor masked_scores(const std::string& name, const Core& core, Tensor scores);
  Tensor masked_scores_backward(const std::string& name, const Core& core, Tensor gradient);
  Tensor filled_copy(const std::string& name, const Tensor& scores);
  struct NormSaved {
    Tensor wide, factor, narrow;
  };

  Tensor like(const std::string& name, const Tensor& x, TensorRole role = TensorRole::activation);
  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::activation);
  Tensor gradient_of(const TrainedParameter& parameter);
  Tensor temporary(const std::string& name, DataType type, std::int64_t elements);
  Tensor cast(const std::string& name, const Tensor& x, DataType type);  // x itself when it has the type
  std::vector<Tensor> unfused_rms_norm_backward(const std::string& name, const NormSaved& saved, const Tensor& gradient,
                                                TrainedParameter& weight);
  // Bytes follow from the shape: an operand may be a part of a packed tensor. `bias`: added to them.
  void gemm(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write, Bytes bias = {});
  // Of a linear layer: operands in options_.product.
  void product(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write, Bytes bias);
  Tensor transposed(const std::string& name, const Tensor& x);
  // `operand`: x, or its cast to fp8.
  Tensor linear(const Linear& layer, const Tensor& x, const Tensor& operand, std::shared_ptr<SavedInput> saved);
  [[nodiscard]] static bool is_fp8(const std::vector<Linear>& layers);
  // Weight gradients that read a layer's input as it is kept.
  [[nodiscard]] std::size_t readers_of(const TrainedParameter& weight) const;
  Tensor adapted(const std::string& name, const Tensor& x, Tensor out, const TrainedParameter& weight,
                 const std::shared_ptr<SavedInput>& saved);
  Tensor saved_for_weights(const std::string& name, SavedInput& saved);
  void linear_backward(const Linear& layer, const std::shared_ptr<SavedInput>& saved, const Tensor& gradient,
                       Tensor* x_gradient);
  void weight_gradient(const Linear& layer, const Tensor& gradient, const Tensor& x);
  // The next collective of the tensor group is cut up: a gathering one in a ring of as many pieces as ranks, each
  // multiplied when it is there; a scattering one in four, each on its way while the next is multiplied.
  // Give whether it is. torch.compile finds neither a gathering one before products with scales by row
  // (pytorch/pytorch issue 149990) nor the sum of several products' results behind a scattering one.
  bool cut_up_gather(const Sides& product);
  bool cut_up_scatter(const Sides& product);
  // Parts of the sequence to the whole of it and back. torch.distributed gathers and scatters along the first side:
  // of several sequences a copy puts the parts in order, unless a product takes them piece by piece
  // (_functional_collectives.py).
  // The whole input of a layer split by outputs, for one product.
  Tensor gather_input(const std::string& name, const Tensor& part);
  Tensor gather_sequence(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside);
  Tensor scatter_sequence(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside);
  [[nodiscard]] static Sides turned(Sides sides);  // of the backward's product
  Tensor in_order(const std::string& name, const Tensor& x, TensorRole role, bool in_pieces);
  [[nodiscard]] Picos product_time(const GemmShape& shape) const;
  void sum_bias_gradient(TrainedParameter& bias, const Tensor& gradient);
  void use_dummy(const TrainedParameter& weight);
  struct Slice;
  std::vector<Tensor> slice_backward(const std::string& name, const Slice& slice, std::size_t parts,
                                     const Tensor& gradient, SlicedKeys& keys);
  struct Gathered;
  std::vector<Tensor> gathered_backward(const std::string& name, const Gathered& all, const Tensor& gradient);
  struct Ring;
  std::vector<Tensor> ring_backward(const std::string& name, const Ring& ring, const Tensor& gradient);
  [[nodiscard]] bool adapter_widens_input(const TrainedParameter& weight) const;
  // As a function of its own, whose gradient is cast back.
  Tensor recorded_cast(const std::string& name, const Tensor& x, DataType type);
  // The log-softmax of each row; and what its passes over x read from device memory.
  Tensor log_softmax(const std::string& name, const Tensor& logits, std::int64_t rows, LossForm form);
  [[nodiscard]] Bytes row_reads(const Tensor& x, std::int64_t rows, std::int64_t passes) const;
  Tensor fused_cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels);
  Tensor cube(const std::string& name, const Tensor& x);
  Tensor add_number(const std::string& name, const Tensor& x);
  Tensor sliced(const std::string& name, const Tensor& logits, std::int64_t rows);
  Tensor shifted(const std::string& name, const Tensor& logits);
  // `part` written into a zero-filled tensor of `whole`'s shape.
  Tensor in_zeros(const std::string& name, const Tensor& whole, const Tensor& part, MemoryAccess access);
  Tensor laid_out(const std::string& name, const Tensor& x);
  struct Rotated;
  std::vector<Tensor> exchange_heads(const std::string& name, const std::vector<Tensor>& tensors);
  void run_again(const std::string& name, Rotated& now, const AttentionShape& shape, bool exchanged);
  Tensor run_core(const std::string& name, Rotated& now, const AttentionShape& shape);
  // The norm's result as the product reads it; `kept`: what is saved of it.
  // Gradient of x, null where it has none; those of the weight and the bias are accumulated. `partial_rows`: of sums
  // that the weight's gradient is added up from, beside it.
  Tensor norm_backward(const std::string& name, const Tensor& x, const Tensor& statistics, const NormWeights& weights,
                       const Tensor& gradient, std::int64_t partial_rows = 0);
  Tensor norm_operand(const NormedLinear& both, Tensor normed, Tensor& kept);
  Tensor gathered_operand(const Linear& layer, const Tensor& part);
  void normed_product(const Linear& layer, Tensor operand, const Tensor& out);
  Tensor give_back_heads(const std::string& name, const Tensor& x, bool forwards);
  std::vector<Tensor> norm_linear_backward(const NormedLinear& both, const Tensor& x, const Tensor& statistics,
                                           const std::shared_ptr<SavedInput>& saved, const Tensor& gradient);
  Tensor input_gradient(const Linear& layer, std::int64_t rows, std::int64_t inputs, SavedInput& saved,
                        const Tensor& gradient);
  Tensor reduced_gradient(const std::string& name, const Tensor& whole, bool parts);
  void weight_work(const Linear& layer, const Tensor& gradient, const std::shared_ptr<SavedInput>& saved);
  Tensor rotary_attention_backward(const std::string& name, Rotated& now, const Tensor& angles,
                                   const AttentionShape& shape, Tensor gradient);
  struct NormedHeads;
  Tensor norm_heads(const std::string& name, Tensor x, NormedHeads& heads);
  Tensor repeat_heads(const std::string& name, const Tensor& x, const AttentionShape& shape);
  std::vector<Tensor> join_gradients(const std::string& name, const std::vector<Tensor>& inputs,
                                     std::vector<Tensor> gradients);
  std::vector<Tensor> core_backward(const std::string& name, Core& core, Tensor gradient);

  EagerSession& session_;
  Autograd& autograd_;
  OpsOptions options_;
  DataType type_;
  Communication* communication_;
  // The result at hand from those kept; empty: it is to be made.
  Tensor kept_result() { return kept_ != nullptr && kept_->replays() ? kept_->take() : Tensor(); }
  void keep_result(const Tensor& result) {
    if (kept_ != nullptr && !kept_->replays()) kept_->put(result);
  }
  Workspaces* workspaces_ = nullptr;  // of Megatron-core
  Tensor gather_buffer_;              // of Megatron-LM, sequence parallel
  KeptResults* kept_ = nullptr;
};

}  // namespace spillway::models
