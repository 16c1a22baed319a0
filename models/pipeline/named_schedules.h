// The pipeline schedules that have a name, as builders of PipelinePlans.
//
// In docs/internals/pipelines.md: what each one does, its memory and its bubble, and where it comes from. Rules with a
// source:
//   gpipe         Huang et al. 2019: all forwards, then all backwards
//   1f1b          Narayanan et al. 2019, 2021: p - 1 - d forwards, then one forward and one backward in turn
//   eager-1f1b    2 (p - 1 - d) forwards first, so that transfers hide behind compute
//   interleaved   Narayanan et al. 2021, section 2.2: v chunks, groups of p micro-batches; m divides by p
//   zb-h1, zb-h2  Qi et al. 2024 (Zero Bubble), section 2: W delayed by d, by 2 d
//   zb-1p, zb-2p  Qi et al. 2024, section 3.1: greedy within p and 2 p micro-batches of activations
//   zb-v          Qi et al. 2024b: two chunks in a V, greedy within p
//   v-half, v-min, 1f1b-v   Qi et al. 2024b (Pipeline Parallelism with Controllable Memory): repeated blocks in a V
//   gis, gis-h, po-uniform, po-h, po-f   Wan et al. 2025 (PipeOffload): groups of g, split backward; halves offloaded
//   chronos       uniform injection of micro-batches into v looped chunks (ChronosPipe, Lin et al. 2025, reconstructed)
//   dualpipe, dualpipe-v    DeepSeek-V3 report and its published code: bidirectional, overlapped F&B
//   chimera       Li & Hoefler 2021: two 1F1B pipelines in opposite directions, interleaved
//   hanayo        Liu et al. 2023: waves over 2 w zigzag chunks
//   seq1f1b       Sun et al. 2024: 1F1B over k slices of each sequence; slimpipe (Li et al. 2025): at least p of them
//   bpipe         Kim et al. 2023: 1F1B whose first half of devices keeps activations on the second half
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"

namespace spillway::models {

struct PipelineRequest {
  std::int64_t devices = 1;            // p, 1 .. 1024
  std::int64_t micro_batches = 1;      // m, 1 .. 65,534
  std::int64_t chunks = 0;             // v per device; 0: the schedule's own (1, or 2 where it needs several)
  std::int64_t slices = 0;             // k of seq1f1b and slimpipe; 0: 4, and p
  std::int64_t recomputed_chunks = 0;  // r < = v: the first r chunks of each device run forward twice; block schedules
  std::int64_t offloaded_chunks = -1;  // the first so many chunks of each device; -1: the schedule's own
  bool split_backward = false;         // chronos: W as a separate pass behind B
  bool pairs = true;                   // dualpipe, dualpipe-v: overlap F and B; false: F, B and W one after the other
  // zb-1p, zb-2p and zb-v order by them, the block schedules by their ratios. No positions: 1 each.
  StageTimes times;
  // Share of the activations that W needs and B does not free, in millionths; zb-1p, zb-2p.
  std::int64_t weight_part = 1'000'000;
};

// Activations that a schedule moves while it runs: half or all of each stage's chunks to host memory, or micro-batches
// to the stage it is paired with.
enum class ScheduleMoves : std::uint8_t { nothing, half_to_host, all_to_host, to_peer };

struct NamedSchedule {
  std::string_view name, about;
  std::string_view alias{};  // an older spelling
  ScheduleMoves moves = ScheduleMoves::nothing;
  bool is_for_one_stage = false;  // runs on a single stage as well
  bool is_common = false;         // tried where nobody says which
  // Of what it needs:
  std::int64_t chunks = 1;  // per device, where nobody says
  bool recomputes = false;  // takes recomputed_chunks
  bool slices = false;      // cuts sequences
  bool two_copies = false;  // of the weights
};
inline constexpr std::string_view chronos_schedule = "chronos", default_schedule = "1f1b", all_forwards_first = "gpipe",
                                  interleaved_schedule = "interleaved";  // 1f1b over several chunks
const std::vector<NamedSchedule>& named_schedules();
// By its name or alias. Throws InputError for an unknown one, with the nearest one offered.
const NamedSchedule& named_schedule(std::string_view name);
// Whether PipelineRequest::times may change the order. Throws InputError for an unknown name.
bool schedule_orders_by_times(std::string_view name);

// How many chunks of each device, from the first, go to host memory.
std::int64_t chunks_to_host(ScheduleMoves moves, std::int64_t chunks);

// With the schedule's own values filled in (chunks, slices, offloaded_chunks). Throws as build_schedule does.
PipelineRequest resolve_request(std::string_view name, const PipelineRequest& request);

// O(operations), the greedy and the V schedules O(operations log operations) or a little more. Throws InputError (place
// "schedule", or the option at fault) for an unknown name, with the nearest one offered, and for sizes the schedule
// can't have. Examples: m that doesn't divide by p (interleaved), odd p or m (bidirectional), m < 2 p (dualpipe), r >
// v.
PipelinePlan build_schedule(std::string_view name, const PipelineRequest& request);

}  // namespace spillway::models
