// Stopping work that is under way on a thread, from another.
//
//   std::atomic<bool> wanted = false;              // set by whoever wants it stopped
//   {
//     const StopScope scope(&wanted);              // on the thread that works
//     run(load(scenario));                         // throws Cancelled soon after `wanted` is set
//   }
//
// Long loops call check_stop(): generation, replay, planners. A flag belongs to a thread, so that what is in between
// need not hand it through; work that is spread over threads takes it along: StopScope(current_stop()).
#pragma once

#include <atomic>

namespace spillway {

class StopScope {
 public:
  // flag: null: nothing stops what follows. Outlives the scope.
  explicit StopScope(const std::atomic<bool>* flag);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

// The calling thread's; null: none.
const std::atomic<bool>* current_stop();

// Throws Cancelled (base/byte_source.h) when the thread's flag is set. About 2 ns.
void check_stop();

}  // namespace spillway
