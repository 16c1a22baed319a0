#include "gui/workspace/session.h"

#include <QDateTime>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

constexpr int quiet_ms = 40;                    // between an edit and its replay, when one of many
constexpr std::size_t small_outcome = 200'000;  // ops: of larger ones only the present one is kept

}  // namespace

// A step of a document: its texts are the document's own.
class Session::Step : public QUndoCommand {
 public:
  Step(ScenarioDocument& document, const QString& words) : QUndoCommand(words), document_(document) {}
  void undo() override { document_.undo(); }
  void redo() override {
    if (!std::exchange(is_new_, false)) document_.redo();
  }

 private:
  ScenarioDocument& document_;
  bool is_new_ = true;  // the document is there already
};

// The notes of a variant become others.
class Session::NoteStep : public QUndoCommand {
 public:
  NoteStep(Session& session, Variant& variant, std::vector<Note> notes, const QString& words)
      : QUndoCommand(words), session_(session), variant_(variant), other_(std::move(notes)) {}
  void undo() override { exchange(); }
  void redo() override { exchange(); }

 private:
  void exchange() {
    std::swap(variant_.notes, other_);
    if (&variant_ == session_.current_ && session_.on_notes) session_.on_notes();
  }
  Session& session_;
  Variant& variant_;
  std::vector<Note> other_;
};

Session::Session() {
  quiet_.setSingleShot(true);
  QObject::connect(&quiet_, &QTimer::timeout, &context_, [this] { ask(); });
  simulation_ = std::make_unique<Simulation>(answers());
  Simulation::Answers others;
  others.sensitivity = [](const std::shared_ptr<const Sensitivity>& /*found*/) {};
  others.progress = [](std::uint64_t /*generation*/, const std::string& /*part*/, double /*fraction*/) {};
  const auto next = [this](std::shared_ptr<const Outcome> outcome) {
    const int id = std::exchange(replayed_other_, -1);
    for (const auto& variant : variants_)
      if (variant->id == id && outcome != nullptr) variant->figures = outcome->figures;
    others_->drop(std::move(outcome));
    tell_variants();
    replay_others();
  };
  others.outcome = next;
  others.failed = [this](std::uint64_t /*generation*/, const SimulationError& error) {
    for (const auto& variant : variants_)
      if (variant->id == replayed_other_) {
        auto failed = std::make_shared<VariantFigures>();
        failed->text = variant->document.text();
        failed->shape = verdict_shape(Verdict::unknown);
        failed->verdict = error.title;
        variant->figures = std::move(failed);
      }
    replayed_other_ = -1;
    tell_variants();
    replay_others();
  };
  others_ = std::make_unique<Simulation>(std::move(others));
}

Session::~Session() {
  others_.reset();
  simulation_.reset();
  current_ = nullptr;  // histories speak up when they go
  variants_.clear();
  removed_.clear();
}

Simulation::Answers Session::answers() {
  Simulation::Answers answers;
  answers.outcome = [this](std::shared_ptr<const Outcome> outcome) {
    if (opening_) add_opened(*std::exchange(opening_, std::nullopt));
    current_->figures = outcome->figures;
    current_->outcome = outcome->trace().ops.size() < small_outcome ? outcome : nullptr;
    simulation_->drop(std::exchange(outcome_, std::move(outcome)));
    sensitivity_ = nullptr;
    busy_ = false;
    stale_ = quiet_.isActive();
    milliseconds_ = static_cast<double>(QDateTime::currentMSecsSinceEpoch() - edited_at_);
    if (on_outcome) on_outcome();
    tell_variants();
    if (on_state) on_state();
    ask_sensitivity();
  };
  answers.failed = [this](std::uint64_t /*generation*/, const SimulationError& error) {
    busy_ = false;
    // The document at hand may have been waiting for its own answer.
    if (std::exchange(opening_, std::nullopt) && stale_) ask();
    if (on_error) on_error(error);
    if (on_state) on_state();
  };
  answers.sensitivity = [this](std::shared_ptr<const Sensitivity> found) {
    sensitivity_ = std::move(found);
    if (baseline_ == outcome_) baseline_sensitivity_ = sensitivity_;
    if (on_sensitivity) on_sensitivity();
  };
  answers.progress = [this](std::uint64_t /*generation*/, const std::string& part, double fraction) {
    if (on_progress) on_progress(part, fraction);
  };
  return answers;
}

// ---- variants ----

const Variant* Session::variant(int id) const {
  for (const auto& one : variants_)
    if (one->id == id) return one.get();
  return nullptr;
}

void Session::tell_variants() {
  if (on_variants) on_variants();
}

Variant& Session::add(Opening from) {
  std::string name = from.name;
  if (name.empty()) name = std::filesystem::path(from.document.name()).stem().string();
  auto made = std::unique_ptr<Variant>(
      new Variant{next_id_++, from.parent, std::move(name), std::move(from.document), from.range});
  Variant& variant = *made;
  variant.history.setUndoLimit(static_cast<int>(ScenarioDocument::most_steps));
  history_.addStack(&variant.history);
  QObject::connect(&variant.history, &QUndoStack::indexChanged, &context_, [this, &variant] {
    if (&variant == current_) moved();
  });
  variants_.push_back(std::move(made));
  return variant;
}

void Session::make_current(Variant& variant) {
  current_ = &variant;
  range_ = variant.range;
  edited_text_ = variant.document.text();
  history_.setActiveStack(&variant.history);
  simulation_->drop(std::exchange(outcome_, nullptr));
  sensitivity_ = nullptr;
  if (on_notes) on_notes();
}

// A baseline of another file says nothing of this one; a what-if is compared with what it is one of.
void Session::add_opened(Opening from) {
  if (from.parent < 0 && baseline_ != nullptr) {
    baseline_sensitivity_ = nullptr;
    pinned_.reset();
    simulation_->drop(std::exchange(baseline_, nullptr));
  }
  make_current(add(std::move(from)));
  if (on_opened) on_opened();
  tell_variants();
  if (on_document) on_document();
}

int Session::branch(const std::string& name, const std::string& text) {
  if (current_ == nullptr) return -1;
  ScenarioDocument document(text.empty() ? current_->document.text() : text, "", current_->document.folder());
  const std::string called = name.empty() ? "variant " + std::to_string(next_id_) : name;
  const int id = add({std::move(document), current_->range, current_->id, called}).id;
  switch_to(id);
  return id;
}

void Session::switch_to(int id) {
  const auto found = std::find_if(variants_.begin(), variants_.end(), [id](const auto& one) { return one->id == id; });
  if (found == variants_.end() || found->get() == current_) return;
  if (std::exchange(opening_, std::nullopt)) simulation_->cancel();
  quiet_.stop();
  make_current(**found);
  stale_ = true;
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  tell_variants();
  if (on_document) on_document();
  if (current_->outcome != nullptr && current_->outcome->scenario.text == current_->document.text()) {
    simulation_->cancel();
    busy_ = stale_ = false;
    outcome_ = current_->outcome;
    milliseconds_ = 0;
    if (on_outcome) on_outcome();
    if (on_state) on_state();
    return ask_sensitivity();
  }
  ask();
}

void Session::rename(int id, const std::string& name) {
  for (const auto& one : variants_)
    if (one->id == id) one->name = name;
  tell_variants();
}

void Session::remove(int id) {
  const auto found = std::find_if(variants_.begin(), variants_.end(), [id](const auto& one) { return one->id == id; });
  if (found == variants_.end() || variants_.size() < 2) return;
  const int parent = (*found)->parent;
  if (found->get() == current_) {
    const auto other = std::find_if(variants_.begin(), variants_.end(),
                                    [&](const auto& one) { return parent < 0 ? one->id != id : one->id == parent; });
    switch_to((*other)->id);
  }
  for (const auto& one : variants_)
    if (one->parent == id) one->parent = parent;
  history_.removeStack(&(*found)->history);
  (*found)->outcome = nullptr;
  removed_.push_back(std::move(*found));
  variants_.erase(found);
  tell_variants();
}

bool Session::restore_removed() {
  if (removed_.empty()) return false;
  std::unique_ptr<Variant> back = std::move(removed_.back());
  removed_.pop_back();
  if (variant(back->parent) == nullptr) back->parent = -1;
  const int id = back->id;
  history_.addStack(&back->history);
  variants_.push_back(std::move(back));
  tell_variants();
  switch_to(id);
  return true;
}

std::vector<int> Session::changed() const {
  std::vector<int> found;
  for (const auto& one : variants_)
    if (one->document.is_changed()) found.push_back(one->id);
  return found;
}

StoredWorkspace Session::stored() const {
  StoredWorkspace workspace;
  workspace.current = current();
  // Parents first: one that came back stands behind its children.
  std::vector<const Variant*> left;
  for (const auto& one : variants_) left.push_back(one.get());
  while (!left.empty())
    for (auto it = left.begin(); it != left.end();) {
      const Variant& one = **it;
      const bool waits = std::any_of(left.begin(), left.end(), [&](const Variant* o) { return o->id == one.parent; });
      if (waits) {
        ++it;
        continue;
      }
      workspace.variants.push_back({one.id, one.parent, one.name, one.document.file(), one.document.folder(),
                                    one.document.text(), one.document.saved_text(), one.notes});
      it = left.erase(it);
    }
  return workspace;
}

void Session::restore(const StoredWorkspace& workspace) {
  std::vector<std::pair<int, int>> ids;  // as stored, as here
  int wanted = -1;
  for (const StoredVariant& stored : workspace.variants) {
    const bool has_file = !stored.file.empty() && std::filesystem::exists(stored.file);
    ScenarioDocument document(stored.saved, has_file ? stored.file : "", stored.folder);
    const auto parent =
        std::find_if(ids.begin(), ids.end(), [&](const auto& pair) { return pair.first == stored.parent; });
    Variant& variant = add({std::move(document), {}, parent == ids.end() ? -1 : parent->second, stored.name});
    ids.emplace_back(stored.id, variant.id);
    variant.notes = stored.notes;
    if (variant.document.replace(stored.text))  // what was not saved is a step that can be undone
      variant.history.push(new Step(variant.document, QString::fromStdString(step_words(stored.saved, stored.text))));
    if (stored.id == workspace.current || wanted < 0) wanted = variant.id;
  }
  switch_to(wanted);
  if (on_opened) on_opened();
  tell_variants();
  if (on_document) on_document();
}

void Session::mark_saved() {
  for (const auto& one : variants_) one->document.mark_saved();
  tell_variants();
  if (on_document) on_document();
}

void Session::replay_others() {
  if (replayed_other_ >= 0) return;
  for (const auto& one : variants_) {
    if (one.get() == current_ || (one->figures != nullptr && one->figures->text == one->document.text())) continue;
    replayed_other_ = one->id;
    others_->ask({one->document.text(), one->document.name(), one->document.folder()}, one->range);
    return;
  }
}

// ---- the one at hand ----

void Session::open(ScenarioDocument document, ReadRange range, int parent, const std::string& name) {
  if (!document.file().empty())
    for (const auto& one : variants_)
      if (one->document.file() == document.file() && one->document.text() == document.text() && one->range == range &&
          one.get() != current_) {
        switch_to(one->id);
        if (on_opened) on_opened();
        return;
      }
  opening_ = Opening{std::move(document), range, parent, name};
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  ask();
}

void Session::edited() {
  edited_text_ = current_->document.text();
  if (std::exchange(opening_, std::nullopt)) {
    simulation_->cancel();
    busy_ = false;
  }
  stale_ = true;
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  // The first of many is replayed too, so that one alone waits for nothing: the next stops it.
  quiet_.start(busy_ || quiet_.isActive() ? quiet_ms : 0);
  tell_variants();
  if (on_document) on_document();
  if (on_state) on_state();
}

// By undo, redo, or a step of the history that was clicked.
void Session::moved() {
  if (current_->document.text() != edited_text_) edited();
}

void Session::stepped(const std::string& before, bool is_new, const std::string& name) {
  ScenarioDocument& document = current_->document;
  const QString words = QString::fromStdString(name.empty() ? step_words(before, document.text()) : name);
  if (is_new) current_->history.push(new Step(document, words));
  moved();
}

void Session::edit(const std::string& key, const std::string& value, bool goes_on) {
  if (current_ == nullptr) return;
  try {
    ScenarioDocument& document = current_->document;
    const std::string before = document.text();
    const std::size_t steps = document.steps();
    if (document.set(key, value, goes_on)) stepped(before, document.steps() != steps, {});
  } catch (const std::exception& error) {
    if (on_error) on_error(describe_error(error));
  }
}

void Session::become(const std::string& text, const std::string& name) {
  if (current_ == nullptr) return;
  const std::string before = current_->document.text();
  if (current_->document.replace(text)) stepped(before, true, name);
}

void Session::set_notes(std::vector<Note> notes, const std::string& name) {
  if (current_ == nullptr || notes == current_->notes) return;
  current_->history.push(new NoteStep(*this, *current_, std::move(notes), QString::fromStdString(name)));
  tell_variants();
}

void Session::undo() {
  if (current_ != nullptr) current_->history.undo();
}

void Session::redo() {
  if (current_ != nullptr) current_->history.redo();
}

void Session::set_range(ReadRange range) {
  if (current_ == nullptr) return;
  range_ = current_->range = range;
  edited();
}

void Session::ask() {
  if (!opening_ && current_ == nullptr) return;
  quiet_.stop();
  busy_ = true;
  const ScenarioDocument& document = opening_ ? opening_->document : current_->document;
  simulation_->ask({document.text(), document.name(), document.folder()}, opening_ ? opening_->range : range_);
  if (on_state) on_state();
}

void Session::pin() {
  if (outcome_ == nullptr || current_ == nullptr) return;
  if (baseline_ == outcome_) {
    baseline_ = nullptr;
    baseline_sensitivity_ = nullptr;
    pinned_.reset();
  } else {
    baseline_ = outcome_;
    baseline_sensitivity_ = sensitivity_;
    pinned_ = ScenarioDocument(outcome_->scenario.text, "", outcome_->scenario.folder);
  }
  if (on_document) on_document();
  if (on_outcome) on_outcome();
}

void Session::want_sensitivity(bool wanted, bool small_alone) {
  wants_sensitivity_ = wanted;
  small_alone_ = small_alone;
  ask_sensitivity();
}

void Session::ask_sensitivity() {
  if (outcome_ == nullptr || (small_alone_ && outcome_->trace().ops.size() >= small_outcome)) return;
  if (wants_sensitivity_ && sensitivity_ == nullptr && !busy_ && !stale_) simulation_->ask_sensitivity(outcome_);
}

void Session::cancel() {
  quiet_.stop();
  opening_.reset();
  simulation_->cancel();
  busy_ = false;
  if (on_state) on_state();
}

}  // namespace spillway::gui
