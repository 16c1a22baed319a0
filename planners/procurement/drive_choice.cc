#include "planners/procurement/drive_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "planners/relaxed_hardware.h"
#include "planners/report/storage_links.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

SsdQuestion question_of(const Programme& programme, std::vector<NvmeProfile> drives, std::int64_t count) {
  SsdQuestion question;
  question.drives = std::move(drives);
  question.count = count;
  question.life_years = programme.period_months / 12;
  question.endurance = programme.endurance;
  question.route = programme.route;
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

void judge(const Programme& programme, const DriveAnswer& answer, double written, DriveChoice& fit) {
  if (!fit.cannot.empty()) return;
  if (!answer.cannot_tell.empty()) {
    fit.cannot = answer.cannot_tell;
    return;
  }
  if (answer.endurance.bytes <= 0) {
    fit.cannot = "nothing is left of its rated life";
    return;
  }
  const std::int64_t rate = answer.count_for_rate, room = least_for_room(fit.drive, written);
  if (answer.link_rate < answer.required_rate)
    fit.cannot = fmt::format("the links carry {:.3g} GB/s for each GPU, {:.3g} are needed", answer.link_rate / 1e9,
                             answer.required_rate / 1e9);
  else if (rate == 0 || rate > programme.drives_per_gpu)
    fit.cannot =
        rate == 0 ? "no number of them keeps up the rate"
                  : fmt::format("{} per GPU keep up the rate, at most {} are allowed", rate, programme.drives_per_gpu);
  else if (room > programme.drives_per_gpu)
    fit.cannot = fmt::format("{} per GPU have the room, at most {} are allowed", room, programme.drives_per_gpu);
  fit.least = std::max({fit.least, rate, room});
}

}  // namespace

const DriveAnswer& DriveChoice::hardest() const {
  SPILLWAY_ASSERT(!answers.empty());
  return *std::min_element(answers.begin(), answers.end(), [](const DriveAnswer& a, const DriveAnswer& b) {
    return a.steady_rate * b.required_rate < b.steady_rate * a.required_rate;
  });
}

ReplayedPlan replay_plan_of(const RunPlan& plan, const NvmeProfile* drive, std::int64_t count) {
  ReplayedPlan made{load(parse_scenario(plan.base, plan.path, plan.folder, plan.settings)), {}, {}};
  LoadedScenario& loaded = made.loaded;
  if (drive != nullptr)
    loaded.hardware = with_drives(loaded.hardware, *drive, count, gpus_in_machine(loaded));
  else
    loaded.hardware = with_endless_drives(loaded.hardware);
  made.ran = run_traced(loaded);
  const Result& result = made.ran.result;
  RunReplay& run = made.run;
  run.step_seconds = to_seconds(result.step_time);
  run.tokens_per_step = static_cast<double>(loaded.options.tokens_per_step);
  run.mfu = result.mfu;
  run.busy = 1 - result.bubble;
  run.peak_bytes = static_cast<double>(result.memory.peak_reserved.count());
  run.capacity_bytes = static_cast<double>(result.memory.capacity.count());
  run.binding = std::string(describe(result.binding));
  run.fingerprint = result.fingerprint;
  run.provenance = result.provenance;
  run.links = result.links;
  const bool writes = std::any_of(result.drives.begin(), result.drives.end(),
                                  [](const DriveTraffic& traffic) { return traffic.written > Bytes(0); });
  if (writes) {
    const OffloadTraffic traffic = offload_traffic(made.ran.trace(loaded), result);
    run.written_bytes = static_cast<double>(traffic.load.written().count());
    run.read_bytes = static_cast<double>(traffic.load.read().count());
  }
  return made;
}

std::vector<DriveChoice> fit_drives(const Programme& programme, const std::vector<ReplayedPlan>& replayed) {
  std::vector<DriveChoice> fits;
  for (const NvmeProfile& drive : programme.drives) {
    DriveChoice fit;
    fit.drive = drive;
    fit.least = 1;
    fits.push_back(std::move(fit));
  }
  for (const ReplayedPlan& plan : replayed) {
    if (plan.run.written_bytes <= 0) continue;
    const SsdAnswer answer =
        answer_ssd(plan.loaded, plan.ran, question_of(programme, programme.drives, programme.drives_per_gpu));
    for (std::size_t i = 0; i < fits.size(); ++i) judge(programme, answer.drives[i], plan.run.written_bytes, fits[i]);
  }
  return fits;
}

void answer_for_chosen(const Programme& programme, const std::vector<ReplayedPlan>& replayed,
                       std::vector<DriveChoice>& fits) {
  std::map<std::int64_t, std::vector<std::size_t>> by_count;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    fits[i].answers.clear();
    by_count[fits[i].chosen > 0 ? fits[i].chosen : programme.drives_per_gpu].push_back(i);
  }
  for (const ReplayedPlan& plan : replayed) {
    if (plan.run.written_bytes <= 0) continue;
    for (const auto& [count, which] : by_count) {
      std::vector<NvmeProfile> drives;
      for (const std::size_t i : which) drives.push_back(fits[i].drive);
      SsdAnswer answer = answer_ssd(plan.loaded, plan.ran, question_of(programme, std::move(drives), count));
      for (std::size_t k = 0; k < which.size(); ++k) fits[which[k]].answers.push_back(std::move(answer.drives[k]));
    }
  }
}

}  // namespace spillway
