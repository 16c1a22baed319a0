#include "cli/commands/calibrate_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/options/command_options.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/gpu_fit.h"
#include "hwprofiles/calibrate/load_sampler.h"
#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"
#include "validation/trainer/cuda_backend.h"
#include "validation/trainer/kernel_calibration.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  GpuCalibrationOptions options;
  std::string base, output;
};

// The bundled profile whose title the device's name contains, or the other way round: "NVIDIA H200" and "H200 SXM".
std::string base_for(const Request& request, const std::string& device) {
  if (!request.base.empty()) return request.base;
  const ProfileLibrary library = ProfileLibrary::standard();
  std::string best;
  std::size_t best_length = 0;
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != ProfileKind::gpu) continue;
    std::string chip = entry.name.substr(0, entry.name.find('-'));
    std::transform(chip.begin(), chip.end(), chip.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
    if (device.find(chip) == std::string::npos || chip.size() <= best_length) continue;
    best = entry.name;
    best_length = chip.size();
  }
  if (best.empty())
    throw InputError("--base", "", "no bundled profile fits '" + device + "'",
                     "name the profile whose peaks and prices to keep, or write one first");
  return best;
}

std::string microseconds_of(const Spread& seconds) {
  return fmt::format("{:.2f} us +-{:.1f} %", seconds.median * 1e6, 100 * seconds.relative);
}

std::string gigabytes(Bytes bytes, const Spread& seconds) {
  return fmt::format("{:.1f} GB/s", static_cast<double>(bytes.count()) / seconds.median * 1e-9);
}

Table figure_table(const GpuMeasurement& measured) {
  Table table({"figure", "of", "value", "time"});
  table.add({"launch call", "", "", microseconds_of(measured.launch_call)});
  table.add({"launch to start", "", "", microseconds_of(measured.launch_to_start)});
  table.add({"kernel gap", "", "", microseconds_of(measured.kernel_gap)});
  table.add({"event record", "", "", microseconds_of(measured.event_record_call)});
  table.add({"event wait", "", "", microseconds_of(measured.event_wait_call)});
  table.add({"across streams", "", "", microseconds_of(measured.event_gap)});
  table.add({"two streams", "halves of the GPU", fmt::format("{:.2f} times", measured.two_stream_speedup), ""});
  table.add(
      {"copies beside kernels", "both ways",
       fmt::format("{:.1f} of {:.1f} GB/s", measured.copy_rate_beside_kernels * 1e-9, measured.copy_rate_alone * 1e-9),
       ""});
  table.add({"kernels beside copies", "copy",
             fmt::format("{:.1f} of {:.1f} GB/s", measured.kernel_rate_beside_copies * 1e-9,
                         measured.kernel_rate_alone * 1e-9),
             ""});
  table.add({"cudaMalloc", "20 MiB", "", microseconds_of(measured.malloc_cost)});
  table.add({"cudaFree", "20 MiB", "", microseconds_of(measured.free_cost)});
  const auto size = [](Bytes bytes) {
    const PrintedQuantity printed = print_quantity(static_cast<double>(bytes.count()), Dimension::bytes);
    return printed.value + " " + printed.unit;
  };
  for (const SizedTime& one : measured.memory_bound)
    table.add({one.what, size(one.bytes), gigabytes(one.bytes, one.seconds), microseconds_of(one.seconds)});
  for (const SizedTime& one : measured.copies)
    table.add({std::string(one.pinned ? "pinned " : "pageable ") + one.what, size(one.bytes),
               gigabytes(one.bytes, one.seconds), microseconds_of(one.seconds)});
  for (const GemmPoint& one : measured.products) {
    const double flops = 2.0 * static_cast<double>(one.m) * static_cast<double>(one.n) * static_cast<double>(one.k);
    table.add({fmt::format("product {}", precision_name(one.precision)), fmt::format("{}x{}x{}", one.m, one.n, one.k),
               fmt::format("{:.1f} TFLOPS", flops / one.seconds.median * 1e-12), microseconds_of(one.seconds)});
  }
  for (const KernelPoint& one : measured.kernels) {
    const bool is_attention = one.kind >= KernelKind::attention_forward;
    table.add(
        {std::string(kernel_kind_name(one.kind)),
         is_attention ? fmt::format("{:.3g} GFLOP", one.work * 1e-9) : size(Bytes(static_cast<std::int64_t>(one.work))),
         is_attention ? fmt::format("{:.1f} TFLOPS", one.work / one.seconds.median * 1e-12)
                      : fmt::format("{:.1f} GB/s", one.work / one.seconds.median * 1e-9),
         microseconds_of(one.seconds)});
  }
  return table;
}

void add_kernels(GpuMeasurement& measured, bool quick, const Progress& progress) {
  KernelCalibrationOptions options;
  options.cache = measured.l2_cache;
  options.seconds = GpuTimeBudget{}.step_kernels * (quick ? 1 : GpuTimeBudget::full);
  if (!quick) {
    options.tokens = {64, 256, 1024, 4096, 16384, 32768};
    options.batches = 15;
  }
  KernelCalibration calibration =
      measure_kernels(*load_cuda_backend(), options, progress.counter("measuring kernels of training steps"));
  measured.kernels = std::move(calibration.points);
  if (calibration.is_cut) measured.left_out.emplace_back("kernels of training steps");
}

Json load_json(const std::vector<LoadSample>& samples, const LoadedState& loaded) {
  Json rows = Json::array();
  for (const LoadSample& sample : samples)
    rows.push_back({{"seconds", sample.seconds},
                    {"sm_clock_mhz", sample.state.sm_clock_mhz.value_or(0)},
                    {"watts", sample.state.milliwatts.value_or(0) * 1e-3},
                    {"celsius", sample.state.celsius.value_or(0)}});
  return {{"sm_clock_mhz", loaded.sm_clock_mhz},
          {"watts", loaded.milliwatts * 1e-3},
          {"limited_by", loaded.limited_by},
          {"samples", std::move(rows)}};
}

void run(const Request& request, const Context& context) {
  const Progress progress(context);
  const std::optional<Nvml> nvml = Nvml::load();
  std::optional<LoadSampler> sampler;
  if (nvml && !nvml->gpus().empty()) sampler.emplace(*nvml, 0);
  GpuMeasurement measured = measure_gpu(request.options, progress.counter("measuring the GPU"));
  add_kernels(measured, request.options.quick, progress);
  const std::vector<LoadSample> samples = sampler ? sampler->stop() : std::vector<LoadSample>{};
  const LoadedState loaded = loaded_state(samples);
  measured.sm_clock_mhz = loaded.sm_clock_mhz;
  measured.milliwatts = loaded.milliwatts;
  const std::string date = today();
  const GpuProfile base = ProfileLibrary::standard().load_gpu(base_for(request, measured.name));
  GpuFit fit = fit_gpu(measured, base, date);
  for (const std::string& limit : loaded.limited_by) fit.notes.push_back("clocks under load are limited by " + limit);
  const std::string text =
      profile_text(fit.profile, {OriginKind::measured, "spillway calibrate on the machine itself", date, 0});
  if (!request.output.empty()) {
    OutputFile out(request.output);
    out.write(text);
    out.commit();
  }
  if (context.json()) {
    Json document = json_document("spillway.calibrate_gpu");
    document["device"] = measured.name;
    document["driver"] = measured.driver;
    document["seconds"] = measured.seconds;
    document["load"] = load_json(samples, loaded);
    document["profile"] = Json::parse(text);
    document["warnings"] = fit.notes;
    return print_json(document);
  }
  print(context, figure_table(measured));
  if (!context.rows_only())
    for (const std::string& line : fit.notes) print("note: " + line + "\n");
}

}  // namespace

void add_calibrate_gpu(Command& group, Context& context) {
  const auto request = std::make_shared<Request>();
  Command* command = group.add_subcommand(
      "gpu", "Measure the GPU: launches, memory, matrix products, kernels of training steps, copies");
  command->add_flag("--quick", request->options.quick,
                    "less than 90 seconds instead of six minutes: fewer shapes and sizes");
  command->add_option("--base", request->base, "GPU profile whose peaks and prices stay; by default that of the model")
      ->type_name("NAME");
  command->add_option("--output", request->output, "write the GPU's hardware profile")->type_name("PROFILE.json");
  command->callback([request, &context] { run(*request, context); });
}

}  // namespace spillway::cli
