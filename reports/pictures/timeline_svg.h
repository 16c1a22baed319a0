// A replay as one picture for people: a self-contained SVG without scripts, fonts or links.
//
//   title, verdict             fits or not and by how much, step time, what binds it in words
//   lanes                      host threads, streams, communication and storage lanes over time, coloured by phase
//   memory                     allocated and reserved over time, capacity, the peak
//   breakdown                  what the replayed time is made of, as a stacked bar with labels
//
// Work shorter than a pixel is folded: a pixel column takes the colour of the class that fills most of it. The less
// of the column is busy, the paler it is. The memory curves show the highest value within each pixel, so no peak is
// lost. Colours are Okabe and Ito's, which people with colour-blindness can tell apart.
#pragma once

#include <string>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::reports {

struct SvgOptions {
  int width = 1280;     // pixels; smaller than 640 counts as 640, larger than 4096 as 4096
  int most_lanes = 12;  // >= 1; where there are more, the busiest are drawn and the others named in a note
};

// The trace that was replayed and what the replay found, its memory on the GPU's clock (result_on_gpu_clock()) as the
// lanes are. Ops that were not replayed, or lie outside [0, replayed], are not drawn. Equal inputs give equal bytes.
// O(ops log ops + memory points). The size depends on the width, not on the number of ops. It is under 2 MB at the
// default width unless names are mostly characters to be escaped. Throws nothing itself.
std::string timeline_svg(const Trace& trace, const Result& result, const SvgOptions& options = {});

}  // namespace spillway::reports
