// The words of a result's verdict, for every face. Nobody else composes them (tests/house_check.py).
#pragma once

#include <cstddef>
#include <string>

#include "sim/replay/result.h"

namespace spillway::sim {

// A sentence that begins as to_string() of the verdict: "fits with 12.3 GiB free of 79.0 GiB" beside the reserve,
// "tight: ...", "does not fit: 87.1 GiB short on the GPU's 79.0 GiB", "unknown: the trace has no memory events";
// or "no: ", where drives refuse.
std::string verdict_sentence(const Result& result);
// The same with its first letter large.
std::string verdict_heading(const Result& result);
// For a cell: "Fits, 12.3 GiB free", "Tight, 0.4 GiB free", "Short 87.1 GiB", "Unknown", "Drives refuse".
std::string verdict_cell(const Result& result);
// Shape and word, never colour alone: "✔ fits", "▲ tight", "▲ unknown", "✖ does not fit", "✖ drives refuse".
std::string verdict_mark(const Result& result);
// "✔", "▲", "✖".
std::string verdict_shape(Verdict verdict);
// "12.3 GiB free": of the capacity less what is kept free of it.
std::string to_spare(const Result& result);
// "short 87.1 GiB", "short of memory of stage 3": of does_not_fit, with lacking().
std::string short_words(const Result& result);
// The lack behind does_not_fit: "87.1 GiB", "20 GiB of host memory", "memory of stage 3". If it may fit, why the drives
// refuse; empty: they don't.
std::string lacking(const Result& result);

std::string ran_out_mark();  // "✖ ran out"
// Headings of a memory snapshot, with shape. After a failed allocation: "✖ Ran out: loss.py:9 cross_entropy asked for
// 1.00 GiB, 900.0 MiB were free". Else: "▲ Nothing ran out while it was recorded: at most 5.96 GiB". free: -1 unknown.
std::string ran_out_heading(const std::string& place, Bytes asked, Bytes free);
std::string recorded_heading(Bytes most);

// Outcome of a search for ways to fit.
struct FoundWays {
  // That keep the reserve, as replayed: of the same training, of other numerics, of what nobody runs today.
  std::size_t same = 0, numerics = 0, research = 0;
  std::size_t tight = 0, tried = 0;
  bool ended_early = false;  // with more to try
  std::string unknown;       // why it isn't known whether it does; empty: it is
  std::string how;           // behind "fits": "as deepspeed launches it"; empty: nothing to say
};
// With its shape: "✔ Fits in 5 ways that train the same", "▲ Not decided: ...", "✖ Does not fit in any of 24 ways that
// were tried". No "no" of a search that ended early.
std::string search_heading(const FoundWays& found);

}  // namespace spillway::sim
