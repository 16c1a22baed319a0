#include "cli/commands/check_recording.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/short_text.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/options/interrupt.h"
#include "cli/output/table.h"
#include "hwprofiles/profile_writer.h"
#include "launch/launch_import.h"
#include "scenario/file_kind.h"
#include "studies/recorded/step_join.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Scenario checked_scenario(const RecordingCheck& call) {
  std::vector<std::string> settings;
  if (!call.machine.empty()) settings.push_back("hardware.profile=" + call.machine);
  if (file_kind(call.scenario) != FileKind::launch) return load_scenario(call.scenario, settings);
  const launch::LaunchImport read =
      launch::import_launch({.launch = {.paths = {call.scenario}}, .machine = call.machine});
  if (!read.model.empty())
    throw InputError(call.scenario, "", "its model is not bundled",
                     fmt::format("spillway import {} --output X.scenario.json, then check with that", call.scenario));
  return parse_scenario(read.scenario, call.scenario, fs::path(call.scenario).parent_path().string());
}

double step_error(Picos predicted, Picos measured) { return to_seconds(predicted) / to_seconds(measured) - 1; }

std::string milliseconds_text(Picos time) { return three_digits(1e3 * to_seconds(time)); }

// "checked on 2026-11-29 by a recorded step of gpt2-774m: time +0.8 %, then -0.1 %".
std::string checked_words(const studies::StepJoin& join, const RecordingCheck& call, const std::string& date) {
  const std::string name = fs::path(fs::path(call.recording) / "").parent_path().filename().string();
  return fmt::format("checked on {} by {} ({} recorded steps): time {:+.1f} %, with the measured kernels {:+.1f} %",
                     date, name, join.recorded_steps, 100 * step_error(join.generated, join.measured),
                     100 * step_error(join.corrected, join.measured));
}

Table kinds_table(const studies::StepJoin& join) {
  Table table({"operators", "kernels", "generated", "measured ms", "generated ms", "corrected", "factor", "spread"});
  for (const studies::KindJoin& row : join.kinds)
    table.add({std::string(scaled_operator_name(row.of)), std::to_string(row.recorded_kernels),
               std::to_string(row.generated_kernels), milliseconds_text(row.recorded), milliseconds_text(row.generated),
               milliseconds_text(row.corrected), row.factor == 1 ? "-" : fmt::format("{:.3f}", row.factor),
               fmt::format("{:.2f} to {:.2f}", row.least, row.most)});
  const auto other = [&table](const char* name, Picos recorded, Picos generated) {
    if (recorded > Picos(0) || generated > Picos(0))
      table.add({name, "", "", milliseconds_text(recorded), milliseconds_text(generated), milliseconds_text(generated),
                 "-", ""});
  };
  other("copies, other kernels", join.recorded_others, join.generated_others);
  other("collectives, with waiting", join.recorded_collectives, join.generated_collectives);
  return table;
}

std::string step_text(const studies::StepJoin& join) {
  std::string text =
      fmt::format("  step     generated {} ms, {} {} ms: {:+.1f} %{}; with the measured kernels {} ms: {:+.1f} %\n",
                  milliseconds_text(join.generated),
                  join.is_unprofiled  ? "measured without a profiler"
                  : join.is_estimated ? "recorded, without its profiler about"
                                      : "recorded",
                  milliseconds_text(join.measured), 100 * step_error(join.generated, join.measured),
                  join.noise > 0 ? fmt::format("; steps differ by {:.1f} %", 100 * join.noise) : "",
                  milliseconds_text(join.corrected), 100 * step_error(join.corrected, join.measured));
  if (join.recorded_peak > Bytes(0))
    text += fmt::format(
        "  memory   generated {} allocated, recorded {}: {:+.1f} %\n", short_size(join.generated_peak),
        short_size(join.recorded_peak),
        100 * (static_cast<double>(join.generated_peak.count()) / static_cast<double>(join.recorded_peak.count()) - 1));
  return text;
}

Json join_json(const studies::StepJoin& join, const std::string& words) {
  Json document = json_document("spillway.check_recording");
  document["words"] = words;
  document["gpu"] = join.machine;
  document["recorded_steps"] = join.recorded_steps;
  document["is_unprofiled"] = join.is_unprofiled;
  document["is_estimated"] = join.is_estimated;
  document["measured_step_time_ns"] = whole_nanoseconds(join.measured);
  document["noise"] = join.noise;
  document["generated_step_time_ns"] = whole_nanoseconds(join.generated);
  document["corrected_step_time_ns"] = whole_nanoseconds(join.corrected);
  document["time_error"] = step_error(join.generated, join.measured);
  document["corrected_time_error"] = step_error(join.corrected, join.measured);
  document["recorded_peak_allocated_bytes"] =
      join.recorded_peak > Bytes(0) ? Json(join.recorded_peak.count()) : Json(nullptr);
  document["generated_peak_allocated_bytes"] = join.generated_peak.count();
  Json kinds = Json::array();
  for (const studies::KindJoin& row : join.kinds)
    kinds.push_back({{"of", scaled_operator_name(row.of)},
                     {"recorded_kernels", row.recorded_kernels},
                     {"generated_kernels", row.generated_kernels},
                     {"recorded_ns", whole_nanoseconds(row.recorded)},
                     {"generated_ns", whole_nanoseconds(row.generated)},
                     {"corrected_ns", whole_nanoseconds(row.corrected)},
                     {"noise", row.noise},
                     {"factor", row.factor},
                     {"least", row.least},
                     {"most", row.most}});
  document["kinds"] = std::move(kinds);
  document["recorded_collectives_ns"] = whole_nanoseconds(join.recorded_collectives);
  document["generated_collectives_ns"] = whole_nanoseconds(join.generated_collectives);
  return document;
}

void write_profile(const studies::StepJoin& join, const std::string& words, const RecordingCheck& call,
                   const std::string& date) {
  GpuProfile profile = join.profile;
  profile.title += ", " + words;
  OutputFile out(call.output);
  out.write(profile_text(profile, {OriginKind::measured, "spillway check --from", date, 0}));
  out.commit();
}

}  // namespace

void check_recording(const RecordingCheck& call, Context& context) {
  if (!call.output.empty() && fs::exists(call.output))
    throw InputError(call.output, "", "exists already", "name a new file");
  const std::string date = today();
  ReadOptions read;
  read.progress = [](std::uint64_t, std::uint64_t) { return !is_interrupted(); };
  const studies::StepJoin join =
      studies::join_step(scenario_for_trace(call.recording), checked_scenario(call), date, read);
  const std::string words = checked_words(join, call, date);
  if (!call.output.empty()) write_profile(join, words, call, date);
  if (context.json()) {
    Json document = join_json(join, words);
    document["profile"] = call.output.empty() ? Json(nullptr) : Json(call.output);
    return print_json(document);
  }
  if (context.rows_only()) return print(context, kinds_table(join));
  print(fmt::format("{} and its scenario on {}\n{}\n", call.recording, join.machine, step_text(join)));
  print(context, kinds_table(join));
  if (!call.output.empty())
    print(fmt::format("\n  profile  {0}: --on h100x8+gpu={0}, or any other machine, in every command\n", call.output));
}

}  // namespace spillway::cli
