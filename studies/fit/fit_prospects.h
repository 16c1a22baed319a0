// FitProspects: points with their estimates, before a replay, and how far replays of a kind were off from theirs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/replay/result.h"
#include "studies/fit/fit_point.h"
#include "studies/fit/fit_question.h"
#include "studies/fit/fit_screen.h"

namespace spillway::studies {

struct Prospect {
  FitPoint point;
  FitEstimate estimate;
  double figure = 0;  // of the goal, as far as the estimate says
};

class FitProspects {
 public:
  // All must outlive it. Precondition: subject.model.
  FitProspects(const FitQuestion& question, const FitSubject& subject, const FitPoints& points)
      : question_(question), points_(points), screen_(subject, points) {}

  [[nodiscard]] FitScreen& screen() { return screen_; }
  [[nodiscard]] const FitScreen& screen() const { return screen_; }
  // Leaves out what cannot run, and sorts the others.
  std::vector<Prospect> estimated(std::vector<FitPoint> points);
  // The least figure of the goal first, then the least time.
  static void sort(std::vector<Prospect>& prospects);
  [[nodiscard]] double figure_of(const FitPoint& point, const FitEstimate& estimate) const;
  // margin: of memory, by which estimates may be too high.
  [[nodiscard]] bool fits_perhaps(const Prospect& one, double margin) const;

  // Set-ups of one kind are estimated about as well as each other.
  using Kind = std::tuple<std::int64_t, bool, bool, int, StateDevice, StateDevice, std::string>;
  [[nodiscard]] static Kind kind_of(const Prospect& one);
  // Its replay tells something of the others of its kind.
  void learn(const Prospect& one, const Result& result);
  // By what its kind taught; true where none was replayed.
  [[nodiscard]] bool fits_as_learnt(const Prospect& one) const;
  // Its replayed time is hardly less than so many times the estimate.
  [[nodiscard]] double least_time_ratio(const Prospect& one) const;

 private:
  // A bound is about as far off under one technique as it is.
  struct Learnt {
    double peak = 0, time = 0, count = 0;  // sums of replayed over estimated
  };
  [[nodiscard]] const Learnt* learnt(const Prospect& one) const;

  const FitQuestion& question_;
  const FitPoints& points_;
  FitScreen screen_;
  std::map<Kind, Learnt> learnt_;
};

}  // namespace spillway::studies
