#include "scenario/result_bytes.h"

#include <cstring>
#include <tuple>
#include <type_traits>

namespace spillway::scenario {
namespace {

// Writes what it is handed, or reads it back: each struct is described once.
class Writer {
 public:
  template <class T>
  void plain(T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string& value) {
    std::uint64_t size = value.size();
    plain(size);
    bytes_ += value;
  }
  template <class List>
  std::uint64_t count(List& list) {
    std::uint64_t size = list.size();
    plain(size);
    return size;
  }
  template <class T>
  bool has(std::optional<T>& value) {
    bool is_there = value.has_value();
    plain(is_there);
    return is_there;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void plain(T& value) {
    if (!fits(sizeof value)) return;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void text(std::string& value) {
    std::uint64_t size = 0;
    plain(size);
    if (!fits(size)) return;
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class List>
  std::uint64_t count(List& list) {
    std::uint64_t size = 0;
    plain(size);
    if (!fits(size)) return 0;  // an entry has a byte at least
    list.resize(size);
    return size;
  }
  template <class T>
  bool has(std::optional<T>& value) {
    bool is_there = false;
    plain(is_there);
    if (is_there) value.emplace();
    return is_there;
  }
  [[nodiscard]] bool is_whole() const { return is_good_ && rest_.empty(); }

 private:
  bool fits(std::uint64_t size) {
    is_good_ = is_good_ && size <= rest_.size();
    return is_good_;
  }
  std::string_view rest_;
  bool is_good_ = true;
};

auto members_of(StepResult& v) { return std::tie(v.name, v.begin, v.end, v.recorded_span, v.device_busy); }
auto members_of(KeptIdle& v) { return std::tie(v.name, v.in_call, v.count, v.total, v.longest, v.on_path); }
auto members_of(Fidelity& v) {
  return std::tie(v.recorded, v.replayed, v.error, v.unexplained, v.unexplained_share, v.cause, v.unprofiled,
                  v.unprofiled_error, v.without_profiler);
}
auto members_of(LinkResult& v) { return std::tie(v.name, v.bytes, v.capacity, v.busy_fraction); }
auto members_of(DriveLife& v) { return std::tie(v.years, v.low_years, v.high_years, v.basis, v.assumptions); }
auto members_of(DriveSharer& v) { return std::tie(v.rank, v.gpus, v.written, v.read); }
auto members_of(DriveTraffic& v) {
  return std::tie(v.name, v.set, v.drives, v.written, v.read, v.gpus, v.sharers, v.cache_was_full, v.held, v.room,
                  v.model, v.life);
}
auto members_of(OffloadResult& v) {
  return std::tie(v.technique, v.candidates, v.stored, v.loaded, v.forwarded, v.kept, v.recomputed,
                  v.store_bytes_per_second, v.in_flight, v.plain_peak, v.settled);
}
auto members_of(MemoryPoint& v) { return std::tie(v.time, v.allocated, v.reserved); }
auto members_of(PeakOwner& v) { return std::tie(v.name, v.bytes, v.known); }
auto members_of(MemoryResult& v) {
  return std::tie(v.known, v.on_host, v.allocator, v.phase, v.peak_allocated, v.peak_reserved, v.capacity, v.limit,
                  v.peak_time, v.out_of_memory, v.gives_back, v.explanation, v.segments_allocated, v.driver_time,
                  v.first_driver_time, v.is_tight, v.short_of, v.timeline, v.owners, v.owners_by_layer,
                  v.owners_by_phase, v.largest, v.device, v.doubt);
}
auto members_of(ReservePart& v) {
  return std::tie(v.name, v.bytes, v.is_margin, v.in_capacity, v.provenance, v.source);
}
auto members_of(Reserve& v) { return std::tie(v.parts, v.taken, v.margin); }
auto members_of(HostMemoryResult& v) { return std::tie(v.known, v.peak, v.capacity); }
auto members_of(RankResult& v) {
  return std::tie(v.name, v.bubble, v.compute_busy, v.peak_allocated, v.peak_reserved, v.verdict);
}
auto members_of(PowerResult& v) { return std::tie(v.clock_share, v.watts, v.limit_watts, v.joules); }
auto members_of(EvaluationResult& v) {
  return std::tie(v.time, v.every_steps, v.batches, v.simulated_batches, v.tokens, v.time_share, v.tokens_per_second,
                  v.peak);
}
auto members_of(PhaseResult& v) {
  return std::tie(v.name, v.time, v.peak, v.allocated, v.reserved, v.verdict, v.short_of, v.basis, v.on_host);
}
auto members_of(FigureRange& v) { return std::tie(v.known, v.low, v.high, v.basis); }
auto members_of(InputProvenance& v) { return std::tie(v.name, v.value, v.provenance, v.source); }
auto members_of(Result& v) {
  return std::tie(v.title, v.step_time, v.step_time_range, v.peak_range, v.steps, v.breakdown, v.binding, v.replayed,
                  v.bubble, v.tokens_per_second, v.mfu, v.mfu_basis, v.evaluation, v.phases, v.between_steps, v.power,
                  v.memory, v.reserve, v.host_memory, v.ranks, v.links, v.drives, v.kept_idle, v.fidelity,
                  v.drives_refuse, v.offload, v.fingerprint, v.hangs_on, v.warnings, v.provenance);
}

// What is a number is written as it lies in memory.
template <class Archive, class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(Archive& archive, T& value) { archive.plain(value); }
template <class Archive, class Tag, class T>
void put(Archive& archive, Quantity<Tag, T>& value) {
  archive.plain(value);
}
template <class Archive>
void put(Archive& archive, std::string& value) {
  archive.text(value);
}

template <class Archive, class T>
void put(Archive& archive, std::vector<T>& list) {
  archive.count(list);
  for (T& one : list) put(archive, one);
}
template <class Archive, class T, std::size_t n>
void put(Archive& archive, std::array<T, n>& list) {
  for (T& one : list) put(archive, one);
}
template <class Archive, class T>
void put(Archive& archive, std::optional<T>& value) {
  if (archive.has(value)) put(archive, *value);
}
template <class Archive, class T>
requires requires(T& value) { members_of(value); }
void put(Archive& archive, T& value) {
  std::apply([&](auto&... members) { (put(archive, members), ...); }, members_of(value));
}

}  // namespace

std::string bytes_of(const Result& result) {
  Result copy = result;  // archives may change what they are handed; this one does not
  copy.path = {};
  copy.op_start = copy.op_end = {};
  copy.op_runs = {};
  copy.folded_memory = nullptr;
  Writer writer;
  put(writer, copy);
  return writer.take();
}

std::optional<Result> result_of(std::string_view bytes) {
  Result result;
  Reader reader(bytes);
  put(reader, result);
  return reader.is_whole() ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace spillway::scenario
