// All background work of the window: on separate threads, stopped when something newer is asked for. Its words are
// delivered on the window's thread, and only while nothing newer was asked for.
//
//   start(1) start(2) start(3)     1 is under way and stopped, 2 is never begun, 3 begins when a thread is free
//
// Stopping waits for nothing: what is under way ends by itself, soon after (base/stop.h). All members are the window's
// thread's to call; Task is for the work.
#pragma once

#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace spillway::gui {

struct SimulationError {
  std::string title, remedy;  // what is wrong and where; how to fix it
};
// The fault in a sentence, the remedy in another.
SimulationError describe_error(const std::exception& error);

class Worker {
 public:
  // Has a function run on the window's thread, later.
  using Post = std::function<void(std::function<void()>)>;
  using Stop = std::shared_ptr<std::atomic<bool>>;

  class Task {
   public:
    Task(const Post& post, Stop stop) : post_(post), stop_(std::move(stop)) {}
    [[nodiscard]] bool is_stopped() const { return stop_->load(); }
    // On the window's thread, unless it is stopped by then. In the order of the calls.
    void post(std::function<void()> then) const;

   private:
    const Post& post_;
    Stop stop_;
  };
  // Runs in a StopScope. on_failed gets what it throws, except Cancelled.
  using Work = std::function<void(const Task&)>;

  // threads: more than one where what is newer need not wait until the older has stopped. post: empty: the
  // application's queue.
  explicit Worker(int threads = 1, Post post = {});
  // Stops what is under way, and waits until it has.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // In place of what was asked for before.
  void start(Work work);
  // Nothing more is heard of what is under way, not even that it ended.
  void stop();
  [[nodiscard]] bool is_running() const { return is_running_; }
  // Frees it on a thread, if nobody else holds it: gigabytes take longer than a window may stand still.
  void release(std::shared_ptr<const void> what);

  std::function<void(const SimulationError&)> on_failed;
  std::function<void()> on_end;  // after everything that it posted

 private:
  Post post_;
  Stop newest_;  // of what was asked for last; also when it has ended: its words may still be on their way
  bool is_running_ = false;
  QThreadPool pool_;
};

}  // namespace spillway::gui
