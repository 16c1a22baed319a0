// The what-if loop: the document, its newest outcome, and the baseline it is compared with.
//
//   edit -> 40 ms of quiet -> worker -> outcome -> views         stale from the edit until the outcome
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>

#include "gui/workspace/scenario_document.h"
#include "gui/workspace/simulation.h"

namespace spillway::gui {

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes the place of the document at hand when it has been read and replayed (on_opened); where that fails
  // (on_error), or is given up by cancel() or an edit, the one at hand stays as it is.
  void open(ScenarioDocument document, ReadRange range = {});
  // Takes its place at once, whatever its replay comes to: work from an earlier session.
  void adopt(ScenarioDocument document);
  [[nodiscard]] ScenarioDocument* document() { return document_ ? &*document_ : nullptr; }
  [[nodiscard]] const ScenarioDocument* baseline_document() const { return pinned_ ? &*pinned_ : nullptr; }
  [[nodiscard]] std::shared_ptr<const Outcome> outcome() const { return outcome_; }
  [[nodiscard]] std::shared_ptr<const Outcome> baseline() const { return baseline_; }
  [[nodiscard]] std::shared_ptr<const Sensitivity> sensitivity() const { return sensitivity_; }
  [[nodiscard]] std::shared_ptr<const Sensitivity> baseline_sensitivity() const { return baseline_sensitivity_; }
  [[nodiscard]] const ReadRange& range() const { return range_; }

  void edit(const std::string& key, const std::string& value, bool goes_on);
  // The whole text at once: one step to undo.
  void become(const std::string& text);
  void undo();
  void redo();
  // Replays another text of the document beside it (on_preview); nothing changes. Empty: no more.
  void preview(const std::string& text);
  [[nodiscard]] std::shared_ptr<const Outcome> previewed() const { return previewed_; }
  void set_range(ReadRange range);  // of a trace: reads it again
  // The present outcome becomes what all views compare with; pinned again while it is that one: unpins.
  void pin();
  // Sensitivity is worked out for each outcome from now on, or no more.
  void want_sensitivity(bool wanted);
  void cancel();

  // The document differs from what the outcome is of.
  [[nodiscard]] bool is_stale() const { return stale_; }
  [[nodiscard]] bool is_busy() const { return busy_; }
  [[nodiscard]] double milliseconds() const { return milliseconds_; }  // from the edit to the outcome

  // Views no longer hold it: freed when nobody else does either.
  void drop(std::shared_ptr<const Outcome> outcome) { simulation_->drop(std::move(outcome)); }

  std::function<void()> on_opened;  // another document; before on_document and on_outcome
  std::function<void()> on_document, on_outcome, on_state, on_sensitivity, on_preview;
  std::function<void(const SimulationError&)> on_error;
  std::function<void(const std::string& part, double fraction)> on_progress;

 private:
  struct Opening {
    ScenarioDocument document;
    ReadRange range;
  };
  Simulation::Post post();
  void replace(Opening by);
  void edited();
  void ask();
  void ask_sensitivity();

  QObject context_;  // of what the worker posts: gone with it
  QTimer quiet_;
  std::optional<ScenarioDocument> document_, pinned_;
  ReadRange range_;
  std::optional<Opening> opening_;  // what the worker was asked about last, when it is that
  std::shared_ptr<const Outcome> outcome_, baseline_;
  std::shared_ptr<const Sensitivity> sensitivity_, baseline_sensitivity_;
  bool stale_ = false, busy_ = false, wants_sensitivity_ = false;
  qint64 edited_at_ = 0;
  double milliseconds_ = 0;
  std::shared_ptr<const Outcome> previewed_;
  std::unique_ptr<Simulation> simulation_, previews_;  // end before the rest
};

}  // namespace spillway::gui
