#include "studies/candidates/evaluate.h"

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
#include "base/named_file.h"
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

BriefRun run_of(LoadedScenario loaded, Detail detail) {
  loaded.options.memory.detail = detail;
  ScenarioRun run = run_traced(loaded);
  return {std::move(loaded), std::move(run)};
}

Scenario edited(const BaseScenario& base, const Candidate& candidate) {
  Scenario scenario = scenario_of(base, candidate.edits);
  scenario.imported.tells_amounts = false;
  return scenario;
}

ModelSpec model_of(const Scenario& scenario, const EvaluateOptions& options) {
  if (options.models != nullptr)
    if (const auto own = options.models->find(scenario.model); own != options.models->end()) return own->second;
  return find_model(scenario.model);
}

bool goes_on() {
  const std::atomic<bool>* const stop = current_stop();
  return stop == nullptr || !*stop;
}

class Evaluation {
 public:
  Evaluation(const BaseScenario& scenario, std::span<const Candidate> candidates, const EvaluateOptions& options)
      : base_(scenario), options_(options), rows_(candidates.size()), scenarios_(candidates.size()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) rows_[i].candidate = candidates[i];
  }

  std::vector<Row> run() {
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
        scenarios_[i] = edited(base_, rows_[i].candidate);
      } catch (const InputError& error) {
        refuse(i, error);
        continue;
      }
      const auto [at, is_new] = by_key.emplace(step_key(scenarios_[i]), groups_.size());
      if (is_new) groups_.emplace_back();
      groups_[at->second].rows.push_back(i);
    }
  }

  // The step of a group: made by the first candidate whose replay isn't kept.
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
    // What all share is made before its candidates are spread: a thread that waited for it within would take up others.
    const auto needs_step = [this](std::size_t row) {
      return !folds(scenarios_[row]) && !is_kept(options_.store, scenarios_[row], options_.detail);
    };
    if (std::any_of(group.rows.begin(), group.rows.end(), needs_step) && !make(step, group)) return;
    in_parallel(group.rows.size(), [&](std::size_t i) {
      // A thread that waits inside a planner takes up no other candidate, whose time would count as this one's.
      oneapi::tbb::this_task_arena::isolate([&] { run_row(group.rows[i], step); });
    });
  }

  // What can't be asked fails when it is run.
  [[nodiscard]] bool folds(const Scenario& scenario) const {
    try {
      return !scenario.model.empty() && may_fold(scenario, model_of(scenario, options_));
    } catch (const InputError&) {
      return false;
    }
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

  void run_row(std::size_t index, Step& step) {
    if (stopped_) return;
    const Scenario& scenario = scenarios_[index];
    Row& row = rows_[index];
    try {
      const double begin = cpu_seconds();
      row = evaluate_one(scenario, row.candidate, machines_, options_,
                         [&]() -> const Trace& { return step.get([&] { return step_of(scenario); }); });
      row.planning_seconds = cpu_seconds() - begin;
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
    rows_[index].error = told(error);
    done(rows_[index]);
  }

  void done(const Row& row) {
    const std::lock_guard lock(one_at_a_time_);
    ++done_;
    if (options_.progress && !options_.progress(row, done_, rows_.size())) stopped_ = true;
  }

  const BaseScenario& base_;
  const EvaluateOptions& options_;
  std::vector<Row> rows_;
  std::vector<Scenario> scenarios_;  // by row
  std::vector<Group> groups_;        // in the order of their first rows
  SharedMachines machines_;
  std::atomic<bool> stopped_ = false;
  std::mutex one_at_a_time_;
  std::size_t done_ = 0;
};

}  // namespace

BaseScenario base_scenario(const std::string& path) {
  namespace fs = std::filesystem;
  if (is_scenario_file(path)) return {scenario_text(path), path, fs::path(path).parent_path().string()};
  const nlohmann::ordered_json text = {{"schema", "spillway-scenario"},
                                       {"version", scenario_version},
                                       {"title", file_title(path)},
                                       {"trace", fs::absolute(path).string()}};
  return {text.dump(), path, ""};
}

Scenario scenario_of(const BaseScenario& scenario, std::span<const std::string> edits) {
  Scenario parsed = parse_scenario(scenario.text, scenario.path, scenario.folder, edits);
  if (parsed.title.empty()) parsed.title = std::filesystem::path(scenario.path).stem().string();
  return parsed;
}

std::vector<Row> evaluate(const BaseScenario& scenario, std::span<const Candidate> candidates,
                          const EvaluateOptions& options) {
  return Evaluation(scenario, candidates, options).run();
}

std::string told(const InputError& error) {
  return (error.place().empty() ? "" : error.place() + ": ") + error.cause();
}

Row evaluate_one(const Scenario& scenario, Candidate candidate, SharedMachines& machines,
                 const EvaluateOptions& options, const std::function<const Trace&()>& step) {
  std::shared_ptr<const HardwareProfile> hardware;
  std::function<BriefRun()> run;
  if (scenario.model.empty()) {
    run = [&] {
      LoadedScenario loaded = step ? load_captured(scenario, step()) : load(scenario);
      hardware = std::make_shared<const HardwareProfile>(loaded.hardware);
      return run_of(std::move(loaded), options.detail);
    };
  } else {
    const auto machine = machines.of(scenario);
    hardware = {machine, &machine->hardware};
    run = [&, machine] {
      const ModelSpec model = model_of(scenario, options);
      if (step && !may_fold(scenario, model)) return run_of(load(scenario, model, *machine, step()), options.detail);
      return run_briefly(scenario, model, *machine, options.detail);
    };
  }
  KeptReplay replay = kept_brief_replay(options.store, scenario, options.detail, run);
  return row_of(std::move(candidate), std::move(hardware), std::move(replay));
}

Row evaluate_one(const BaseScenario& scenario, Candidate candidate, SharedMachines& machines,
                 const EvaluateOptions& options) {
  try {
    return evaluate_one(edited(scenario, candidate), candidate, machines, options);
  } catch (const InputError& error) {
    Row row;
    row.candidate = std::move(candidate);
    row.is_done = true;
    row.error = told(error);
    return row;
  }
}

}  // namespace spillway::studies
