#include "hwprofiles/fields.h"

#include <utility>

#include "base/input_error.h"
#include "hwprofiles/profile_schema.h"

namespace spillway::hwprofiles {
namespace {

double to_base(double value) { return value; }
double to_base(std::int64_t value) { return static_cast<double>(value); }
double to_base(Bytes value) { return static_cast<double>(value.count()); }
double to_base(Rate value) { return to_bytes_per_second(value); }
double to_base(Picos value) { return to_seconds(value); }

template <class T>
T from_base(double value) {
  if constexpr (std::is_same_v<T, double>) return value;
  if constexpr (std::is_same_v<T, std::int64_t>) return static_cast<std::int64_t>(std::llround(value));
  if constexpr (std::is_same_v<T, Bytes>) return Bytes(static_cast<std::int64_t>(std::llround(value)));
  if constexpr (std::is_same_v<T, Rate>) return rate_from_bytes_per_second(value);
  if constexpr (std::is_same_v<T, Picos>) return from_seconds(value);
}

template <class T>
constexpr double largest() {
  if constexpr (std::is_same_v<T, double>) return std::numeric_limits<double>::max();
  if constexpr (std::is_same_v<T, Rate>) return 8e15;
  if constexpr (std::is_same_v<T, Picos>) return 9e6;
  return 9e18;
}

template <class T>
class SourcedLeaf final : public Leaf {
 public:
  explicit SourcedLeaf(Sourced<T>& leaf) : leaf_(leaf) {}
  bool required() const override { return true; }
  bool present() const override { return true; }
  double value() const override { return to_base(leaf_.value); }
  const Origin* origin() const override { return &leaf_.origin; }
  void set(double value, Origin origin) override { leaf_ = {from_base<T>(value), std::move(origin)}; }
  bool holds(double value) const override { return value <= largest<T>(); }

 private:
  Sourced<T>& leaf_;
};

template <class T>
class MaybeLeaf final : public Leaf {
 public:
  explicit MaybeLeaf(Maybe<T>& leaf) : leaf_(leaf) {}
  bool required() const override { return false; }
  bool present() const override { return leaf_.has_value(); }
  double value() const override { return to_base(leaf_->value); }
  const Origin* origin() const override { return &leaf_->origin; }
  void set(double value, Origin origin) override { leaf_ = Sourced<T>{from_base<T>(value), std::move(origin)}; }
  bool holds(double value) const override { return value <= largest<T>(); }

 private:
  Maybe<T>& leaf_;
};

// A count, without an origin.
class CountLeaf final : public Leaf {
 public:
  explicit CountLeaf(std::int64_t& leaf) : leaf_(leaf) {}
  bool required() const override { return false; }
  bool present() const override { return true; }
  double value() const override { return to_base(leaf_); }
  const Origin* origin() const override { return nullptr; }
  void set(double value, Origin /*origin*/) override { leaf_ = from_base<std::int64_t>(value); }
  bool holds(double value) const override { return value <= largest<std::int64_t>(); }

 private:
  std::int64_t& leaf_;
};

template <class T>
void number(ProfileVisitor& visitor, FieldInfo info, Sourced<T>& value) {
  SourcedLeaf<T> leaf(value);
  visitor.quantity(info, leaf);
}

template <class T>
void number(ProfileVisitor& visitor, FieldInfo info, Maybe<T>& value) {
  MaybeLeaf<T> leaf(value);
  visitor.quantity(info, leaf);
}

void number(ProfileVisitor& visitor, FieldInfo info, std::int64_t& value) {
  CountLeaf leaf(value);
  visitor.quantity(info, leaf);
}

void text(ProfileVisitor& visitor, std::string_view key, std::string& value, bool required = false) {
  fields::text(visitor, {.key = key, .required = required}, value);
}

// Ranges used again and again: nothing of this size exists, so beyond it is a slip of the unit.
FieldInfo bytes(std::string_view key, double max = 1e18) { return {key, Dimension::bytes, 0, max}; }
FieldInfo rate(std::string_view key) { return {key, Dimension::rate, 1e3, 1e15}; }
FieldInfo time(std::string_view key, double max = 10) { return {key, Dimension::time, 0, max}; }
FieldInfo count(std::string_view key, double min, double max) { return {key, Dimension::count, min, max}; }
FieldInfo fraction(std::string_view key, double min = 1e-6, double max = 1) {
  return {key, Dimension::fraction, min, max};
}
FieldInfo power(std::string_view key) { return {key, Dimension::power, 0, 1e7}; }
FieldInfo money(std::string_view key) { return {key, Dimension::money, 0, 1e9}; }

template <class Enum, class NameOf>
void choice(ProfileVisitor& visitor, std::string_view key, Enum& value, std::size_t count, NameOf name_of) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < count; ++i) words.push_back({name_of(static_cast<Enum>(i))});
  fields::word(visitor, {.key = key, .required = true}, value, Words(std::move(words)));
}

// A curve that must be there, with its origin beside it.
template <class AnyCurve, class Visit>
void owned_curve(AnyCurve& curve, Origin& origin, Visit visit) {
  Maybe<AnyCurve> optional;
  if (!curve.empty()) optional = Sourced<AnyCurve>{curve, origin};
  visit(optional);
  if (optional) {
    curve = std::move(optional->value);
    origin = std::move(optional->origin);
  }
}

void describe_precisions(ProfileVisitor& visitor, std::string_view key, bool required,
                         std::array<Maybe<double>, precision_count>& rates) {
  if (!visitor.begin_group({.key = key, .required = required})) return;
  if (required) visitor.rule(R"({"minProperties": 1})");
  for (std::size_t i = 0; i < precision_count; ++i) {
    number(visitor, {precision_name(static_cast<Precision>(i)), Dimension::flop_rate, 1e9, 1e18}, rates[i]);
  }
  visitor.end_group();
}

void describe_launch(GpuProfile& gpu, ProfileVisitor& visitor) {
  number(visitor, time("launch_call"), gpu.launch_call);
  number(visitor, time("launch_to_start"), gpu.launch_to_start);
  number(visitor, time("kernel_gap"), gpu.kernel_gap);
  number(visitor, count("launch_queue_depth", 1, 1e6), gpu.launch_queue_depth);
  number(visitor, time("malloc_cost"), gpu.malloc_cost);
  number(visitor, time("free_cost"), gpu.free_cost);
  number(visitor, time("chunk_create_cost"), gpu.chunk_create_cost);
  number(visitor, time("chunk_map_cost"), gpu.chunk_map_cost);
  number(visitor, time("chunk_unmap_cost"), gpu.chunk_unmap_cost);
  number(visitor, time("event_record_call"), gpu.event_record_call);
  number(visitor, time("event_wait_call"), gpu.event_wait_call);
  number(visitor, time("event_gap"), gpu.event_gap);
  number(visitor, {"two_stream_speedup", Dimension::plain, 0.1, 10}, gpu.two_stream_speedup);
  number(visitor, bytes("context_memory", 1e12), gpu.context_memory);
}

void describe_copies(GpuProfile& gpu, ProfileVisitor& visitor) {
  number(visitor, count("pcie_generation", 1, 7), gpu.pcie_generation);
  number(visitor, count("pcie_lanes", 1, 32), gpu.pcie_lanes);
  number(visitor, rate("nvlink_bandwidth"), gpu.nvlink_bandwidth);
  number(visitor, rate("cpu_link_bandwidth"), gpu.cpu_link_bandwidth);
  number(visitor, rate("host_to_device_bandwidth"), gpu.host_to_device_bandwidth);
  number(visitor, rate("device_to_host_bandwidth"), gpu.device_to_host_bandwidth);
  number(visitor, rate("duplex_bandwidth"), gpu.duplex_bandwidth);
  number(visitor, fraction("pageable_copy_fraction"), gpu.pageable_copy_fraction);
  number(visitor, time("copy_latency"), gpu.copy_latency);
  number(visitor, count("copy_engines_per_direction", 1, 64), gpu.copy_engines_per_direction);
  number(visitor, {"hbm_contention_factor", Dimension::plain, 1, 100}, gpu.hbm_contention_factor);
  number(visitor, fraction("shared_hbm_fraction"), gpu.shared_hbm_fraction);
  number(visitor, fraction("copy_fraction_beside_kernels"), gpu.copy_fraction_beside_kernels);
}

void describe_efficiency(GpuProfile& gpu, ProfileVisitor& visitor) {
  if (visitor.begin_group({.key = "roofline", .required = true})) {
    number(visitor, fraction("compute_efficiency"), gpu.roofline.compute_efficiency);
    number(visitor, fraction("memory_efficiency"), gpu.roofline.memory_efficiency);
    number(visitor, time("latency"), gpu.roofline.latency);
    visitor.end_group();
  }
  fields::list(visitor, {.key = "gemm_efficiency"}, gpu.gemm_efficiency, [&](GemmEfficiency& item) {
    choice(visitor, "precision", item.precision, precision_count, precision_name);
    number(visitor, count("smallest_side", 1, 1e9), item.smallest_side);
    owned_curve(item.curve, item.origin,
                [&](Maybe<Curve>& curve) { visitor.curve(fraction("curve", 0), Dimension::plain, curve); });
  });
  fields::list(visitor, {.key = "kernel_efficiency"}, gpu.kernel_efficiency, [&](KernelEfficiency& item) {
    choice(visitor, "kind", item.kind, kernel_kind_count, kernel_kind_name);
    owned_curve(item.curve, item.origin,
                [&](Maybe<Curve>& curve) { visitor.curve(fraction("curve", 0), Dimension::plain, curve); });
  });
  visitor.curve(fraction("memory_bound_efficiency", 0), Dimension::bytes, gpu.memory_bound_efficiency);
  visitor.curve(fraction("copy_efficiency", 0), Dimension::bytes, gpu.copy_efficiency);
}

}  // namespace

void describe(GpuProfile& gpu, ProfileVisitor& visitor) {
  text(visitor, "vendor", gpu.vendor, true);
  text(visitor, "architecture", gpu.architecture);
  text(visitor, "form_factor", gpu.form_factor);
  text(visitor, "note", gpu.note);
  number(visitor, bytes("memory", 1e15), gpu.memory);
  number(visitor, rate("memory_bandwidth"), gpu.memory_bandwidth);
  describe_precisions(visitor, "peak_flops", true, gpu.peak_flops_per_second);
  describe_precisions(visitor, "achieved_flops", false, gpu.achieved_flops_per_second);
  number(visitor, count("sm_count", 1, 1e5), gpu.sm_count);
  number(visitor, bytes("l2_cache", 1e12), gpu.l2_cache);
  describe_copies(gpu, visitor);
  describe_launch(gpu, visitor);
  describe_efficiency(gpu, visitor);
  number(visitor, {"locked_clock_mhz", Dimension::plain, 100, 10'000}, gpu.locked_clock_mhz);
  number(visitor, power("tdp"), gpu.tdp_watts);
  number(visitor, power("idle_power"), gpu.idle_watts);
  number(visitor, {"loaded_clock_mhz", Dimension::plain, 100, 10'000}, gpu.loaded_clock_mhz);
  number(visitor, power("loaded_power"), gpu.loaded_watts);
  number(visitor, money("price"), gpu.price_usd);
  number(visitor, {"price_per_hour", Dimension::money_per_hour, 0, 1e5}, gpu.price_usd_per_hour);
}

void describe(NvmeProfile& drive, ProfileVisitor& visitor) {
  text(visitor, "vendor", drive.vendor, true);
  text(visitor, "segment", drive.segment);
  text(visitor, "media", drive.media);
  text(visitor, "note", drive.note);
  number(visitor, bytes("capacity", 1e16), drive.capacity);
  number(visitor, count("pcie_generation", 1, 7), drive.pcie_generation);
  number(visitor, count("pcie_lanes", 1, 16), drive.pcie_lanes);
  number(visitor, rate("read_bandwidth"), drive.read_bandwidth);
  number(visitor, rate("write_bandwidth"), drive.write_bandwidth);
  number(visitor, bytes("write_cache", 1e15), drive.write_cache);
  number(visitor, rate("folding_write_bandwidth"), drive.folding_write_bandwidth);
  number(visitor, bytes("folding_bytes", 1e15), drive.folding_bytes);
  number(visitor, rate("steady_write_bandwidth"), drive.steady_write_bandwidth);
  number(visitor, {"random_read", Dimension::operations, 1, 1e9}, drive.random_read_iops);
  number(visitor, {"random_write", Dimension::operations, 1, 1e9}, drive.random_write_iops);
  number(visitor, time("read_latency"), drive.read_latency);
  number(visitor, time("write_latency"), drive.write_latency);
  number(visitor, count("queue_depth", 1, 65536), drive.queue_depth);
  number(visitor, {"read_write_interference", Dimension::fraction, 0, 1}, drive.read_write_interference);
  visitor.family(fraction("read_efficiency", 0), Dimension::bytes, "queue_depth", drive.read_efficiency);
  visitor.family(fraction("write_efficiency", 0), Dimension::bytes, "queue_depth", drive.write_efficiency);
  number(visitor, bytes("rated_endurance"), drive.rated_endurance);
  text(visitor, "rated_workload", drive.rated_workload);
  number(visitor, bytes("sequential_endurance"), drive.sequential_endurance);
  number(visitor, {"drive_writes_per_day", Dimension::plain, 0, 1e4}, drive.drive_writes_per_day);
  number(visitor, {"warranty", Dimension::years, 0, 100}, drive.warranty_years);
  number(visitor, fraction("over_provisioning", 0, 10), drive.over_provisioning);
  number(visitor, {"indirection_unit", Dimension::bytes, 512, 1 << 24}, drive.indirection_unit);
  number(visitor, fraction("thermal_duty"), drive.thermal_duty);
  number(visitor, power("active_power"), drive.active_watts);
  number(visitor, power("idle_power"), drive.idle_watts);
  number(visitor, money("price"), drive.price_usd);
}

void describe(HostProfile& host, std::vector<std::string>& parents, ProfileVisitor& visitor) {
  text(visitor, "cpu_model", host.cpu_model);
  text(visitor, "note", host.note);
  number(visitor, count("sockets", 1, 64), host.sockets);
  number(visitor, count("cores", 1, 1e5), host.cores);
  number(visitor, bytes("dram", 1e16), host.dram);
  number(visitor, rate("dram_bandwidth"), host.dram_bandwidth);
  number(visitor, rate("socket_bandwidth"), host.socket_bandwidth);
  number(visitor, fraction("pcie_payload_efficiency"), host.pcie_payload_efficiency);
  number(visitor, {"bounce_copies", Dimension::plain, 0, 16}, host.bounce_copies);
  number(visitor, rate("memcpy_bandwidth"), host.memcpy_bandwidth);
  number(visitor, time("dispatch_cost"), host.dispatch_cost);
  number(visitor, {"cpu_adam_parameters_per_second", Dimension::plain, 1, 1e15}, host.cpu_adam_parameters_per_second);
  std::size_t i = 0;
  fields::list(visitor, {.key = "pcie", .about = "The PCIe tree; up names the parent."}, host.pcie,
               [&](PcieNode& node) {
                 parents.resize(host.pcie.size());
                 text(visitor, "name", node.name, true);
                 choice(visitor, "kind", node.kind, 5, pcie_node_kind_name);
                 text(visitor, "up", parents[i++]);
                 number(visitor, count("generation", 1, 7), node.generation);
                 number(visitor, count("lanes", 1, 32), node.lanes);
                 number(visitor, rate("bandwidth"), node.bandwidth);
                 number(visitor, rate("duplex_bandwidth"), node.duplex_bandwidth);
               });
  number(visitor, power("power"), host.power_watts);
  number(visitor, money("price"), host.price_usd);
}

void describe(NetworkProfile& network, ProfileVisitor& visitor) {
  text(visitor, "technology", network.technology, true);
  text(visitor, "note", network.note);
  choice(visitor, "topology", network.topology, 3, network_topology_name);
  number(visitor, rate("bandwidth"), network.bandwidth);
  number(visitor, fraction("efficiency"), network.efficiency);
  number(visitor, time("latency"), network.latency);
  number(visitor, count("max_group", 1, 1e7), network.max_group);
  number(visitor, count("gpus_per_port", 1, 1024), network.gpus_per_port);
  number(visitor, rate("ring_through_host"), network.ring_through_host);
  fields::list(visitor, {.key = "collectives"}, network.collectives, [&](CollectiveCurve& item) {
    choice(visitor, "collective", item.kind, 6, collective_kind_name);
    owned_curve(item.bus_bandwidth, item.origin, [&](Maybe<CurveFamily>& family) {
      visitor.family({"bus_bandwidth", Dimension::rate, 0, 1e15}, Dimension::bytes, "group_size", family);
    });
  });
  number(visitor, power("port_power"), network.port_watts);
  number(visitor, money("port_price"), network.port_price_usd);
}

namespace {

void describe_system_leaves(HardwareProfile& system, ProfileVisitor& visitor) {
  text(visitor, "note", system.note);
  number(visitor, count("machines", 1, 1e6), system.machines);
  number(visitor, money("price"), system.price_usd);
  number(visitor, {"price_per_hour", Dimension::money_per_hour, 0, 1e7}, system.price_usd_per_hour);
  number(visitor, power("power"), system.power_watts);
  number(visitor, {"electricity", Dimension::money_per_kwh, 0, 100}, system.electricity_usd_per_kwh);
}

void describe_network(std::string_view key, std::optional<NetworkProfile>& network, ProfileVisitor& visitor) {
  if (!network || !visitor.begin_group({.key = key})) return;
  describe(*network, visitor);
  visitor.end_group();
}

}  // namespace

void describe(HardwareProfile& system, ProfileVisitor& visitor) {
  describe_system_leaves(system, visitor);
  number(visitor, count("gpu_count", 1, 1024), system.gpu_count);
  if (visitor.begin_group({.key = "gpu"})) {
    describe(system.gpu, visitor);
    visitor.end_group();
  }
  if (visitor.begin_group({.key = "host"})) {
    std::vector<std::string> parents;
    for (const PcieNode& node : system.host.pcie) parents.push_back(node.up ? system.host.pcie[*node.up].name : "");
    describe(system.host, parents, visitor);
    visitor.end_group();
  }
  fields::list(visitor, {.key = "drives"}, system.drives, [&](DriveGroup& group) {
    text(visitor, "name", group.name, true);
    number(visitor, count("count", 1, 256), group.count);
    fields::flag(visitor, {.key = "raid0"}, group.raid0);
    if (visitor.begin_group({.key = "drive"})) {
      describe(group.drive, visitor);
      visitor.end_group();
    }
  });
  describe_network("scale_up", system.scale_up, visitor);
  describe_network("scale_out", system.scale_out, visitor);
}

void describe(HardwareProfile& system, SystemReferences& references, ProfileVisitor& visitor) {
  describe_system_leaves(system, visitor);
  if (visitor.begin_group({.key = "gpu", .required = true})) {
    text(visitor, "profile", references.gpu, true);
    number(visitor, count("count", 1, 1024), system.gpu_count);
    visitor.end_group();
  }
  text(visitor, "host", references.host, true);
  std::size_t set = 0;
  fields::list(visitor, {.key = "drives"}, references.drives, [&](SystemReferences::Drives& drives) {
    drives.group.name = "drives" + std::to_string(set++);
    text(visitor, "profile", drives.profile, true);
    text(visitor, "name", drives.group.name);
    number(visitor, count("count", 1, 256), drives.group.count);
    fields::flag(visitor, {.key = "raid0"}, drives.group.raid0);
  });
  text(visitor, "scale_up", references.scale_up);
  text(visitor, "scale_out", references.scale_out);
}

void describe_head(ProfileHead& head, ProfileKind& kind, FieldVisitor& visitor) {
  static const Words kinds = {{"gpu"}, {"nvme"}, {"host"}, {"network"}, {"system"}};
  visitor.head({.schema = "spillway-hardware-profile/1", .version = 0, .noun = "a hardware profile"});
  fields::word(visitor, {.key = "kind", .required = true}, kind, kinds);
  fields::text(visitor, {.key = "name", .required = true}, head.name);
  fields::text(visitor, {.key = "title", .required = true}, head.title);
  fields::text(visitor,
               {.key = "base",
                .about = "A profile of the same kind, by name or path, that this one changes: groups are merged, "
                         "numbers, curves and lists replaced."},
               head.base);
  fields::word(visitor, {.key = "provenance", .about = "Of the leaves that tell none of their own."},
               head.origin.provenance, provenance_words());
  fields::text(visitor, {.key = "source"}, head.origin.source);
  fields::text(visitor, {.key = "date"}, head.origin.date);
}

std::string_view profile_kind_name(ProfileKind kind) {
  static constexpr std::string_view names[] = {"gpu", "nvme", "host", "network", "system"};
  return names[static_cast<std::size_t>(kind)];
}

const Words& provenance_words() {
  static const Words words = {{"measured"}, {"datasheet"}, {"fitted"}, {"assumed"}};
  return words;
}

std::string_view provenance_name(OriginKind provenance) { return provenance_words()[provenance].name; }

}  // namespace spillway::hwprofiles
