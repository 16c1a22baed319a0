#include "models/spec/expert_setup.h"

#include <string>

#include <fmt/format.h>

#include "base/input_error.h"
#include "models/spec/setup_checks.h"

namespace spillway::models {

std::optional<SetupClash> overlap_clash(const TrainingSetup& setup) {
  if (!setup.traits().core)
    return SetupClash{"Megatron-core alone runs one micro-batch's exchange beside another's computation",
                      "set framework to megatron or leave it out"};
  if (setup.expert_parallel == 1)
    return SetupClash{"all experts are on one rank, which exchanges nothing", "leave it out"};
  if (setup.recompute == Recompute::full || setup.recomputes_module("moe"))
    return SetupClash{"Megatron-core recomputes no experts beside another micro-batch",
                      "set recompute to selective, without moe, or to none"};
  if (setup.pipeline_parallel > 1 && setup.pipeline_chunks == 1)
    return SetupClash{"in a pipeline Megatron-core overlaps micro-batches of interleaved chunks alone",
                      "set pipeline_chunks to 2 or more"};
  if (setup.overlap_shared_experts)
    return SetupClash{"shared experts run beside the exchange already", "leave one of the two out"};
  if (!is_mixed(setup.precision) && setup.precision != TrainingPrecision::bf16)
    return SetupClash{"Megatron-core overlaps work in 16 bits alone", "set precision to bf16_mixed or leave it out"};
  if (setup.mtp_layers > 1)
    return SetupClash{"Megatron-core overlaps at most one depth of multi-token prediction", "set mtp_layers to 0 or 1"};
  return std::nullopt;
}

void check_experts(const TrainingSetup& setup) {
  if (setup.expert_tensor_parallel != 0 && setup.expert_tensor_parallel != 1 &&
      setup.expert_tensor_parallel != setup.tensor_parallel)
    throw InputError(
        "", "expert_tensor_parallel",
        fmt::format("experts are split {} ways, other layers {}", setup.expert_tensor_parallel, setup.tensor_parallel),
        "give 1 or tensor_parallel");
  if (setup.has_whole_experts() && !setup.sequence_parallel)
    throw InputError("", "expert_tensor_parallel", "tensor ranks with the same tokens would send each of them twice",
                     "set sequence_parallel to true");
  const std::int64_t ranks = setup.data_parallel * setup.context_parallel;
  if (setup.has_whole_experts())
    check_divides("expert_parallel", setup.expert_parallel, "ranks of a stage", ranks * setup.tensor_parallel);
  else
    check_divides("expert_parallel", setup.expert_parallel, "data-parallel ranks", ranks);
  if (setup.expert_dispatcher != ExpertDispatcher::nccl && !setup.traits().core)
    throw InputError("", "expert_dispatcher", "DeepEP and Hybrid-EP are called by Megatron-core's dispatcher",
                     "set framework to megatron or expert_dispatcher to nccl");
  if (const auto clash = setup.overlap_experts ? overlap_clash(setup) : std::nullopt)
    throw InputError("", "overlap_experts", std::string(clash->cause), std::string(clash->remedy));
  if (setup.fused_experts && (!setup.traits().core || setup.precision != TrainingPrecision::fp8_mixed))
    throw InputError("", "fused_experts", "Transformer Engine fuses experts' products and casts in fp8 alone",
                     "set framework to megatron and precision to fp8_mixed, or leave it out");
}

}  // namespace spillway::models
