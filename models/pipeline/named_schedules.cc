#include "models/pipeline/named_schedules.h"

#include <algorithm>
#include <functional>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

enum Needs : unsigned {
  nothing = 0,
  even_devices = 1,
  whole_groups = 2,  // m divides by p
  even_micro_batches = 4,
  twice_devices = 8,    // m >= 2 p
  two_chunks = 16,      // exactly
  several_chunks = 32,  // v >= 2
  takes_slices = 64,
  takes_recompute = 128,
  takes_offload = 256,
  takes_chunks = 512,  // v >= 1
  even_chunks = 1024,
  takes_times = 2048,
  takes_split = 4096,
  slice_per_stage = 8192,  // at least
};

struct Entry {
  NamedSchedule named;
  unsigned needs = nothing;
  std::function<PipelinePlan(const PipelineRequest&)> build;
};

const std::vector<Entry>& entries() {
  using R = const PipelineRequest&;
  constexpr unsigned block = several_chunks | takes_recompute | takes_offload | takes_times;
  static const std::vector<Entry> all = {
      {{.name = all_forwards_first, .about = "all forwards, then all backwards", .is_for_one_stage = true},
       nothing,
       build_gpipe},
      {{.name = default_schedule,
        .about = "one forward, one backward in turn",
        .alias = "one_f_one_b",
        .is_for_one_stage = true},
       nothing,
       [](R r) { return build_one_f_one_b(r, false); }},
      {{"eager-1f1b", "1F1B with twice the forwards ahead"}, nothing, [](R r) { return build_one_f_one_b(r, true); }},
      {{.name = interleaved_schedule, .about = "1F1B over v chunks per device", .is_common = true},
       whole_groups | several_chunks,
       build_interleaved},
      {{"zb-h1", "weight gradients delayed by d"}, nothing, [](R r) { return build_delayed_weights(r, 1); }},
      {{"zb-h2", "weight gradients delayed by 2 d"}, nothing, [](R r) { return build_delayed_weights(r, 2); }},
      {{"zb-1p", "zero bubble, greedy, 1F1B's memory"}, takes_times, [](R r) { return build_zero_bubble(r, 1); }},
      {{"zb-2p", "zero bubble, greedy, twice that memory"}, takes_times, [](R r) { return build_zero_bubble(r, 2); }},
      {{"zb-v", "zero bubble over two chunks in a V"}, two_chunks | takes_times, build_zero_bubble_v},
      {{"v-half", "V block, half of 1F1B's memory"}, two_chunks, [](R r) { return build_v_block(r, VMemory::half); }},
      {{"v-min", "V block, a third of it"}, two_chunks, [](R r) { return build_v_block(r, VMemory::least); }},
      {{"1f1b-v", "1F1B over two chunks in a V"}, two_chunks, build_v_one_f_one_b},
      {{"gis", "grouped interleaving, W split"}, block, [](R r) { return build_grouped(r, r.devices); }},
      {{"gis-h", "the same in groups of p / 2"}, block, [](R r) { return build_grouped(r, 0); }},
      {{"po-uniform", "the same one by one"}, block, [](R r) { return build_grouped(r, 1); }},
      {{.name = "po-h", .about = "po-uniform, half the chunks offloaded", .moves = ScheduleMoves::half_to_host},
       block,
       [](R r) { return build_grouped(r, 1); }},
      {{.name = "po-f", .about = "po-uniform, all chunks offloaded", .moves = ScheduleMoves::all_to_host},
       block,
       [](R r) { return build_grouped(r, 1); }},
      {{.name = chronos_schedule, .about = "uniform injection over v chunks (reconstructed)", .is_common = true},
       block | takes_split,
       build_chronos},
      {{"dualpipe", "bidirectional, F and B overlapped, two copies of the weights"},
       even_devices | even_micro_batches | twice_devices,
       build_dual_pipe},
      {{"dualpipe-v", "DualPipe cut in half, in a V"}, two_chunks | twice_devices, build_dual_pipe_v},
      {{"chimera", "two 1F1B pipelines in opposite directions"}, even_devices | even_micro_batches, build_chimera},
      {{"hanayo", "waves over zigzag chunks"}, even_chunks, build_hanayo},
      {{"seq1f1b", "1F1B over slices of the sequences"}, takes_slices, build_sliced},
      {{"slimpipe", "the same with at least p slices and v chunks"},
       takes_slices | takes_chunks | slice_per_stage,
       build_sliced},
      {{.name = "bpipe", .about = "1F1B, early devices keep activations on late ones", .moves = ScheduleMoves::to_peer},
       nothing,
       build_bpipe},
  };
  return all;
}

const Entry& entry_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries()) {
    if (entry.named.name == name || (!name.empty() && entry.named.alias == name)) return entry;
    names.push_back(entry.named.name);
  }
  throw InputError("", "schedule", "no pipeline schedule is called '" + std::string(name) + "'", suggest(name, names));
}

[[noreturn]] void refuse(const char* place, const std::string& cause, const std::string& remedy) {
  throw InputError("", place, cause, remedy);
}

void check_range(const char* place, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    refuse(place, std::to_string(value) + " is out of range",
           "give " + std::to_string(least) + " to " + std::to_string(most));
}

void check_sizes(const Entry& entry, const PipelineRequest& r) {
  const std::string name(entry.named.name);
  const auto has = [&](Needs need) { return (entry.needs & need) != 0; };
  if (has(even_devices) && r.devices % 2 != 0)
    refuse("stages", name + " runs in both directions and " + std::to_string(r.devices) + " is odd",
           "give an even number of stages");
  if (has(even_micro_batches) && r.micro_batches % 2 != 0)
    refuse("micro-batches",
           name + " splits them between two directions and " + std::to_string(r.micro_batches) + " is odd",
           "give an even number");
  if (has(twice_devices) && r.micro_batches < 2 * r.devices)
    refuse("micro-batches", name + " needs at least 2 p = " + std::to_string(2 * r.devices), "give more");
  if (has(whole_groups) && r.micro_batches % r.devices != 0)
    refuse("micro-batches", name + " goes through them in groups of " + std::to_string(r.devices),
           "give a multiple of the number of stages");
  if (has(two_chunks) && r.chunks != 2) refuse("chunks", name + " has 2 chunks per device", "leave chunks out");
  if (has(even_chunks) && r.chunks % 2 != 0) refuse("chunks", name + " has 2 chunks per wave", "give an even number");
  if (has(several_chunks) && r.chunks < 2) refuse("chunks", name + " needs at least 2 chunks per device", "give more");
  if (!has(two_chunks) && !has(several_chunks) && !has(even_chunks) && !has(takes_chunks) && r.chunks != 1)
    refuse("chunks", name + " has 1 chunk per device", "leave chunks out");
  if (!has(takes_slices) && r.slices != 1) refuse("slices", name + " doesn't slice sequences", "leave slices out");
  if (has(slice_per_stage) && r.slices < r.devices)
    refuse("slices", name + " needs at least as many slices as stages", "give more, or use seq1f1b");
  if (r.recomputed_chunks != 0 && !has(takes_recompute))
    refuse("recompute", name + " has no recomputed chunks", "use chronos, po-uniform, gis or gis-h");
  if (r.offloaded_chunks != 0 && !has(takes_offload))
    refuse("offload", name + " has no offloaded chunks", "use chronos, po-uniform, po-h or po-f");
  if (r.recomputed_chunks != 0 && r.offloaded_chunks != 0)
    refuse("offload", "a chunk's activations are either recomputed or offloaded", "give one of the two");
  if (r.split_backward && !has(takes_split))
    refuse("split", name + " says itself whether W is a separate pass", "leave split out");
}

}  // namespace

const std::vector<NamedSchedule>& named_schedules() {
  static const std::vector<NamedSchedule> all = [] {
    std::vector<NamedSchedule> names;
    for (const Entry& entry : entries()) {
      NamedSchedule& named = names.emplace_back(entry.named);
      const auto has = [&](unsigned needs) { return (entry.needs & needs) != 0; };
      named.chunks = has(two_chunks | several_chunks | even_chunks) ? 2 : 1;
      named.recomputes = has(takes_recompute);
      named.slices = has(takes_slices);
      named.two_copies = has(even_devices) && has(even_micro_batches);
    }
    return names;
  }();
  return all;
}

const NamedSchedule& named_schedule(std::string_view name) {
  return named_schedules()[static_cast<std::size_t>(&entry_of(name) - entries().data())];
}

bool schedule_orders_by_times(std::string_view name) { return (entry_of(name).needs & takes_times) != 0; }

std::int64_t chunks_to_host(ScheduleMoves moves, std::int64_t chunks) {
  return moves == ScheduleMoves::half_to_host ? (chunks + 1) / 2 : moves == ScheduleMoves::all_to_host ? chunks : 0;
}

PipelineRequest resolve_request(std::string_view name, const PipelineRequest& wanted) {
  const Entry& entry = entry_of(name);
  PipelineRequest r = wanted;
  check_range("stages", r.devices, 1, 1024);
  check_range("micro-batches", r.micro_batches, 1, 65'534);
  if (r.chunks == 0) r.chunks = named_schedule(name).chunks;
  if (r.slices == 0)
    r.slices = (entry.needs & takes_slices) == 0 ? 1 : (entry.needs & slice_per_stage) != 0 ? r.devices : 4;
  if (r.offloaded_chunks == -1) r.offloaded_chunks = chunks_to_host(entry.named.moves, r.chunks);
  check_range("chunks", r.chunks, 1, 64);
  check_range("slices", r.slices, 1, 1024);
  check_range("recompute", r.recomputed_chunks, 0, r.chunks);
  check_range("offload", r.offloaded_chunks, 0, r.chunks);
  check_range("weight-part", r.weight_part, 0, 1'000'000);
  if (r.devices * r.chunks * r.slices * r.micro_batches > 100'000'000)
    refuse("micro-batches", "more than 100 million passes", "give fewer micro-batches, chunks or slices");
  check_sizes(entry, r);
  if (r.times.positions.empty()) r.times.positions = {{1, 1, 1, 1}};
  if (r.times.positions.size() != 1 && static_cast<std::int64_t>(r.times.positions.size()) != r.devices * r.chunks)
    refuse("times",
           "there are " + std::to_string(r.times.positions.size()) + " of them for " +
               std::to_string(r.devices * r.chunks) + " parts of the model",
           "give one, or one per part");
  return r;
}

PipelinePlan build_schedule(std::string_view name, const PipelineRequest& wanted) {
  const PipelineRequest request = resolve_request(name, wanted);
  const Entry& entry = entry_of(name);
  PipelinePlan plan = entry.build(request);
  plan.name = entry.named.name;
  if (request.offloaded_chunks > 0) offload_chunks(plan, request);
  return plan;
}

}  // namespace spillway::models
