// A recording's folder, as spillway.torch.record() writes it: one program's steps, profiled little and fully.
//
//   manifest.json         what the files are called; step times without a profiler
//   light.json(.gz|.zst)  Kineto: kernels and operators alone: its times
//   steps.json            Kineto with shapes, memory and annotations: all but its times, where a light one is there
//   graph.json            ExecutionTrace of the same steps: tensors and their uses
//   memory.pickle         the allocator's history: stands for the step where no Kineto trace is there
//
// Each may be missing. A finding tells what can't be joined.
#pragma once

#include <string>

#include "traces/read_options.h"
#include "traces/trace.h"

namespace spillway::traces {

// Whether a recording's manifest or one of its Kineto traces lies in the folder. False for files.
bool is_recording(const std::string& path);

// Throws InputError: of a manifest or a file in it that can't be read, and of a folder with no trace.
Trace read_recording(const std::string& folder, const ReadOptions& options);

}  // namespace spillway::traces
