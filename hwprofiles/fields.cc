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

void text(ProfileVisitor& visitor, std::string_view key, std::string_view about, std::string& value,
          bool required = false) {
  fields::text(visitor, {.key = key, .about = about, .required = required}, value);
}

// Ranges used again and again: nothing of this size exists, so beyond it is a slip of the unit.
FieldInfo bytes(std::string_view key, std::string_view about, double max = 1e18) {
  return {key, Dimension::bytes, 0, max, about};
}
FieldInfo rate(std::string_view key, std::string_view about) { return {key, Dimension::rate, 1e3, 1e15, about}; }
FieldInfo time(std::string_view key, std::string_view about, double max = 10) {
  return {key, Dimension::time, 0, max, about};
}
FieldInfo count(std::string_view key, std::string_view about, double min, double max) {
  return {key, Dimension::count, min, max, about};
}
FieldInfo fraction(std::string_view key, std::string_view about, double min = 1e-6, double max = 1) {
  return {key, Dimension::fraction, min, max, about};
}
FieldInfo power(std::string_view key, std::string_view about) { return {key, Dimension::power, 0, 1e7, about}; }
FieldInfo money(std::string_view key, std::string_view about) { return {key, Dimension::money, 0, 1e9, about}; }

template <class Enum, class NameOf>
void choice(ProfileVisitor& visitor, std::string_view key, std::string_view about, Enum& value, std::size_t count,
            NameOf name_of) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < count; ++i) words.push_back({name_of(static_cast<Enum>(i))});
  fields::word(visitor, {.key = key, .about = about, .required = true}, value, Words(std::move(words)));
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

void describe_precisions(ProfileVisitor& visitor, const FieldInfo& info,
                         std::array<Maybe<double>, precision_count>& rates) {
  if (!visitor.begin_group(info)) return;
  if (info.required) visitor.rule(R"({"minProperties": 1})");
  for (std::size_t i = 0; i < precision_count; ++i) {
    number(visitor,
           {precision_name(static_cast<Precision>(i)), Dimension::flop_rate, 1e9, 1e18, "Operations per second."},
           rates[i]);
  }
  visitor.end_group();
}

void describe_launch(GpuProfile& gpu, ProfileVisitor& visitor) {
  number(visitor, time("launch_call", "The host is busy this long per launch."), gpu.launch_call);
  number(visitor, time("launch_to_start", "From the end of the launching call to the kernel's start on an idle GPU."),
         gpu.launch_to_start);
  number(visitor, time("kernel_gap", "Between two queued kernels of one stream."), gpu.kernel_gap);
  number(visitor, count("launch_queue_depth", "Launches the host may run ahead, per stream.", 1, 1e6),
         gpu.launch_queue_depth);
  number(visitor, time("malloc_cost", "Time of one cudaMalloc."), gpu.malloc_cost);
  number(visitor, time("free_cost", "Time of one cudaFree, which also waits for the device."), gpu.free_cost);
  number(visitor, time("chunk_create_cost", "Time of cuMemCreate per physical chunk of 2 to 20 MiB."),
         gpu.chunk_create_cost);
  number(visitor, time("chunk_map_cost", "Time of cuMemMap with cuMemSetAccess per chunk."), gpu.chunk_map_cost);
  number(visitor, time("chunk_unmap_cost", "Time of cuMemUnmap with cuMemRelease per chunk."), gpu.chunk_unmap_cost);
  number(visitor, time("event_record_call", "Time of cudaEventRecord on the host; for people."), gpu.event_record_call);
  number(visitor, time("event_wait_call", "Time of cudaStreamWaitEvent on the host; for people."), gpu.event_wait_call);
  number(visitor,
         time("event_gap",
              "From the end of what an event marks to the start of what waits for it on another stream; for people."),
         gpu.event_gap);
  number(visitor,
         {"two_stream_speedup", Dimension::plain, 0.1, 10,
          "Work done by two streams of kernels that each fill half the multiprocessors over that of one: 1 taking "
          "turns, 2 side by side; for people."},
         gpu.two_stream_speedup);
  number(visitor, bytes("context_memory", "Bytes the driver and its libraries take before the first tensor.", 1e12),
         gpu.context_memory);
}

void describe_copies(GpuProfile& gpu, ProfileVisitor& visitor) {
  number(visitor, count("pcie_generation", "Of its PCIe link.", 1, 7), gpu.pcie_generation);
  number(visitor, count("pcie_lanes", "Of its PCIe link.", 1, 32), gpu.pcie_lanes);
  number(visitor,
         count("peer_access",
               "0: the driver lets no card of this kind read another's memory over PCIe, what one sends another goes "
               "through the host's. 1, or not given: it does.",
               0, 1),
         gpu.peer_access);
  number(
      visitor,
      rate("nvlink_bandwidth",
           "Bytes per second in each direction, to all peers together; datasheets print the sum of both directions."),
      gpu.nvlink_bandwidth);
  number(visitor,
         rate("cpu_link_bandwidth",
              "Bytes per second in each direction of the chip-to-chip link to the CPU that stands in for PCIe (GH200, "
              "GB200)."),
         gpu.cpu_link_bandwidth);
  number(visitor,
         rate("host_to_device_bandwidth",
              "Bytes per second of large pinned copies in this direction alone; left out: the PCIe rate times the "
              "host's payload efficiency."),
         gpu.host_to_device_bandwidth);
  number(visitor,
         rate("device_to_host_bandwidth",
              "Bytes per second of large pinned copies in this direction alone; left out: the PCIe rate times the "
              "host's payload efficiency."),
         gpu.device_to_host_bandwidth);
  number(visitor,
         rate("duplex_bandwidth",
              "Bytes per second of both directions together; less than their sum where duplex is not free."),
         gpu.duplex_bandwidth);
  number(visitor, fraction("pageable_copy_fraction", "Rate of a pageable copy over that of a pinned one."),
         gpu.pageable_copy_fraction);
  number(visitor, time("copy_latency", "Fixed part of each copy's time."), gpu.copy_latency);
  number(visitor, count("copy_engines_per_direction", "Copies of one direction that run at once.", 1, 64),
         gpu.copy_engines_per_direction);
  number(visitor,
         {"hbm_contention_factor", Dimension::plain, 1, 100,
          "HBM bytes charged for each byte that a copy moves while kernels run."},
         gpu.hbm_contention_factor);
  number(visitor,
         fraction("shared_hbm_fraction",
                  "Share of memory_bandwidth that memory-bound kernels and copies reach together; left out: copies "
                  "don't slow kernels."),
         gpu.shared_hbm_fraction);
  number(visitor,
         fraction("copy_fraction_beside_kernels",
                  "Rate of copies to the host beside a kernel bound by memory, over their rate alone; for people."),
         gpu.copy_fraction_beside_kernels);
}

void describe_efficiency(GpuProfile& gpu, ProfileVisitor& visitor) {
  if (visitor.begin_group(
          {.key = "roofline",
           .about =
               "time = latency + max(flops / (compute_efficiency peak), bytes / (memory_efficiency memory_bandwidth)).",
           .required = true})) {
    number(visitor, fraction("compute_efficiency", "Share of the dense peak that large products reach."),
           gpu.roofline.compute_efficiency);
    number(visitor, fraction("memory_efficiency", "Share of memory_bandwidth that large kernels reach."),
           gpu.roofline.memory_efficiency);
    number(visitor, time("latency", "Fixed part of a kernel's time."), gpu.roofline.latency);
    visitor.end_group();
  }
  fields::list(
      visitor, {.key = "gemm_efficiency", .about = "What matrix products reach, by precision and smallest side."},
      gpu.gemm_efficiency, [&](GemmEfficiency& item) {
        choice(visitor, "precision", "Of the product's factors.", item.precision, precision_count, precision_name);
        number(
            visitor,
            count("smallest_side",
                  "The curve holds from this smallest of m, n, k up to the next class of the same precision.", 1, 1e9),
            item.smallest_side);
        owned_curve(item.curve, item.origin, [&](Maybe<Curve>& curve) {
          visitor.curve(fraction("curve", "Share of the dense peak by flops (2mnk).", 0), Dimension::plain, curve);
        });
      });
  fields::list(
      visitor, {.key = "kernel_efficiency", .about = "What other kernels reach, by kind."}, gpu.kernel_efficiency,
      [&](KernelEfficiency& item) {
        choice(visitor, "kind", "What the curve is of.", item.kind, kernel_kind_count, kernel_kind_name);
        owned_curve(item.curve, item.origin, [&](Maybe<Curve>& curve) {
          visitor.curve(
              fraction("curve",
                       "Attention: share of the dense bf16 peak by flops; others: share of memory_bandwidth by bytes.",
                       0),
              Dimension::plain, curve);
        });
      });
  const auto scale = [&](std::string_view key, std::string_view about, Sourced<double>& value) {
    number(visitor, {key, Dimension::plain, 0.01, 100, about}, value);
  };
  fields::list(visitor,
               {.key = "operator_scales",
                .about = "Factors on the fitted operator times of this model of GPU, as measured on this one."},
               gpu.operator_scales, [&](OperatorScale& item) {
                 choice(visitor, "of", "The library of these times.", item.of, scaled_operator_count,
                        scaled_operator_name);
                 choice(visitor, "precision", "Of products.", item.precision, precision_count, precision_name);
                 scale("compute", "On the rate of arithmetic.", item.compute);
                 scale("memory", "On the rate of device memory.", item.memory);
                 scale("fixed", "On fixed times.", item.fixed);
               });
  fields::list(visitor,
               {.key = "product_lines",
                .about = "Products of one m and n against the fitted operator times, as measured on this GPU."},
               gpu.product_lines, [&](ProductLine& item) {
                 choice(visitor, "precision", "Of the product's factors.", item.precision, precision_count,
                        precision_name);
                 number(visitor, count("m", "Rows of the result.", 1, 1e9), item.m);
                 number(visitor, count("n", "Columns of the result.", 1, 1e9), item.n);
                 owned_curve(item.curve, item.origin, [&](Maybe<Curve>& curve) {
                   visitor.curve({"curve", Dimension::plain, 0.1, 10, "Time over the fitted one, by k."},
                                 Dimension::plain, curve);
                 });
               });
  visitor.curve(fraction("memory_bound_efficiency",
                         "Share of memory_bandwidth by bytes moved, where kernel_efficiency has no curve.", 0),
                Dimension::bytes, gpu.memory_bound_efficiency);
  visitor.curve(fraction("copy_efficiency", "Share of the large-copy rate by bytes of one copy.", 0), Dimension::bytes,
                gpu.copy_efficiency);
}

}  // namespace

void describe(GpuProfile& gpu, ProfileVisitor& visitor) {
  text(visitor, "vendor", "Who makes it.", gpu.vendor, true);
  text(visitor, "architecture", "Name of the generation, as Hopper.", gpu.architecture);
  text(visitor, "form_factor", "SXM, PCIe, ...", gpu.form_factor);
  text(visitor, "note", "For people.", gpu.note);
  text(visitor, "host", "Host profile that one of them alone is in. Default: generic-pcie5-host.", gpu.host);
  text(visitor, "operator_times_of",
       "Bundled profile of the same model; its fitted operator times hold. Left out: its own name.",
       gpu.operator_times_of);
  number(visitor, bytes("memory", "Bytes of device memory.", 1e15), gpu.memory);
  number(visitor, rate("memory_bandwidth", "Bytes per second of device memory."), gpu.memory_bandwidth);
  describe_precisions(visitor,
                      {.key = "peak_flops",
                       .about = "Dense, by precision; fp32 is the vector unit, tf32 the tensor unit on fp32 data.",
                       .required = true},
                      gpu.peak_flops_per_second);
  describe_precisions(
      visitor, {.key = "achieved_flops", .about = "Best product measured, by precision: a ceiling below the peak."},
      gpu.achieved_flops_per_second);
  number(visitor, count("sm_count", "Streaming multiprocessors.", 1, 1e5), gpu.sm_count);
  number(visitor, bytes("l2_cache", "Bytes of L2 cache.", 1e12), gpu.l2_cache);
  describe_copies(gpu, visitor);
  describe_launch(gpu, visitor);
  describe_efficiency(gpu, visitor);
  number(visitor,
         {"locked_clock_mhz", Dimension::plain, 100, 10'000,
          "Clock the multiprocessors are locked to, MHz; left out: as high as power allows."},
         gpu.locked_clock_mhz);
  number(visitor, power("tdp", "Board power limit, watts."), gpu.tdp_watts);
  number(visitor, power("idle_power", "Board power with nothing to do, watts."), gpu.idle_watts);
  number(visitor,
         {"power_limit", Dimension::power, 1, 1e7,
          "Board power that the clock is held to (nvidia-smi -pl), watts; left out: the tdp."},
         gpu.power_limit_watts);
  number(visitor,
         {"sustained_flops", Dimension::flop_rate, 1e9, 1e18,
          "Rate that a long bf16 product (sides of 8,192, for a second) settles at on these machines; goes before the "
          "power limit."},
         gpu.sustained_flops_per_second);
  number(visitor,
         {"loaded_clock_mhz", Dimension::plain, 100, 10'000,
          "Clock of the multiprocessors under matrix products, MHz; for people."},
         gpu.loaded_clock_mhz);
  number(visitor, power("loaded_power", "Board power under matrix products, watts; for people."), gpu.loaded_watts);
  number(visitor, money("price", "Of one, US dollars."), gpu.price_usd);
  number(visitor, {"price_per_hour", Dimension::money_per_hour, 0, 1e5, "Of renting one, US dollars per hour."},
         gpu.price_usd_per_hour);
}

void describe(NvmeProfile& drive, ProfileVisitor& visitor) {
  text(visitor, "vendor", "Who makes it.", drive.vendor, true);
  text(visitor, "segment", "Data centre or client.", drive.segment);
  text(visitor, "media", "Flash and its bits per cell, as TLC.", drive.media);
  text(visitor, "note", "For people.", drive.note);
  number(visitor, bytes("capacity", "Bytes a user can store.", 1e16), drive.capacity);
  number(visitor, count("pcie_generation", "Of its PCIe link.", 1, 7), drive.pcie_generation);
  number(visitor, count("pcie_lanes", "Of its PCIe link.", 1, 16), drive.pcie_lanes);
  number(visitor, rate("read_bandwidth", "Bytes per second of sequential reads."), drive.read_bandwidth);
  number(
      visitor,
      rate("write_bandwidth", "Bytes per second of sequential writes; into the write cache where the drive has one."),
      drive.write_bandwidth);
  number(
      visitor,
      bytes("write_cache",
            "Bytes the write cache (pSLC or DRAM) takes; once it is full, writing goes on at the steady rate.", 1e15),
      drive.write_cache);
  number(visitor,
         rate("folding_write_bandwidth",
              "Bytes per second while the drive folds pSLC to TLC, between the cache's rate and the steady one."),
         drive.folding_write_bandwidth);
  number(visitor, bytes("folding_bytes", "Bytes written at the folding rate.", 1e15), drive.folding_bytes);
  number(visitor, rate("steady_write_bandwidth", "Bytes per second of sequential writes once the write cache is full."),
         drive.steady_write_bandwidth);
  number(visitor, {"random_read", Dimension::operations, 1, 1e9, "Reads of 4 KiB per second."}, drive.random_read_iops);
  number(visitor, {"random_write", Dimension::operations, 1, 1e9, "Writes of 4 KiB per second."},
         drive.random_write_iops);
  number(visitor, time("read_latency", "Of one read on an idle drive."), drive.read_latency);
  number(visitor, time("write_latency", "Of one write on an idle drive."), drive.write_latency);
  number(visitor, count("queue_depth", "Useful submission window: commands in flight.", 1, 65536), drive.queue_depth);
  number(visitor,
         {"read_write_interference", Dimension::fraction, 0, 1,
          "1: reads and writes share one budget, in fractions of each rate; 0: they are independent."},
         drive.read_write_interference);
  visitor.family(
      fraction("read_efficiency",
               "Share of the sequential rate by bytes of a block, for each number of commands in flight.", 0),
      Dimension::bytes, "queue_depth", drive.read_efficiency);
  visitor.family(
      fraction("write_efficiency",
               "Share of the sequential rate by bytes of a block, for each number of commands in flight.", 0),
      Dimension::bytes, "queue_depth", drive.write_efficiency);
  number(visitor, bytes("rated_endurance", "Host bytes the vendor rates it for, under rated_workload."),
         drive.rated_endurance);
  text(visitor, "rated_workload", "What rated_endurance is rated for.", drive.rated_workload);
  number(visitor, bytes("sequential_endurance", "Host bytes the vendor rates it for under sequential writes."),
         drive.sequential_endurance);
  number(visitor,
         {"drive_writes_per_day", Dimension::plain, 0, 1e4, "Whole capacities a day over the warranty, as rated."},
         drive.drive_writes_per_day);
  number(visitor, {"warranty", Dimension::years, 0, 100, "Years."}, drive.warranty_years);
  number(visitor, fraction("over_provisioning", "Spare flash over the user's capacity.", 0, 10),
         drive.over_provisioning);
  number(visitor,
         {"indirection_unit", Dimension::bytes, 512, 1 << 24, "Unit in which flash is mapped, bytes; left out: 4 KiB."},
         drive.indirection_unit);
  number(visitor,
         fraction("thermal_duty",
                  "Largest mean share of its full rates that its cooling lets it keep up for minutes; left out: 1."),
         drive.thermal_duty);
  number(visitor, power("active_power", "Under load, watts."), drive.active_watts);
  number(visitor, power("idle_power", "With nothing to do, watts."), drive.idle_watts);
  number(visitor, money("price", "Of one, US dollars."), drive.price_usd);
}

void describe(HostProfile& host, std::vector<std::string>& parents, ProfileVisitor& visitor) {
  text(visitor, "cpu_model", "For people.", host.cpu_model);
  text(visitor, "note", "For people.", host.note);
  number(visitor, count("sockets", "Processors.", 1, 64), host.sockets);
  number(visitor, count("cores", "Over all sockets.", 1, 1e5), host.cores);
  number(visitor, bytes("dram", "Bytes of host memory.", 1e16), host.dram);
  number(visitor, rate("dram_bandwidth", "Bytes per second of all sockets together, reads plus writes."),
         host.dram_bandwidth);
  number(visitor, rate("socket_bandwidth", "Bytes per second between sockets, in each direction."),
         host.socket_bandwidth);
  number(visitor, fraction("pcie_payload_efficiency", "Rate of large pinned copies over the raw rate of the link."),
         host.pcie_payload_efficiency);
  number(visitor,
         {"bounce_copies", Dimension::plain, 0, 16,
          "DRAM bytes moved per byte that passes through a host buffer on the way to or from a drive."},
         host.bounce_copies);
  number(visitor, rate("memcpy_bandwidth", "Bytes per second of one thread that fills a pinned buffer."),
         host.memcpy_bandwidth);
  number(
      visitor,
      time("dispatch_cost", "Time of the host per operator a framework dispatches, for traces without launch times."),
      host.dispatch_cost);
  number(visitor,
         {"framework_slowdown", Dimension::plain, 0.1, 100,
          "With framework megatron: time of the host's Python over that of processes pinned to their cores; "
          "left out: 1. A step's time with one short sequence tells it."},
         host.framework_slowdown);
  number(visitor,
         {"cpu_adam_parameters_per_second", Dimension::plain, 1, 1e15,
          "Parameters per second of a fused optimizer on all cores."},
         host.cpu_adam_parameters_per_second);
  std::size_t i = 0;
  fields::list(
      visitor, {.key = "pcie", .about = "The PCIe tree; up names the parent."}, host.pcie, [&](PcieNode& node) {
        parents.resize(host.pcie.size());
        text(visitor, "name", "Of the node; others name it as their parent.", node.name, true);
        choice(visitor, "kind", "What the node is.", node.kind, 5, pcie_node_kind_name);
        text(visitor, "up", "Name of the parent node; left out for a root complex.", parents[i++]);
        number(visitor, count("generation", "Of the link to the parent.", 1, 7), node.generation);
        number(visitor, count("lanes", "Of the link to the parent.", 1, 32), node.lanes);
        number(visitor,
               rate("bandwidth",
                    "Bytes per second in each direction after protocol overhead; left out: the raw rate times "
                    "pcie_payload_efficiency."),
               node.bandwidth);
        number(visitor,
               rate("duplex_bandwidth",
                    "Bytes per second of both directions together; left out: no limit beyond each direction's."),
               node.duplex_bandwidth);
      });
  number(visitor, power("power", "Of the machine without GPUs and drives, watts."), host.power_watts);
  number(visitor, money("price", "Of the machine without GPUs and drives, US dollars."), host.price_usd);
}

void describe(NetworkProfile& network, ProfileVisitor& visitor) {
  text(visitor, "technology", "NVLink, InfiniBand, Ethernet, ...", network.technology, true);
  text(visitor, "note", "For people.", network.note);
  choice(visitor, "topology", "How GPUs are joined.", network.topology, 3, network_topology_name);
  number(visitor, rate("bandwidth", "Bytes per second per GPU and direction."), network.bandwidth);
  number(visitor, fraction("efficiency", "Share of bandwidth that a large collective's payload reaches."),
         network.efficiency);
  number(visitor, time("latency", "Of one step of a collective: the alpha of alpha-beta models."), network.latency);
  number(visitor, count("max_group", "GPUs it can join.", 1, 1e7), network.max_group);
  number(visitor,
         fraction("switch_reduction",
                  "Its switches add (NVLink SHARP): bus bandwidth of a large all-reduce over that of a ring; left out: "
                  "they don't.",
                  1, 2),
         network.switch_reduction);
  number(visitor,
         count("gpus_per_port",
               "GPUs of a machine behind one port, of which bandwidth is each one's share; left out: each has its own.",
               1, 1024),
         network.gpus_per_port);
  number(visitor,
         rate("ring_through_host",
              "Bytes per second of a ring that reaches its port through the host, because only one of the GPUs behind "
              "the port is in it; left out: as any other ring."),
         network.ring_through_host);
  fields::list(visitor, {.key = "collectives", .about = "What was measured of collectives, by kind."},
               network.collectives, [&](CollectiveCurve& item) {
                 choice(visitor, "collective", "What it carries out.", item.kind, 6, collective_kind_name);
                 owned_curve(item.bus_bandwidth, item.origin, [&](Maybe<CurveFamily>& family) {
                   visitor.family(
                       {"bus_bandwidth", Dimension::rate, 0, 1e15,
                        "Bytes per second by message bytes, for each group size, as NCCL's tests count them."},
                       Dimension::bytes, "group_size", family);
                 });
               });
  number(visitor, power("port_power", "Of one port, watts."), network.port_watts);
  number(visitor, money("port_price", "Of one port, US dollars."), network.port_price_usd);
}

namespace {

void describe_system_leaves(HardwareProfile& system, ProfileVisitor& visitor) {
  text(visitor, "note", "For people.", system.note);
  number(visitor, count("machines", "Machines of this kind.", 1, 1e6), system.machines);
  number(visitor,
         count("scale_up_gpus",
               "GPUs that the scale-up network joins, of several machines; left out: those of one machine.", 1, 65536),
         system.scale_up_gpus);
  number(visitor, money("price", "Of one machine, US dollars."), system.price_usd);
  number(visitor, {"price_per_hour", Dimension::money_per_hour, 0, 1e7, "Of renting one machine, US dollars per hour."},
         system.price_usd_per_hour);
  number(visitor, power("power", "Of one machine under load, watts."), system.power_watts);
  number(visitor, {"electricity", Dimension::money_per_kwh, 0, 100, "US dollars per kWh."},
         system.electricity_usd_per_kwh);
}

void describe_network(std::string_view key, std::optional<NetworkProfile>& network, ProfileVisitor& visitor) {
  if (!network || !visitor.begin_group({.key = key})) return;
  describe(*network, visitor);
  visitor.end_group();
}

}  // namespace

void describe(HardwareProfile& system, ProfileVisitor& visitor) {
  describe_system_leaves(system, visitor);
  number(visitor, count("gpu_count", "GPUs per machine.", 1, 1024), system.gpu_count);
  if (visitor.begin_group({.key = "gpu", .about = "The GPU."})) {
    describe(system.gpu, visitor);
    visitor.end_group();
  }
  if (visitor.begin_group({.key = "host", .about = "The machine around the GPUs."})) {
    std::vector<std::string> parents;
    for (const PcieNode& node : system.host.pcie) parents.push_back(node.up ? system.host.pcie[*node.up].name : "");
    describe(system.host, parents, visitor);
    visitor.end_group();
  }
  fields::list(
      visitor, {.key = "drives", .about = "Drive sets of one machine."}, system.drives, [&](DriveGroup& group) {
        text(visitor, "name", "Of the set, as plans and links name it.", group.name, true);
        number(visitor, count("count", "Drives of the set.", 1, 256), group.count);
        fields::flag(visitor, {.key = "raid0", .about = "Whether the set is striped into one volume."}, group.raid0);
        if (visitor.begin_group({.key = "drive", .about = "The drive model."})) {
          describe(group.drive, visitor);
          visitor.end_group();
        }
      });
  describe_network("scale_up", system.scale_up, visitor);
  describe_network("scale_out", system.scale_out, visitor);
}

void describe(HardwareProfile& system, SystemReferences& references, ProfileVisitor& visitor) {
  describe_system_leaves(system, visitor);
  if (visitor.begin_group({.key = "gpu", .about = "The GPUs of one machine.", .required = true})) {
    text(visitor, "profile", "Its profile: a name of `spillway profile list` or a file.", references.gpu, true);
    number(visitor, count("count", "GPUs per machine.", 1, 1024), system.gpu_count);
    visitor.end_group();
  }
  text(visitor, "host", "Profile of the machine around the GPUs: a name or a file.", references.host, true);
  std::size_t set = 0;
  fields::list(visitor, {.key = "drives", .about = "Drive sets of one machine."}, references.drives,
               [&](SystemReferences::Drives& drives) {
                 drives.group.name = "drives" + std::to_string(set++);
                 text(visitor, "profile", "Its profile: a name of `spillway profile list` or a file.", drives.profile,
                      true);
                 text(visitor, "name", "Of the set, as plans and links name it.", drives.group.name);
                 number(visitor, count("count", "Drives of the set.", 1, 256), drives.group.count);
                 fields::flag(visitor, {.key = "raid0", .about = "Whether the set is striped into one volume."},
                              drives.group.raid0);
               });
  text(visitor, "scale_up", "Profile of the network inside a machine: a name or a file; left out: none.",
       references.scale_up);
  text(visitor, "scale_out", "Profile of the network between machines: a name or a file; left out: none.",
       references.scale_out);
}

void describe_head(ProfileHead& head, ProfileKind& kind, FieldVisitor& visitor) {
  static const Words kinds = {{"gpu"}, {"nvme"}, {"host"}, {"network"}, {"system"}};
  visitor.head({.schema = "spillway-hardware-profile/1", .version = 0, .noun = "a hardware profile"});
  fields::word(visitor, {.key = "kind", .about = "What it is a profile of.", .required = true}, kind, kinds);
  fields::text(visitor, {.key = "name", .about = "As scenarios name it.", .required = true}, head.name);
  fields::text(visitor, {.key = "title", .about = "For people.", .required = true}, head.title);
  fields::text(visitor,
               {.key = "base",
                .about = "A profile of the same kind, by name or path, that this one changes: groups are merged, "
                         "numbers, curves and lists replaced."},
               head.base);
  fields::word(visitor, {.key = "provenance", .about = "Of the leaves that tell none of their own."},
               head.origin.provenance, provenance_words());
  fields::text(visitor, {.key = "source", .about = "Where the leaves that tell none of their own are from."},
               head.origin.source);
  fields::text(visitor, {.key = "date", .about = "When it was read or measured."}, head.origin.date);
}

std::string_view profile_kind_name(ProfileKind kind) {
  static constexpr std::string_view names[] = {"gpu", "nvme", "host", "network", "system"};
  return names[static_cast<std::size_t>(kind)];
}

const Words& provenance_words() {
  static const Words words = {{"measured", "on the hardware"},
                              {"datasheet", "printed by the vendor"},
                              {"fitted", "to measurements"},
                              {"assumed", "for want of better"}};
  return words;
}

std::string_view provenance_name(OriginKind provenance) { return provenance_words()[provenance].name; }

}  // namespace spillway::hwprofiles
