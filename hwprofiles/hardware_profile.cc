#include "hwprofiles/hardware_profile.h"

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

std::vector<std::size_t> slots_of(const HostProfile& host, PcieNodeKind kind) {
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < host.pcie.size(); ++i) {
    if (host.pcie[i].kind == kind) slots.push_back(i);
  }
  return slots;
}

// At least `needed` slots of a kind, adding copies of the existing ones in turn.
std::vector<std::size_t> provide_slots(HardwareProfile& profile, PcieNodeKind kind, std::int64_t needed, bool extend) {
  HostProfile& host = profile.host;
  std::vector<std::size_t> slots = slots_of(host, kind);
  const std::size_t original = slots.size();
  const auto wanted = static_cast<std::size_t>(needed);
  if (wanted > original && (!extend || original == 0)) {
    throw InputError(profile.path, "/host",
                     "host '" + host.name + "' has " + std::to_string(original) + " " +
                         std::string(pcie_node_kind_name(kind)) + " nodes for " + std::to_string(needed) + " devices",
                     "lower the count or choose a host with more slots");
  }
  while (slots.size() < wanted) {
    PcieNode extra = host.pcie[slots[slots.size() % original]];
    extra.name = std::string(pcie_node_kind_name(kind)) + std::to_string(slots.size());
    const Origin origin{OriginKind::assumed, "slot added for a what-if beyond those of the host", ""};
    if (extra.generation) extra.generation->origin = origin;
    if (extra.lanes) extra.lanes->origin = origin;
    slots.push_back(host.pcie.size());
    host.pcie.push_back(extra);
  }
  return slots;
}

}  // namespace

void assign_slots(HardwareProfile& profile, bool extend) {
  const std::vector<std::size_t> gpus = provide_slots(profile, PcieNodeKind::gpu_slot, profile.gpu_count, extend);
  profile.gpu_slots.assign(gpus.begin(), gpus.begin() + profile.gpu_count);
  std::int64_t drives = 0;
  for (const DriveGroup& group : profile.drives) drives += group.count;
  const std::vector<std::size_t> places = provide_slots(profile, PcieNodeKind::drive_slot, drives, extend);
  auto next = places.begin();
  for (DriveGroup& group : profile.drives) {
    group.slots.assign(next, next + group.count);
    next += group.count;
  }
}

}  // namespace spillway::hwprofiles
