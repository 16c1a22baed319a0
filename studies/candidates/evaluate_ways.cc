#include "studies/candidates/evaluate_ways.h"

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "scenario/shared_machines.h"

namespace spillway::studies {
namespace {

// Of this thread.
double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string words(const InputError& error) {
  return (error.place().empty() ? "" : error.place() + ": ") + error.cause();
}

bool goes_on() {
  const std::atomic<bool>* const stop = current_stop();
  return stop == nullptr || !*stop;
}

class Evaluation {
 public:
  Evaluation(const WaysScenario& scenario, std::span<const Way> ways, const WaysOptions& options)
      : base_(scenario), options_(options), rows_(ways.size()), scenarios_(ways.size()) {
    for (std::size_t i = 0; i < ways.size(); ++i) rows_[i].way = ways[i];
  }

  std::vector<WayRow> run() {
    group();
    in_parallel(groups_.size(), [this](std::size_t i) { run_group(groups_[i]); });
    return std::move(rows_);
  }

 private:
  struct Group {
    std::vector<std::size_t> rows;  // of one step
  };

  void group() {
    std::map<std::string, std::size_t> by_key;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      try {
        scenarios_[i] = scenario_of(base_, rows_[i].way.settings);
        scenarios_[i].imported.tells_amounts = false;
      } catch (const InputError& error) {
        refuse(i, error);
        continue;
      }
      const auto [at, is_new] = by_key.emplace(step_key(scenarios_[i]), groups_.size());
      if (is_new) groups_.emplace_back();
      groups_[at->second].rows.push_back(i);
    }
  }

  // The step of a group: made by the first way whose replay isn't kept.
  class Step {
   public:
    template <class Make>
    const Trace& get(const Make& make) {
      const std::lock_guard lock(mutex_);
      if (!step_ && !failure_) {
        try {
          step_ = make();
        } catch (const InputError&) {
          failure_ = std::current_exception();
        }
      }
      if (failure_) std::rethrow_exception(failure_);
      return *step_;
    }

   private:
    std::mutex mutex_;
    std::optional<Trace> step_;
    std::exception_ptr failure_;
  };

  void run_group(const Group& group) {
    if (stopped_) return;
    Step step;
    // What all share is made before its ways are spread: a thread that waited for it within would take up others.
    const auto needs_step = [this](std::size_t row) {
      return !may_fold(scenarios_[row]) && !is_kept(options_.store, scenarios_[row], options_.detail);
    };
    if (std::any_of(group.rows.begin(), group.rows.end(), needs_step) && !make(step, group)) return;
    in_parallel(group.rows.size(), [&](std::size_t i) {
      // A thread that waits inside a planner takes up no other way, whose time would count as this one's.
      oneapi::tbb::this_task_arena::isolate([&] { run_row(group.rows[i], step); });
    });
  }

  // False: it can't be, or it was stopped.
  bool make(Step& step, const Group& group) {
    try {
      step.get([&] { return step_of(scenarios_[group.rows.front()]); });
      return true;
    } catch (const Cancelled&) {
      stopped_ = true;
    } catch (const InputError& error) {
      for (const std::size_t row : group.rows) refuse(row, error);
    }
    return false;
  }

  Trace step_of(const Scenario& scenario) {
    if (scenario.model.empty()) return read_captured(scenario, {.progress = [](auto, auto) { return goes_on(); }});
    return generated_step(scenario, find_model(scenario.model), *machines_.of(scenario));
  }

  // Of few of its micro-batches: making these is no work to share.
  KeptReplay folded(const Scenario& scenario) {
    return kept_brief_replay(options_.store, scenario, options_.detail, [&] {
      return run_briefly(scenario, find_model(scenario.model), *machines_.of(scenario), options_.detail);
    });
  }

  void run_row(std::size_t index, Step& step) {
    if (stopped_) return;
    const Scenario& scenario = scenarios_[index];
    WayRow& row = rows_[index];
    try {
      const double begin = cpu_seconds();
      HardwareProfile hardware = scenario.model.empty() ? HardwareProfile() : machines_.of(scenario)->hardware;
      KeptReplay replay =
          may_fold(scenario) ? folded(scenario) : kept_replay(options_.store, scenario, options_.detail, [&] {
            const Trace& made = step.get([&] { return step_of(scenario); });
            if (!scenario.model.empty())
              return load(scenario, find_model(scenario.model), *machines_.of(scenario), made);
            LoadedScenario loaded = load_captured(scenario, made);
            hardware = loaded.hardware;
            return loaded;
          });
      const double seconds = cpu_seconds() - begin;
      row = row_of(std::move(row.way), hardware, std::move(replay));
      row.planning_seconds = seconds;
    } catch (const Cancelled&) {
      stopped_ = true;
      return;
    } catch (const InputError& error) {
      return refuse(index, error);
    }
    done(row);
  }

  void refuse(std::size_t index, const InputError& error) {
    rows_[index].is_done = true;
    rows_[index].error = words(error);
    done(rows_[index]);
  }

  void done(const WayRow& row) {
    const std::lock_guard lock(one_at_a_time_);
    ++done_;
    if (options_.progress && !options_.progress(row, done_, rows_.size())) stopped_ = true;
  }

  const WaysScenario& base_;
  const WaysOptions& options_;
  std::vector<WayRow> rows_;
  std::vector<Scenario> scenarios_;  // by row
  std::vector<Group> groups_;        // in the order of their first rows
  SharedMachines machines_;
  std::atomic<bool> stopped_ = false;
  std::mutex one_at_a_time_;
  std::size_t done_ = 0;
};

}  // namespace

WaysScenario ways_scenario(const std::string& path) {
  namespace fs = std::filesystem;
  if (is_scenario_file(path)) return {scenario_text(path), path, fs::path(path).parent_path().string()};
  const nlohmann::ordered_json text = {{"schema", "spillway-scenario"},
                                       {"version", scenario_version},
                                       {"title", fs::path(path).filename().string()},
                                       {"trace", fs::absolute(path).string()}};
  return {text.dump(), path, ""};
}

Scenario scenario_of(const WaysScenario& scenario, std::span<const std::string> settings) {
  Scenario parsed = parse_scenario(scenario.text, scenario.path, scenario.folder, settings);
  if (parsed.title.empty()) parsed.title = std::filesystem::path(scenario.path).stem().string();
  return parsed;
}

std::vector<WayRow> evaluate_ways(const WaysScenario& scenario, std::span<const Way> ways, const WaysOptions& options) {
  return Evaluation(scenario, ways, options).run();
}

}  // namespace spillway::studies
