// BPipe (Kim et al. 2023) in a generated step. Early stages hold most micro-batches. They keep some of their
// activations on the late stage they are paired with, stage d on p - 1 - d, so that none holds more than (p + 3) / 2.
//
//   stage 0    F0 F1 F2 F3 | B0 F4 ...      its order, and when what leaves and comes back: models/pipeline, "bpipe"
//   NVLink           [2 out]  [3 out] [2 in]
//   stage p-1        [2 held .........]
//
// Saved tensors of a micro-batch's layers leave when their writers are done, and are asked for at the plan's place.
// Copies go over the machine's links between GPUs (NVLink, or PCIe where there is none), one at a time each way. They
// run beside the pipeline's own transfers without slowing them. Pairs share a machine: BPipe's assignment of neighbours
// ensures that. A host launches no more while more than one micro-batch is on the way out.
#pragma once

#include "models/pipeline/pipeline_plan.h"
#include "planners/offload/offload_run.h"

namespace spillway::planners {

// `plan`: of one chunk per device, its copies between devices; the trace has a rank for each. Throws InputError where
// the hardware has one GPU. O(uses log), and the replays of replay_with_forwarding().
OffloadOutcome run_bpipe(const Trace& trace, const PipelinePlan& plan, const Replayer& replayer,
                         const OffloadSettings& settings);

}  // namespace spillway::planners
