#include "studies/answer/stage_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/parallel.h"
#include "base/short_text.h"
#include "base/stop.h"
#include "scenario/drawn_run.h"
#include "scenario/scenario_memory.h"
#include "studies/diagnosis/held_tree.h"

namespace spillway::studies {
namespace {

constexpr std::size_t most_owners = 7;
constexpr std::int64_t least_share_of_peak = 100;  // an owner of less is among the others
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> stacked = {
    {{"weight", "weights"},
     {"optimizer_state", "optimizer states"},
     {"gradient", "gradients"},
     {"activation", "activations"},
     {"temporary", "temporary"}}};

// Bytes by kind, and what of them is drawn as which owner.
class Stack {
 public:
  Stack(const MemoryPicture& picture, StageMemory& stage) : owner_of_(picture.kinds.size(), 0) {
    std::vector<std::int64_t> held(picture.kinds.size(), 0), most = held;
    std::int64_t total = 0;
    for (const MemoryPicture::Change& change : picture.changes) {
      held[change.kind] += change.bytes;
      total += change.bytes;
      most[change.kind] = std::max(most[change.kind], held[change.kind]);
      peak_ = std::max(peak_, total);
    }
    std::vector<std::size_t> order;
    for (const auto& [word, shown] : stacked)
      if (const std::size_t kind = index_of_kind(picture, word); kind < most.size() && most[kind] > 0)
        order.push_back(kind);
    for (std::size_t kind = 0; kind < most.size() && order.size() < most_owners; ++kind)
      if (most[kind] > peak_ / least_share_of_peak && std::find(order.begin(), order.end(), kind) == order.end())
        order.push_back(kind);
    for (const std::size_t kind : order) stage.owners.push_back(owner_words(picture.kinds[kind]));
    if (order.size() < picture.kinds.size()) stage.owners.emplace_back("other");
    for (std::size_t kind = 0; kind < most.size(); ++kind)
      owner_of_[kind] = static_cast<std::size_t>(std::find(order.begin(), order.end(), kind) - order.begin());
  }
  [[nodiscard]] std::size_t of(std::size_t kind) const { return owner_of_[kind]; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  static std::size_t index_of_kind(const MemoryPicture& picture, std::string_view word) {
    return static_cast<std::size_t>(std::find(picture.kinds.begin(), picture.kinds.end(), word) -
                                    picture.kinds.begin());
  }
  std::vector<std::size_t> owner_of_;
  std::int64_t peak_ = 0;
};

std::string_view told_phase(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "in the forward";
    case Phase::backward:
      return "in the backward";
    case Phase::optimizer:
      return "in the optimizer";
    case Phase::communication:
      return "in communication";
    case Phase::recompute:
      return "in the recomputation";
    case Phase::unknown:
      break;
  }
  return "";
}

std::string words_at(const Trace& trace, std::int64_t event) {
  if (event < 0) return "";
  const OpId op = trace.memory_events[static_cast<std::size_t>(event)].anchor;
  if (op == OpId::none) return "before the first layer runs";
  const Phase phase = trace.ops.phase[index_of(op)];
  std::string words(told_phase(phase));
  if (words.empty()) words = "at " + std::string(trace.strings.text(trace.ops.name[index_of(op)]));
  if (const std::uint16_t layer = trace.ops.layer[index_of(op)]; layer != no_index16)
    words += fmt::format(" of layer {}", layer);
  else if (const TensorId tensor = trace.memory_events[static_cast<std::size_t>(event)].tensor;
           tensor != TensorId::none)
    words += " at " + std::string(trace.strings.text(trace.tensors.name[index_of(tensor)]));
  if (const std::uint16_t batch = trace.ops.micro_batch[index_of(op)]; batch != no_index16 && has_micro_batches(trace))
    words += fmt::format(", micro-batch {}", batch);
  return words;
}

void add_tensors(const Trace& trace, const MemoryPicture& picture, StageMemory& stage) {
  std::vector<const MemoryPicture::Block*> alive;
  for (const MemoryPicture::Block& block : picture.blocks)
    if (block.event <= stage.peak_event && (block.freed < 0 || block.freed > stage.peak_event)) alive.push_back(&block);
  const std::size_t count = std::min(most_tensors, alive.size());
  std::partial_sort(alive.begin(), alive.begin() + static_cast<std::ptrdiff_t>(count), alive.end(),
                    [](const MemoryPicture::Block* a, const MemoryPicture::Block* b) {
                      return std::pair(b->size, a->event) < std::pair(a->size, b->event);
                    });
  for (std::size_t i = 0; i < count; ++i) {
    const HeldName held = held_name(trace, picture, *alive[i]);
    stage.tensors.push_back({.name = held.tensor,
                             .owner = owner_words(picture.kinds[alive[i]->kind]),
                             .layer = held.layer == "no layer" ? "" : held.layer,
                             .bytes = alive[i]->size});
  }
}

}  // namespace

std::string owner_words(const std::string& owner) {
  for (const auto& [word, shown] : stacked)
    if (owner == word) return std::string(shown);
  return owner;
}

StageMemory stage_of(const MemoryPicture& picture, std::size_t bins) {
  StageMemory stage;
  stage.timed = picture.timed;
  stage.begin = picture.begin;
  stage.end = picture.end;
  stage.capacity = picture.capacity;
  const Stack stack(picture, stage);
  const std::size_t owners = stage.owners.size();
  const auto span = static_cast<double>(stage.end - stage.begin);
  std::vector<std::int64_t> held(owners, 0), fullest(owners, 0);
  std::int64_t total = 0, most = 0, peak = 0;
  stage.at_peak = held;
  std::size_t bin = 0;
  const auto close = [&] {  // what is held goes on into the next one
    stage.bins.push_back(fullest);
    ++bin;
    fullest = held;
    most = total;
  };
  for (const MemoryPicture::Change& change : picture.changes) {
    check_stop();
    const auto place =
        static_cast<std::size_t>(static_cast<double>(change.at - stage.begin) / span * static_cast<double>(bins));
    while (bin < std::min(place, bins - 1)) close();
    held[stack.of(change.kind)] += change.bytes;
    total += change.bytes;
    if (total > most) {
      most = total;
      fullest = held;
    }
    if (total > peak) {
      peak = total;
      stage.at_peak = held;
      stage.peak_at = change.at;
    }
  }
  while (bin < bins) close();
  std::int64_t reached = -1;
  for (const MemoryPicture::Point& point : picture.curve)
    if (point.allocated.count() > reached) {
      reached = point.allocated.count();
      stage.peak_event = point.event;
    }
  return stage;
}

std::vector<StageMemory> stage_memories(const LoadedScenario& loaded, const ScenarioRun& run, std::size_t bins) {
  const Result& result = run.result;
  if (!result.memory.known) return {};
  const Trace& trace = run.trace(loaded);
  struct Seat {
    std::int16_t device;
    std::size_t rank;
  };
  std::vector<Seat> seats;
  for (std::size_t r = 0; r < result.ranks.size(); ++r)
    for (const Device& device : trace.devices)
      if (device.rank == r && result.ranks[r].peak_allocated > Bytes(0)) {
        seats.push_back({device.ordinal, r});
        break;
      }
  const bool one = seats.empty();
  if (one) seats.push_back({result.memory.device, 0});
  const ReplayTimes times{result.op_start, result.op_end, run.gate};
  const bool timed = !times.start.empty();
  const std::vector<std::int64_t> places =
      timed ? event_places(trace, times, MemoryClock::gpu) : std::vector<std::int64_t>();
  const std::vector<std::vector<Pass>> passes = passes_of(trace, result);
  std::vector<StageMemory> stages(seats.size());
  in_parallel(seats.size(), [&](std::size_t i) {
    AllocationStreamOptions options = allocations_of(loaded, run, seats[i].device);
    options.keep_rows = options.keep_totals = true;
    options.repeat = false;
    const AllocationStreamResult stream = replay_allocation_stream(trace, options);
    const MemoryPicture picture = memory_picture_on(trace, stream, places, timed, end_of_drawn(result).count());
    StageMemory stage = stage_of(picture, bins);
    stage.peak_words = words_at(trace, stage.peak_event);
    add_tensors(trace, picture, stage);
    stage.capacity = result.memory.capacity;
    stage.limit = result.memory.limit;
    if (timed && seats[i].rank < passes.size()) stage.passes = passes[seats[i].rank];
    if (one) {
      stage.name = result.memory.on_host ? "host memory" : "GPU";
      stage.verdict = result.memory.verdict();
      const bool is_one = result.phases.empty();  // else the training is drawn
      stage.peak_allocated = is_one ? result.memory.peak_allocated : result.phases.back().allocated;
      stage.peak_reserved = is_one ? result.memory.peak_reserved : result.phases.back().reserved;
      stage.idle = result.bubble;
    } else {
      const RankResult& rank = result.ranks[seats[i].rank];
      stage.name = rank.name;
      stage.verdict = rank.verdict;
      stage.peak_allocated = rank.peak_allocated;
      stage.peak_reserved = rank.peak_reserved;
      stage.idle = rank.bubble;
    }
    stages[i] = std::move(stage);
  });
  return stages;
}

}  // namespace spillway::studies
