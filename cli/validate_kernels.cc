#include "cli/validate_kernels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/progress.h"
#include "cli/table.h"
#include "hwprofiles/profile_library.h"
#include "traces/base/input_error.h"
#include "traces/base/nearest_name.h"
#include "traces/base/output_file.h"
#include "validation/kernel_cases.h"
#include "validation/trainer/cuda_backend.h"
#include "validation/trainer/technique_plans.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

// Step times on a GPU: the median of all rows and the worst (docs/validation.md).
constexpr double step_time_median = 0.03, step_time_worst = 0.08;

std::unique_ptr<Backend> backend_named(const std::string& name) {
  static const std::vector<std::string_view> known = {"cpu", "cuda"};
  if (name.empty() || name == "cpu") return make_cpu_backend();
  if (name == "cuda") return load_cuda_backend();
  throw InputError("--backend", "", "no backend is called '" + name + "'", suggest(name, known));
}

std::vector<KernelCase> cases_for(const Backend& backend, const std::vector<std::string>& wanted) {
  std::vector<KernelCase> cases = backend.name() == "cpu" ? cpu_kernel_cases() : gpu_kernel_cases();
  if (wanted.empty()) return cases;
  for (const std::string& name : wanted)
    if (std::find(techniques().begin(), techniques().end(), name) == techniques().end())
      throw InputError("--technique", "", "no technique is called '" + name + "'", suggest(name, techniques()));
  std::erase_if(cases, [&](const KernelCase& one) {
    return std::find(wanted.begin(), wanted.end(), one.technique) == wanted.end();
  });
  return cases;
}

bool is_exact(const KernelRow& row) { return row.metric != "step_time"; }

bool is_right(const KernelOutcome& outcome) {
  return outcome.sound() && std::all_of(outcome.rows.begin(), outcome.rows.end(), [](const KernelRow& row) {
           return is_exact(row) ? row.measured == row.predicted : std::abs(row.relative_error()) <= step_time_worst;
         });
}

std::string error_text(const KernelRow& row) {
  if (row.measured == row.predicted) return "0";
  return fmt::format("{:+.2f} %", 100 * row.relative_error());
}

Table row_table(const std::vector<KernelOutcome>& outcomes) {
  Table table({"model", "technique", "metric", "unit", "measured", "predicted", "error"});
  for (const KernelOutcome& outcome : outcomes)
    for (const KernelRow& row : outcome.rows)
      table.add({outcome.run.model, outcome.run.technique, row.metric, row.unit, fmt::format("{:.10g}", row.measured),
                 fmt::format("{:.10g}", row.predicted), error_text(row)});
  return table;
}

Table outcome_table(const std::vector<KernelOutcome>& outcomes) {
  Table table({"model", "technique", "loss", "same bits", "order", "transfers", "peak reserved", "to host", "to drive",
               "verdict"});
  for (const KernelOutcome& outcome : outcomes) {
    if (!outcome.skipped.empty()) continue;
    const auto measured = [&](std::string_view metric) {
      for (const KernelRow& row : outcome.rows)
        if (row.metric == metric)
          return fmt::format("{:.0f}{}", row.measured, row.measured == row.predicted ? "" : " !");
      return std::string("-");
    };
    const auto yes = [](bool is) { return std::string(is ? "yes" : "NO"); };
    table.add({outcome.run.model, outcome.run.technique,
               fmt::format("{:.4f} to {:.4f}", outcome.first_loss, outcome.last_loss), yes(outcome.same_bits),
               yes(outcome.order_kept), yes(outcome.transfers_kept), measured("peak_reserved"),
               measured("host_written"), measured("drive_written"), is_right(outcome) ? "as predicted" : "NOT"});
  }
  return table;
}

Json outcomes_json(const std::vector<KernelOutcome>& outcomes, const Backend& backend, const std::string& hardware) {
  Json document = json_document("spillway-validation");
  document["backend"] = backend.name();
  document["device"] = backend.device();
  document["hardware"] = hardware;
  for (const char* key : {"summary", "rows", "skipped", "runs", "warnings"}) document[key] = Json::array();
  for (const KernelOutcome& outcome : outcomes) {
    const std::string name = outcome.run.model + ", " + outcome.run.technique;
    if (!outcome.skipped.empty()) {
      document["skipped"].push_back({{"case", name}, {"reason", outcome.skipped}});
      continue;
    }
    document["runs"].push_back({{"case", name},
                                {"first_loss", outcome.first_loss},
                                {"last_loss", outcome.last_loss},
                                {"same_bits", outcome.same_bits},
                                {"order_kept", outcome.order_kept},
                                {"transfers_kept", outcome.transfers_kept},
                                {"file_access", outcome.file_access},
                                {"as_predicted", is_right(outcome)}});
    for (const KernelRow& row : outcome.rows)
      document["rows"].push_back(
          {{"case", name},
           {"source", "kernels"},
           {"metric", row.metric},
           {"unit", row.unit},
           {"measured", row.measured},
           {"predicted", row.predicted},
           {"relative_error", std::isfinite(row.relative_error()) ? Json(row.relative_error()) : Json(nullptr)},
           {"role", "validation"}});
  }
  return document;
}

double median_step_error(const std::vector<KernelOutcome>& outcomes) {
  std::vector<double> errors;
  for (const KernelOutcome& outcome : outcomes)
    for (const KernelRow& row : outcome.rows)
      if (!is_exact(row)) errors.push_back(std::abs(row.relative_error()));
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

// A name in the temporary folder; the file itself loses it as soon as it is open.
std::string file_for(const ValidateKernelsArguments& arguments) {
  if (!arguments.file.empty()) return arguments.file;
  return (std::filesystem::temp_directory_path() / fmt::format("spillway-kernels-{}", getpid())).string();
}

}  // namespace

void validate_kernels(const ValidateKernelsArguments& arguments, Context& context) {
  const std::unique_ptr<Backend> backend = backend_named(arguments.backend);
  const std::vector<KernelCase> cases = cases_for(*backend, arguments.techniques);
  const std::string hardware_name = arguments.hardware.empty() ? "ssdtrain-testbed" : arguments.hardware;
  const HardwareProfile hardware = ProfileLibrary::standard().load_system(hardware_name);
  KernelCaseOptions options;
  options.steps = arguments.steps;
  options.file = file_for(arguments);
  options.hardware = &hardware;
  // A step on the reference kernels takes the processor's time, which no hardware profile is about.
  options.step_times = backend->name() != "cpu";
  const Progress progress(context);
  const std::vector<KernelOutcome> outcomes =
      run_kernel_cases(*backend, cases, options, progress.counter("running kernels"));
  if (!arguments.output.empty()) {
    OutputFile out(arguments.output);
    out.write(row_table(outcomes).csv());
    out.commit();
  }
  if (context.json())
    print_json(outcomes_json(outcomes, *backend, hardware_name));
  else
    print(context, context.rows_only() ? row_table(outcomes) : outcome_table(outcomes));
  for (const KernelOutcome& outcome : outcomes)
    if (!outcome.skipped.empty())
      warn(context, outcome.run.model + ", " + outcome.run.technique + ": skipped: " + outcome.skipped);
  const bool right = std::all_of(outcomes.begin(), outcomes.end(), [](const KernelOutcome& outcome) {
    return !outcome.skipped.empty() || is_right(outcome);
  });
  if (!right || median_step_error(outcomes) > step_time_median) context.exit_code = exit_answer_is_no;
}

}  // namespace spillway
