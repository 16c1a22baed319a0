#include "planners/layout/lanes.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

namespace spillway::planners {

void run_lanes(int lanes, int threads, const std::function<void(int)>& work) {
  if (threads == 1 || lanes == 1) {
    for (int lane = 0; lane < lanes; ++lane) work(lane);
    return;
  }
  oneapi::tbb::task_arena arena(threads > 0 ? threads : oneapi::tbb::task_arena::automatic);
  arena.execute([&] { oneapi::tbb::parallel_for(0, lanes, work, oneapi::tbb::simple_partitioner()); });
}

}  // namespace spillway::planners
