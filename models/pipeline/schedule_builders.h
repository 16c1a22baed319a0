// The builders behind build_schedule(), one per family. The request is resolved: sizes are legal, defaults filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

// one_f_one_b.cc
PipelinePlan build_gpipe(const PipelineRequest& request);
PipelinePlan build_one_f_one_b(const PipelineRequest& request, bool is_eager);
PipelinePlan build_interleaved(const PipelineRequest& request);
PipelinePlan build_delayed_weights(const PipelineRequest& request, std::int64_t delay);  // zb-h1: 1, zb-h2: 2
PipelinePlan build_sliced(const PipelineRequest& request);

// block_schedules.cc
PipelinePlan build_chronos(const PipelineRequest& request);
PipelinePlan build_grouped(const PipelineRequest& request, std::int64_t group);  // PipeOffload's family; 0: half

// v_schedules.cc
enum class VMemory : std::uint8_t { half, least };
PipelinePlan build_v_block(const PipelineRequest& request, VMemory memory);
// At most `most` plans that hold no more than `limit` chunks of activations in steady state, the fullest first.
std::vector<PipelinePlan> v_blocks_within(const PipelineRequest& request, std::int64_t limit, std::size_t most);
PipelinePlan build_v_one_f_one_b(const PipelineRequest& request);

// bidirectional.cc
PipelinePlan build_dual_pipe(const PipelineRequest& request);
PipelinePlan build_dual_pipe_v(const PipelineRequest& request);
PipelinePlan build_chimera(const PipelineRequest& request);

// wave_schedule.cc
PipelinePlan build_hanayo(const PipelineRequest& request);

// zero_bubble.cc
// Within limits by device, in millionths of a chunk's activations; nothing if no variant keeps to them.
std::optional<PipelinePlan> zero_bubble_within(const PipelineRequest& request, const std::vector<std::int64_t>& limits);
std::optional<PipelinePlan> zero_bubble_v_within(const PipelineRequest& request,
                                                 const std::vector<std::int64_t>& limits);
PipelinePlan build_zero_bubble(const PipelineRequest& request, std::int64_t memory_in_p);
PipelinePlan build_zero_bubble_v(const PipelineRequest& request);

// activation_copies.cc
PipelinePlan build_bpipe(const PipelineRequest& request);
// The first request.offloaded_chunks of every device; looped placements only.
void offload_chunks(PipelinePlan& plan, const PipelineRequest& request);

}  // namespace spillway::models
