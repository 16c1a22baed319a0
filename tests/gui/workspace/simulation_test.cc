#include "gui/workspace/simulation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/byte_source.h"
#include "base/stop.h"
#include "gui/workspace/shown_figures.h"
#include "scenario/drawn_run.h"
#include "studies/offload/result_figures.h"
#include "studies/offload/ssd_answer.h"

namespace spillway::gui {
namespace {

constexpr const char* small_step =
    R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256},)"
    R"( "hardware": {"profile": "rtx-4090"}})";

// Stands for the window's thread: runs what the worker posts when the test asks for it.
class Desk {
 public:
  Worker::Post post() {
    return [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      posted_.notify_all();
    };
  }
  template <class Done>
  void run_until(Done done) {
    while (!done()) {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
};

struct Seen {
  std::shared_ptr<const Outcome> outcome;
  std::vector<std::uint64_t> outcomes, failures;
  SimulationError error;
  std::shared_ptr<const Sensitivity> sensitivity;
  Simulation::Answers answers() {
    Simulation::Answers answers;
    answers.outcome = [this](std::shared_ptr<const Outcome> found) {
      outcomes.push_back(found->generation);
      outcome = std::move(found);
    };
    answers.failed = [this](std::uint64_t generation, const SimulationError& what) {
      failures.push_back(generation);
      error = what;
    };
    answers.sensitivity = [this](std::shared_ptr<const Sensitivity> found) { sensitivity = std::move(found); };
    answers.progress = [](std::uint64_t, const std::string&, double) {};
    return answers;
  }
};

// A step of very many micro-batches is drawn by few of them; its figures, tables and files are of all.
TEST(Simulation, ALargeStepIsDrawnInPart) {
  const std::string large =
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 2, "sequence": 256,)"
      R"( "gradient_accumulation": 4100}, "hardware": {"profile": "rtx-4090"}})";
  std::shared_ptr<const CapturedTrace> captured;
  const std::shared_ptr<Outcome> outcome = simulate({large, "large", ""}, {}, captured, {});
  const std::int64_t left_out = micro_batches_left_out(outcome->loaded);
  EXPECT_GT(left_out, 4000);
  EXPECT_EQ(drawn_words(outcome->loaded), std::to_string(4100 - left_out) + " of 4100 micro-batches");
  EXPECT_EQ(outcome->fullest.memory->whole.end, outcome->timeline.whole.end);
  const std::vector<studies::KindRow> kinds = all_work(outcome->timeline, outcome->trace(), outcome->result()).kinds();
  bool is_there = false;
  use_whole(*outcome, [&](const LoadedScenario& loaded, const ScenarioRun& whole) {
    is_there = true;
    EXPECT_LT(outcome->trace().ops.size() * 20, loaded.trace.ops.size());
    EXPECT_LT(outcome->timeline.whole.end * 20, whole.result.replayed.count());
    EXPECT_EQ(outcome->result().fingerprint, whole.result.fingerprint);
    EXPECT_EQ(outcome->result().step_time, whole.result.step_time);
    EXPECT_EQ(outcome->result().memory.peak_reserved, whole.result.memory.peak_reserved);
    const TimelineScene all = timeline_scene(loaded.trace, whole.result);
    const std::vector<studies::KindRow> expected = work_in(all, loaded.trace, all.whole).kinds();
    ASSERT_EQ(kinds.size(), expected.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      EXPECT_EQ(kinds[i].name, expected[i].name);
      EXPECT_EQ(kinds[i].count, expected[i].count) << kinds[i].name;
      EXPECT_EQ(kinds[i].total, expected[i].total) << kinds[i].name;
    }
  });
  EXPECT_TRUE(is_there);
}

// The window's figures are those of the command line's replay of the same scenario.
TEST(Simulation, AnswersAreThoseOfTheReplay) {
  Desk desk;
  Seen seen;
  Simulation simulation(seen.answers(), desk.post());
  simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
  const Result expected = run(load(parse_scenario(small_step, "step", "")));
  EXPECT_EQ(seen.outcome->result().fingerprint, expected.fingerprint);
  EXPECT_EQ(seen.outcome->result().step_time, expected.step_time);
  const auto figures = shown_figures(*seen.outcome, nullptr);
  EXPECT_EQ(figures.front().value, verdict_sentence(expected));
  EXPECT_EQ(seen.outcome->fullest.memory->allocated.peak(), expected.memory.peak_allocated.count());
}

// The same drives live as long here as a report on them says, of all GPUs of the machine together.
TEST(Simulation, DrivesLiveAsLongAsReportsSay) {
  const std::string text =
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 2, "sequence": 1024,)"
      R"( "micro_batch": 8, "data_parallel": 8}, "hardware": {"profile": "dgx-a100"}, "offload": {"technique":)"
      R"( "ssdtrain", "least_elements": 100000, "adaptive": false, "drives": "micron-9550-max-6.4tb",)"
      R"( "drives_per_machine": 4}})";
  std::shared_ptr<const CapturedTrace> captured;
  const std::shared_ptr<Outcome> outcome = simulate({text, "drives.json", ""}, {}, captured, {});
  studies::SsdQuestion question;
  question.replays = true;
  const studies::SsdAnswer answer = studies::answer_ssd(outcome->loaded, outcome->run, question);
  ASSERT_EQ(answer.drives.size(), 1U);
  EXPECT_EQ(answer.drives[0].sharers, 8);
  EXPECT_GT(answer.drives[0].years, 0);
  bool told = false;
  for (const ShownFigure& figure : shown_figures(*outcome, nullptr)) {
    if (figure.value != fmt::format("{:.3g} years", answer.drives[0].years)) continue;
    EXPECT_NE(figure.detail.find("4 x micron-9550-max-6.4tb per machine"), std::string::npos) << figure.detail;
    told = true;
  }
  EXPECT_TRUE(told);
}

// Of many questions in a row only the last is answered, whatever was begun before it.
TEST(Simulation, OnlyTheNewestIsAnswered) {
  Desk desk;
  Seen seen;
  Simulation simulation(seen.answers(), desk.post());
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) last = simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
  EXPECT_EQ(seen.outcomes, (std::vector<std::uint64_t>{last}));
}

TEST(Simulation, ErrorsSayWhatAndHowToMendIt) {
  Desk desk;
  Seen seen;
  Simulation simulation(seen.answers(), desk.post());
  simulation.ask({R"({"schema": "spillway-scenario", "version": 99})", "future.json", ""});
  desk.run_until([&] { return !seen.failures.empty(); });
  EXPECT_NE(seen.error.title.find("version 99 is newer"), std::string::npos) << seen.error.title;
  EXPECT_FALSE(seen.error.remedy.empty());
  simulation.ask({R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},)"
                  R"( "hardware": {"profile": "/deleted/profile.json"}})",
                  "x", ""});
  desk.run_until([&] { return seen.failures.size() == 2; });
  EXPECT_NE(seen.error.title.find("/deleted/profile.json"), std::string::npos) << seen.error.title;
  // And it goes on.
  simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
}

// What was cancelled never arrives; the next question does.
TEST(Simulation, CancelledAnswersDoNotCome) {
  Desk desk;
  Seen seen;
  Simulation simulation(seen.answers(), desk.post());
  simulation.ask({small_step, "step", ""});
  simulation.cancel();
  const std::uint64_t next = simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
  EXPECT_EQ(seen.outcomes, (std::vector<std::uint64_t>{next}));
}

// Ends while a replay is under way: the worker is waited for, and what it posts is never run.
TEST(Simulation, EndsWhileBusy) {
  Desk desk;
  Seen seen;
  {
    Simulation simulation(seen.answers(), desk.post());
    simulation.ask({small_step, "step", ""});
  }
  EXPECT_TRUE(seen.outcomes.empty());
}

// What is under way stops when something newer is asked for, or the window goes: this step takes far longer than the
// tests may when it is replayed to its end, again and again.
constexpr const char* long_step =
    R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256,)"
    R"( "gradient_accumulation": 16000}, "hardware": {"profile": "rtx-4090"}})";

TEST(Simulation, EditsStopASimulation) {
  Desk desk;
  Seen seen;
  std::string part;
  Simulation::Answers answers = seen.answers();
  answers.progress = [&part](std::uint64_t, const std::string& at, double) { part = at; };
  Simulation simulation(std::move(answers), desk.post());
  for (int edit = 0; edit < 30; ++edit) {
    simulation.ask({long_step, "step", ""});
    if (edit % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // somewhere in its generation
  }
  const std::uint64_t last = simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
  EXPECT_EQ(seen.outcomes, (std::vector<std::uint64_t>{last}));
  EXPECT_EQ(part, "drawing");
}

TEST(Simulation, EndsInTheMiddleOfAReplay) {
  for (int trial = 0; trial < 10; ++trial) {
    Desk desk;
    Seen seen;
    bool replays = false;
    Simulation::Answers answers = seen.answers();
    answers.progress = [&replays](std::uint64_t, const std::string& at, double) { replays = at == "replaying"; };
    Simulation simulation(std::move(answers), desk.post());
    simulation.ask({small_step, "step", ""});
    desk.run_until([&] { return replays; });
  }
}

// What explain() spreads over threads stops with the thread that asked for it.
TEST(Simulation, SensitivityStopsToo) {
  const LoadedScenario loaded = load(parse_scenario(small_step, "step", ""));
  const Result result = run(loaded);
  const std::atomic<bool> wanted = true;
  const StopScope scope(&wanted);
  EXPECT_THROW(static_cast<void>(explain(loaded, result)), Cancelled);
}

TEST(Simulation, SensitivityIsThatOfExplain) {
  Desk desk;
  Seen seen;
  Simulation simulation(seen.answers(), desk.post());
  simulation.ask({small_step, "step", ""});
  desk.run_until([&] { return seen.outcome != nullptr; });
  simulation.ask_sensitivity(seen.outcome);
  desk.run_until([&] { return seen.sensitivity != nullptr; });
  const LoadedScenario loaded = load(parse_scenario(small_step, "step", ""));
  const std::vector<Relaxation> expected = explain(loaded, run(loaded));
  ASSERT_EQ(seen.sensitivity->relaxations.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(seen.sensitivity->relaxations[i].step_time, expected[i].step_time);
  EXPECT_FALSE(seen.sensitivity->knobs.empty());
}

}  // namespace
}  // namespace spillway::gui
