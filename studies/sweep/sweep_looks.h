// Looks of a screen at the points of a block, each taken once for all points that it can't tell apart.
//
// An axis may set one field of the training set-up with each option (sizes of buckets, layers gathered ahead). It then
// makes no difference below some values of the others (SweepScreen::unseen()). Points that differ along such axes alone
// have one look, at the first option. A further point costs only working out its number, a fraction of a microsecond.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_screen.h"
#include "studies/sweep/sweep_space.h"

namespace spillway::studies {

class SweepLooks {
 public:
  // All must outlive it. One per thread.
  SweepLooks(const SweepFile& file, SweepSpace& space, SweepScreen& screen);

  // first_look() and second_look() at a point. The result is good for this object's lifetime, and shared with the
  // points that it can't distinguish: what lies cached is added to all. Throws as the screen does.
  SweepEstimate& first(std::int64_t number) { return look(first_, number, &SweepScreen::first_look); }
  SweepEstimate& second(std::int64_t number) { return look(second_, number, &SweepScreen::second_look); }

 private:
  using Looks = std::unordered_map<std::int64_t, SweepEstimate>;
  // One that sets a field alone that may make no difference.
  struct Axis {
    std::size_t index = 0;
    std::string key;
    bool is_tried = false;  // with all its options
  };

  SweepEstimate& look(Looks& looks, std::int64_t number, SweepEstimate (SweepScreen::*how)(const SweepSettings&));
  // The point with the look that stands for this one's.
  std::int64_t stand_in(std::int64_t number);
  std::vector<std::size_t> unseen_axes(std::int64_t number);
  [[nodiscard]] SweepSettings settings(std::int64_t number) { return space_.settings(space_.at(number)); }

  const SweepFile& file_;
  SweepSpace& space_;
  SweepScreen& screen_;
  std::vector<Axis> axes_;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> unseen_;  // by a point with the first of what can't decide
  Looks first_, second_;
};

}  // namespace spillway::studies
