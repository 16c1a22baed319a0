// Independent tasks on several threads, with results that do not depend on the number of threads.
#pragma once

#include <functional>

namespace spillway::planners {

// Calls work(0) ... work(tasks - 1), at most `threads` at a time (0: as many as the machine has), and returns when all
// are done. Each task must touch its own data alone.
void run_in_parallel(int tasks, int threads, const std::function<void(int)>& work);

}  // namespace spillway::planners
