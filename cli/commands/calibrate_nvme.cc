#include "cli/commands/calibrate_nvme.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files_in_use.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "cli/options/command_options.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "hwprofiles/calibrate/cuda_module.h"
#include "hwprofiles/calibrate/drive_calibration.h"
#include "hwprofiles/calibrate/drive_fit.h"
#include "hwprofiles/calibrate/drive_identity.h"
#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/profile_writer.h"
#include "validation/trainer/cuda_backend.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DriveCalibrationCall {
  DriveCalibrationOptions options;
  std::string bytes, name, output;
};

// Memory of the GPU, where there is one and cuFile may be; none else, without a word: measuring drives needs no GPU.
class DeviceMemoryForDrives {
 public:
  DeviceMemoryForDrives() {
    if (!has_cuda_module() || !Nvml::load()) return;
    try {
      backend_ = load_cuda_backend();
      memory_ = backend_->take_segment(bytes);
    } catch (const InputError&) {
      return;
    }
  }
  DeviceMemoryForDrives(const DeviceMemoryForDrives&) = delete;
  DeviceMemoryForDrives& operator=(const DeviceMemoryForDrives&) = delete;
  ~DeviceMemoryForDrives() {
    if (memory_ != nullptr) backend_->give_segment(memory_);
  }
  [[nodiscard]] std::span<std::byte> memory() const {
    return {memory_, memory_ == nullptr ? 0 : static_cast<std::size_t>(bytes.count())};
  }
  [[nodiscard]] std::function<void()> begin_thread() const {
    return [this] { backend_->begin_thread(); };
  }

 private:
  static constexpr Bytes bytes{256 << 20};
  std::unique_ptr<Backend> backend_;
  std::byte* memory_ = nullptr;
};

std::string in_words(double value, Dimension dimension) {
  const PrintedQuantity printed = print_quantity(value, dimension);
  return fmt::format("{:.4g} {}", std::stod(printed.value), printed.unit);
}

std::string within(const Spread& spread) { return fmt::format("+-{:.1f} %", 100 * spread.relative); }

// What cuFile's points are of.
const char* cufile_word(CufileWay way) {
  switch (way) {
    case CufileWay::direct:
      return "GPUDirect";
    case CufileWay::compatibility:
      return "cuFile, through host memory:";
    case CufileWay::unknown:
      break;
  }
  return "cuFile:";
}
const char* key_of(CufileWay way) {
  return way == CufileWay::direct ? "direct" : way == CufileWay::compatibility ? "compatibility" : "unknown";
}

std::string way_text(const CufileVerdict& verdict) {
  if (verdict.way == CufileWay::direct) return "GPUDirect Storage was used: " + verdict.why;
  if (verdict.way == CufileWay::compatibility)
    return "cuFile went through host memory (its compatibility mode), these points are not of GPUDirect Storage: " +
           verdict.why;
  return "cuFile's points are of GPUDirect Storage or of its way through host memory: " + verdict.why;
}

Table point_table(const DriveMeasurement& measured) {
  Table table({"access", "block", "depth", "rate", "spread", "latency"});
  std::vector<std::pair<std::string, DrivePoint>> points;
  for (const DrivePoint& point : measured.sequential) points.emplace_back("", point);
  for (const DrivePoint& point : measured.gpudirect)
    points.emplace_back(std::string(cufile_word(measured.gpudirect_way.way)) + " ", point);
  for (const auto& [way, point] : points)
    table.add({way + (point.is_write ? "write" : "read"),
               in_words(static_cast<double>(point.block.count()), Dimension::bytes), std::to_string(point.depth),
               in_words(point.bytes_per_second.median, Dimension::rate), within(point.bytes_per_second),
               in_words(point.latency_seconds.median, Dimension::time)});
  return table;
}

Table drive_figures(const DriveMeasurement& measured, const DriveFit& fit) {
  Table table({"figure", "value", "spread"});
  for (const WriteLevel& level : fit.levels)
    table.add({"sustained write, " + in_words(static_cast<double>(level.bytes.count()), Dimension::bytes),
               in_words(level.bytes_per_second, Dimension::rate), fmt::format("+-{:.1f} %", 100 * level.spread)});
  table.add({"random read, 4 KiB", in_words(measured.random_read_iops.median, Dimension::operations),
             within(measured.random_read_iops)});
  table.add({"random write, 4 KiB", in_words(measured.random_write_iops.median, Dimension::operations),
             within(measured.random_write_iops)});
  table.add({"reads beside writes", in_words(measured.mixed.read_bytes_per_second.median, Dimension::rate),
             within(measured.mixed.read_bytes_per_second)});
  table.add({"writes beside reads", in_words(measured.mixed.write_bytes_per_second.median, Dimension::rate),
             within(measured.mixed.write_bytes_per_second)});
  if (fit.profile.read_write_interference)
    table.add({"interference", fmt::format("{:.2f}", fit.profile.read_write_interference->value), ""});
  return table;
}

Json rate_json(const Spread& spread, const char* unit) {
  return {{std::string("median_") + unit, spread.median}, {"spread", spread.relative}};
}

Json points_json(const std::vector<DrivePoint>& points) {
  Json list = Json::array();
  for (const DrivePoint& point : points)
    list.push_back({{"access", point.is_write ? "write" : "read"},
                    {"block_bytes", point.block.count()},
                    {"queue_depth", point.depth},
                    {"rate", rate_json(point.bytes_per_second, "bytes_per_second")},
                    {"latency", rate_json(point.latency_seconds, "seconds")}});
  return list;
}

Json measurement_json(const DriveMeasurement& measured, const DriveFit& fit, const std::string& profile) {
  Json document = json_document("spillway.calibrate_nvme");
  document["points"] = points_json(measured.sequential);
  document["sustained_write"] = Json::array();
  for (const WriteLevel& level : fit.levels)
    document["sustained_write"].push_back(
        {{"bytes", level.bytes.count()}, {"bytes_per_second", level.bytes_per_second}, {"spread", level.spread}});
  document["gpudirect"] = {{"points", points_json(measured.gpudirect)}};
  if (!measured.no_gpudirect.empty()) document["gpudirect"]["absent"] = measured.no_gpudirect;
  if (!measured.gpudirect.empty()) {
    document["gpudirect"]["way"] = key_of(measured.gpudirect_way.way);
    document["gpudirect"]["because"] = measured.gpudirect_way.why;
  }
  document["random_read"] = rate_json(measured.random_read_iops, "iops");
  document["random_write"] = rate_json(measured.random_write_iops, "iops");
  document["mixed"] = {{"read", rate_json(measured.mixed.read_bytes_per_second, "bytes_per_second")},
                       {"write", rate_json(measured.mixed.write_bytes_per_second, "bytes_per_second")}};
  if (measured.recovery)
    document["idle_recovery"] = {{"idle_seconds", measured.recovery->idle_seconds},
                                 {"bytes_at_fast_rate", measured.recovery->bytes_at_fast_rate.count()},
                                 {"fell", measured.recovery->fell}};
  document["bytes_written"] = measured.written.count();
  document["bytes_read"] = measured.read.count();
  document["registered_buffers"] = measured.registered_buffers;
  document["seconds"] = measured.seconds;
  document["profile"] = Json::parse(profile);
  document["warnings"] = fit.notes;
  return document;
}

void run_drive(DriveCalibrationCall& request, const Context& context) {
  if (!request.bytes.empty()) {
    try {
      request.options.bytes = Bytes(static_cast<std::int64_t>(parse_quantity(request.bytes, Dimension::bytes).value));
    } catch (const InputError& error) {
      throw InputError("--bytes", "", error.cause(), error.remedy());
    }
  }
  const DeviceMemoryForDrives device;
  request.options.device_memory = device.memory();
  request.options.begin_thread = device.begin_thread();
  const Progress progress(context);
  const DriveMeasurement measured = measure_drive(request.options, progress.counter("measuring the drive"));
  const std::string folder = std::filesystem::path(request.options.file).parent_path();
  const std::string date = today();
  const DriveFit fit = fit_drive(measured, drive_identity(folder), request.name, date);
  const std::string text = profile_text(fit.profile, measured_origin(date));
  if (!request.output.empty()) {
    forget_file_in_use(request.output);
    OutputFile out(request.output);
    out.write(text);
    out.commit();
  }
  if (!measured.registered_buffers)
    warn(context, "the limit of locked memory forbids registered buffers: figures are without them (ulimit -l)");
  if (context.json()) return print_json(measurement_json(measured, fit, text));
  if (context.rows_only()) return print(context, point_table(measured));
  print(point_table(measured).text() + "\n" + drive_figures(measured, fit).text());
  for (const std::string& line : fit.notes) print("note: " + line + "\n");
  if (!measured.gpudirect.empty()) print("note: " + way_text(measured.gpudirect_way) + "\n");
  if (!measured.no_gpudirect.empty()) print("note: GPUDirect Storage: " + measured.no_gpudirect + "\n");
  print(fmt::format("{} written, {} read in {:.1f} s\n",
                    in_words(static_cast<double>(measured.written.count()), Dimension::bytes),
                    in_words(static_cast<double>(measured.read.count()), Dimension::bytes), measured.seconds));
}

}  // namespace

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void add_calibrate_nvme(Command& group, Context& context) {
  const auto request = std::make_shared<DriveCalibrationCall>();
  Command* command = group.add_subcommand("nvme", "Measure a drive through a new file on it, which is removed again");
  command->add_option("--file", request->options.file, "name of a file that does not exist, on the drive to measure")
      ->to_write()
      ->type_name("PATH")
      ->required();
  command
      ->add_option("--bytes", request->bytes,
                   "most bytes to write in all, with a unit; half of it is the file (16 GiB, or 1 GiB with --quick)")
      ->type_name("SIZE");
  command->add_flag("--quick", request->options.quick, "some ten seconds: fewer points, shorter ones");
  command->add_option("--name", request->name, "name of the profile; by default made from the drive's model")
      ->type_name("NAME");
  command->add_option("--output", request->output, "write the drive's hardware profile")
      ->to_write()
      ->type_name("PROFILE.json");
  command->callback([request, &context] { run_drive(*request, context); });
}

}  // namespace spillway::cli
