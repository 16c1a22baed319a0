#include "gui/workspace/worker.h"

#include <gtest/gtest.h>

#include <QTest>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/stop.h"

namespace spillway::gui {
namespace {

constexpr int patience_ms = 60'000;

void until_stopped() {
  while (true) {
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Words come in their order, on this thread, and then the end.
TEST(Worker, DeliversInOrder) {
  Worker worker;
  std::vector<int> seen;
  bool ended = false;
  const auto here = std::this_thread::get_id();
  worker.on_end = [&] { ended = true; };
  worker.start([&](const Worker::Task& task) {
    EXPECT_NE(std::this_thread::get_id(), here);
    for (int i = 0; i < 100; ++i)
      task.post([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_FALSE(ended);
        seen.push_back(i);
      });
  });
  EXPECT_TRUE(worker.is_running());
  ASSERT_TRUE(QTest::qWaitFor([&] { return ended; }, patience_ms));
  EXPECT_FALSE(worker.is_running());
  ASSERT_EQ(seen.size(), 100U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

// What is newer takes the place of what is older, wherever that is; only it is heard.
TEST(Worker, OnlyTheNewestIsHeard) {
  for (const int threads : {1, 2}) {
    Worker worker(threads);
    std::vector<int> seen;
    int ends = 0;
    worker.on_end = [&] { ++ends; };
    for (int i = 0; i < 50; ++i)
      worker.start([&, i](const Worker::Task& task) {
        task.post([&, i] { seen.push_back(i); });
        if (i < 49) until_stopped();
      });
    ASSERT_TRUE(QTest::qWaitFor([&] { return ends > 0; }, patience_ms));
    EXPECT_EQ(seen, (std::vector<int>{49}));
    EXPECT_EQ(ends, 1);
  }
}

TEST(Worker, StoppingIsAtOnceAndSilent) {
  Worker worker;
  bool heard = false;
  worker.on_end = [&] { heard = true; };
  worker.on_failed = [&](const SimulationError&) { heard = true; };
  worker.start([&](const Worker::Task& task) {
    task.post([&] { heard = true; });
    until_stopped();
  });
  worker.stop();
  EXPECT_FALSE(worker.is_running());
  QTest::qWait(50);
  EXPECT_FALSE(heard);
}

TEST(Worker, ErrorsAreTold) {
  Worker worker;
  std::string title;
  bool ended = false;
  worker.on_failed = [&](const SimulationError& error) { title = error.title; };
  worker.on_end = [&] { ended = true; };
  worker.start([](const Worker::Task&) { throw std::runtime_error("the disk is gone"); });
  ASSERT_TRUE(QTest::qWaitFor([&] { return ended; }, patience_ms));
  EXPECT_NE(title.find("the disk is gone"), std::string::npos);
  ended = false;
  worker.start([](const Worker::Task&) {});  // and it goes on
  ASSERT_TRUE(QTest::qWaitFor([&] { return ended; }, patience_ms));
}

// Ends with work under way, and with words on their way.
TEST(Worker, EndsWhileBusy) {
  bool heard = false;
  {
    Worker worker(2);
    worker.start([&](const Worker::Task& task) {
      task.post([&] { heard = true; });
      until_stopped();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  QTest::qWait(20);
  EXPECT_FALSE(heard);
}

// Words that a word leaves behind come after the end; the worker may be gone by then.
TEST(Worker, WordsAfterTheEndAreNotSaidToNobody) {
  bool ended = false, heard = false;
  {
    Worker worker;
    worker.on_end = [&] { ended = true; };
    worker.start([&](const Worker::Task& task) {
      task.post([&heard, task] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until the end is on its way
        task.post([&heard] { heard = true; });
      });
    });
    while (!ended) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 1);
    if (heard) return;  // it came in the same turn
  }
  QTest::qWait(20);
  EXPECT_FALSE(heard);
}

// The window has no other threads than these.
TEST(Worker, IsTheOnlyOne) {
  const std::filesystem::path folder = std::filesystem::path(std::getenv("SPILLWAY_SOURCE_ROOT")) / "gui";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with("worker.")) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const char* const word : {"std::thread", "QThread", "invokeMethod"})
      EXPECT_EQ(text.str().find(word), std::string::npos) << entry.path() << " has " << word;
  }
}

}  // namespace
}  // namespace spillway::gui
