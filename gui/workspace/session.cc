#include "gui/workspace/session.h"

#include <QDateTime>
#include <QMetaObject>
#include <utility>

namespace spillway::gui {
namespace {

constexpr int quiet_ms = 40;

}  // namespace

Session::Session() {
  quiet_.setSingleShot(true);
  quiet_.setInterval(quiet_ms);
  QObject::connect(&quiet_, &QTimer::timeout, &context_, [this] { ask(); });
  Simulation::Answers answers;
  answers.outcome = [this](std::shared_ptr<const Outcome> outcome) {
    if (opening_) replace(*std::exchange(opening_, std::nullopt));
    simulation_->drop(std::exchange(outcome_, std::move(outcome)));
    sensitivity_ = nullptr;
    busy_ = false;
    stale_ = quiet_.isActive();
    milliseconds_ = static_cast<double>(QDateTime::currentMSecsSinceEpoch() - edited_at_);
    if (on_outcome) on_outcome();
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
  simulation_ = std::make_unique<Simulation>(post(), std::move(answers));
  Simulation::Answers previews;
  previews.outcome = [this](std::shared_ptr<const Outcome> outcome) {
    previews_->drop(std::exchange(previewed_, std::move(outcome)));
    if (on_preview) on_preview();
  };
  previews.failed = [](std::uint64_t /*generation*/, const SimulationError& /*error*/) {};  // its row says why
  previews.sensitivity = [](const std::shared_ptr<const Sensitivity>& /*found*/) {};
  previews.progress = [](std::uint64_t /*generation*/, const std::string& /*part*/, double /*fraction*/) {};
  previews_ = std::make_unique<Simulation>(post(), std::move(previews));
}

Session::~Session() {
  previews_.reset();
  simulation_.reset();
}

void Session::preview(const std::string& text) {
  previews_->cancel();
  if (!text.empty() && document_) {
    previews_->ask({text, document_->name(), document_->folder()}, range_);
    return;
  }
  if (previewed_ == nullptr) return;
  previews_->drop(std::exchange(previewed_, nullptr));
  if (on_preview) on_preview();
}

void Session::become(const std::string& text) {
  if (!document_) return;
  if (document_->replace(text)) edited();
}

Simulation::Post Session::post() {
  return [context = &context_](std::function<void()> work) {
    QMetaObject::invokeMethod(context, std::move(work), Qt::QueuedConnection);
  };
}

void Session::open(ScenarioDocument document, ReadRange range) {
  opening_ = Opening{std::move(document), range};
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  ask();
}

void Session::adopt(ScenarioDocument document) {
  opening_.reset();
  replace({std::move(document), {}});
  stale_ = true;
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  ask();
}

void Session::replace(Opening by) {
  // A baseline of another file says nothing of this one; a point of a sweep is compared with what it was swept from.
  if (!by.document.file().empty() && baseline_ != nullptr) {
    baseline_sensitivity_ = nullptr;
    pinned_.reset();
    simulation_->drop(std::exchange(baseline_, nullptr));
  }
  document_ = std::move(by.document);
  range_ = by.range;
  simulation_->drop(std::exchange(outcome_, nullptr));
  sensitivity_ = nullptr;
  if (on_opened) on_opened();
  if (on_document) on_document();
}

void Session::edited() {
  if (std::exchange(opening_, std::nullopt)) {
    simulation_->cancel();
    busy_ = false;
  }
  stale_ = true;
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  quiet_.start();
  if (on_document) on_document();
  if (on_state) on_state();
}

void Session::edit(const std::string& key, const std::string& value, bool goes_on) {
  if (!document_) return;
  try {
    if (document_->set(key, value, goes_on)) edited();
  } catch (const std::exception& error) {
    if (on_error) on_error(describe_error(error));
  }
}

void Session::undo() {
  if (document_ && document_->undo()) edited();
}

void Session::redo() {
  if (document_ && document_->redo()) edited();
}

void Session::set_range(ReadRange range) {
  if (!document_) return;
  range_ = range;
  edited();
}

void Session::ask() {
  if (!opening_ && !document_) return;
  quiet_.stop();
  busy_ = true;
  const ScenarioDocument& document = opening_ ? opening_->document : *document_;
  simulation_->ask({document.text(), document.name(), document.folder()}, opening_ ? opening_->range : range_);
  if (on_state) on_state();
}

void Session::pin() {
  if (outcome_ == nullptr || !document_) return;
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

void Session::want_sensitivity(bool wanted) {
  wants_sensitivity_ = wanted;
  ask_sensitivity();
}

void Session::ask_sensitivity() {
  if (wants_sensitivity_ && outcome_ != nullptr && sensitivity_ == nullptr && !busy_ && !stale_)
    simulation_->ask_sensitivity(outcome_);
}

void Session::cancel() {
  quiet_.stop();
  opening_.reset();
  simulation_->cancel();
  busy_ = false;
  if (on_state) on_state();
}

}  // namespace spillway::gui
