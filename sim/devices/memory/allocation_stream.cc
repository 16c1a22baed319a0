#include "sim/devices/memory/allocation_stream.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/address_map.h"
#include "base/digest.h"
#include "base/input_error.h"
#include "base/stop.h"
#include "sim/devices/memory/folded_events.h"
#include "sim/devices/memory/recorded_state.h"
#include "sim/devices/memory/recurrence.h"
#include "sim/devices/memory/segment_changes.h"
#include "sim/devices/memory/start_up_order.h"
#include "sim/devices/memory/stream_moment.h"
#include "traces/graph_pool.h"

namespace spillway::sim {
namespace {

// Stands for the streams whose use of a block the record shows only by a late free_completed.
constexpr std::int64_t unnamed_stream = std::numeric_limits<std::int64_t>::max();

class StreamReplay {
 public:
  StreamReplay(const Trace& trace, const EventIndex& events, const AllocationStreamOptions& options,
               std::optional<Bytes> until)
      : trace_(trace),
        options_(options),
        until_(until),
        events_(events),
        fold_(folded_events(options.fold, options.device, events)),
        pool_(make_memory_pool(options.pool)),
        torch_(pool_.as<TorchPool>()) {
    if (fold_.rank != nullptr) check_policy();
    if (options.frees_by_limit) left_out_ = frees_for_requests(trace, events);
  }

  // Takes nothing to be there before the first event. No result if a block is freed that was never allocated.
  std::optional<AllocationStreamResult> run_from_nothing() {
    stops_at_unknown_ = true;
    begin({});
    start_up();
    AllocationStreamResult result = run();
    if (met_unknown_ && result.refused == nullptr) return std::nullopt;
    return result;
  }

  AllocationStreamResult run_from_record() {
    begin(recorded_state(trace_, options_.device, torch_ != nullptr ? torch_->settings() : TorchSettings{}));
    return run();
  }

 private:
  static constexpr std::size_t between_checks = 1024;

  AllocationStreamResult run() {
    result_.initial = held(0);
    if (options_.state_after == AllocationStreamOptions::before_all) result_.wanted_state = pool_.state();
    if (options_.keep_totals) result_.held.reserve(events_.size());
    if (options_.keep_segments) segments_ = segments_of(pool_.state());
    set_marks();
    begin_pass();
    is_told_ = true;
    for (std::size_t i = 0; i < events_.size() && !met_unknown_ && !is_reached() && refused_ == nullptr; ++i) {
      if (i % between_checks == 0) check_stop();
      if (StreamMoment* const mark = mark_at(i)) *mark = moment();
      if (!fold_before(i)) break;
      step(i);
      if (options_.keep_segments && may_change_segments(i)) note_segments(events_[i]);
      if (options_.state_after == events_[i]) result_.wanted_state = pool_.state();
      if (options_.keep_totals) result_.held.push_back(held(i));
      if (result_.out_of_memory > 0 && options_.stop_when_out_of_memory) break;
    }
    check_curve();
    AllocationStreamResult result = finish();
    result.refused = refused_;
    if (refused_ != nullptr) return result;
    const Bytes reserved(result.statistics.all().reserved_bytes.peak);
    if (!options_.repeat || result.out_of_memory > 0 || reserved > options_.repeat_up_to || met_unknown_) return result;
    rewind();
    result.repeated_costs = run_again(result.cost);
    result.refused = refused_;
    result.repeated_peak_reserved = Bytes(pool_.statistics().all().reserved_bytes.peak);
    return result;
  }

  void rewind() {
    pool_.keep_rows(false);
    for (const auto& [address, block] : pending_) pool_.complete_event(block, unnamed_stream);
    pending_.clear();
    pool_.process_events(Picos{});
    rewind_live();
    moved_ = 0;
  }

  // cost: of the first run.
  std::vector<EventCost> run_again(const DriverCost& cost) {
    result_ = {};
    allocation_ = 0;
    begin_pass();
    for (std::size_t i = 0; i < events_.size() && refused_ == nullptr; ++i) {
      if (i % between_checks == 0) check_stop();
      // From the same state, with nothing asked of the driver from there on, it does the same again.
      if (const auto* mark = mark_at(i); mark != nullptr && mark->cost == cost && *mark == moment()) break;
      const std::size_t costs = result_.costs.size();
      fold_before(i);
      if (result_.costs.size() != costs) refuse("repeated micro-batches wait for the driver");
      step(i);
    }
    return std::move(result_.costs);
  }

  // Where a second run is compared with the first: at the start, some way into it, around the shown periods of a fold.
  void set_marks() {
    if (may_settle()) marks_[0];
    if (!may_settle() || has_completions_) return;
    const std::size_t all = events_.size();
    for (const std::size_t place : {all / 16, all / 4, all / 2, fold_.begin, fold_.end}) marks_[place];
  }
  // To be asked event by event. Null where there is none.
  [[nodiscard]] StreamMoment* mark_at(std::size_t i) {
    return next_mark_ != marks_.end() && next_mark_->first == i ? &(next_mark_++)->second : nullptr;
  }

  // See AllocationStreamResult::repeated_costs.
  void rewind_live() {
    std::map<std::uint64_t, HeldBlock> left;
    for (const auto& [address, held] : live_.sorted()) left.emplace(address, held);
    live_.clear();
    std::vector<std::pair<std::uint64_t, HeldBlock>> lost;
    for (const auto& [address, held] : initial_live_) {
      const auto found = left.find(address);
      if (found != left.end() && found->second.block == held.block) {
        live_[address] = found->second;
        left.erase(found);
      } else {
        lost.emplace_back(address, held);
      }
    }
    std::map<std::pair<Bytes, std::int64_t>, std::vector<std::uint64_t>> alike;  // by address, the lowest at the back
    for (auto at = left.rbegin(); at != left.rend(); ++at)
      alike[{at->second.bytes, at->second.stream}].push_back(at->first);
    for (const auto& [address, held] : lost) {
      std::vector<std::uint64_t>& same = alike[{held.bytes, held.stream}];
      if (same.empty()) continue;
      live_[address] = left.at(same.back());
      left.erase(same.back());
      same.pop_back();
    }
    for (const auto& [address, held] : left)
      if (held.block != BlockId::none) pool_.free(held.block, Picos{});
    for (const auto& [address, held] : lost)
      if (live_.find(address) == nullptr) live_[address] = allocate_before(held.bytes, held.stream);
  }

  HeldBlock allocate_before(Bytes bytes, std::int64_t stream) {
    AllocationRequest request;
    request.bytes = bytes;
    request.stream = stream;
    request.before = true;
    const Allocation made = pool_.allocate(request);
    note_failure(made, 0);
    return {made.block, bytes, stream};
  }

  void begin(RecordedState initial) {
    has_completions_ = std::any_of(events_.begin(), events_.end(), [this](std::uint32_t event) {
      return trace_.memory_events[event].action == MemoryAction::free_completed;
    });
    pool_.keep_rows(options_.keep_rows);
    if (initial.unexplained > Bytes::zero()) add_resident(initial);
    const std::vector<BlockId> ids = pool_.restore(initial.state);
    for (const SegmentState& segment : initial.state.segments) {
      for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
        if (ids[i] == BlockId::none) continue;
        const MemoryBlock& block = initial.state.blocks[i];
        if (block.state == BlockState::pending_free)
          free_pending(ids[i], block.address);
        else
          live_[block.address.count()] = {ids[i], block.requested, segment.stream};
      }
    }
    result_.initial_segments = initial.state.segments.size();
    for (const SegmentState& segment : initial.state.segments) reserved_ += segment.total;
    for (std::size_t i = 0; i < initial.loose_blocks.size(); ++i) {
      const MemoryBlock& block = initial.loose_blocks[i];
      if (!is_plausible(block.size)) continue;
      live_[block.address.count()] = allocate_before(block.size, initial.loose_streams[i]);
    }
    if (options_.repeat) initial_live_ = live_.sorted();
    mallocs_before_ = pool_.statistics().device_mallocs;
    result_.ambiguous_blocks = initial.ambiguous_blocks;
    result_.unusable_segments = initial.unusable_segments;
    result_.unexplained = initial.unexplained;
    has_segments_ = initial.has_segments;
    requested_ = Bytes(pool_.statistics().all().requested_bytes.current);
    if (has_segments_) result_.recorded.peak_reserved = reserved_;
    if (trace_.memory_size_is_requested) result_.recorded.peak_requested = requested_;
  }

  // One block in a segment of its own.
  static void add_resident(RecordedState& initial) {
    const Bytes size((initial.unexplained.count() + 511) / 512 * 512);
    SegmentState segment;
    segment.address = unknown_place;
    segment.total = size;
    segment.large = !is_small_request(size);
    segment.first_block = static_cast<std::uint32_t>(initial.state.blocks.size());
    segment.block_count = 1;
    initial.state.segments.push_back(segment);
    initial.state.blocks.push_back({unknown_place, size, initial.unexplained, BlockState::allocated});
  }

  // See Trace::start_up.
  void start_up() {
    if (pool_.as<PlannedPool>() != nullptr || !knows_start_up()) return;
    const bool built = build();
    for (const std::size_t i : initial_)
      if (!built && !gave_up() && !is_late(at(i).tensor) && at(i).bytes > Bytes(0))
        ask(at(i).bytes, at(i).stream, events_[i]);
    if (!gave_up()) iteration();
    if (!gave_up()) steps_before();
    if (!gave_up()) evaluation();
    if (!gave_up()) pool_.keep_rows(options_.keep_rows);
    result_ = {};
    allocation_ = 0;
    mallocs_before_ = pool_.statistics().device_mallocs;
    started_up_ = result_.started_up = true;
    result_.out_of_memory = failures_before_;
    result_.stopped_before = gave_up();
    if (failures_before_ == 0) return;
    result_.first_out_of_memory = first_failure_;
    result_.first_failed_event = events_.front();
  }

  // Whether there is anything to run, and the initial tensors stay where they are.
  bool knows_start_up() {
    if (!has_start_up(trace_, options_.device)) return false;
    std::optional<std::vector<bool>> initial = initial_events(trace_, events_);
    if (!initial) return false;
    is_initial_ = std::move(*initial);
    for (std::size_t i = 0; i < events_.size(); ++i)
      if (is_initial_[i]) initial_.push_back(i);
    return true;
  }

  // False when there are late events alone.
  bool build() {
    std::vector<std::uint32_t> tag_of(trace_.tensors.size(), no_tag);
    for (const std::size_t i : initial_) tag_of[index_of(at(i).tensor)] = events_[i];
    bool built = false;
    std::vector<BlockId> blocks;
    for (const StartUpEvent& event : trace_.start_up) {
      if (event.device != options_.device || is_of_evaluation(event) || is_size_before(event)) continue;
      const std::uint32_t tag = event.tensor == TensorId::none ? no_tag : tag_of[index_of(event.tensor)];
      if (event.late) {
        late_.push_back({&event, trace_.ops.size(), tag});
        continue;
      }
      built = true;
      if (gave_up()) break;
      if (event.block >= blocks.size()) blocks.resize(event.block + std::size_t{1}, BlockId::none);
      BlockId& block = blocks[event.block];
      if (event.allocates) {
        block = ask(event.bytes, event.stream, tag);
      } else if (block != BlockId::none) {
        pool_.free(std::exchange(block, BlockId::none), Picos{});
      }
    }
    late_of_ = order_late_events(trace_, late_);
    return built;
  }

  [[nodiscard]] bool gave_up() const {
    return refused_ != nullptr || is_reached() ||
           (options_.stop_when_out_of_memory && failures_before_ + result_.out_of_memory > 0);
  }
  [[nodiscard]] bool is_reached() const {
    return until_ && pool_.statistics().all().allocated_bytes.current >= until_->count();
  }
  [[nodiscard]] bool is_late(TensorId tensor) const { return !late_of_.empty() && late_of_[index_of(tensor)]; }

  // The step's events but for those before it, and behind them, the first time, what is made late.
  void iteration() {
    auto late = late_.begin();
    const auto make_late = [&] {
      const Bytes own = late->tag == no_tag ? Bytes(0) : trace_.memory_events[late->tag].bytes;
      ask(late->event->bytes, late->event->stream, own == late->event->bytes ? late->tag : no_tag);
      ++late;
    };
    // Of a run that ends where it stops, for who holds what there.
    pool_.keep_rows(options_.keep_rows && (until_ || options_.stop_when_out_of_memory));
    begin_pass();
    for (std::size_t i = 0; i < events_.size() && !gave_up(); ++i) {
      if (i % between_checks == 0) check_stop();
      fold_before(i);
      if (is_initial_[i]) continue;
      const OpId anchor = at(i).anchor;
      while (late != late_.end() && anchor != OpId::none && late->launch <= index_of(anchor) && !gave_up()) make_late();
      if (!gave_up()) step(i);
    }
    while (late != late_.end() && !gave_up()) make_late();
    late_.clear();
    failures_before_ += std::exchange(result_.out_of_memory, 0);
    if (!first_failure_) first_failure_ = result_.first_out_of_memory;
  }

  // Between the first iteration and the step: that step, with other sizes.
  void steps_before() {
    std::map<std::uint32_t, std::vector<const StartUpEvent*>> steps;
    for (const StartUpEvent& event : trace_.start_up)
      if (event.device == options_.device && is_size_before(event)) steps[event.block].push_back(&event);
    for (const auto& [step, sizes] : steps) {
      size_before_.assign(trace_.tensors.size(), Bytes(0));
      for (const StartUpEvent* size : sizes) size_before_[index_of(size->tensor)] = size->bytes;
      if (!gave_up()) iteration();
    }
    size_before_.clear();
  }
  [[nodiscard]] Bytes bytes_of(const MemoryEvent& event) const {
    if (size_before_.empty() || event.tensor == TensorId::none) return event.bytes;
    const Bytes before = size_before_[index_of(event.tensor)];
    return before == Bytes(0) ? event.bytes : before;
  }

  // Behind them.
  void evaluation() {
    std::vector<BlockId> blocks(trace_.start_up.size(), BlockId::none);
    for (std::size_t i = 0; i < trace_.start_up.size(); ++i) {
      if (i % between_checks == 0) check_stop();
      const StartUpEvent& event = trace_.start_up[i];
      if (event.device != options_.device || !is_of_evaluation(event)) continue;
      if (gave_up()) return;
      BlockId& block = blocks[event.block];
      if (event.allocates)
        block = ask(event.bytes, event.stream, evaluation_tag);
      else if (block != BlockId::none)
        pool_.free(std::exchange(block, BlockId::none), Picos{});
    }
  }

  [[nodiscard]] AllocationRequest request_for(Bytes bytes, LaneId stream) {
    if (stream != asked_on_) {
      asked_on_ = stream;
      request_.stream = stream_number(trace_, stream);
      // All graphs share one, captured in the order in which they run.
      request_.private_pool = is_graph_pool(trace_, stream) ? 1 : 0;
    }
    request_.bytes = bytes;
    return request_;
  }

  BlockId ask(Bytes bytes, LaneId stream, std::uint32_t tag) {
    AllocationRequest request = request_for(bytes, stream);
    request.tag = tag;
    const Allocation made = pool_.allocate(request);
    if (made.out_of_memory && failures_before_++ == 0) first_failure_ = pool_.last_out_of_memory();
    return made.block;
  }

  void step(std::size_t i) {
    const MemoryEvent& event = at(i);
    if (started_up_ && is_initial_[i]) {
      ++allocation_;
      return;
    }
    if (!is_plausible(event.bytes)) {
      ++result_.unusable_events;
      return;
    }
    note_totals(event);
    switch (event.action) {
      case MemoryAction::allocate:
        allocate(i);
        break;
      case MemoryAction::free_requested:
        free_requested(i);
        break;
      case MemoryAction::free_completed:
        free_completed(i);
        break;
      case MemoryAction::segment_allocate:
      case MemoryAction::segment_map:
        segment_allocated(event);
        break;
      case MemoryAction::segment_free:
        segment_freed(i);
        break;
      case MemoryAction::segment_unmap:
        reserved_ -= event.bytes;
        if (torch_ != nullptr && !is_left_out(i)) torch_->unmap_range(event.address);
        break;
      case MemoryAction::out_of_memory:
        ++result_.recorded.out_of_memory;
        if (options_.frees_by_limit) ask_again(i);
        break;
      case MemoryAction::snapshot:
        break;
    }
  }

  // Behind it: only then is the state looked at, which takes a while.
  [[nodiscard]] bool may_change_segments(std::size_t i) const {
    const MemoryAction action = at(i).action;
    return action == MemoryAction::segment_free || action == MemoryAction::segment_unmap ||
           (!result_.costs.empty() && result_.costs.back().event == events_[i]);
  }

  void note_segments(std::uint32_t event) {
    HeldSegments now = segments_of(pool_.state());
    note_segment_changes(event, segments_, now, result_.segment_changes);
    segments_ = std::move(now);
  }

  void allocate(std::size_t i) {
    const MemoryEvent& event = at(i);
    const Bytes bytes = bytes_of(event);
    if (bytes == Bytes::zero()) return;
    const auto [held, is_new] = live_.try_emplace(label(event));
    if (!is_new) {
      ++result_.repeated_addresses;
      if (held->block != BlockId::none) pool_.free(held->block, time(i));
    }
    const std::size_t suggested = torch_ != nullptr ? torch_->suggestions() : 0;
    AllocationRequest request = request_for(bytes, event.stream);
    request.time = time(i);
    request.tag = beyond_ && is_told_ ? no_tag : events_[i];
    if (allocation_ < options_.spaces.size()) request.space = options_.spaces[allocation_];
    ++allocation_;
    const Allocation made = torch_ != nullptr ? torch_->allocate(request) : pool_.allocate(request);
    if (!made.cost.empty()) {
      result_.cost.add(made.cost);
      result_.costs.push_back({events_[i], made.cost});
    }
    note_failure(made, events_[i]);
    *held = {made.block, bytes, request.stream, made.address, made.size};
    if (fold_.rank != nullptr && torch_ != nullptr) behaviour_.add(made.address.count());
    if (beyond_) most_beyond_ = std::max(most_beyond_, Bytes(pool_.statistics().all().allocated_bytes.current));
    ++result_.allocations;
    ++result_.addresses.total;
    if (!made.out_of_memory && made.address == event.address) ++result_.addresses.matched;
    if (torch_ != nullptr) {
      result_.segments.matched += suggested - torch_->suggestions();
      torch_->clear_suggestions();
    }
    requested_ += bytes;
    if (trace_.memory_size_is_requested)
      result_.recorded.peak_requested = std::max(result_.recorded.peak_requested, requested_);
  }

  // Blocks of shown periods and of what follows are known by other addresses once periods were put between.
  [[nodiscard]] std::uint64_t label(const MemoryEvent& event) const { return shifted(event.address.count(), moved_); }
  [[nodiscard]] std::uint64_t shifted(std::uint64_t address, std::int64_t periods) const {
    if (periods == 0 || address < fold_.rank->address) return address;
    return address + static_cast<std::uint64_t>(periods) * fold_.rank->bytes;
  }

  // Of a fold; the first counts.
  void refuse(const char* why) {
    if (refused_ == nullptr) refused_ = why;
  }
  // What the allocator goes by is its policy's settings and state: what is where, and whose it is.
  void check_policy() {
    const bool is_torch = torch_ != nullptr && torch_->settings().garbage_collection_threshold == 0;
    if (!is_torch && pool_.as<IdealPool>() == nullptr) refuse("an allocator with its own memory");
    if (fold_.period >= fold_.end || options_.keep_segments || options_.state_after || !options_.spaces.empty())
      refuse("allocations are asked for one by one");
  }
  // Whether moments are all there is to know of it, for a second run.
  [[nodiscard]] bool may_settle() const {
    return options_.repeat && torch_ != nullptr && torch_->settings().garbage_collection_threshold == 0 &&
           options_.spaces.empty();
  }
  void begin_pass() {
    moved_ = 0;
    next_mark_ = marks_.begin();
    if (has_completions_ && fold_.rank != nullptr) refuse("blocks are given back late");
  }
  // False where the replay ends in a period that the trace doesn't have.
  bool fold_before(std::size_t i) {
    if (fold_.rank == nullptr) return true;
    if (i == fold_.period) behaviour_ = {};
    if (i == fold_.end) pass_fold();
    return i != fold_.end || !gave_up();
  }

  // As if so many periods had not been.
  [[nodiscard]] StreamMoment moment() const {
    StreamMoment now{.live = live_.sorted(), .cost = result_.cost};
    for (auto& [address, held] : now.live) {
      if (moved_ != 0 && address >= fold_.rank->address)
        address -= static_cast<std::uint64_t>(moved_) * fold_.rank->bytes;
      if (torch_ == nullptr) held.place = {};  // ideal places are never taken twice, and mean nothing
    }
    if (torch_ != nullptr) now.state = pool_.state();
    return now;
  }

  // Behind the last period shown: those that are not, until the policy is as it was some periods before; from there on
  // it does the same again.
  void pass_fold() {
    const std::size_t allocation = allocation_;
    const StreamMoment first = moment();
    StreamMoment base;
    Recurrence recurrence(behaviour_.value());
    most_beyond_ = Bytes(0);
    beyond_ = true;
    for (std::int64_t k = 0; k < fold_.times && !gave_up();) {
      check_stop();
      moved_ = ++k;
      behaviour_ = {};
      for (std::size_t i = fold_.period; i < fold_.end && !gave_up(); ++i) step(i);
      const Recurrence::Look look = recurrence.next(behaviour_.value());
      if (look == Recurrence::Look::none) continue;
      StreamMoment now = moment();
      if (look == Recurrence::Look::remember) {
        base = std::move(now);
        continue;
      }
      const std::int64_t period = recurrence.distance();
      if (now != base || now.cost != base.cost || fold_.times - k < period) continue;
      const std::int64_t skipped = (fold_.times - k) / period * period;
      rename(skipped);
      k += skipped;
      moved_ = k;
    }
    beyond_ = false;
    allocation_ = allocation;
    const StreamMoment last = moment();
    const auto as_large = [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.size == y.second.size;
    };
    sizes_differ_ = !std::equal(first.live.begin(), first.live.end(), last.live.begin(), last.live.end(), as_large);
  }

  // Live blocks of shown periods belong to as many periods later.
  void rename(std::int64_t periods) {
    const auto live = live_.sorted();
    live_.clear();
    for (const auto& [address, held] : live) live_[shifted(address, periods)] = held;
  }

  // The curve of what is held shows the peak, and the sizes of blocks that are shown are those of its owners.
  void check_curve() {
    if (fold_.rank == nullptr || !options_.keep_totals || result_.held.size() <= fold_.end) return;
    const auto smaller = [](const HeldMemory& a, const HeldMemory& b) { return a.allocated < b.allocated; };
    const auto peak = std::max_element(result_.held.begin(), result_.held.end(), smaller);
    const auto at = static_cast<std::size_t>(peak - result_.held.begin());
    const auto before =
        std::max_element(result_.held.begin(), result_.held.begin() + static_cast<std::ptrdiff_t>(fold_.end), smaller);
    if (most_beyond_ > std::max(before->allocated, result_.initial.allocated) && most_beyond_ >= peak->allocated)
      refuse("the peak lies in a repeated micro-batch");
    if (at >= fold_.end && sizes_differ_) refuse("blocks of repeated micro-batches differ in size");
  }

  void note_failure(const Allocation& made, std::uint32_t event) {
    if (!made.out_of_memory || result_.out_of_memory++ > 0) return;
    if (beyond_ && options_.keep_totals && is_told_) refuse("a repeated micro-batch runs out of memory");
    result_.first_out_of_memory = pool_.last_out_of_memory();
    result_.first_failed_event = event;
  }

  void free_requested(std::size_t i) {
    const MemoryEvent& event = at(i);
    const std::optional<HeldBlock> found = live_.take(label(event));
    if (!found) {
      if (beyond_) return refuse("a repeated micro-batch frees what is not its own");
      ++result_.ignored_frees;
      met_unknown_ = stops_at_unknown_;
      return;
    }
    const BlockId block = found->block;
    ++result_.frees;
    requested_ -= bytes_of(event);
    if (block == BlockId::none) return;
    const bool at_once = !has_completions_ || (i + 1 < events_.size() && at(i + 1).address == event.address &&
                                               at(i + 1).action == MemoryAction::free_completed);
    if (at_once)
      pool_.free(block, time(i));
    else
      free_pending(block, event.address);
  }

  void free_pending(BlockId block, Addr address) {
    pool_.record_stream(block, unnamed_stream);
    pool_.free(block, Picos{});
    pending_.emplace(address.count(), block);
  }

  void free_completed(std::size_t i) {
    const MemoryEvent& event = at(i);
    const auto pending = pending_.find(event.address.count());
    if (pending != pending_.end()) {
      pool_.complete_event(pending->second, unnamed_stream);
      pool_.process_events(time(i));
      pending_.erase(pending);
      return;
    }
    const bool requested_before =
        i > 0 && at(i - 1).address == event.address && at(i - 1).action == MemoryAction::free_requested;
    if (requested_before) return;
    const std::optional<HeldBlock> found = live_.take(event.address.count());
    if (!found) {
      met_unknown_ = stops_at_unknown_;
      return;
    }
    ++result_.frees;  // some writers record completions only
    requested_ -= bytes_of(event);
    if (found->block != BlockId::none) pool_.free(found->block, time(i));
  }

  void segment_allocated(const MemoryEvent& event) {
    reserved_ += event.bytes;
    if (result_.recorded.peak_reserved < reserved_) result_.recorded.peak_reserved = reserved_;
    ++result_.segments.total;
    if (torch_ != nullptr && options_.use_recorded_segments)
      torch_->suggest_segment(event.address, event.bytes, event.action == MemoryAction::segment_map);
  }

  // The program's empty_cache() is not in the record, only what it gave back.
  void segment_freed(std::size_t i) {
    reserved_ -= at(i).bytes;
    if (torch_ != nullptr && !is_left_out(i)) torch_->release_segment(at(i).address);
  }
  [[nodiscard]] bool is_left_out(std::size_t i) const { return i < left_out_.size() && left_out_[i]; }

  // A request that failed in the record. Where it is served here, its block goes at once: what the program would have
  // done with it isn't known.
  void ask_again(std::size_t i) {
    const MemoryEvent& event = at(i);
    if (event.bytes <= Bytes::zero()) return;
    AllocationRequest request = request_for(event.bytes, event.stream);
    request.time = time(i);
    const Allocation made = pool_.allocate(request);
    result_.cost.add(made.cost);
    note_failure(made, events_[i]);
    if (!made.out_of_memory) pool_.free(made.block, time(i));
  }

  void note_totals(const MemoryEvent& event) {
    RecordedMemory& recorded = result_.recorded;
    recorded.peak_allocated = std::max(recorded.peak_allocated, event.total_allocated);
    if (event.total_reserved < Bytes::zero()) return;
    recorded.peak_reserved = std::max(recorded.peak_reserved, event.total_reserved);
    recorded.final_reserved = event.total_reserved;
  }

  AllocationStreamResult finish() {
    result_.policy = pool_.name();
    result_.device = options_.device;
    result_.statistics = pool_.statistics();
    result_.fragmentation = fragmentation(result_.statistics);
    result_.segments_allocated = static_cast<std::uint64_t>(result_.statistics.device_mallocs - mallocs_before_);
    if (torch_ != nullptr) result_.least_refused = torch_->least_refused();
    if (const auto* planned = pool_.as<PlannedPool>()) result_.plan = planned->outcome();
    if (const auto* gmlake = pool_.as<GmlakePool>()) result_.stitches = gmlake->stitches();
    if (has_segments_) result_.recorded.final_reserved = reserved_;
    result_.final_state = pool_.state();
    result_.rows = pool_.rows();
    const LiveBlocks alive = compare_live_blocks(trace_, options_.device, result_.final_state);
    result_.final_blocks = {alive.matched, alive.recorded};
    return std::move(result_);
  }

  [[nodiscard]] HeldMemory held(std::size_t i) const {
    const PoolStatistics& all = pool_.statistics().all();
    return {events_[i], Bytes(all.allocated_bytes.current), Bytes(all.reserved_bytes.current)};
  }
  [[nodiscard]] const MemoryEvent& at(std::size_t i) const { return trace_.memory_events[events_[i]]; }
  [[nodiscard]] Picos time(std::size_t i) const {
    const Picos recorded = at(i).time;
    return recorded == unknown_time ? Picos(static_cast<std::int64_t>(events_[i])) : recorded;
  }

  const Trace& trace_;
  const AllocationStreamOptions& options_;
  const std::optional<Bytes> until_;  // so much is allocated
  const EventIndex& events_;
  FoldedEvents fold_;
  const char* refused_ = nullptr;
  std::vector<bool> left_out_;  // by event, with frees_by_limit
  MemoryPool pool_;
  TorchPool* torch_;  // null for other policies
  LaneId asked_on_ = LaneId::none;
  AllocationRequest request_;  // as one on that stream begins
  bool has_completions_ = false;
  bool has_segments_ = false;
  bool stops_at_unknown_ = false, met_unknown_ = false;
  std::int64_t moved_ = 0;                  // periods between the shown ones and the present
  bool beyond_ = false;                     // in one that the trace doesn't have
  bool is_told_ = false;                    // event by event: no longer the start-up
  Digest behaviour_;                        // where the period's blocks were placed
  Bytes most_beyond_{};                     // held in such periods
  bool sizes_differ_ = false;               // blocks that live behind them are not as large as those shown
  std::vector<std::size_t> initial_;        // with a start-up: events before the step
  std::vector<bool> is_initial_, late_of_;  // by event, by tensor; empty without a start-up
  std::vector<LateEvent> late_;             // in the order of their first uses, until they are made
  std::vector<Bytes> size_before_;          // by tensor, in a step before; 0: as in the one shown; empty: in that
  bool started_up_ = false;
  std::uint64_t failures_before_ = 0;  // of the start-up
  std::optional<OutOfMemory> first_failure_;
  AddressMap<HeldBlock> live_;  // by recorded address
  std::vector<std::pair<std::uint64_t, HeldBlock>> initial_live_;
  std::map<std::uint64_t, BlockId> pending_;
  std::size_t allocation_ = 0;                 // ordinal of the next one
  std::int64_t mallocs_before_ = 0;            // by the driver, for what was there already
  Bytes reserved_{};                           // recorded
  Bytes requested_{};                          // recorded
  HeldSegments segments_;                      // of the policy, with keep_segments
  std::map<std::size_t, StreamMoment> marks_;  // before these events, in the first run
  std::map<std::size_t, StreamMoment>::iterator next_mark_ = marks_.end();
  AllocationStreamResult result_;
};

AllocationStreamResult replay_until(const Trace& trace, const EventIndex& events,
                                    const AllocationStreamOptions& options, std::optional<Bytes> until) {
  if (events.empty())
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file,
                     "device " + std::to_string(options.device), "the trace has no memory events of this device",
                     "record with torch.cuda.memory._record_memory_history() or profile_memory=True");
  if (may_begin_empty(trace, options.device, events)) {
    std::optional<AllocationStreamResult> result = StreamReplay(trace, events, options, until).run_from_nothing();
    if (result) return std::move(*result);
  }
  return StreamReplay(trace, events, options, until).run_from_record();
}

}  // namespace

AllocationStreamResult replay_allocation_stream(const Trace& trace, const EventIndex& events,
                                                const AllocationStreamOptions& options) {
  return replay_until(trace, events, options, std::nullopt);
}

AllocationStreamResult replay_until_allocated(const Trace& trace, const EventIndex& events,
                                              const AllocationStreamOptions& options, Bytes allocated) {
  return replay_until(trace, events, options, allocated);
}

AllocationStreamResult replay_allocation_stream(const Trace& trace, const AllocationStreamOptions& options) {
  EventIndex events;
  for (std::size_t i = 0; i < trace.memory_events.size(); ++i)
    if (trace.memory_events[i].device == options.device) events.push_back(static_cast<std::uint32_t>(i));
  return replay_allocation_stream(trace, events, options);
}

}  // namespace spillway::sim
