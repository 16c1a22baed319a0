// Linear layers, alone and split over a tensor group (Megatron-LM, Shoeybi et al. 2019, section 3; with sequence
// parallelism Korthikanti et al. 2022, section 4.2). In a group of one they are plain linear layers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

struct Linear {
  std::string name;
  TrainedParameter* weight = nullptr;
  TrainedParameter* bias = nullptr;
  // In fp8: keeps the input as it came, which something else keeps anyway or which is discarded, and casts it again
  // backwards (Transformer Engine: save_original_input).
  bool keeps_input = false;
};
// x [rows, in] times weight^T [in, out], plus bias when there is one. Saves x; in fp8 its transposed cast.
Tensor linear(EagerRecorder& rec, const Linear& layer, const Tensor& x);
// Layers split by outputs that read the same x. Backwards the sum of their input gradients is all-reduced while the
// last weight gradient is computed. Sequence parallel: x is gathered first, kept in parts and gathered once more
// backwards; its gradient is reduce-scattered. In fp8 x is cast once for all layers, before it is gathered.
std::vector<Tensor> column_linears(EagerRecorder& rec, const std::vector<Linear>& layers, const Tensor& x);
// Split by inputs: partial sums, then all-reduce or reduce-scatter, then the bias.
Tensor row_linear(EagerRecorder& rec, const Linear& layer, const Tensor& x);
// The product beside collectives of its operand or its result, which it hides (OpsOptions::overlap_tensor).
struct Sides {
  std::int64_t rows = 0, inputs = 0, outputs = 0;  // 0: none
  std::int64_t products = 1;                       // so many have these outputs together
  bool in_fp8 = false;
};
// Into what each rank of a tensor group does apart: x itself, with its gradient summed over the group. Sequence
// parallel: gathered, the gradient reduce-scattered.
// `beside`: the product that reads it.
Tensor enter_tensor_region(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role,
                           const Sides& beside = {});
// Partial sums of a tensor group to their sum; `scatter`: this rank's part of the sequence. `beside`: the product
// that made them.
Tensor leave_tensor_region(EagerRecorder& rec, const std::string& name, const Tensor& x, bool scatter,
                           const Sides& beside = {});
// This rank's columns of a tensor and those of the other ranks of the tensor group.
Tensor gather_columns(EagerRecorder& rec, const std::string& name, const Tensor& x);
// This rank's part of the sequence of a tensor all ranks have.
Tensor split_sequence(EagerRecorder& rec, const std::string& name, const Tensor& x);
// A product of some rows or matrices of its tensors: what it moves is said by its shape.
void part_product(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads,
                  Tensor write);
// The input that layers share, as their weight gradients need it.
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
// A linear layer's, with operands in OpsOptions::product.
void product(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads,
             Tensor write, Bytes bias);
Tensor saved_for_weights(EagerRecorder& rec, const std::string& name, SavedInput& saved);
void weight_gradient(EagerRecorder& rec, const Linear& layer, const Tensor& gradient, const Tensor& x);
// The next collective of the tensor group is cut up. A gathering one goes in a ring of as many pieces as ranks, and
// each piece is multiplied when it is there. A scattering one goes in four; each travels while the next is multiplied.
// Give whether it is. torch.compile finds neither a gathering one before products with scales by row
// (pytorch/pytorch issue 149990) nor the sum of several products' results behind a scattering one.
bool cut_up_gather(EagerRecorder& rec, const Sides& product);
bool cut_up_scatter(EagerRecorder& rec, const Sides& product);
void sum_bias_gradient(EagerRecorder& rec, TrainedParameter& bias, const Tensor& gradient);
void use_dummy(EagerRecorder& rec, const TrainedParameter& weight);

}  // namespace spillway::models::eager
