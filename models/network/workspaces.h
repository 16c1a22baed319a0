// Workspaces: what a process of Megatron-core 0.14 with Transformer Engine 2.11 keeps for good from its first use on.
//
//   Transformer Engine's cuBLAS workspace   32 MiB + 1 KiB from compute capability 9 on, 4 MiB before; four more for
//                                           grouped products
//   PyTorch's cuBLAS workspaces             one per thread (forward, autograd) of the stage with the head: 32 MiB on
//                                           Hopper, 8.125 MiB otherwise
//   dummy weight gradients                  products add gradients into their buffers; what autograd gets instead is
//                                           one uninitialised tensor per shape of a weight
//   gathered input of the head              tensor parallel with sequence parallelism
//
// Sources: TransformerEngine c188b533 (module/base.py, cpp_extensions/gemm.py), Megatron-LM 23e00ed0
// (tensor_parallel/layers.py), PyTorch's CublasHandlePool defaults.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/eager_session.h"

namespace spillway::models {

class Workspaces {
 public:
  static constexpr std::size_t grouped_streams = 4;

  explicit Workspaces(EagerSession& session) : session_(session) {}

  // The workspace that these parameters of one chunk will need. Before the step.
  void add(const std::deque<TrainedParameter>& parameters);
  // `elements`: of the head's gathered input; 0: it isn't gathered.
  void add_head(const TrainedParameter& table, DataType type, std::int64_t elements);

  [[nodiscard]] std::vector<Tensor> all() const;

  // The next kernel uses it. Nothing where none was made.
  void use_product() { use(product_); }
  void use_grouped();
  void use_head(bool is_backward) { use(is_backward ? engine_ : program_); }
  void use_dummy(const TrainedParameter& weight);
  [[nodiscard]] Tensor gathered() const { return gathered_; }
  void use_gathered() { use(gathered_); }

 private:
  using Shape = std::pair<std::int64_t, std::int64_t>;
  static Shape dummy_shape(const TrainedParameter& weight);
  void add_dummy(const TrainedParameter& weight);
  Tensor bytes(const char* name, std::int64_t count) {
    return session_.empty(name, DataType::byte, count, TensorRole::buffer);
  }
  void use(const Tensor& tensor) {
    if (tensor) session_.touch(tensor);
  }
  [[nodiscard]] std::int64_t product_bytes() const;

  EagerSession& session_;
  Tensor product_, program_, engine_, gathered_;
  std::array<Tensor, grouped_streams> grouped_;
  std::map<Shape, Tensor> dummies_;
};

}  // namespace spillway::models
