#include "studies/fit/published_errors.h"

#include <array>

namespace spillway::studies {
namespace {

using enum MeasuredKind;

constexpr std::array<PublishedError, 19> table = {{
    {"cuDNN Llama-3.2-1B", "iteration_time", one_gpu, 6, -0.006067, 0.01485},
    {"cuDNN Llama-3.2-1B, flash", "iteration_time", one_gpu, 6, 0.026418, 0.071216},
    {"Korthikanti Table 5", "iteration_time", machines, 8, -0.007525, 0.037695},
    {"Korthikanti Sec 6.3", "iteration_time", machines, 1, -0.059269, 0.059269},
    {"llm-foundry H100", "throughput", sharded, 33, 0.020245, 0.066495},
    {"llm-foundry H100 fp8", "throughput", sharded, 1, 0.053838, 0.053838},
    {"llm-foundry A100", "throughput", sharded, 46, -0.018718, 0.103879},
    {"SC'21 Table 1", "iteration_time", machines, 10, -0.024873, 0.056755},
    {"SC'21 Table 2", "iteration_time", machines, 6, 0.005157, 0.022012},
    {"SC'21 Table 2 ZeRO-3", "iteration_time", sharded_wide, 6, -0.476854, 0.67344},
    {"vTrain multi-node", "iteration_time", machines, 46, 0.037086, 0.166476},
    {"vTrain single node", "iteration_time", one_machine, 595, -0.004558, 0.168602},
    {"Zero Bubble Table 4", "throughput", schedules, 48, 0.072401, 0.088777},
    {"Zero Bubble Table 4", "peak_allocated", schedules, 48, -0.02771, 0.077545},
    {"Zero Bubble Table 6", "throughput", schedules, 36, 0.054594, 0.075902},
    {"Zero Bubble Table 6", "peak_allocated", schedules, 36, -0.006865, 0.031683},
    {"Zero Bubble Table 7", "throughput", schedules, 18, 0.070572, 0.079974},
    {"Megatron-core on B200", "peak_allocated", one_machine, 10, -1e-06, 0.00033},
    {"Megatron-core on B200", "peak_reserved", one_machine, 10, -0.002084, 0.012833},
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
