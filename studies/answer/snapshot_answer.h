// The answer of a memory snapshot: what ran out, who held the memory by the program's own lines, what would have
// served.
#pragma once

#include <string>
#include <vector>

#include "scenario/memory_knobs.h"
#include "studies/answer/answer.h"
#include "studies/diagnosis/memory_diagnosis.h"

namespace spillway::studies {

// Of one device of a trace read with ReadOptions::keep_stacks, with its diagnosis and, where nothing ran out, the
// settings that were tried. name: of the file. judged: its memory on a GPU that was named; null: on none, and whether
// it fits is not known. Replays the stream of allocations once. Errors as replay_allocation_stream().
Answer snapshot_answer(const Trace& trace, std::int16_t device, const MemoryDiagnosis& diagnosis,
                       const std::vector<MemoryKnob>& knobs, const std::string& name, std::string command,
                       const Result* judged = nullptr);

}  // namespace spillway::studies
