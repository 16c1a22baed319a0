// Who does a sweep's tasks: the threads of this process, or the processes of an MPI job.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "studies/sweep/sweep_store.h"
#include "studies/sweep/sweep_task.h"

namespace spillway::studies {

class SweepWorkers {
 public:
  // Gets the record of tasks[index]; called one at a time. False: no more tasks are begun.
  using Take = std::function<bool(std::size_t index, const std::string& record)>;

  SweepWorkers() = default;
  SweepWorkers(const SweepWorkers&) = delete;
  SweepWorkers& operator=(const SweepWorkers&) = delete;
  virtual ~SweepWorkers() = default;

  // Does the tasks in any order. Throws what a task throws; records that `take` has by then stay good.
  virtual void work(std::span<const SweepTask> tasks, const Take& take) = 0;
};

// oneTBB's threads.
class LocalWorkers : public SweepWorkers {
 public:
  // `file` must outlive it.
  explicit LocalWorkers(const SweepFile& file) : worker_(file) {}
  void work(std::span<const SweepTask> tasks, const Take& take) override;

 private:
  SweepWorker worker_;
};

// Records of the store first, then what the workers finds, which is stored before `take` sees it. False: `take` said
// stop.
bool do_tasks(const SweepFile& file, std::span<const SweepTask> tasks, SweepWorkers& workers, SweepStore& store,
              const SweepWorkers::Take& take);

// An MPI job seen from one of its processes: the first leads, the others work.
class SweepJob {
 public:
  SweepJob() = default;
  SweepJob(const SweepJob&) = delete;
  SweepJob& operator=(const SweepJob&) = delete;
  virtual ~SweepJob() = default;

  [[nodiscard]] virtual bool leads() const = 0;
  // For those that don't lead: does what the leader hands out until there is no more. `load` gives the file; what it
  // throws is the leader's to report.
  virtual void serve(const std::function<SweepFile()>& load, std::size_t threads) = 0;
  // For the one that leads. `file` must outlive the workers.
  virtual std::unique_ptr<SweepWorkers> workers(const SweepFile& file) = 0;
};

}  // namespace spillway::studies
