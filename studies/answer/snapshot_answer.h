// The answer of a memory snapshot: what ran out, who held the memory by the program's own lines, what would have
// served.
#pragma once

#include <string>
#include <vector>

#include "scenario/memory_knobs.h"
#include "studies/answer/answer.h"
#include "studies/diagnosis/memory_diagnosis.h"

namespace spillway::studies {

// The answer of one device of a trace that was read with ReadOptions::keep_stacks. Knobs are the settings that were
// tried, where nothing ran out. `name` is the file's. `judged` is the record's memory on the GPU that was named; null
// where none was. It replays the stream of allocations once. Errors as replay_allocation_stream().
Answer snapshot_answer(const Trace& trace, std::int16_t device, const MemoryDiagnosis& diagnosis,
                       const std::vector<MemoryKnob>& knobs, const std::string& name, std::string command,
                       const Result* judged = nullptr);

}  // namespace spillway::studies
