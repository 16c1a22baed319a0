#include "gui/workspace/worker.h"

#include <QCoreApplication>
#include <QMetaObject>
#include <new>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/stop.h"

namespace spillway::gui {

SimulationError describe_error(const std::exception& error) {
  if (const auto* input = dynamic_cast<const InputError*>(&error)) {
    std::string title = input->file();
    if (!input->place().empty()) title += (title.empty() ? "" : ", ") + input->place();
    return {title.empty() ? input->cause() : title + ": " + input->cause(), input->remedy()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {"this computer has too little memory for it", "read a shorter range of the trace, or close other programs"};
  return {std::string("internal error: ") + error.what(), "save the scenario and report it"};
}

void Worker::Task::post(std::function<void()> then) const {
  post_([stop = stop_, then = std::move(then)] {
    if (!stop->load()) then();
  });
}

Worker::Worker(int threads, Post post) : post_(std::move(post)) {
  pool_.setMaxThreadCount(threads);
  if (!post_)
    post_ = [](std::function<void()> work) {
      QMetaObject::invokeMethod(QCoreApplication::instance(), std::move(work), Qt::QueuedConnection);
    };
}

Worker::~Worker() {
  stop();
  pool_.waitForDone();
}

void Worker::stop() {
  if (newest_ != nullptr) *newest_ = true;
  is_running_ = false;
}

void Worker::start(Work work) {
  stop();
  newest_ = std::make_shared<std::atomic<bool>>(false);
  is_running_ = true;
  pool_.start([this, stop = newest_, work = std::move(work)] {
    if (stop->load()) return;
    const StopScope scope(stop.get());
    const Task task(post_, stop);
    try {
      work(task);
    } catch (const Cancelled&) {  // by whoever waits for it no more
    } catch (const std::exception& error) {
      task.post([this, described = describe_error(error)] {
        if (on_failed) on_failed(described);
      });
    }
    task.post([this] {
      is_running_ = false;
      if (on_end) on_end();
    });
  });
}

void Worker::release(std::shared_ptr<const void> what) {
  if (what == nullptr) return;
  pool_.start([what = std::move(what)]() mutable { what.reset(); });
}

}  // namespace spillway::gui
