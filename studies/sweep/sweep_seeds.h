// A front to begin with: points of a sweep that do what is required for sure, found before any block is screened.
//
// Blocks are screened apart, and most have no good point of their own to measure the others by. So a few hundred points
// spread over the space are looked at, and from the best of them the screen goes to the best neighbour (another
// value on one axis) as long as there is a better one: for each objective, and for all of them together. What a block
// holds that one of these surely beats is then never probed. A function of the file alone, as records must be.
#pragma once

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_front.h"
#include "studies/sweep/sweep_screen.h"

namespace spillway::studies {

// Of the worst that they turn out. Empty where the sweep is a single block: that has a front of its own. Uses oneTBB's
// threads. Throws InputError as the screen does.
SweepFront sweep_seeds(const SweepFile& file, SweepScreen& screen);

}  // namespace spillway::studies
