// Work spread over the machine's cores, stopped by what stops the thread that asks for it (base/stop.h). Within work
// that is spread already, it runs on the asking thread as long as all cores are busy. If other parts of that work have
// failed, it may be left out, which is Cancelled (base/byte_source.h). A call that returns has done its work.
#pragma once

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>

#include "base/byte_source.h"
#include "base/stop.h"

namespace spillway {

// work(0) ... work(count - 1), several at once and in any order; each writes what is its own. Rethrows what one throws.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  const std::atomic<bool>* const stop = current_stop();
  oneapi::tbb::task_group_context context;
  const auto one = [&](std::size_t i) {
    const StopScope scope(stop);
    work(i);
  };
  oneapi::tbb::parallel_for(std::size_t{0}, count, one, context);
  if (context.is_group_execution_cancelled()) throw Cancelled();
}

// Both at once; each writes what is its own. If both throw, first()'s is rethrown, as one after the other would.
template <std::invocable First, std::invocable Second>
void in_parallel(const First& first, const Second& second) {
  const std::atomic<bool>* const stop = current_stop();
  std::exception_ptr first_failed, second_failed;
  const auto caught = [stop](const auto& work, std::exception_ptr& failed) {
    const StopScope scope(stop);
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  // Who waits takes no other work meanwhile: it could be another question's, and as long as this whole one.
  oneapi::tbb::task_group_context context;
  oneapi::tbb::this_task_arena::isolate([&] {
    oneapi::tbb::parallel_invoke([&] { caught(first, first_failed); }, [&] { caught(second, second_failed); }, context);
  });
  if (first_failed) std::rethrow_exception(first_failed);
  if (second_failed) std::rethrow_exception(second_failed);
  if (context.is_group_execution_cancelled()) throw Cancelled();
}

}  // namespace spillway
