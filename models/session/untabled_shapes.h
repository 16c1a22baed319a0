// Products and attention of a step, by shape: how many have no table of the GPU near, and which of them take longest.
// It has their share of these kernels' time, too.
//
// A GPU that follows its kin has no such shapes: it has no tables, and the step says so.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "models/cost/cost_model.h"

namespace spillway::models {

class UntabledShapes {
 public:
  // A kernel as launched; others than products and attention are ignored.
  void count(const KernelCost& kernel, const Duration& duration);
  // "3 of 14 shapes of products and attention are near no table, 12 % of their time: 4096 x 50304 x 768 bfloat16";
  // empty where all are near one.
  [[nodiscard]] std::string text() const;

 private:
  struct Shape {
    Picos time{};
    bool is_outside = false;
  };
  std::map<std::array<std::int64_t, 6>, Shape> shapes_;  // kind, type, four sides
};

}  // namespace spillway::models
