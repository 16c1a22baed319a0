#include "studies/offload/pcie_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "scenario/evaluator.h"
#include "scenario/relaxed_hardware.h"
#include "studies/offload/machine_load.h"

namespace spillway::studies {
namespace {

double bytes_of(Bytes bytes) { return static_cast<double>(bytes.count()); }

// prefix: of the machine's links in the result.
LinkAnswer link_answer(const LinkShare& share, const std::string& prefix, const PcieAnswer& answer,
                       const Result& result) {
  const DriveLoad& load = answer.traffic.load;
  LinkAnswer link{
      share.name, share.capacity, 0, share.write * bytes_of(load.written()), share.read * bytes_of(load.read()), 0};
  for (const LinkResult& copied : result.links)
    if (copied.name == prefix + share.name) link.copied = bytes_of(copied.bytes);
  // The replay of an offloaded step has the offloading's own bytes on its links.
  if (result.offload) link.copied = std::max(0.0, link.copied - link.written - link.read);
  const double half = to_seconds(load.step) / 2;
  // Copies of the step itself are spread over all of it.
  link.required = std::max(link.written, link.read) / half + link.copied / (2 * half);
  return link;
}

// The replay's own links, each with what it carried; the step waits for them where endless ones would shorten it.
void answer_on_host(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question,
                    PcieAnswer& answer) {
  if (question.replays) {
    LoadedScenario free = loaded;
    free.hardware = with_faster_links(std::move(free.hardware), endless);
    answer.on_endless_drives = ran.result.step_time;
    const Picos step = run(free).step_time;
    if (is_held_up(ran.result.step_time, step)) set_pace(answer.traffic, step);
  }
  for (const LinkResult& link : ran.result.links) {
    const double bytes = bytes_of(link.bytes);
    if (bytes > 0)
      answer.links.push_back({link.name, link.capacity, bytes, 0, 0, bytes / to_seconds(answer.traffic.load.step)});
  }
}

void sort_by_headroom(std::vector<LinkAnswer>& links) {
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkAnswer& a, const LinkAnswer& b) { return a.headroom() < b.headroom(); });
}

}  // namespace

std::vector<JudgedTest> PcieAnswer::tests() const {
  std::vector<JudgedTest> tests;
  if (step) tests = step->tests();
  // To host memory the step's own pace is what its links are asked for.
  if (!is_on_host() && !links.empty()) {
    const LinkAnswer& tightest = links.front();
    const std::string given = fmt::format("{:.3g}", tightest.headroom());
    tests.push_back({"headroom of the tightest link", "1", given, tightest.headroom() >= 1,
                     fmt::format("the tightest link, {}, has {} times what it needs", tightest.name, given)});
  }
  if (on_endless_drives > Picos(0)) {
    const std::string step = duration_text(traffic.load.step), took = duration_text(on_endless_drives);
    tests.push_back({"step time, endless drives", step, took, !waits_for_links(),
                     fmt::format("the step waits for its links, {} where {} would do", took, step)});
  }
  return tests;
}

bool PcieAnswer::is_yes() const {
  if (!is_on_host() && traffic.load.written() == Bytes(0)) return kept_by_plan == Bytes(0);
  if (!is_on_host() && (!cannot_tell.empty() || links.empty())) return false;
  return all_hold(tests());
}

PcieAnswer answer_pcie(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question) {
  PcieAnswer answer;
  answer.traffic = question.replays ? unhindered_traffic(loaded, ran) : offload_traffic(ran.trace(loaded), ran.result);
  const DriveLoad& load = answer.traffic.load;
  answer.required_rate = bytes_of(load.written()) / (to_seconds(load.step) / 2);
  if (load.written() == Bytes(0) && ran.result.offload && !answer.is_on_host())
    answer.kept_by_plan = ran.result.offload->candidates;
  if (question.replays) answer.step = step_on_drives(loaded, ran.result);
  if (question.replays && load.written() > Bytes(0)) {
    LoadedScenario on_endless = loaded;
    on_endless.hardware = with_endless_drives(std::move(on_endless.hardware));
    answer.on_endless_drives = run(on_endless).step_time;
  }
  const std::int64_t gpus = loaded.scenario.model.empty() ? 1 : loaded.setup.gpus();
  answer.gpus_per_machine = std::min(gpus, loaded.hardware.gpu_count);
  if (answer.is_on_host()) {
    answer_on_host(loaded, ran, question, answer);
    sort_by_headroom(answer.links);
    return answer;
  }
  try {
    const HardwareProfile machine =
        question.drives.empty() ? loaded.hardware : on_first_drives(loaded, question).hardware;
    const auto sets = static_cast<std::int64_t>(std::max<std::size_t>(1, drive_set_names(machine).size()));
    const MachineLoad load_of(answer.traffic, gpus, machine.gpu_count, sets);
    const StorageLinks links = storage_links(machine, load_of.gpus(), question.route);
    for (const DriveGroup& group : machine.drives)
      if (answer.drives.find(group.drive.title) == std::string::npos)
        answer.drives += fmt::format("{}{} x {}", answer.drives.empty() ? "" : ", ", group.count, group.drive.title);
    answer.write_rate = to_bytes_per_second(links.write);
    answer.read_rate = to_bytes_per_second(links.read);
    for (const LinkShare& share : links.links)
      answer.links.push_back(link_answer(share, load_of.prefix(), answer, ran.result));
  } catch (const InputError& error) {
    answer.cannot_tell = error.cause();
  }
  sort_by_headroom(answer.links);
  return answer;
}

}  // namespace spillway::studies
