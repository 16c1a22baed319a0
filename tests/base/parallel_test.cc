#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace spillway {
namespace {

TEST(InParallel, DoesAllOfIt) {
  std::atomic<int> sum = 0;
  in_parallel(100, [&](std::size_t i) { sum += static_cast<int>(i); });
  in_parallel([&] { sum += 1; }, [&] { sum += 2; });
  EXPECT_EQ(sum, 4953);
}

TEST(InParallel, TakesWhatStopsItAlong) {
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  EXPECT_THROW(in_parallel(4, [](std::size_t /*i*/) { check_stop(); }), Cancelled);
  EXPECT_THROW(in_parallel([] {}, [] { check_stop(); }), Cancelled);
}

TEST(InParallel, OfTwoFailuresTheFirstIsTold) {
  for (int round = 0; round < 100; ++round) try {
      in_parallel([] { throw std::runtime_error("first"); }, [] { throw std::runtime_error("second"); });
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "first");
    }
}

// The library leaves out what is inside of work that has failed elsewhere, and returns as if it had been done.
TEST(InParallel, WhatReturnsHasBeenDone) {
  std::atomic<int> left_out = 0;
  for (int round = 0; round < 200; ++round) try {
      in_parallel(64, [&](std::size_t i) {
        if (i == 40) throw std::runtime_error("one of them");
        bool first = false, second = false;
        std::atomic<int> parts = 0;
        in_parallel([&] { first = true; }, [&] { second = true; });
        in_parallel(8, [&](std::size_t /*part*/) { ++parts; });
        if (!first || !second || parts != 8) ++left_out;
      });
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "one of them");
    }
  EXPECT_EQ(left_out, 0);
}

}  // namespace
}  // namespace spillway
