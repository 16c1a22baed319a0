// The parts of a transformer that other files hold read it by this.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_recorder.h"

namespace spillway::models {

// The products of a kernel within chunks of a sequence (KernelCost::flops_per_clock).
struct ChunkWork {
  std::int64_t flops = 0;
  double flops_per_clock = 0;
  Bytes unread{};  // of its operands' bytes
  Picos least{};   // chunks go one after the other
};

// Names of most end in ".weight" or ".bias".
struct ParametersByName : std::map<std::string, TrainedParameter*, std::less<>> {
  [[nodiscard]] TrainedParameter& parameter(const std::string& name) const {
    const auto found = find(name);
    SPILLWAY_ASSERT(found != end());
    return *found->second;
  }
  [[nodiscard]] TrainedParameter& weight(const std::string& name) const { return parameter(name + ".weight"); }
  // Null where there is none.
  [[nodiscard]] TrainedParameter* bias(const std::string& name) const {
    const auto found = find(name + ".bias");
    return found == end() ? nullptr : found->second;
  }
};

// References must outlive the blocks; communication is null on a single GPU.
struct BlockContext {
  BlockContext(EagerRecorder& to, const ParametersByName& by_name)
      : session(to.session), autograd(to.autograd), rec(to), communication(to.communication), parameters(by_name) {}

  EagerSession& session;
  Autograd& autograd;
  EagerRecorder& rec;
  Communication* communication;
  const ParametersByName& parameters;

  [[nodiscard]] TrainedParameter& weight(const std::string& name) const { return parameters.weight(name); }
  [[nodiscard]] TrainedParameter* bias(const std::string& name) const { return parameters.bias(name); }

  // An empty tensor in fp32.
  [[nodiscard]] Tensor wide(const std::string& name, std::int64_t elements,
                            TensorRole role = TensorRole::temporary) const {
    return session.empty(name, DataType::fp32, elements, role);
  }
  // One that takes its traffic's time.
  void kernel(DataType type, std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes,
              std::int64_t flops = 0) const {
    session.kernel({.name = name,
                    .reads = std::move(reads),
                    .writes = std::move(writes),
                    .cost = {.type = type, .flops = Flops(flops)}});
  }
  // One that takes its traffic's time, or its products'.
  void chunk_kernel(DataType type, std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes,
                    const ChunkWork& work) const {
    Bytes bytes = Bytes(0) - work.unread;
    for (const auto* list : {&reads, &writes})
      for (const Tensor& tensor : *list) bytes += tensor.bytes();
    session.kernel({.name = name,
                    .reads = std::move(reads),
                    .writes = std::move(writes),
                    .cost = {.type = type,
                             .flops = Flops(work.flops),
                             .flops_per_clock = work.flops_per_clock,
                             .least = work.least},
                    .bytes = bytes});
  }
  // To a parameter that trains.
  void give(TrainedParameter& parameter, Tensor gradient) const {
    if (parameter.trains) eager::accumulate(rec, parameter, std::move(gradient));
  }
};

}  // namespace spillway::models
