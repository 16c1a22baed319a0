// Independent pieces of work on several threads, whose results do not depend on how many.
#pragma once

#include <functional>

namespace spillway::planners {

// Calls work(0) ... work(lanes - 1), at most `threads` at a time (0: as many as the machine has), and returns when all
// are done. Each lane must touch its own data alone.
void run_lanes(int lanes, int threads, const std::function<void(int)>& work);

}  // namespace spillway::planners
