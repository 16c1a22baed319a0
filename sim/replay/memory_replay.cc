#include "sim/replay/memory_replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/address_map.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "sim/devices/memory/recorded_state.h"
#include "sim/devices/memory/start_up_order.h"
#include "sim/devices/memory/torch_settings.h"
#include "sim/replay/peak_owners.h"
#include "traces/memory_doubt.h"

namespace spillway::sim {
namespace {

constexpr std::size_t most_owners = 12, most_layers = 200;

// What is held over the replay's time, and whose it is at the peak.
class HeldCurve {
 public:
  HeldCurve(const Trace& trace, std::span<const Picos> event_time, const AllocationStreamResult& stream)
      : trace_(trace), event_time_(event_time), stream_(stream), rest_(stream.initial.allocated) {}

  // Gives the peak of the step itself. Once per curve.
  Bytes fill(MemoryResult& result) {
    Picos now{};
    result.timeline.push_back({now, stream_.initial.allocated, stream_.initial.reserved});
    std::optional<std::uint32_t> peak_event;
    Bytes peak = stream_.initial.allocated;
    for (const HeldMemory& held : stream_.held) {
      now = std::max(now, event_time_[held.event]);
      if (result.timeline.back().time != now) result.timeline.push_back({now, Bytes(0), Bytes(0)});
      MemoryPoint& point = result.timeline.back();  // the most within an instant
      point.allocated = std::max(point.allocated, held.allocated);
      point.reserved = std::max(point.reserved, held.reserved);
      if (held.allocated > peak) {
        peak = held.allocated;
        peak_event = held.event;
        result.peak_time = now;
      }
    }
    go_to(peak_event);
    name_owners(result);
    return peak;
  }

  // Of a run that stopped, as it left them. Once per curve.
  void fill_owners_at_stop(MemoryResult& result) {
    take_rows();
    name_owners(result);
  }
  std::vector<PeakOwner> owners_at_failure() {
    if (stream_.stopped_before)
      take_rows();
    else
      go_to(stream_.first_failed_event);
    return owners_by([this](const MemoryEvent& event) { return owner(event); }, most_owners);
  }

 private:
  struct Live {
    Bytes size{};
    std::uint32_t event = 0;
  };

  void name_owners(MemoryResult& result) const {
    result.owners = owners_by([this](const MemoryEvent& event) { return owner(event); }, most_owners);
    result.owners_by_layer = owners_by([this](const MemoryEvent& event) { return layer_of(event); }, most_layers);
    result.owners_by_phase = owners_by([this](const MemoryEvent& event) { return phase_of(event); }, most_owners);
    result.largest = largest_tensor();
    for (std::vector<PeakOwner>* owners : {&result.owners_by_layer, &result.owners_by_phase})
      if (std::all_of(owners->begin(), owners->end(), [](const PeakOwner& o) { return !o.known; })) owners->clear();
  }

  void go_to(std::optional<std::uint32_t> last_event) {
    Bytes before = stream_.initial.allocated;
    for (const HeldMemory& held : stream_.held) {
      if (!last_event || held.event > *last_event) break;
      follow(held.event, held.allocated - before);
      before = held.allocated;
    }
  }

  // What an event changed is the block's that it is about, or of those from before; so nothing is lost or twice there.
  void follow(std::uint32_t e, Bytes change) {
    const MemoryEvent& event = trace_.memory_events[e];
    const std::uint64_t address = event.address.count();
    if (event.action == MemoryAction::allocate) {
      Live* const again = live_.find(address);
      if (again != nullptr || change > Bytes(0)) {
        live_[address] = {(again == nullptr ? Bytes(0) : again->size) + change, e};
      } else if (change < Bytes(0)) {
        rest_ += change;  // in place of one from before
      } else if (stream_.started_up && event.anchor == OpId::none) {
        live_[address] = {event.bytes, e};  // an initial tensor: part of what the start-up left
        rest_ -= event.bytes;
      }
      return;
    }
    Live* const block = live_.find(address);
    if (block == nullptr) {
      rest_ += change;
      return;
    }
    block->size += change;
    if (block->size == Bytes(0)) live_.erase(address);
  }

  // Blocks of tensors have rows. What is in none is an evaluation's, or in buffers that initial tensors share; of those
  // that are made late, nobody knows which are there before all of them are.
  void take_rows() {
    rest_ = Bytes(stream_.statistics.all().allocated_bytes.current);
    for (const AllocationRow& row : stream_.rows) {
      if (row.freed != unknown_time || row.tag == no_tag) continue;
      rest_ -= row.size;
      if (row.tag == evaluation_tag)
        of_evaluation_ += row.size;
      else
        live_[row.tag] = {live_[row.tag].size + row.size, row.tag};
    }
    std::vector<bool> is_late(trace_.tensors.size(), false);
    for (const StartUpEvent& event : trace_.start_up)
      if (event.late && event.tensor != TensorId::none && !is_size_before(event))
        is_late[index_of(event.tensor)] = true;
    const std::vector<std::uint32_t> shared = initial_without_row();
    for (const bool late : {false, true}) {
      Bytes sum{};
      const auto each = [&](const auto& visit) {
        for (const std::uint32_t e : shared)
          if (is_late[index_of(trace_.memory_events[e].tensor)] == late) visit(e, trace_.memory_events[e].bytes);
      };
      each([&sum](std::uint32_t, Bytes bytes) { sum += bytes; });
      is_whole_ = is_whole_ && sum <= rest_;
      if (!is_whole_) return;
      each([this](std::uint32_t e, Bytes bytes) { live_[e] = {bytes, e}; });
      rest_ -= sum;
    }
  }
  std::vector<std::uint32_t> initial_without_row() {
    EventIndex events;
    for (std::uint32_t e = 0; e < trace_.memory_events.size(); ++e)
      if (trace_.memory_events[e].device == stream_.device) events.push_back(e);
    const std::optional<std::vector<bool>> initial = initial_events(trace_, events);
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; initial && i < events.size(); ++i)
      if ((*initial)[i] && live_.find(events[i]) == nullptr) found.push_back(events[i]);
    return found;
  }

  // Largest first, see largest_owners(). An empty name: not known.
  template <class Name>
  [[nodiscard]] std::vector<PeakOwner> owners_by(const Name& name, std::size_t most) const {
    std::map<std::string, Bytes> groups;
    for (const auto& [address, block] : live_.sorted())
      if (block.size != Bytes(0)) groups[name(trace_.memory_events[block.event])] += block.size;
    std::vector<PeakOwner> owners;
    owners.reserve(groups.size() + 1);
    for (const auto& [group, bytes] : groups)
      owners.push_back({group.empty() ? "not known" : group, bytes, !group.empty()});
    if (of_evaluation_ > Bytes(0)) owners.push_back({"an evaluation before the step", of_evaluation_, true});
    if (rest_ != Bytes(0))
      owners.push_back({!is_whole_           ? "buffers of no one tensor"
                        : stream_.started_up ? "rounding of buffers"
                                             : "held before the capture",
                        rest_, stream_.started_up});
    std::stable_sort(owners.begin(), owners.end(),
                     [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
    return largest_owners(std::move(owners), most);
  }

  [[nodiscard]] PeakOwner largest_tensor() const {
    PeakOwner largest;
    for (const auto& [address, block] : live_.sorted()) {
      const TensorId tensor = trace_.memory_events[block.event].tensor;
      if (tensor == TensorId::none || block.size <= largest.bytes) continue;
      const TensorRole role = trace_.tensors.role[index_of(tensor)];
      if (role == TensorRole::activation || role == TensorRole::temporary)
        largest = {std::string(trace_.strings.text(trace_.tensors.name[index_of(tensor)])), block.size, true};
    }
    return largest;
  }

  [[nodiscard]] std::string owner(const MemoryEvent& event) const {
    if (event.tensor != TensorId::none) {
      const TensorRole role = trace_.tensors.role[index_of(event.tensor)];
      if (role != TensorRole::unknown) return std::string(to_string(role));
    }
    const Phase phase = event.anchor == OpId::none ? Phase::unknown : trace_.ops.phase[index_of(event.anchor)];
    return phase == Phase::unknown ? "allocated in an unknown phase" : "allocated in " + std::string(to_string(phase));
  }

  [[nodiscard]] std::string phase_of(const MemoryEvent& event) const {
    if (event.anchor == OpId::none) return trace_.ops.size() == 0 ? "" : "before the step";
    const Phase phase = trace_.ops.phase[index_of(event.anchor)];
    return phase == Phase::unknown ? "" : std::string(to_string(phase));
  }
  // A tensor's own layer where its name has one ("layers.7.mlp.up"), else that of the op it was allocated behind.
  [[nodiscard]] std::string layer_of(const MemoryEvent& event) const {
    if (event.tensor != TensorId::none) {
      const std::string_view name = trace_.strings.text(trace_.tensors.name[index_of(event.tensor)]);
      const std::size_t begin = name.find_first_of("0123456789");
      if (begin != std::string_view::npos && begin > 0 && name[begin - 1] == '.') {
        const std::size_t end = name.find('.', begin);
        const std::string_view number = name.substr(begin, end == std::string_view::npos ? end : end - begin);
        if (number.find_first_not_of("0123456789") == std::string_view::npos) return "layer " + std::string(number);
      }
    }
    if (event.anchor == OpId::none) return "";
    const std::uint16_t layer = trace_.ops.layer[index_of(event.anchor)];
    return layer == no_index16 ? "" : "layer " + std::to_string(layer);
  }

  const Trace& trace_;
  std::span<const Picos> event_time_;
  const AllocationStreamResult& stream_;
  AddressMap<Live> live_;  // by recorded address; of a run that stopped by event
  Bytes rest_{};           // of no tensor known here
  Bytes of_evaluation_{};
  bool is_whole_ = true;  // all initial tensors are there
};

// The last host call before an event.
OpId host_call_of(const Trace& trace, const MemoryEvent& event) {
  if (event.anchor == OpId::none || is_host_call(trace.ops.kind[index_of(event.anchor)])) return event.anchor;
  return trace.ops.launched_by[index_of(event.anchor)];
}

}  // namespace

AllocationStreamOptions stream_options(const MemoryReplayOptions& options, std::int16_t device, Bytes capacity) {
  AllocationStreamOptions stream;
  stream.pool.policy = options.allocator;
  stream.pool.settings = options.settings;
  const auto own = options.plans.find(device);
  stream.pool.plan = own == options.plans.end() ? options.plan : own->second;
  if (stream.pool.plan != nullptr) stream.spaces = request_spaces(*stream.pool.plan);
  if (capacity > Bytes(0)) stream.pool.device_memory = capacity;
  stream.device = device;
  stream.use_recorded_segments = false;
  stream.fold = options.fold.get();
  return stream;
}

bool limit_matters_only_when_met(const MemoryReplayOptions& options) {
  if (options.allocator == ideal_policy) return true;
  if (options.allocator != torch_policy) return false;
  const TorchSettings settings = parse_torch_settings(options.settings);
  return !settings.expandable_segments && settings.memory_fraction == 1;
}

// Whether a GPU's blocks can be told apart: totals and sizes without addresses say nothing of what an allocator makes.
bool has_places(const Trace& trace) {
  return !trace.memory_segments.empty() ||
         std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                     [](const MemoryEvent& event) { return event.device >= 0 && event.address != Addr(0); });
}

MemoryReplay::MemoryReplay(const Trace& trace, const MemoryReplayOptions& options)
    : trace_(trace), options_(options), doubt_(memory_doubt(trace)) {
  std::vector<std::pair<std::int16_t, EventIndex>> streams = index_memory_events(trace);
  const std::vector<std::int16_t> devices = memory_devices(trace);
  if ((streams.empty() && devices.empty()) || (!devices.empty() && !has_places(trace))) return;
  known_ = true;
  if (devices.empty()) {  // host memory is not the GPU allocator's business
    options_ = {.allocator = std::string(ideal_policy)};
    on_host_ = true;
    AllocationStreamOptions stream = stream_options(options_, shown_device_, Bytes(0));
    stream.keep_totals = true;
    shown_events_ = std::move(streams.front().second);
    shown_run_ = noted(replay_allocation_stream(trace, shown_events_, stream));
    return;
  }
  if (options_.plan != nullptr && devices.size() > 1 && !options_.device)
    throw InputError("memory.plan", "", "a memory plan is for one GPU, the step has " + std::to_string(devices.size()),
                     "plan and replay a step of one pipeline stage");
  for (const std::int16_t device : devices) {
    if (refusal_) return;
    const auto found =
        std::find_if(streams.begin(), streams.end(), [device](const auto& stream) { return stream.first == device; });
    run_device(device, found == streams.end() ? EventIndex{} : found->second);
  }
}

// No allocator holds less than what was asked for and whose return nobody has asked for. 0 of records that tell of
// blocks only when they became free.
Bytes surely_held(const Trace& trace, const EventIndex& events) {
  Bytes held{}, most{};
  std::unordered_set<std::uint64_t> pending;  // asked to be freed, still in use by another stream
  for (std::size_t i = 0; i < events.size(); ++i) {
    const MemoryEvent& event = trace.memory_events[events[i]];
    const auto next_completes = [&] {
      if (i + 1 == events.size()) return false;
      const MemoryEvent& next = trace.memory_events[events[i + 1]];
      return next.action == MemoryAction::free_completed && next.address == event.address;
    };
    if (event.action == MemoryAction::free_requested) {
      if (next_completes())
        ++i;
      else
        pending.insert(event.address.count());
    } else if (event.action == MemoryAction::free_completed && pending.erase(event.address.count()) == 0) {
      return Bytes(0);
    }
    if (!is_plausible(event.bytes)) continue;
    if (event.action == MemoryAction::allocate) held += event.bytes;
    if (event.action == MemoryAction::free_requested) held -= event.bytes;
    most = std::max(most, held);
  }
  return most;
}

AllocationStreamResult MemoryReplay::noted(AllocationStreamResult run) {
  if (run.refused != nullptr && !refusal_) refusal_ = {.why = run.refused};
  return run;
}

void MemoryReplay::run_device(std::int16_t device, const EventIndex& events) {
  const Bytes capacity = options_.capacity;
  const bool may_skip = options_.detail == Detail::clock && capacity > Bytes(0) && options_.fold == nullptr;
  if (const Bytes held = may_skip ? surely_held(trace_, events) : Bytes(0); held > capacity) {
    runs_.emplace_back();
    peaks_.push_back({device, held, held, Verdict::does_not_fit});
    AllocationStreamResult run;
    PoolStatistics& all = run.statistics.pools[static_cast<std::size_t>(PoolKind::all)];
    all.allocated_bytes.peak = all.reserved_bytes.peak = held.count();
    show_if_wanted(events, std::move(run), false);
    return;
  }
  AllocationStreamOptions stream = stream_options(options_, device, Bytes(0));
  stream.keep_totals = options_.detail == Detail::figures;
  stream.repeat = capacity == Bytes(0) || limit_matters_only_when_met(options_);
  if (capacity > Bytes(0)) stream.repeat_up_to = capacity;
  AllocationStreamResult needed = noted(replay_allocation_stream(trace_, events, stream));
  if (refusal_) return;
  add_unusable(needed.unusable_events + needed.unusable_segments, doubt_);
  DevicePeaks& peaks = peaks_.emplace_back();
  peaks.device = device;
  peaks.allocated = Bytes(needed.statistics.all().allocated_bytes.peak);
  peaks.reserved = Bytes(needed.statistics.all().reserved_bytes.peak);

  DeviceRun& run = runs_.emplace_back();
  bool gives_back = false;
  std::optional<AllocationStreamResult> failed;
  const bool ran_twice = needed.repeated_peak_reserved > Bytes(0);
  if (capacity > Bytes(0)) peaks.verdict = in_doubt(Verdict::fits, doubt_);
  if (capacity > Bytes(0) && (!ran_twice || needed.repeated_peak_reserved > capacity)) {
    stream = stream_options(options_, device, capacity);
    stream.repeat = stream.stop_when_out_of_memory = true;
    stream.keep_rows = stream.keep_totals = options_.detail == Detail::figures && peaks.reserved > capacity;
    AllocationStreamResult limited = noted(replay_allocation_stream(trace_, events, stream));
    if (refusal_) return;
    run = {limited.costs, limited.repeated_costs};
    if (peaks.reserved > capacity && limited.out_of_memory > 0) {
      peaks.verdict = Verdict::does_not_fit;
      if (options_.detail == Detail::figures) failed = std::move(limited);
    } else if (peaks.reserved > capacity) {
      gives_back = true;
      needed = std::move(limited);
      peaks.reserved = Bytes(needed.statistics.all().reserved_bytes.peak);
    }
  } else {
    run = {needed.costs, needed.repeated_costs};
  }
  show_if_wanted(events, std::move(needed), gives_back, std::move(failed));
}

void MemoryReplay::show_if_wanted(const EventIndex& events, AllocationStreamResult run, bool gives_back,
                                  std::optional<AllocationStreamResult> failed) {
  const DevicePeaks& peaks = peaks_.back();
  const bool is_wanted = options_.device ? peaks.device == *options_.device
                                         : peaks_.size() == 1 || peaks.reserved > peaks_[shown_].reserved;
  if (!is_wanted) return;
  shown_ = peaks_.size() - 1;
  shown_device_ = peaks.device;
  shown_events_ = events;
  gives_back_ = gives_back;
  shown_run_ = std::move(run);
  failed_run_ = std::move(failed);
}

AllocatorTime MemoryReplay::allocator_time(const DriverTimes& times) const {
  AllocatorTime result;
  for (const DeviceRun& run : runs_) {
    for (const EventCost& cost : run.first) result.first_step += host_time(cost.cost, times);
    for (const EventCost& cost : run.second) {
      const OpId after = host_call_of(trace_, trace_.memory_events[cost.event]);
      if (after == OpId::none) continue;
      result.delays.push_back({after, host_time(cost.cost, times), waits_for_device(cost.cost)});
      result.step += result.delays.back().time;
    }
  }
  std::stable_sort(result.delays.begin(), result.delays.end(),
                   [](const HostDelay& a, const HostDelay& b) { return a.after < b.after; });
  return result;
}

AllocationStreamResult MemoryReplay::run_until_it_fails() {
  AllocationStreamOptions stream = stream_options(options_, shown_device_, options_.capacity);
  stream.keep_rows = stream.keep_totals = stream.stop_when_out_of_memory = true;
  return noted(replay_allocation_stream(trace_, shown_events_, stream));
}

// Who held the memory when it ran out, and which allocator would have got by with less.
std::string MemoryReplay::why_it_failed(std::span<const Picos> event_time) {
  const AllocationStreamResult again = failed_run_ ? AllocationStreamResult() : run_until_it_fails();
  const AllocationStreamResult& limited = failed_run_ ? *failed_run_ : again;
  if (refusal_) return "";
  SPILLWAY_ASSERT(limited.first_out_of_memory.has_value());
  std::string text = describe(*limited.first_out_of_memory);
  text += "; resident:";
  const char* separator = " ";
  for (const PeakOwner& owner : HeldCurve(trace_, event_time, limited).owners_at_failure()) {
    if (separator[0] == ',' && gib_text(owner.bytes) == gib_text(Bytes(0))) continue;
    text += separator + gib_text(owner.bytes) + " " + owner.name;
    separator = ", ";
  }
  const bool is_hopeless = options_.fold == nullptr && surely_held(trace_, shown_events_) > options_.capacity;
  for (const std::string_view other : {expandable_policy, ideal_policy}) {
    if (is_hopeless || options_.allocator == other) continue;
    AllocationStreamOptions stream =
        stream_options({.allocator = std::string(other)}, shown_device_, options_.capacity);
    stream.stop_when_out_of_memory = true;
    const AllocationStreamResult result = replay_allocation_stream(trace_, shown_events_, stream);
    if (result.out_of_memory > 0) continue;
    const std::string most = gib_text(Bytes(result.statistics.all().reserved_bytes.peak));
    return text + (other == ideal_policy ? "; without any fragmentation " + most + " would do"
                                         : "; it fits with expandable_segments:True (" + most + " reserved)");
  }
  return text + "; it would not fit without any fragmentation either";
}

// Whoever holds the peak, before the step or in it: the owners are all of it, by whatever they are told apart.
void MemoryReplay::fill_details(std::span<const Picos> event_time, MemoryResult& result) {
  if (HeldCurve(trace_, event_time, shown_run_).fill(result) < result.peak_allocated) {
    AllocationStreamOptions stream =
        stream_options(options_, shown_device_, gives_back_ ? options_.capacity : Bytes(0));
    stream.keep_rows = true;
    const AllocationStreamResult before =
        noted(replay_until_allocated(trace_, shown_events_, stream, result.peak_allocated));
    if (refusal_) return;
    HeldCurve(trace_, event_time, before).fill_owners_at_stop(result);
    if (result.explanation.empty())
      result.explanation = "the peak lies before the step that is shown: owners at the peak are of then";
  }
  SPILLWAY_ASSERT(sum_of(result.owners) == result.peak_allocated);
  for (const std::vector<PeakOwner>* owners : {&result.owners_by_layer, &result.owners_by_phase})
    SPILLWAY_ASSERT(owners->empty() || sum_of(*owners) == result.peak_allocated);
}

MemoryResult MemoryReplay::result(std::span<const Picos> event_time) {
  MemoryResult result;
  if (!known_) return result;
  result.on_host = on_host_;
  result.device = shown_device_;
  result.allocator = options_.allocator;
  result.capacity = result.limit = options_.capacity;
  result.known = true;
  result.doubt = doubt_;
  result.peak_allocated = Bytes(shown_run_.statistics.all().allocated_bytes.peak);
  result.peak_reserved = Bytes(shown_run_.statistics.all().reserved_bytes.peak);
  result.segments_allocated = shown_run_.segments_allocated;
  result.gives_back = gives_back_;
  result.out_of_memory = !on_host_ && peaks_[shown_].verdict == Verdict::does_not_fit;
  if (result.gives_back) result.explanation = "fits because the allocator gives cached segments back and retries";
  if (result.out_of_memory && options_.detail == Detail::figures) result.explanation = why_it_failed(event_time);
  if (options_.detail == Detail::figures) fill_details(event_time, result);
  return result;
}

}  // namespace spillway::sim
