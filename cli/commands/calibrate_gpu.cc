#include "cli/commands/calibrate_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files_in_use.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/options/command_options.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/gpu_match.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"
#include "models/fit/gpu_profile_fit.h"
#include "validation/campaign/calibration_verdict.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct GpuCalibrationCall {
  GpuCalibrationOptions options;
  std::string base, output, points;
  std::vector<std::string> from;
};

// Writes what is new each time that it is told of all there is.
class PointWriter {
 public:
  explicit PointWriter(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }
  void add(const GpuMeasurement& measured) {
    if (!file_) return;
    if (!has_device_) file_->add(device_line(measured.device));
    has_device_ = true;
    for (; points_ < measured.points.size(); ++points_) file_->add(point_line(measured.points[points_]));
    for (; notes_ < measured.notes.size(); ++notes_) file_->add(note_line(measured.notes[notes_]));
    for (; failed_ < measured.failed.size(); ++failed_) file_->add(failed_line(measured.failed[failed_]));
  }
  void end() {
    if (file_) file_->add(end_line());
  }

 private:
  std::optional<GpuPointFile> file_;
  bool has_device_ = false;
  std::size_t points_ = 0, notes_ = 0, failed_ = 0;
};

// Beside the profile, unless it is told.
std::string points_path(const GpuCalibrationCall& request) {
  if (!request.points.empty() || request.output.empty() || request.output == "-") return request.points;
  return std::filesystem::path(request.output).replace_extension().string() + ".points.jsonl";
}

std::string base_for(const GpuCalibrationCall& request, const GpuIdentity& device) {
  return request.base.empty() ? matching_gpu(ProfileLibrary::standard(), device) : request.base;
}

GpuMeasurement measure(const GpuCalibrationCall& request, const Context& context) {
  const Progress progress(context);
  const std::optional<Nvml> nvml = Nvml::load();
  PointWriter writer(points_path(request));
  GpuCalibrationHooks hooks;
  hooks.progress = progress.counter("measuring the GPU");
  bool is_known = false;
  hooks.added = [&](const GpuMeasurement& measured) {
    writer.add(measured);
    // A card that no profile is of is told before it is measured for minutes.
    if (!is_known) base_for(request, measured.device);
    is_known = true;
  };
  if (nvml && !nvml->gpus().empty()) hooks.load = [&] { return nvml->state(0); };
  GpuMeasurement measured = measure_gpu(request.options, hooks);
  if (measured.is_whole) writer.end();
  return measured;
}

GpuMeasurement read_all(const std::vector<std::string>& files) {
  GpuMeasurement measured = read_gpu_points(files.front());
  for (std::size_t i = 1; i < files.size(); ++i) add_points(measured, read_gpu_points(files[i]), files[i]);
  return measured;
}

void check_whole(const GpuMeasurement& measured, const std::string& points) {
  if (measured.failed.empty()) return;
  const FailedPart& first = measured.failed.front();
  throw InputError("GPU", first.part, first.cause,
                   points.empty() ? "try again"
                                  : fmt::format("try again; what was measured is in {0}, and `spillway calibrate gpu "
                                                "--from {0}` makes a profile of it",
                                                points));
}

std::string point_text(const GpuPoint& point) {
  const auto is_one_of = [&](std::initializer_list<PointKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), point.kind) != kinds.end();
  };
  if (is_one_of({PointKind::launch_queue})) return fmt::format("{:.0f}", point.value.median);
  if (is_one_of({PointKind::two_stream_speedup})) return fmt::format("{:.2f} times", point.value.median);
  if (is_one_of({PointKind::sustained_product})) return fmt::format("{:.1f} TFLOPS", point.value.median * 1e-12);
  if (is_one_of({PointKind::duplex_rate, PointKind::kernel_rate_alone, PointKind::kernel_rate_beside_copies,
                 PointKind::copy_rate_alone, PointKind::copy_rate_beside_kernels}))
    return fmt::format("{:.1f} GB/s", point.value.median * 1e-9);
  return fmt::format("{:.2f} us", point.value.median * 1e6);
}

// One row a figure; products and windows of the load are in the file of points.
Table gpu_figures(const GpuMeasurement& measured) {
  Table table({"figure", "of", "value", "spread"});
  for (const GpuPoint& point : measured.points) {
    if (point.kind == PointKind::product || point.kind == PointKind::sustained_window) continue;
    std::string of = point.what;
    if (point.bytes > Bytes(0)) {
      const PrintedQuantity size = print_quantity(static_cast<double>(point.bytes.count()), Dimension::bytes);
      of += (of.empty() ? "" : " ") + size.value + " " + size.unit + (point.pinned ? "" : ", pageable");
    }
    if (point.clock_mhz > 0) of += fmt::format("{:.0f} MHz, {:.0f} W", point.clock_mhz, point.watts);
    table.add({std::string(point_kind_name(point.kind)), of, point_text(point),
               fmt::format("{:.1f} %", 100 * point.value.relative)});
  }
  return table;
}

Table verdict_table(const CalibrationVerdict& verdict) {
  Table table({"held out", "points", "error before", "after"});
  for (const CalibrationRow& row : verdict.rows)
    table.add({row.what, std::to_string(row.points), fmt::format("{:.2f} %", 100 * row.before),
               fmt::format("{:.2f} %", 100 * row.after)});
  return table;
}

Json verdict_json(const CalibrationVerdict& verdict) {
  Json rows = Json::array();
  for (const CalibrationRow& row : verdict.rows)
    rows.push_back({{"what", row.what},
                    {"points", row.points},
                    {"median_abs_error_before", row.before},
                    {"median_abs_error_after", row.after}});
  return {{"helps", verdict.helps}, {"held_out", std::move(rows)}};
}

void run_gpu(const GpuCalibrationCall& request, Context& context) {
  const bool measures = request.from.empty();
  const GpuMeasurement measured = measures ? measure(request, context) : read_all(request.from);
  const std::string points = measures ? points_path(request) : request.from.front();
  if (measures) check_whole(measured, points);
  const std::string date = today();
  const GpuProfile base = ProfileLibrary::standard().load_gpu(base_for(request, measured.device));
  const CalibrationVerdict verdict = calibrated_profile(measured, base, date);
  const std::string text =
      profile_text(verdict.profile, {OriginKind::measured, models::fit::calibration_origin(date).source, date, 0});
  if (!request.output.empty() && verdict.helps) {
    forget_file_in_use(request.output);
    OutputFile out(request.output);
    out.write(text);
    out.commit();
  }
  std::vector<std::string> notes = verdict.notes;
  if (!verdict.helps)
    notes.push_back(fmt::format(
        "what was measured predicts the held-out points no better than {} does: {}", base.name,
        request.output.empty() ? "there is nothing to write" : "no profile is written, the raw points are kept"));
  if (!request.output.empty() && !verdict.helps) context.exit_code = exit_answer_is_no;
  if (context.json()) {
    Json document = json_document("spillway.calibrate_gpu");
    document["device"] = measured.device.name;
    document["driver"] = measured.device.driver;
    document["base"] = base.name;
    document["points"] = measured.points.size();
    document["points_file"] = points.empty() ? Json(nullptr) : Json(points);
    document["verdict"] = verdict_json(verdict);
    document["written"] = !request.output.empty() && verdict.helps;
    document["profile"] = Json::parse(text);
    document["warnings"] = notes;
    return print_json(document);
  }
  print(context, gpu_figures(measured));
  if (context.rows_only()) return;
  print("\n" + verdict_table(verdict).text());
  for (const std::string& line : notes) print("note: " + line + "\n");
}

}  // namespace

void add_calibrate_gpu(Command& group, Context& context) {
  const auto request = std::make_shared<GpuCalibrationCall>();
  Command* command =
      group.add_subcommand("gpu", "Measure the GPU: launches, memory, matrix products, copies, sustained load");
  command->add_flag("--quick", request->options.quick,
                    "less than 120 seconds instead of eight minutes: fewer shapes and sizes");
  command
      ->add_option("--base", request->base,
                   "GPU profile that keeps its peaks, prices and tables; by default that of this card")
      ->type_name("NAME");
  command
      ->add_option("--points", request->points, "write each raw point as it is measured; by default beside the profile")
      ->to_write()
      ->type_name("FILE.jsonl");
  command
      ->add_option("--from", request->from,
                   "measure nothing: take the raw points of such a file; may be given again, for those of production "
                   "kernels")
      ->type_name("FILE.jsonl");
  command->add_option("--output", request->output, "write the GPU's hardware profile, if it helps")
      ->to_write()
      ->type_name("PROFILE.json");
  command->callback([request, &context] { run_gpu(*request, context); });
}

}  // namespace spillway::cli
