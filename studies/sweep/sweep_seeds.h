// A front to begin with: points of a sweep that do what is required for sure, found before any block is screened.
//
// Blocks are screened apart, and most have no good own point to measure the others by. So a few hundred points spread
// over the space are screened first. From the best of them the screen goes on to the best neighbour (another value on
// one axis), until none is better: for each objective, and for all together. Points of a block that one of these surely
// beats are then never probed. A function of the file alone, as records must be.
#pragma once

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_front.h"
#include "studies/sweep/sweep_screen.h"

namespace spillway::studies {

// The front of the worst that these points turn out. Empty where the sweep is a single block: that has its front. Uses
// oneTBB's threads. Throws InputError as the screen does.
SweepFront sweep_seeds(const SweepFile& file, SweepScreen& screen);

}  // namespace spillway::studies
