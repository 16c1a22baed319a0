// Sweeps over the processes of an MPI job, through Boost.MPI.
//
// Rank 0 leads: it hands out batches of tasks, each to the rank that is idle, and keeps every record that comes back
// (in the store, if there is one). It gives the answer. Batches shrink towards the end, so that ranks end together
// whatever tasks cost. The others only compute; they read the file and what it names themselves, and are refused when
// these differ from rank 0's. When a rank dies, the launcher ends the job, or a process that waits for it on the same
// machine does. The store keeps what it has, and the sweep goes on with --resume, under MPI or not.
#pragma once

#include <functional>
#include <memory>

#include "studies/sweep/sweep_workers.h"

namespace spillway::studies {

class MpiJob : public SweepJob {
 public:
  MpiJob(int& argc, char**& argv);
  ~MpiJob() override;

  [[nodiscard]] bool leads() const override;
  void serve(const std::function<SweepFile()>& load, std::size_t threads) override;
  // Once only. Throws InputError where a rank can't read the file or reads another one.
  std::unique_ptr<SweepWorkers> workers(const SweepFile& file) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::studies
