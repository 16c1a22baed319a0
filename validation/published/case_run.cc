#include "validation/published/case_run.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/parallel.h"
#include "scenario/brief_run.h"
#include "scenario/figure_range.h"
#include "scenario/shared_machines.h"
#include "validation/published/case_work.h"
#include "validation/published/several_steps.h"

namespace spillway::validation {
namespace {

// A set-up and the outcomes that wait for its replay, or for the replays of one metric.
struct Group {
  const CaseFile* file = nullptr;
  std::vector<CaseOutcome*> outcomes;
  double work = 0;
};

std::string reason(const InputError& error) {
  std::string text = error.cause();
  if (!error.place().empty()) text = error.place() + ": " + text;
  return error.remedy().empty() ? text : text + "; " + error.remedy();
}

// What was measured did fit: nothing is kept free for what it took beside the allocator.
BriefRun run_case(const CaseFile& file, Scenario scenario, SharedMachines& machines) {
  if (scenario.reserve.empty()) scenario.reserve.assign(1, '0');  // not = "0": a false -Wrestrict of gcc 12
  if (scenario.model.empty()) return run_briefly(scenario, Detail::times);
  const auto own = file.models.find(scenario.model);
  const ModelSpec model = own == file.models.end() ? find_model(scenario.model) : own->second;
  return run_briefly(scenario, model, *machines.of(scenario), Detail::times);
}

// The same step, with everything in device memory from its making to its use.
Result run_keeping_all(const CaseFile& file, Scenario scenario, SharedMachines& machines) {
  scenario.offload.technique = no_offload;
  scenario.training.recompute = Recompute::none;
  return run_case(file, scenario, machines).run.result;
}

FigureRange range_of(Metric metric, const Result& result) {
  if (metric == Metric::iteration_time || metric == Metric::throughput) return result.step_time_range;
  if (metric == Metric::peak_allocated || metric == Metric::peak_reserved) return result.peak_range;
  return {};
}

// Of steps whose range is known the same way.
std::string kind_of(Metric metric, const LoadedScenario& loaded) {
  if (metric == Metric::peak_allocated || metric == Metric::peak_reserved)
    return std::string(scenario::peak_kind_word(scenario::peak_kind(loaded.setup)));
  return scenario::range_kind_words(scenario::range_kind(loaded.setup, loaded.hardware));
}

// The figure of a metric that takes several steps.
void run_several(const Group& group, SharedMachines& machines) {
  const auto model = [&group](const std::string& name) {
    const auto own = group.file->models.find(name);
    return own == group.file->models.end() ? find_model(name) : own->second;
  };
  for (CaseOutcome* outcome : group.outcomes) {
    try {
      outcome->predicted = predict_of_several(*outcome->measured, model, machines);
    } catch (const InputError& error) {
      outcome->skipped = reason(error);
    }
  }
}

void run_group(const Group& group, SharedMachines& machines) {
  if (is_of_several(group.outcomes.front()->measured->metric)) return run_several(group, machines);
  try {
    const Scenario& scenario = group.outcomes.front()->measured->scenario;
    const BriefRun ran = run_case(*group.file, scenario, machines);
    const LoadedScenario& loaded = ran.loaded;
    const Result& result = ran.run.result;
    std::optional<Result> keeping;
    if (std::any_of(group.outcomes.begin(), group.outcomes.end(),
                    [](const CaseOutcome* outcome) { return is_comparison(outcome->measured->metric); }))
      keeping = run_keeping_all(*group.file, scenario, machines);
    for (CaseOutcome* outcome : group.outcomes) {
      const Case& measured = *outcome->measured;
      try {
        outcome->predicted = is_comparison(measured.metric)
                                 ? compare(measured.metric, measured.unit, loaded, result, *keeping)
                                 : predict(measured.metric, measured.unit, loaded, result, measured.stage);
        outcome->verdict = result.verdict();
        outcome->range = range_of(measured.metric, result);
        outcome->range_kind = kind_of(measured.metric, loaded);
        for (std::size_t i = 0; i < outcome->shares.size() && result.replayed > Picos(0); ++i)
          outcome->shares[i] = to_seconds(result.breakdown[i]) / to_seconds(result.replayed);
      } catch (const InputError& error) {
        outcome->skipped = reason(error);
      }
    }
  } catch (const InputError& error) {
    for (CaseOutcome* outcome : group.outcomes) outcome->skipped = reason(error);
  }
}

void run_projection(CaseOutcome& outcome) {
  const Case& measured = *outcome.measured;
  try {
    outcome.predicted = predict(measured.metric, measured.unit, *measured.projection);
  } catch (const InputError& error) {
    outcome.skipped = reason(error);
  }
}

std::vector<Group> group_by_setup(const std::vector<CaseFile>& files, std::vector<CaseOutcome>& outcomes) {
  std::vector<Group> groups;
  std::size_t at = 0;
  for (const CaseFile& file : files) {
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < file.cases.size(); ++i, ++at) {
      if (!outcomes[at].skipped.empty() || file.cases[i].projection) continue;
      const Case& one = file.cases[i];
      const std::string apart = is_of_several(one.metric) ? std::string(to_string(one.metric)) : "";
      const auto [group, is_new] = known.emplace(one.setup + apart, groups.size());
      if (is_new) groups.push_back({&file, {}, work_of(file, file.cases[i])});
      groups[group->second].outcomes.push_back(&outcomes[at]);
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.work > b.work; });
  return groups;
}

// What `errors` miss of `tolerance`.
Tolerance missed_of(const Tolerance& tolerance, const ErrorStatistics& errors) {
  Tolerance missed;
  if (tolerance.median && errors.median_abs > *tolerance.median) missed.median = tolerance.median;
  if (tolerance.p90 && errors.p90_abs > *tolerance.p90) missed.p90 = tolerance.p90;
  if (tolerance.kendall && errors.n > 1 && errors.kendall_tau < *tolerance.kendall * errors.kendall_ceiling)
    missed.kendall = tolerance.kendall;
  return missed;
}

Tolerance held_to(const CaseFile& file, const Case& one) {
  for (const HeldGroup& group : file.held_to)
    if (group.source == one.source && group.metric == one.metric) return group.tolerance;
  return {};
}

// As many at a time as there are threads: one takes the longest that is left, the others the shortest, so that two of
// the longest, which take the most memory, don't meet while there are others.
void run_groups(const std::vector<Group>& groups, const CaseProgress& progress) {
  std::mutex mutex;
  std::size_t done = 0;
  if (progress && !progress(0, groups.size())) throw Cancelled();
  std::size_t longest = 0, shortest = groups.size();
  bool is_long_one_running = false;
  SharedMachines machines;
  in_parallel(groups.size(), [&](std::size_t) {
    std::unique_lock lock(mutex);
    const bool is_long = !std::exchange(is_long_one_running, true);
    const Group& group = groups[is_long ? longest++ : --shortest];
    lock.unlock();
    run_group(group, machines);
    lock.lock();
    if (is_long) is_long_one_running = false;
    ++done;
    if (progress && !progress(done, groups.size())) throw Cancelled();
  });
}

}  // namespace

std::vector<CaseOutcome> run_cases(const std::vector<CaseFile>& files, const CaseProgress& progress) {
  std::vector<CaseOutcome> outcomes;
  for (const CaseFile& file : files)
    for (const Case& measured : file.cases)
      outcomes.push_back({.measured = &measured,
                          .predicted = 0,
                          .verdict = Verdict::unknown,
                          .shares = {},
                          .range = {},
                          .skipped = measured.skip});
  const std::vector<Group> groups = group_by_setup(files, outcomes);
  for (CaseOutcome& outcome : outcomes)
    if (outcome.skipped.empty() && outcome.measured->projection) run_projection(outcome);
  run_groups(groups, progress);
  return outcomes;
}

bool CaseOutcome::is_in_range() const {
  const double ratio = measured->metric == Metric::throughput ? predicted / figure() : figure() / predicted;
  return range.low <= ratio && ratio <= range.high;
}

Tolerance CaseSummary::missed() const { return missed_of(asked, errors); }
bool CaseSummary::within() const { return missed_of(asked.but_for(held_to), errors).states_nothing(); }

std::vector<CaseSummary> summarize(const std::vector<CaseFile>& files, const std::vector<CaseOutcome>& outcomes,
                                   const Tolerance* tolerance) {
  struct Figures {
    std::vector<double> measured, predicted;
  };
  std::vector<CaseSummary> summaries;
  std::vector<Figures> figures;
  std::size_t at = 0;
  for (const CaseFile& file : files)
    for (std::size_t i = 0; i < file.cases.size(); ++i, ++at) {
      if (!outcomes[at].skipped.empty()) continue;
      const Case& measured = *outcomes[at].measured;
      auto found = std::find_if(summaries.begin(), summaries.end(), [&measured](const CaseSummary& summary) {
        return summary.source == measured.source && summary.metric == measured.metric && summary.role == measured.role;
      });
      if (found == summaries.end()) {
        const bool is_judged = measured.role != "fit";
        const Tolerance asked = !is_judged ? Tolerance{} : tolerance != nullptr ? *tolerance : file.tolerance;
        const Tolerance held = is_judged && tolerance == nullptr ? held_to(file, measured) : Tolerance{};
        found = summaries.insert(found, {measured.source, measured.role, measured.metric, asked, held, {}});
        figures.emplace_back();
      }
      // Seconds and milliseconds of one source rank together.
      const double scale = unit_scale(measured.metric, measured.unit);
      Figures& mine = figures[static_cast<std::size_t>(found - summaries.begin())];
      mine.measured.push_back(outcomes[at].figure() * scale);
      mine.predicted.push_back(outcomes[at].predicted * scale);
      found->with_range += outcomes[at].range.known ? 1 : 0;
      found->in_range += outcomes[at].range.known && outcomes[at].is_in_range() ? 1 : 0;
    }
  for (std::size_t i = 0; i < summaries.size(); ++i)
    summaries[i].errors = error_statistics(figures[i].measured, figures[i].predicted);
  return summaries;
}

}  // namespace spillway::validation
