// The what-if loop: variants of the workspace, the one at hand with its newest outcome, and the baseline it is compared
// with. Nothing takes a variant's place: what is opened is one more.
//
//   edit -> 40 ms of quiet -> worker -> outcome -> views         stale from the edit until the outcome
#pragma once

#include <QObject>
#include <QTimer>
#include <QUndoGroup>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/workspace/scenario_document.h"
#include "gui/workspace/simulation.h"
#include "gui/workspace/variant.h"

namespace spillway::gui {

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Reads and replays the document; then it is one more variant, and the one at hand (on_opened). If that fails
  // (on_error), or cancel() or an edit ends it, all stays as it is. parent: the variant it is a what-if of; -1: none. A
  // scenario that is there already, unchanged, becomes the one at hand instead.
  void open(ScenarioDocument document, ReadRange range = {}, int parent = -1, const std::string& name = {});

  [[nodiscard]] const std::vector<std::unique_ptr<Variant>>& variants() const { return variants_; }
  [[nodiscard]] const Variant* variant(int id) const;  // null: there is none
  [[nodiscard]] int current() const { return current_ == nullptr ? -1 : current_->id; }
  // A child of the one at hand, and the one at hand; text: of its scenario, empty: the same. Its id; -1: nothing is
  // open.
  int branch(const std::string& name, const std::string& text = {});
  void switch_to(int id);
  void rename(int id, const std::string& name);
  // Its children become its parent's. The last one stays. restore_removed() brings it back.
  void remove(int id);
  bool restore_removed();
  // Variants with changes that are in no file.
  [[nodiscard]] std::vector<int> changed() const;
  [[nodiscard]] StoredWorkspace stored() const;
  // More variants, beside those that are there.
  void restore(const StoredWorkspace& workspace);
  // As saved by the workspace's own file.
  void mark_saved();
  // Replays the variants without figures, or with old ones, one after the other (on_variants).
  void replay_others();
  [[nodiscard]] bool replays_others() const { return replayed_other_ >= 0; }

  [[nodiscard]] ScenarioDocument* document() { return current_ == nullptr ? nullptr : &current_->document; }
  [[nodiscard]] const ScenarioDocument* baseline_document() const { return pinned_ ? &*pinned_ : nullptr; }
  [[nodiscard]] std::shared_ptr<const Outcome> outcome() const { return outcome_; }
  [[nodiscard]] std::shared_ptr<const Outcome> baseline() const { return baseline_; }
  [[nodiscard]] std::shared_ptr<const Sensitivity> sensitivity() const { return sensitivity_; }
  [[nodiscard]] std::shared_ptr<const Sensitivity> baseline_sensitivity() const { return baseline_sensitivity_; }
  [[nodiscard]] const ReadRange& range() const { return range_; }
  // Notes of the variant at hand; setting them is a step to undo, called `name`.
  [[nodiscard]] std::vector<Note> notes() const { return current_ == nullptr ? std::vector<Note>() : current_->notes; }
  void set_notes(std::vector<Note> notes, const std::string& name);
  // The steps of the variant at hand.
  [[nodiscard]] QUndoGroup& history() { return history_; }

  void edit(const std::string& key, const std::string& value, bool goes_on);
  // The whole text at once: one step to undo. name: of the step; empty: what changed.
  void become(const std::string& text, const std::string& name = {});
  void undo();
  void redo();
  void set_range(ReadRange range);  // of a trace: reads it again
  // The present outcome becomes what all views compare with; pinned again while it is that one: unpins.
  void pin();
  // Sensitivity is worked out for each outcome from now on, or no more.
  // small_alone: of large steps, a replay of which takes gigabytes, it is not.
  void want_sensitivity(bool wanted, bool small_alone = false);
  void cancel();

  // The document differs from what the outcome is of.
  [[nodiscard]] bool is_stale() const { return stale_; }
  [[nodiscard]] bool is_busy() const { return busy_; }
  [[nodiscard]] double milliseconds() const { return milliseconds_; }  // from the edit to the outcome

  // Views no longer hold it: freed when nobody else does either.
  void drop(std::shared_ptr<const Outcome> outcome) { simulation_->drop(std::move(outcome)); }

  std::function<void()> on_opened;  // another document; before on_document and on_outcome
  std::function<void()> on_document, on_outcome, on_state, on_sensitivity;
  std::function<void()> on_notes;     // of the variant at hand became others; also when another is at hand
  std::function<void()> on_variants;  // came, went, or have other names or figures
  std::function<void(const SimulationError&)> on_error;
  std::function<void(const std::string& part, double fraction)> on_progress;

 private:
  struct Opening {
    ScenarioDocument document;
    ReadRange range;
    int parent = -1;
    std::string name;
  };
  class Step;
  class NoteStep;
  Simulation::Answers answers();
  Variant& add(Opening from);
  void make_current(Variant& variant);
  void add_opened(Opening from);
  // After the document's text has become another; is_new: as a separate step.
  void stepped(const std::string& before, bool is_new, const std::string& name);
  void moved();
  void edited();
  void ask();
  void ask_sensitivity();
  void tell_variants();

  QObject context_;  // of what the timer calls: gone with it
  QTimer quiet_;
  QUndoGroup history_;
  std::vector<std::unique_ptr<Variant>> variants_, removed_;
  Variant* current_ = nullptr;
  int next_id_ = 0;
  std::string edited_text_;  // that the last replay was asked for
  std::optional<ScenarioDocument> pinned_;
  ReadRange range_;
  std::optional<Opening> opening_;  // what the worker was asked about last, when it is that
  std::shared_ptr<const Outcome> outcome_, baseline_;
  std::shared_ptr<const Sensitivity> sensitivity_, baseline_sensitivity_;
  bool stale_ = false, busy_ = false, wants_sensitivity_ = false, small_alone_ = false;
  qint64 edited_at_ = 0;
  double milliseconds_ = 0;
  int replayed_other_ = -1;                          // the variant that replay_others() is at
  std::unique_ptr<Simulation> simulation_, others_;  // end before the rest
};

}  // namespace spillway::gui
