#include "studies/fit/published_errors.h"

#include <array>

namespace spillway::studies {
namespace {

using enum MeasuredKind;

constexpr std::array<PublishedError, 21> table = {{
    {"cuDNN Llama-3.2-1B", "iteration_time", one_gpu, 6, 0.030549, 0.037832},
    {"cuDNN Llama-3.2-1B, flash", "iteration_time", one_gpu, 6, 0.053103, 0.079652},
    {"Korthikanti Table 5", "iteration_time", machines, 8, -0.025849, 0.056779},
    {"Korthikanti Sec 6.3", "iteration_time", machines, 1, -0.061526, 0.061526},
    {"llm-foundry H100", "throughput", sharded, 33, -0.007124, 0.083012},
    {"llm-foundry H100 fp8", "throughput", sharded, 1, 0.032628, 0.032628},
    {"llm-foundry A100", "throughput", sharded, 46, -0.023993, 0.110035},
    {"Megatron-core on B200", "iteration_time", one_machine, 20, -0.23454, 0.364972},
    {"Megatron-core on B200, rate known", "iteration_time", one_machine, 20, -0.16933, 0.326699},
    {"Megatron-core on B200", "peak_allocated", one_machine, 10, -1e-06, 0.00033},
    {"Megatron-core on B200", "peak_reserved", one_machine, 10, -0.002084, 0.012833},
    {"SC'21 Table 1", "iteration_time", machines, 10, -0.056785, 0.075537},
    {"SC'21 Table 2", "iteration_time", machines, 6, -0.023659, 0.035113},
    {"SC'21 Table 2 ZeRO-3", "iteration_time", sharded_wide, 6, -0.467041, 0.656189},
    {"vTrain multi-node", "iteration_time", machines, 46, -0.003846, 0.192472},
    {"vTrain single node", "iteration_time", one_machine, 595, -0.013233, 0.166936},
    {"Zero Bubble Table 4", "throughput", schedules, 48, 0.036476, 0.068366},
    {"Zero Bubble Table 4", "peak_allocated", schedules, 48, -0.02771, 0.077545},
    {"Zero Bubble Table 6", "throughput", schedules, 36, 0.028835, 0.059657},
    {"Zero Bubble Table 6", "peak_allocated", schedules, 36, -0.006865, 0.031683},
    {"Zero Bubble Table 7", "throughput", schedules, 18, 0.036452, 0.058003},
}};

}  // namespace

std::span<const PublishedError> published_errors() { return table; }

const PublishedError* widest_error(MeasuredKind kind, bool of_memory) {
  const PublishedError* widest = nullptr;
  for (const PublishedError& one : table)
    if (one.kind == kind && one.is_memory() == of_memory && (widest == nullptr || one.p90 > widest->p90)) widest = &one;
  return widest;
}

}  // namespace spillway::studies
