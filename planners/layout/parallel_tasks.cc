#include "planners/layout/parallel_tasks.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

namespace spillway::planners {

void run_in_parallel(int tasks, int threads, const std::function<void(int)>& work) {
  if (threads == 1 || tasks == 1) {
    for (int task = 0; task < tasks; ++task) work(task);
    return;
  }
  oneapi::tbb::task_arena arena(threads > 0 ? threads : oneapi::tbb::task_arena::automatic);
  arena.execute([&] { oneapi::tbb::parallel_for(0, tasks, work, oneapi::tbb::simple_partitioner()); });
}

}  // namespace spillway::planners
