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
}

Session::~Session() { simulation_.reset(); }

Simulation::Post Session::post() {
  return [context = &context_](std::function<void()> work) {
    QMetaObject::invokeMethod(context, std::move(work), Qt::QueuedConnection);
  };
}

void Session::open(ScenarioDocument document, ReadRange range) {
  document_ = std::move(document);
  range_ = range;
  outcome_ = nullptr;
  sensitivity_ = nullptr;
  if (on_document) on_document();
  stale_ = true;
  edited_at_ = QDateTime::currentMSecsSinceEpoch();
  ask();
}

void Session::close() {
  cancel();
  document_.reset();
  outcome_ = nullptr;
  stale_ = false;
}

void Session::edited() {
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
  if (!document_) return;
  quiet_.stop();
  busy_ = true;
  asked_ = simulation_->ask({document_->text(), document_->name(), document_->folder()}, range_);
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
  simulation_->cancel();
  busy_ = false;
  if (on_state) on_state();
}

}  // namespace spillway::gui
