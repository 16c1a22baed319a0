#include "scenario/idle_edits.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "models/cost/operator_times.h"
#include "models/step/operator_list.h"

namespace spillway::scenario {
namespace {

bool always(const LoadedScenario& /*loaded*/) { return true; }
bool is_recorded(const LoadedScenario& loaded) {
  return loaded.scenario.model.empty() && !models::is_priced(loaded.trace);
}
bool is_generated(const LoadedScenario& loaded) { return !is_recorded(loaded); }

// As CostModel chooses.
bool has_operator_times(const LoadedScenario& loaded) {
  return is_generated(loaded) && !loaded.hardware.gpu.architecture.empty() &&
         !models::measured_operator_times().empty();
}
bool has_own_times(const LoadedScenario& loaded) {
  return has_operator_times(loaded) &&
         models::own_operator_times(models::measured_operator_times().heads(), loaded.hardware.gpu) != nullptr;
}
bool takes_no_gemm_table(const LoadedScenario& loaded) {
  const auto& tables = loaded.hardware.gpu.gemm_efficiency;
  return has_operator_times(loaded) && std::none_of(tables.begin(), tables.end(), [](const GemmEfficiency& table) {
           return table.origin.provenance == OriginKind::measured;
         });
}
bool takes_no_memory_table(const LoadedScenario& loaded) {
  const auto& table = loaded.hardware.gpu.memory_bound_efficiency;
  return has_operator_times(loaded) && !(table && table->origin.provenance == OriginKind::measured);
}
bool knows_adam(const LoadedScenario& loaded) {
  return loaded.hardware.host.cpu_adam_parameters_per_second.has_value();
}
bool are_rated(const LoadedScenario& loaded) {
  const auto& drives = loaded.hardware.drives;
  return std::all_of(drives.begin(), drives.end(),
                     [](const DriveGroup& group) { return group.drive.rated_endurance.has_value(); });
}
bool lacks_folding(const LoadedScenario& loaded) {
  const auto& drives = loaded.hardware.drives;
  return std::any_of(drives.begin(), drives.end(), [](const DriveGroup& group) {
    return group.drive.folding_bytes.has_value() != group.drive.folding_write_bandwidth.has_value();
  });
}
bool has_drives_of_its_own(const LoadedScenario& loaded) { return !loaded.scenario.offload.drives.empty(); }
bool is_no_mesh(const LoadedScenario& loaded) {
  const auto& network = loaded.hardware.scale_up;
  return !network || network->topology != NetworkTopology::mesh;
}

struct Idle {
  std::string_view path;  // an element of a list is *, as is all behind a last one
  bool (*holds)(const LoadedScenario&);
  std::string_view why;
};

constexpr std::string_view for_people = "it is for people, nothing is computed from it";
constexpr std::string_view of_costs = "costs depend on it, a step's figures don't";
constexpr std::string_view of_fit = "the operator times fitted for its GPU go before it";
constexpr std::string_view of_recording = "kernels of a recording take as long as recorded";
constexpr std::string_view of_no_product = "no training precision multiplies in it";
constexpr std::string_view of_ports = "only of a network between machines are ports shared";
constexpr std::string_view of_folding = "folding needs folding_bytes and folding_write_bandwidth";
constexpr std::string_view of_link =
    "a drive's rates hold as stated unless its slot is slower: set read_bandwidth and write_bandwidth, or the slot's "
    "generation and lanes";

constexpr std::array idle = {
    Idle{"gpu.copy_efficiency", always, for_people},
    Idle{"gpu.copy_engines_per_direction", always, for_people},
    Idle{"gpu.copy_fraction_beside_kernels", always, for_people},
    Idle{"gpu.event_gap", always, for_people},
    Idle{"gpu.event_record_call", always, for_people},
    Idle{"gpu.event_wait_call", always, for_people},
    Idle{"gpu.idle_power", always, for_people},
    Idle{"gpu.loaded_clock_mhz", always, for_people},
    Idle{"gpu.loaded_power", always, for_people},
    Idle{"gpu.pageable_copy_fraction", always, for_people},
    Idle{"gpu.two_stream_speedup", always, for_people},
    Idle{"host.memcpy_bandwidth", always, for_people},
    Idle{"host.sockets", always, for_people},
    Idle{"drives.*.drive.random_read", always, for_people},
    Idle{"drives.*.drive.random_write", always, for_people},
    Idle{"scale_up.port_power", always, for_people},
    Idle{"scale_up.port_price", always, for_people},
    Idle{"scale_out.port_power", always, for_people},
    Idle{"scale_out.port_price", always, for_people},
    Idle{"price", always, of_costs},
    Idle{"price_per_hour", always, of_costs},
    Idle{"power", always, of_costs},
    Idle{"electricity", always, of_costs},
    Idle{"gpu.price", always, of_costs},
    Idle{"gpu.price_per_hour", always, of_costs},
    Idle{"host.price", always, of_costs},
    Idle{"host.power", always, of_costs},
    Idle{"drives.*.drive.price", always, of_costs},
    Idle{"drives.*.drive.active_power", always, of_costs},
    Idle{"drives.*.drive.idle_power", always, for_people},
    Idle{"drives.*.drive.pcie_generation", always, of_link},
    Idle{"drives.*.drive.pcie_lanes", always, of_link},
    Idle{"drives.*.drive.drive_writes_per_day", are_rated, "the drive's rated_endurance goes before it"},
    Idle{"drives.*.drive.warranty", are_rated, "the drive's rated_endurance goes before it"},
    Idle{"drives.*.drive.folding_bytes", lacks_folding, of_folding},
    Idle{"drives.*.drive.folding_write_bandwidth", lacks_folding, of_folding},
    Idle{"gpu.peak_flops.fp64", always, of_no_product},
    Idle{"gpu.peak_flops.int8", always, of_no_product},
    Idle{"gpu.peer_access", always, "links are chosen with the machine: +p2p or +no-p2p behind its name"},
    Idle{"gpu.nvlink_bandwidth", is_generated, "collectives of a generated step go by scale_up"},
    Idle{"gpu.achieved_flops.*", has_own_times, of_fit},
    Idle{"gpu.achieved_flops.*", is_recorded, of_recording},
    Idle{"gpu.roofline.*", has_operator_times, of_fit},
    Idle{"gpu.roofline.*", is_recorded, of_recording},
    Idle{"gpu.gemm_efficiency.*", takes_no_gemm_table, of_fit},
    Idle{"gpu.gemm_efficiency.*", is_recorded, of_recording},
    Idle{"gpu.memory_bound_efficiency", takes_no_memory_table, of_fit},
    Idle{"gpu.memory_bound_efficiency", is_recorded, of_recording},
    Idle{"host.cores", knows_adam, "host.cpu_adam_parameters_per_second goes before it"},
    Idle{"drives.*", has_drives_of_its_own, "the scenario's offload.drives take their place"},
    Idle{"scale_up.gpus_per_port", always, of_ports},
    Idle{"scale_up.ring_through_host", always, of_ports},
    Idle{"scale_up.max_group", is_no_mesh, "only a mesh's links depend on how many GPUs it joins"},
    Idle{"scale_out.max_group", always, "only a mesh's links depend on how many GPUs it joins"},
};

bool matches(std::string_view path, std::string_view pattern) {
  while (!pattern.empty()) {
    if (pattern == "*") return true;
    const std::string_view part = pattern.substr(0, pattern.find('.')), own = path.substr(0, path.find('.'));
    if (part != "*" && part != own) return false;
    pattern.remove_prefix(std::min(part.size() + 1, pattern.size()));
    path.remove_prefix(std::min(own.size() + 1, path.size()));
  }
  return path.empty();
}

}  // namespace

std::vector<std::string> idle_edits(const LoadedScenario& loaded) {
  std::vector<std::string> found;
  for (const auto& [path, text] : loaded.scenario.hardware_overrides)
    for (const Idle& one : idle)
      if (matches(path, one.path) && one.holds(loaded))
        found.push_back("hardware.set." + path + " changes nothing here: " + std::string(one.why));
  return found;
}

}  // namespace spillway::scenario
