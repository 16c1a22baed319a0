#include "studies/offload/roofline.h"

#include <algorithm>
#include <map>

namespace spillway::studies {

Roofline roofline(const LoadedScenario& loaded, const ScenarioRun& run) {
  Roofline found;
  found.bandwidth = to_bytes_per_second(loaded.hardware.gpu.memory_bandwidth.value);
  const auto gpus = static_cast<double>(std::max<std::int64_t>(1, loaded.setup.gpus()));
  found.peak_flops = loaded.options.peak_flops_per_second / gpus;
  const Trace& trace = run.trace(loaded);
  const Result& result = run.result;
  std::map<StringId, RooflineKernel> kernels;
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i) {
    if (trace.ops.kind[i] != OpKind::kernel || trace.ops.bytes[i] <= Bytes(0)) continue;
    if (result.op_start[i] == unknown_time || result.op_end[i] == unknown_time) continue;
    RooflineKernel& kernel = kernels[trace.ops.name[i]];
    const std::int64_t runs = result.runs_of(OpId{static_cast<std::uint32_t>(i)});
    kernel.count += static_cast<std::uint64_t>(runs);
    kernel.time += (result.op_end[i] - result.op_start[i]) * runs;
    kernel.flops += static_cast<double>(std::max<std::int64_t>(0, trace.ops.flops[i].count()) * runs);
    kernel.bytes += static_cast<double>(trace.ops.bytes[i].count() * runs);
  }
  for (auto& [name, kernel] : kernels) {
    kernel.name = std::string(trace.strings.text(name));
    found.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(found.kernels.begin(), found.kernels.end(),
                   [](const RooflineKernel& a, const RooflineKernel& b) { return a.time > b.time; });
  return found;
}

}  // namespace spillway::studies
