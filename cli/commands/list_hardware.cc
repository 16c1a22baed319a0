#include <fmt/format.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "cli/commands/listed.h"
#include "hwprofiles/profile_library.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

double base_of(double value) { return value; }
double base_of(Bytes value) { return static_cast<double>(value.count()); }
double base_of(Rate value) { return to_bytes_per_second(value); }

std::string text_of(double base_value, Dimension dimension) {
  const PrintedQuantity printed = print_quantity(base_value, dimension);
  return printed.value + (printed.unit.empty() ? "" : " " + printed.unit);
}

// "80 GiB"; "-" where no source gives it.
template <class T>
std::string shown(const Maybe<T>& value, Dimension dimension) {
  return value ? text_of(base_of(value->value), dimension) : "-";
}

// In base units; null where no source gives it.
template <class T>
Json plain(const Maybe<T>& value) {
  if (!value) return {};
  if constexpr (std::is_same_v<T, std::int64_t>) return value->value;
  if constexpr (std::is_same_v<T, Bytes>) return value->value.count();
  return base_of(value->value);
}

// Each profile of the kind through `row`, which gives its cells behind the name and fills its item.
template <class Row>
Listed list_kind(ProfileKind kind, std::vector<std::string> headings, Row row) {
  headings.insert(headings.begin(), "name");
  headings.emplace_back("title");
  Listed listed{.table = Table(std::move(headings))};
  const ProfileLibrary library = ProfileLibrary::standard();
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != kind) continue;
    Json item = {{"name", entry.name}, {"title", entry.title}};
    std::vector<std::string> cells = row(library, entry.name, item);
    cells.insert(cells.begin(), entry.name);
    cells.push_back(entry.title);
    listed.items.push_back(std::move(item));
    listed.table.add(std::move(cells));
  }
  return listed;
}

std::vector<std::string> machine_row(const ProfileLibrary& library, const std::string& name, Json& item) {
  const HardwareProfile machine = library.load_system(name);
  const auto network = [&](const char* key, const std::optional<NetworkProfile>& link) {
    item[key] = link ? Json(link->name) : Json();
    return link ? link->name : std::string("-");
  };
  item["gpu"] = machine.gpu.name;
  item["gpu_count"] = machine.gpu_count;
  item["gpu_memory_bytes"] = machine.gpu.memory.value.count();
  item["host"] = machine.host.name;
  item["host_memory_bytes"] = machine.host.dram.value.count();
  item["drives"] = Json::array();
  std::string drives;
  for (const DriveGroup& group : machine.drives) {
    item["drives"].push_back({{"name", group.drive.name}, {"count", group.count}});
    drives += fmt::format("{}{} x {}", drives.empty() ? "" : ", ", group.count, group.drive.name);
  }
  const std::string up = network("scale_up", machine.scale_up), out = network("scale_out", machine.scale_out);
  return {fmt::format("{} x {}", machine.gpu_count, machine.gpu.name),
          text_of(base_of(machine.gpu.memory.value), Dimension::bytes),
          text_of(base_of(machine.host.dram.value), Dimension::bytes),
          drives.empty() ? "-" : drives,
          up,
          out};
}

std::vector<std::string> gpu_row(const ProfileLibrary& library, const std::string& name, Json& item) {
  const GpuProfile gpu = library.load_gpu(name);
  const Maybe<double>& bf16 = gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)];
  const std::string pcie = fmt::format("Gen{} x{}", gpu.pcie_generation.value, gpu.pcie_lanes.value);
  item["memory_bytes"] = gpu.memory.value.count();
  item["memory_bytes_per_second"] = base_of(gpu.memory_bandwidth.value);
  item["bf16_flops_per_second"] = plain(bf16);
  item["pcie_generation"] = gpu.pcie_generation.value;
  item["pcie_lanes"] = gpu.pcie_lanes.value;
  item["nvlink_bytes_per_second"] = plain(gpu.nvlink_bandwidth);
  return {text_of(base_of(gpu.memory.value), Dimension::bytes),
          text_of(base_of(gpu.memory_bandwidth.value), Dimension::rate), shown(bf16, Dimension::flop_rate), pcie,
          shown(gpu.nvlink_bandwidth, Dimension::rate)};
}

std::vector<std::string> drive_row(const ProfileLibrary& library, const std::string& name, Json& item) {
  const NvmeProfile drive = library.load_nvme(name);
  item["capacity_bytes"] = plain(drive.capacity);
  item["read_bytes_per_second"] = plain(drive.read_bandwidth);
  item["write_bytes_per_second"] = plain(drive.write_bandwidth);
  item["steady_write_bytes_per_second"] = plain(drive.steady_write_bandwidth);
  item["rated_endurance_bytes"] = plain(drive.rated_endurance);
  item["price_usd"] = plain(drive.price_usd);
  return {shown(drive.capacity, Dimension::bytes),        shown(drive.read_bandwidth, Dimension::rate),
          shown(drive.write_bandwidth, Dimension::rate),  shown(drive.steady_write_bandwidth, Dimension::rate),
          shown(drive.rated_endurance, Dimension::bytes), shown(drive.price_usd, Dimension::money)};
}

std::vector<std::string> host_row(const ProfileLibrary& library, const std::string& name, Json& item) {
  const HostProfile host = library.load_host(name);
  item["cores"] = host.cores.value;
  item["memory_bytes"] = host.dram.value.count();
  item["memory_bytes_per_second"] = base_of(host.dram_bandwidth.value);
  return {std::to_string(host.cores.value), text_of(base_of(host.dram.value), Dimension::bytes),
          text_of(base_of(host.dram_bandwidth.value), Dimension::rate)};
}

std::vector<std::string> network_row(const ProfileLibrary& library, const std::string& name, Json& item) {
  const NetworkProfile network = library.load_network(name);
  item["technology"] = network.technology;
  item["bytes_per_second"] = base_of(network.bandwidth.value);
  item["measured"] = !network.collectives.empty();
  return {network.technology, text_of(base_of(network.bandwidth.value), Dimension::rate),
          network.collectives.empty() ? "no" : "yes"};
}

}  // namespace

Listed list_machines() {
  return list_kind(ProfileKind::system, {"GPUs", "memory", "host memory", "drives", "scale-up", "scale-out"},
                   machine_row);
}

Listed list_gpus() {
  return list_kind(ProfileKind::gpu, {"memory", "bandwidth", "bf16", "PCIe", "NVLink one way"}, gpu_row);
}

Listed list_drives() {
  return list_kind(ProfileKind::nvme, {"capacity", "read", "write", "steady write", "endurance", "price"}, drive_row);
}

Listed list_hosts() { return list_kind(ProfileKind::host, {"cores", "memory", "bandwidth"}, host_row); }

Listed list_networks() {
  return list_kind(ProfileKind::network, {"technology", "one way", "collectives measured"}, network_row);
}

}  // namespace spillway::cli
