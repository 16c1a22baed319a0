#include "sim/replay/result.h"

namespace spillway::sim {
namespace {

struct BindingName {
  std::string_view key, words;
};
constexpr std::array<BindingName, binding_count> binding_names = {{
    {"compute", "GPU arithmetic"},
    {"hbm", "GPU memory bandwidth"},
    {"pcie", "PCIe copies between host and GPU"},
    {"network", "communication between GPUs"},
    {"storage", "drives"},
    {"host", "the host: launching work and the pauses between calls"},
    {"launch_latency", "launch latency and pauses between kernels"},
    {"idle", "waiting for nothing the trace explains"},
}};

}  // namespace

std::string_view to_string(Binding binding) { return binding_names[static_cast<std::size_t>(binding)].key; }
std::string_view describe(Binding binding) { return binding_names[static_cast<std::size_t>(binding)].words; }

}  // namespace spillway::sim
