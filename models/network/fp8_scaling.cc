#include "models/network/fp8_scaling.h"

namespace spillway::models {
namespace {

constexpr std::int64_t tensors_per_linear = 5;
constexpr std::int64_t numbers_per_tensor = fp8_history + 2;

}  // namespace

Fp8Scaling::Fp8Scaling(std::int64_t linears, EagerSession& session, Communication* communication)
    : linears_(linears),
      session_(session),
      communication_(communication),
      state_(session.empty("fp8.scaling", DataType::fp32, linears * tensors_per_linear * numbers_per_tensor,
                           TensorRole::buffer)) {}

void Fp8Scaling::update(std::int64_t tensors) {
  if (communication_ != nullptr) {
    const Tensor largest = session_.empty("fp8.amax", DataType::fp32, linears_ * tensors, TensorRole::temporary);
    session_.kernel(
        {.name = "concatenate", .reads = {state_}, .writes = {largest}, .bytes = largest.bytes() + largest.bytes()});
    for (const CommGroup group : {CommGroup::tensor, CommGroup::gradient})
      communication_->all_reduce(group, "all_reduce_amax", {largest});
  }
  const Bytes moved(2 * linears_ * tensors * numbers_per_tensor * 4);  // a history is shifted by one
  session_.kernel({.name = "fp8_update_scales", .reads = {state_}, .writes = {state_}, .bytes = moved});
}

}  // namespace spillway::models
