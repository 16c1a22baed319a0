#include "sim/replay/result.h"

namespace spillway::sim {
namespace {

struct BindingName {
  std::string_view key, words, few_words;
};
constexpr std::array<BindingName, binding_count> binding_names = {{
    {"compute", "GPU arithmetic", "GPU arithmetic"},
    {"hbm", "GPU memory bandwidth", "memory bandwidth"},
    {"pcie", "PCIe copies between host and GPU", "PCIe copies"},
    {"network", "communication between GPUs", "communication"},
    {"storage", "drives", "drives"},
    {"host", "the host: launching work and the pauses between calls", "the host"},
    {"launch_latency", "launch latency and pauses between kernels", "launch latency"},
    {"idle", "waiting for nothing the trace explains", "unexplained waits"},
}};

}  // namespace

std::string_view to_string(Binding binding) { return binding_names[static_cast<std::size_t>(binding)].key; }
std::string_view describe(Binding binding) { return binding_names[static_cast<std::size_t>(binding)].words; }
std::string_view describe_shortly(Binding binding) {
  return binding_names[static_cast<std::size_t>(binding)].few_words;
}

Verdict MemoryResult::verdict() const {
  if (out_of_memory) return Verdict::does_not_fit;
  if (!known || on_host || capacity <= Bytes(0)) return Verdict::unknown;
  return in_doubt(is_tight ? Verdict::tight : Verdict::fits, doubt);
}

Verdict Result::as_replayed() const {
  Verdict found = both(memory.verdict(), host_memory.verdict());
  for (const RankResult& rank : ranks) found = both(found, rank.verdict);
  for (const PhaseResult& one : between_steps) found = both(found, one.verdict);
  return found;
}

Picos Result::unexplained() const {
  Picos sum{};
  for (const KeptIdle& row : kept_idle) sum += row.on_path;
  return sum;
}

std::string Result::why_unknown() const {
  if (!hangs_on.empty()) {
    std::string all;
    for (const std::string& clause : hangs_on) all += (all.empty() ? "" : ", ") + clause;
    return all;
  }
  if (!memory.known) return "the trace has no usable memory events";
  if (memory.on_host) return "it ran on the host, not on a GPU";
  if (memory.capacity <= Bytes(0)) return "no memory limit is known";
  if (!hangs_on.empty()) return "it hangs on what isn't stated";
  if (!memory.doubt.empty()) return "its record of memory is in doubt: " + memory.doubt;
  for (const RankResult& rank : ranks)
    if (rank.verdict == Verdict::unknown) return "no memory events of " + rank.name;
  return "";
}

bool Result::is_in_doubt() const {
  if (!hangs_on.empty()) return true;
  return verdict() == Verdict::unknown && memory.known && !memory.on_host && memory.capacity > Bytes(0) &&
         !memory.doubt.empty();
}

}  // namespace spillway::sim
