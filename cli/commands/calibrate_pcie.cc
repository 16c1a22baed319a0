#include "cli/commands/calibrate_pcie.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files_in_use.h"
#include "base/output_file.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/options/command_options.h"
#include "cli/output/table.h"
#include "hwprofiles/calibrate/hwloc_locality.h"
#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/calibrate/pcie_topology.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PcieCalibrationCall {
  std::string sysfs = "/sys", base, output;
  bool all = false;
};

int depth_of(const std::vector<PcieFunction>& functions, std::size_t i) {
  int depth = 0;
  for (std::optional<std::size_t> up = functions[i].up; up; up = functions[*up].up) ++depth;
  return depth;
}

std::string link_of(const PcieFunction& function) {
  if (function.generation == 0 || function.lanes <= 0) return "-";
  return "gen " + std::to_string(function.generation) + " x" + std::to_string(function.lanes);
}

Table function_table(const std::vector<PcieFunction>& functions) {
  Table table({"function", "kind", "link", "NUMA", "name"});
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const PcieFunction& function = functions[i];
    const std::string indent(static_cast<std::size_t>(2 * depth_of(functions, i)), ' ');
    table.add({indent + function.address, std::string(to_string(function.kind)), link_of(function),
               std::to_string(function.numa_node), function.name});
  }
  return table;
}

Json topology_json(const std::vector<PcieFunction>& functions, const HostFit& fit, const std::string& profile) {
  Json document = json_document("spillway.calibrate_pcie");
  document["functions"] = Json::array();
  for (const PcieFunction& function : functions)
    document["functions"].push_back({{"address", function.address},
                                     {"up", function.up ? Json(functions[*function.up].address) : Json(nullptr)},
                                     {"kind", to_string(function.kind)},
                                     {"name", function.name},
                                     {"numa_node", function.numa_node},
                                     {"generation", function.generation},
                                     {"lanes", function.lanes},
                                     {"most_lanes", function.widest}});
  document["profile"] = Json::parse(profile);
  document["warnings"] = fit.notes;
  return document;
}

// Without a word of the user's, the bundled host of the fastest link there is.
std::string base_profile(const PcieCalibrationCall& request, const std::vector<PcieFunction>& functions) {
  if (!request.base.empty()) return request.base;
  std::int64_t generation = 3;
  for (const PcieFunction& function : functions) generation = std::max(generation, function.generation);
  return "generic-pcie" + std::to_string(std::min<std::int64_t>(generation, 6)) + "-host";
}

void run_pcie(const PcieCalibrationCall& request, const Context& context) {
  std::vector<PcieFunction> functions = pcie_topology(request.sysfs, request.all);
  std::size_t by_hwloc = 0;
  if (request.sysfs == "/sys") {
    if (const std::optional<Nvml> nvml = Nvml::load()) add_nvml(functions, nvml->gpus());
    by_hwloc = add_numa_nodes(functions, hwloc_numa_nodes());
  }
  const HostProfile base = ProfileLibrary::standard().load_host(base_profile(request, functions));
  const std::string date = today();
  HostFit fit = fit_host(functions, base, date, request.sysfs);
  if (by_hwloc > 0) fit.notes.push_back(fmt::format("NUMA nodes of {} functions are hwloc's", by_hwloc));
  const std::string text = profile_text(fit.profile, {OriginKind::measured, "sysfs of the machine", date, 0});
  if (!request.output.empty()) {
    forget_file_in_use(request.output);
    OutputFile out(request.output);
    out.write(text);
    out.commit();
  }
  if (context.json()) return print_json(topology_json(functions, fit, text));
  print(context, function_table(functions));
  if (!context.rows_only())
    for (const std::string& line : fit.notes) print("note: " + line + "\n");
}

}  // namespace

void add_calibrate_pcie(Command& group, Context& context) {
  const auto request = std::make_shared<PcieCalibrationCall>();
  Command* command = group.add_subcommand("pcie", "The tree of PCIe links of this machine, from sysfs and NVML");
  command->add_flag("--all", request->all, "also functions that lead to no GPU, drive or network card");
  command->add_option("--sysfs", request->sysfs, "another root than /sys: a copy of another machine's")
      ->type_name("FOLDER");
  command
      ->add_option("--base", request->base,
                   "host profile for what sysfs does not show; by default the bundled one of the fastest link")
      ->type_name("NAME");
  command->add_option("--output", request->output, "write a host profile with this tree")
      ->to_write()
      ->type_name("PROFILE.json");
  command->callback([request, &context] { run_pcie(*request, context); });
}

}  // namespace spillway::cli
