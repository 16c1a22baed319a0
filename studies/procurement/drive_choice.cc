#include "studies/procurement/drive_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "scenario/brief_run.h"
#include "scenario/evaluator.h"
#include "scenario/relaxed_hardware.h"
#include "studies/offload/storage_links.h"

namespace spillway::studies {
namespace {

SsdQuestion question_of(const ProcurementRequest& request, std::vector<NvmeProfile> drives, std::int64_t count) {
  SsdQuestion question;
  question.drives = std::move(drives);
  question.drives_per_gpu = count;
  question.life_years = request.period_months / 12;
  question.endurance = request.endurance;
  question.route = request.route;
  question.switch_lanes = switch_lanes_of(request.prices);
  question.asks_numbers = false;
  return question;
}

std::int64_t gpus_in_machine(const LoadedScenario& loaded) {
  return std::min(std::max<std::int64_t>(1, loaded.setup.gpus()), loaded.hardware.gpu_count);
}

// Room for all that a step writes, as if nothing were read back before its end.
std::int64_t least_for_room(const NvmeProfile& drive, double written) {
  if (!drive.capacity) return 1;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(written / static_cast<double>(drive.capacity->value.count()))));
}

// Why `most` of them per GPU don't do.
std::string why_not(const DriveAnswer& answer, std::int64_t room, std::int64_t most) {
  if (!answer.cannot_tell.empty()) return answer.cannot_tell;
  if (answer.endurance.bytes <= 0) return "nothing is left of its rated life";
  if (room > most) return fmt::format("{} per GPU have the room, at most {} are allowed", room, most);
  if (answer.link_rate < answer.required_rate)
    return fmt::format("the links carry {:.3g} GB/s for each GPU, {:.3g} are needed", answer.link_rate / 1e9,
                       answer.required_rate / 1e9);
  return fmt::format("{} per GPU, as many as are allowed, don't keep up the rate", most);
}

}  // namespace

const DriveAnswer& DriveChoice::hardest() const {
  SPILLWAY_ASSERT(!answers.empty());
  return *std::min_element(answers.begin(), answers.end(), [](const DriveAnswer& a, const DriveAnswer& b) {
    return a.steady_rate * b.required_rate < b.steady_rate * a.required_rate;
  });
}

Bytes largest_peak(const std::vector<RunReplay>& runs) {
  Bytes most{};
  for (const RunReplay& run : runs) most = std::max(most, run.result.memory.peak_reserved);
  return most;
}

bool DriveChoice::writes() const {
  return std::any_of(runs.begin(), runs.end(), [](const RunReplay& run) { return run.written_bytes > 0; });
}

std::string DriveChoice::saves_nothing() const {
  std::string why;
  for (const RunReplay& run : runs) {
    if (run.written_bytes > 0 && run.saves_nothing.empty()) return "";
    if (why.empty()) why = run.saves_nothing;
  }
  return why;
}

std::int64_t switch_lanes_of(const PriceList& prices) {
  return prices.pcie_switch_lanes ? static_cast<std::int64_t>(prices.pcie_switch_lanes->value) : common_switch_lanes;
}

ReplayedPlan replay_plan_of(const RunPlan& plan, const NvmeProfile* drive, std::int64_t count,
                            std::int64_t switch_lanes, bool briefly) {
  ReplayedPlan made;
  const auto run_on_drives = [&](LoadedScenario& step) {
    step.hardware = drive != nullptr ? with_drives(step.hardware, *drive, count, gpus_in_machine(step), switch_lanes)
                                     : with_endless_drives(step.hardware);
    made.ran = run_traced(step);
    if (!made.ran.result.refusal) made.loaded = std::move(step);
    return made.ran.result.refusal;
  };
  const Scenario scenario = scenario_of(plan.base, plan.candidate.edits);
  if (briefly && may_fold(scenario)) {
    use_briefly(scenario, find_model(scenario.model), ScenarioMachine(hardware_of(scenario)), run_on_drives);
  } else {
    LoadedScenario whole = load(scenario);
    run_on_drives(whole);
  }
  const LoadedScenario& loaded = made.loaded;
  const Result& result = made.ran.result;
  RunReplay& run = made.run;
  static_cast<Row&>(run) = row_of(plan.candidate, loaded, result);
  if (result.offload) run.saves_nothing = saves_nothing(*result.offload, result.memory);
  const bool writes = std::any_of(result.drives.begin(), result.drives.end(),
                                  [](const DriveTraffic& traffic) { return traffic.written > Bytes(0); });
  if (writes) {
    const OffloadTraffic traffic = offload_traffic(made.ran.trace(loaded), result);
    run.written_bytes = static_cast<double>(traffic.load.written().count());
    run.read_bytes = static_cast<double>(traffic.load.read().count());
  }
  return made;
}

std::vector<DriveChoice> fit_drives(const ProcurementRequest& request, const std::vector<ReplayedPlan>& replayed) {
  std::vector<DriveChoice> fits;
  for (const NvmeProfile& drive : request.drives) {
    DriveChoice fit;
    fit.drive = drive;
    fits.push_back(std::move(fit));
  }
  for (std::int64_t n = 1; n <= request.drives_per_gpu; ++n) {
    std::vector<bool> holds(fits.size(), true);
    for (const ReplayedPlan& plan : replayed) {
      if (plan.run.written_bytes <= 0) continue;
      const SsdAnswer answer = answer_ssd(plan.loaded, plan.ran, question_of(request, request.drives, n));
      for (std::size_t i = 0; i < fits.size(); ++i) {
        const DriveAnswer& one = answer.drives[i];
        const std::int64_t room = least_for_room(fits[i].drive, plan.run.written_bytes);
        if (one.cannot_tell.empty() && one.endurance.bytes > 0 && one.holds_steady && room <= n) continue;
        holds[i] = false;
        fits[i].cannot = why_not(one, room, request.drives_per_gpu);
      }
    }
    for (std::size_t i = 0; i < fits.size(); ++i)
      if (holds[i]) fits[i].numbers.push_back(n);
  }
  for (DriveChoice& fit : fits)
    if (!fit.numbers.empty()) fit.cannot.clear();
  return fits;
}

void answer_for_chosen(const ProcurementRequest& request, const std::vector<ReplayedPlan>& replayed,
                       std::vector<DriveChoice>& fits) {
  std::map<std::int64_t, std::vector<std::size_t>> by_count;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    fits[i].answers.clear();
    if (!fits[i].runs.empty()) by_count[fits[i].chosen].push_back(i);
  }
  for (const ReplayedPlan& plan : replayed) {
    if (plan.run.written_bytes <= 0) continue;
    for (const auto& [count, which] : by_count) {
      std::vector<NvmeProfile> drives;
      for (const std::size_t i : which) drives.push_back(fits[i].drive);
      SsdAnswer answer = answer_ssd(plan.loaded, plan.ran, question_of(request, std::move(drives), count));
      for (std::size_t k = 0; k < which.size(); ++k) fits[which[k]].answers.push_back(std::move(answer.drives[k]));
    }
  }
}

}  // namespace spillway::studies
