#include "hwprofiles/calibrate/pcie_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/input_error.h"
#include "hwprofiles/calibrate/hwloc_locality.h"
#include "hwprofiles/calibrate/sysfs.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;

// PCI Code and ID Assignment Specification: base class and subclass.
PcieFunctionKind kind_of(std::int64_t pci_class, bool has_block_device) {
  const std::int64_t base = pci_class >> 16, both = pci_class >> 8;
  if (both == 0x0604) return PcieFunctionKind::port;
  if (base == 0x03 || both == 0x1200) return PcieFunctionKind::gpu;  // display, processing accelerator
  if (both == 0x0108 || has_block_device) return PcieFunctionKind::drive;
  if (base == 0x02 || both == 0x0c06) return PcieFunctionKind::network;
  return PcieFunctionKind::other;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Block devices lie in <function>/nvme/nvmeN/nvmeNn1 or in <function>/virtioN/block/vda.
bool has_block_device(const fs::path& function) {
  std::error_code error;
  for (const fs::path& child : sorted_entries(function))
    if (fs::is_directory(child / "block", error)) return true;
  return fs::is_directory(function / "nvme", error);
}

std::string name_of(const fs::path& function, PcieFunctionKind kind) {
  std::error_code error;
  if (kind == PcieFunctionKind::drive)
    for (const fs::path& drive : sorted_entries(function / "nvme"))
      if (std::string model = sysfs_text(drive / "model"); !model.empty()) return model;
  if (kind == PcieFunctionKind::network)
    for (const fs::path& interface : sorted_entries(function / "net")) return interface.filename();
  const fs::path driver = fs::read_symlink(function / "driver", error);
  return error ? "" : driver.filename().string();
}

PcieFunction function_at(const fs::path& folder) {
  PcieFunction function;
  function.address = folder.filename();
  function.kind = kind_of(sysfs_number(folder / "class"), has_block_device(folder));
  function.name = name_of(folder, function.kind);
  const std::int64_t node = sysfs_text(folder / "numa_node").empty() ? -1 : sysfs_number(folder / "numa_node");
  function.knows_numa = node >= 0;
  function.numa_node = std::max<std::int64_t>(0, node);
  const std::int64_t best = pcie_generation_of(sysfs_text(folder / "max_link_speed"));
  const std::int64_t now = pcie_generation_of(sysfs_text(folder / "current_link_speed"));
  function.generation = std::max(best, now);
  function.lanes = sysfs_number(folder / "current_link_width");
  function.widest = sysfs_number(folder / "max_link_width");
  for (const fs::path& part : folder)
    if (part.string().starts_with("pci")) function.bridge = part.string();
  return function;
}

// A port under a port is a switch: its upper one below a root or downstream port, its lower ones below that.
void tell_switches(std::vector<PcieFunction>& functions) {
  for (PcieFunction& function : functions) {
    if (function.kind != PcieFunctionKind::port || !function.up) continue;
    const bool below_upper = functions[*function.up].kind == PcieFunctionKind::switch_up;
    function.kind = below_upper ? PcieFunctionKind::switch_down : PcieFunctionKind::switch_up;
  }
}

// A link is as fast as its slower end; the port above states its own.
void settle_links(std::vector<PcieFunction>& functions) {
  std::vector<std::int64_t> own;
  for (const PcieFunction& function : functions) own.push_back(function.generation);
  for (PcieFunction& function : functions) {
    if (!function.up || function.generation == 0) continue;
    if (const std::int64_t above = own[*function.up]; above > 0)
      function.generation = std::min(function.generation, above);
  }
}

// Keeps devices and what lies above them.
std::vector<PcieFunction> only_needed(const std::vector<PcieFunction>& functions) {
  std::vector<bool> needed(functions.size());
  for (std::size_t i = functions.size(); i-- > 0;) {
    const PcieFunctionKind kind = functions[i].kind;
    needed[i] = needed[i] || kind == PcieFunctionKind::gpu || kind == PcieFunctionKind::drive ||
                kind == PcieFunctionKind::network;
    if (needed[i] && functions[i].up) needed[*functions[i].up] = true;
  }
  std::vector<std::size_t> place(functions.size());
  std::vector<PcieFunction> kept;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!needed[i]) continue;
    place[i] = kept.size();
    kept.push_back(functions[i]);
    if (kept.back().up) kept.back().up = place[*kept.back().up];
  }
  return kept;
}

}  // namespace

std::string_view to_string(PcieFunctionKind kind) {
  static constexpr std::string_view names[] = {"port", "switch up", "switch down", "GPU", "drive", "network", "other"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<PcieFunction> pcie_topology(const std::string& sysfs, bool all) {
  std::vector<fs::path> folders;
  for (const fs::path& link : sorted_entries(fs::path(sysfs) / "bus/pci/devices")) {
    std::error_code error;
    if (fs::path folder = fs::canonical(link, error); !error) folders.push_back(std::move(folder));
  }
  if (folders.empty())
    throw InputError(sysfs, "bus/pci/devices", "shows no PCI device", "run on the machine itself, with /sys mounted");
  std::sort(folders.begin(), folders.end());  // a folder comes before those within it
  std::vector<PcieFunction> functions;
  std::map<fs::path, std::size_t> index;
  for (const fs::path& folder : folders) {
    PcieFunction function = function_at(folder);
    if (const auto above = index.find(folder.parent_path()); above != index.end()) function.up = above->second;
    index[folder] = functions.size();
    functions.push_back(std::move(function));
  }
  tell_switches(functions);
  settle_links(functions);
  return all ? functions : only_needed(functions);
}

void add_nvml(std::vector<PcieFunction>& functions, const std::vector<NvmlGpu>& gpus) {
  for (const NvmlGpu& gpu : gpus)
    for (PcieFunction& function : functions) {
      if (function.address != gpu.pci_address) continue;
      function.kind = PcieFunctionKind::gpu;
      if (!gpu.name.empty()) function.name = gpu.name;
      if (function.generation == 0) function.generation = gpu.pcie_generation;
      if (function.lanes == 0) function.lanes = gpu.pcie_lanes;
    }
}

std::size_t add_numa_nodes(std::vector<PcieFunction>& functions, const std::map<std::string, std::int64_t>& nodes) {
  std::size_t added = 0;
  for (PcieFunction& function : functions) {
    const auto node = nodes.find(function.address);
    if (function.knows_numa || node == nodes.end()) continue;
    function.numa_node = node->second;
    function.knows_numa = true;
    ++added;
  }
  return added;
}

namespace {

class HostTree {
 public:
  HostTree(const std::vector<PcieFunction>& functions, const Origin& origin)
      : functions_(functions), origin_(origin), node_(functions.size()) {}

  void write(HostFit& fit) {
    fit_ = &fit;
    fit.profile.pcie.clear();
    for (std::size_t i = 0; i < functions_.size(); ++i) add(i);
  }

 private:
  void add(std::size_t i) {
    const PcieFunction& function = functions_[i];
    switch (function.kind) {
      case PcieFunctionKind::switch_up:
        return slot(i, PcieNodeKind::pcie_switch, "switch");
      case PcieFunctionKind::gpu:
        return slot(i, PcieNodeKind::gpu_slot, "gpu");
      case PcieFunctionKind::drive:
        return slot(i, PcieNodeKind::drive_slot, "drive");
      case PcieFunctionKind::network:
        return slot(i, PcieNodeKind::nic_slot, "nic");
      case PcieFunctionKind::port:
      case PcieFunctionKind::switch_down:
      case PcieFunctionKind::other:
        return;
    }
  }

  void slot(std::size_t i, PcieNodeKind kind, const std::string& stem) {
    const PcieFunction& function = functions_[i];
    const std::string who = function.address + (function.name.empty() ? "" : " (" + function.name + ")");
    if (function.generation == 0 || function.lanes <= 0 || function.lanes > 32) {
      fit_->notes.push_back(who + " shows no link, as virtual devices don't: left out of the tree");
      return;
    }
    if (function.widest > function.lanes)
      fit_->notes.push_back(fmt::format("{} uses {} of its {} lanes", who, function.lanes, function.widest));
    const std::size_t above = node_above(i);
    PcieNode node;
    node.name = stem + std::to_string(count_[stem]++);
    node.kind = kind;
    node.up = above;
    node.generation = Sourced<std::int64_t>{function.generation, origin_};
    node.lanes = Sourced<std::int64_t>{function.lanes, origin_};
    node_[i] = fit_->profile.pcie.size();
    fit_->profile.pcie.push_back(std::move(node));
  }

  // The switch above, or the root complex of its NUMA node, made when first met.
  std::size_t node_above(std::size_t i) {
    for (std::optional<std::size_t> up = functions_[i].up; up; up = functions_[*up].up)
      if (node_[*up]) return *node_[*up];
    const std::string name = "cpu" + std::to_string(functions_[i].numa_node);
    std::vector<PcieNode>& tree = fit_->profile.pcie;
    for (std::size_t j = 0; j < tree.size(); ++j)
      if (tree[j].name == name) return j;
    PcieNode root;
    root.name = name;
    tree.push_back(std::move(root));
    return tree.size() - 1;
  }

  const std::vector<PcieFunction>& functions_;
  const Origin& origin_;
  std::vector<std::optional<std::size_t>> node_;  // by function: in the tree
  std::map<std::string, int> count_;
  HostFit* fit_ = nullptr;
};

// Processors and memory as the system counts them; what it doesn't show stays as it is.
void count_host(HostProfile& host, const Origin& origin, const fs::path& sysfs) {
  std::set<std::int64_t> packages;
  std::set<std::pair<std::int64_t, std::int64_t>> cores;
  for (const fs::path& cpu : sorted_entries(sysfs / "devices/system/cpu")) {
    if (sysfs_text(cpu / "topology/core_id").empty()) continue;
    const std::int64_t package = sysfs_number(cpu / "topology/physical_package_id");
    packages.insert(package);
    cores.emplace(package, sysfs_number(cpu / "topology/core_id"));
  }
  if (!packages.empty()) host.sockets = {static_cast<std::int64_t>(packages.size()), origin};
  if (!cores.empty()) host.cores = {static_cast<std::int64_t>(cores.size()), origin};
  std::int64_t kib = 0;
  for (const fs::path& node : sorted_entries(sysfs / "devices/system/node")) {
    const std::string text = sysfs_text(node / "meminfo");  // "Node 0 MemTotal:  131072 kB"
    if (const auto at = text.find("MemTotal:"); at != std::string::npos)
      kib += std::strtoll(text.c_str() + at + 9, nullptr, 10);
  }
  if (kib > 0) host.dram = {Bytes(kib * 1024), origin};
}

}  // namespace

HostFit fit_host(const std::vector<PcieFunction>& functions, const HostProfile& base, const std::string& date,
                 const std::string& sysfs) {
  const Origin origin{OriginKind::measured, "sysfs of the machine", date, 0};
  HostFit fit;
  fit.profile = base;
  fit.profile.name = "this-host";
  fit.profile.title = "This machine, PCIe tree as sysfs shows it";
  fit.profile.cpu_model.clear();
  fit.profile.note = "what sysfs does not show is that of " + base.name;
  count_host(fit.profile, origin, sysfs);
  HostTree(functions, origin).write(fit);
  return fit;
}

}  // namespace spillway::hwprofiles
