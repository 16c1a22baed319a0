#include "studies/sweep/sweep_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/log.h"
#include "base/parallel.h"

namespace spillway::studies {

void LocalWorkers::work(std::span<const SweepTask> tasks, const Take& take) {
  const auto is_block = [](const SweepTask& task) { return !task.is_replay; };
  if (std::any_of(tasks.begin(), tasks.end(), is_block)) worker_.prepare();
  std::mutex mutex;
  std::atomic<bool> stopped = false;
  in_parallel(tasks.size(), [&](std::size_t i) {
    if (stopped) return;
    const std::string record = worker_.record(tasks[i]);
    const std::lock_guard lock(mutex);
    if (!stopped && !take(i, record)) stopped = true;
  });
}

bool do_tasks(const SweepFile& file, std::span<const SweepTask> tasks, SweepWorkers& workers, SweepStore& store,
              const SweepWorkers::Take& take) {
  std::vector<SweepTask> missing;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (const auto record = store.find(sweep_key(file, tasks[i]))) {
      if (!take(i, *record)) return false;
      continue;
    }
    missing.push_back(tasks[i]);
    place.push_back(i);
  }
  if (missing.size() < tasks.size() && is_verbose())
    log_choice("store", fmt::format("{} of {} {} were there already", tasks.size() - missing.size(), tasks.size(),
                                    tasks.front().is_replay ? "replays" : "screened blocks"));
  bool goes_on = true;
  workers.work(missing, [&](std::size_t i, const std::string& record) {
    store.append(sweep_key(file, missing[i]), record);
    goes_on = take(place[i], record);
    return goes_on;
  });
  return goes_on;
}

}  // namespace spillway::studies
