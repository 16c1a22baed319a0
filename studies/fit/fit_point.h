// FitPoint: one way during the search: a set-up of the training, and what else differs from the scenario.
//
//   as given + edits = point         settings_of(): the edits, which make the same point again by --set
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planners/technique.h"
#include "studies/fit/fit_question.h"

namespace spillway::studies {

struct FitPoint {
  TrainingSetup setup;                        // as the scenario would have it, not resolved; of a capture unused
  std::map<std::string, std::string> others;  // by key outside "model.": what differs from the scenario as given
};

// Whether an edit follows from others: a step and an evaluation keep the number of their sequences.
bool keeps_sequences(std::string_view setting);

class FitPoints {
 public:
  // `subject` must outlive it.
  explicit FitPoints(const FitSubject& subject);

  [[nodiscard]] const FitPoint& as_given() const { return given_; }
  // With "key=value" made on top. Throws InputError for no key or value of a scenario.
  [[nodiscard]] FitPoint with(FitPoint point, const std::vector<std::string>& settings) const;
  // Resets idle keys to the values as given, which are no edit. One rank shares nothing out, whatever its settings, and
  // a step without recomputed layers has no number of them. Experts' overlap is given up where it can't be.
  void drop_idle(TrainingSetup& setup) const;
  // The value of a key outside "model." at the point: its own, else the scenario's, else, of technique and
  // allocator, what that means; empty: nobody says.
  [[nodiscard]] std::string value(const FitPoint& point, const std::string& key) const;
  // Whether every setting holds there already.
  [[nodiscard]] bool holds(const FitPoint& point, const std::vector<std::string>& settings) const;

  // way_names.h; "As given" for no edits.
  [[nodiscard]] std::string name(const FitPoint& point) const;
  // Differences from the scenario as given, by key.
  [[nodiscard]] std::vector<std::string> settings(const FitPoint& point) const;
  // Its settings. FitSubject::batch_edits and the batches of an evaluation come with them if they share the sequences
  // of a step out in another way.
  [[nodiscard]] Candidate candidate(const FitPoint& point) const;
  // Layers run forward and backward in its replay, about. A step that folds (scenario/brief_run.h) runs the
  // micro-batches that are shown. A pipeline runs twice as many, as half of them show more. A step with a plan runs all
  // of them, several times. 0 of a capture.
  [[nodiscard]] std::int64_t work(const FitPoint& point) const;
  // Whether another arithmetic than the scenario's trains the model: optimizer, precision, updates a step late.
  [[nodiscard]] bool changes_maths(const FitPoint& point) const;

 private:
  const FitSubject& subject_;
  FitPoint given_;
};

}  // namespace spillway::studies
