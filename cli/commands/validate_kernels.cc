#include "cli/commands/validate_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "hwprofiles/profile_library.h"
#include "reports/pictures/scatter_svg.h"
#include "validation/trainer/cuda_backend.h"
#include "validation/trainer/kernel_cases.h"
#include "validation/trainer/technique_plans.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

// Step times on a GPU from a reference trace: the median of all rows and the worst (docs/internals/validation.md).
constexpr double step_time_median = 0.03, step_time_worst = 0.08;

std::unique_ptr<Backend> backend_named(const std::string& name) {
  static const std::vector<std::string_view> known = {"cpu", "cuda"};
  if (name.empty() || name == "cpu") return make_cpu_backend();
  if (name == "cuda") return load_cuda_backend();
  throw InputError("--backend", "", "no backend is called '" + name + "'", suggest(name, known));
}

void keep_models(std::vector<KernelCase>& cases, const std::vector<std::string>& models) {
  if (models.empty()) {
    std::erase_if(cases, [](const KernelCase& one) { return one.is_look; });
    return;
  }
  std::vector<std::string> names;
  for (const KernelCase& one : cases)
    if (names.empty() || names.back() != one.model) names.push_back(one.model);
  const auto is_in = [](const std::string& words) {
    return [&words](const std::string& name) { return name.find(words) != std::string::npos; };
  };
  for (const std::string& words : models)
    if (std::none_of(names.begin(), names.end(), is_in(words)))
      throw InputError("--model", "", "no model of this backend is called '" + words + "'",
                       fmt::format("name one of: {}", fmt::join(names, "; ")));
  std::erase_if(cases, [&](const KernelCase& one) {
    return std::none_of(models.begin(), models.end(),
                        [&](const std::string& words) { return is_in(words)(one.model); });
  });
}

std::vector<KernelCase> cases_for(const Backend& backend, const std::vector<std::string>& wanted,
                                  const std::vector<std::string>& models) {
  std::vector<KernelCase> cases = backend.name() == "cpu" ? cpu_kernel_cases() : gpu_kernel_cases();
  keep_models(cases, models);
  if (wanted.empty()) return cases;
  for (const std::string& name : wanted)
    if (std::find(trainer_techniques().begin(), trainer_techniques().end(), name) == trainer_techniques().end())
      throw InputError("--technique", "", "no technique is called '" + name + "'", suggest(name, trainer_techniques()));
  std::erase_if(cases, [&](const KernelCase& one) {
    return std::find(wanted.begin(), wanted.end(), one.technique) == wanted.end();
  });
  return cases;
}

// Sizes to the byte, the step's time within bounds, overlap as foreseen; phases are for people.
bool is_right(const KernelOutcome& outcome) {
  return outcome.sound() && outcome.verdict_is_right() &&
         std::all_of(outcome.rows.begin(), outcome.rows.end(), [](const KernelRow& row) {
           if (row.is_exact()) return row.measured == row.from_trace;
           return row.metric != "step_time" || std::abs(row.relative_error()) <= step_time_worst;
         });
}

std::string kernel_error(const KernelRow& row, double predicted) {
  if (row.measured == predicted) return "0";
  return fmt::format("{:+.2f} %", 100 * row.error_of(predicted));
}
std::string blind_error_text(const KernelRow* row) {
  return row == nullptr || !row->blind ? "-" : kernel_error(*row, *row->blind);
}

Table kernel_table(const std::vector<KernelOutcome>& outcomes) {
  Table table({"model", "technique", "metric", "unit", "measured", "blind", "error", "from a trace", "error of it"});
  for (const KernelOutcome& outcome : outcomes)
    for (const KernelRow& row : outcome.rows)
      table.add({outcome.run.model, outcome.run.technique, row.metric, row.unit, fmt::format("{:.10g}", row.measured),
                 row.blind ? fmt::format("{:.10g}", *row.blind) : "-", blind_error_text(&row),
                 fmt::format("{:.10g}", row.from_trace), kernel_error(row, row.from_trace)});
  return table;
}

const KernelRow* row_of(const KernelOutcome& outcome, std::string_view metric) {
  for (const KernelRow& row : outcome.rows)
    if (row.metric == metric) return &row;
  return nullptr;
}

std::string_view overlap_word(const Overlap& overlap) { return overlap.is_hidden() ? "hidden" : "exposed"; }

std::string overlap_text(const KernelOutcome& outcome) {
  if (!outcome.measured_overlap) return "-";
  return fmt::format(
      "{}{}", overlap_word(*outcome.measured_overlap),
      outcome.verdict_is_right() ? "" : fmt::format(", not {}", overlap_word(*outcome.predicted_overlap)));
}

// Without times, as on the processor, nothing of times is shown.
Table outcome_table(const std::vector<KernelOutcome>& outcomes) {
  const bool has_times = std::any_of(outcomes.begin(), outcomes.end(), [](const KernelOutcome& outcome) {
    return row_of(outcome, "step_time") != nullptr;
  });
  std::vector<std::string> head = {"model",     "technique", "loss",    "same bits", "order",
                                   "transfers", "pool",      "to host", "to drive"};
  if (has_times) head.insert(head.end(), {"step", "blind", "from a trace", "overlap"});
  head.emplace_back("verdict");
  Table table(head);
  for (const KernelOutcome& outcome : outcomes) {
    if (!outcome.skipped.empty()) continue;
    const auto measured = [&](std::string_view metric) {
      const KernelRow* row = row_of(outcome, metric);
      if (row == nullptr) return std::string("-");
      return fmt::format("{:.0f}{}", row->measured, row->measured == row->from_trace ? "" : " !");
    };
    const auto yes = [](bool is) { return std::string(is ? "yes" : "NO"); };
    std::vector<std::string> cells = {outcome.run.model,
                                      outcome.run.technique,
                                      fmt::format("{:.4f} to {:.4f}", outcome.first_loss, outcome.last_loss),
                                      yes(outcome.same_bits),
                                      yes(outcome.order_kept),
                                      yes(outcome.transfers_kept),
                                      yes(outcome.pool_kept),
                                      measured("host_written"),
                                      measured("drive_written")};
    const KernelRow* step = row_of(outcome, "step_time");
    if (has_times)
      cells.insert(cells.end(),
                   {step == nullptr ? "-" : fmt::format("{:.2f} ms", 1e3 * step->measured), blind_error_text(step),
                    step == nullptr ? "-" : kernel_error(*step, step->from_trace), overlap_text(outcome)});
    cells.emplace_back(is_right(outcome) ? "as predicted" : "NOT");
    table.add(std::move(cells));
  }
  return table;
}

// What a row or a summary is predicted from: bytes follow from the plan, times from a profile or a trace.
std::string_view source_of(std::string_view metric, bool is_blind) {
  if (is_blind) return "blind";
  return metric.ends_with("_written") || metric.ends_with("_read") ? "plan" : "from_trace";
}

Table kernel_summary_table(const std::vector<KernelSummary>& summaries) {
  Table table({"metric", "predicted", "runs", "median", "|median|", "|90th|", "|worst|"});
  for (const KernelSummary& summary : summaries)
    table.add({summary.metric, std::string(source_of(summary.metric, summary.is_blind)),
               std::to_string(summary.errors.n), fmt::format("{:+.2f} %", 100 * summary.errors.median),
               percent_text(summary.errors.median_abs, 2), percent_text(summary.errors.p90_abs, 2),
               percent_text(summary.errors.worst_abs, 2)});
  return table;
}

// Panels by unit and kind; colours by technique.
std::vector<ScatterPanel> panels_of(const std::vector<KernelOutcome>& outcomes) {
  struct Kind {
    const char *title, *unit;
    double scale;
    std::vector<std::string_view> metrics;
  };
  const std::vector<Kind> kinds = {
      {"Step time", "ms", 1e-3, {"step_time"}},
      {"Phases", "ms", 1e-3, {"forward_time", "backward_time", "optimizer_time"}},
      {"Transfers under kernels", "ms", 1e-3, {"transfers_hidden"}},
      {"Bytes moved", "MiB", 1048576, {"host_written", "host_read", "drive_written", "drive_read"}}};
  std::vector<ScatterPanel> panels;
  for (const Kind& kind : kinds) {
    ScatterPanel& panel = panels.emplace_back(ScatterPanel{kind.title, kind.unit, {}, {}});
    bool has_blind = false;
    for (std::size_t t = 0; t < trainer_techniques().size(); ++t) {
      std::size_t runs = 0;
      for (const KernelOutcome& outcome : outcomes) {
        if (outcome.run.technique != trainer_techniques()[t]) continue;
        for (const std::string_view metric : kind.metrics)
          if (const KernelRow* row = row_of(outcome, metric); row != nullptr && row->measured > 0) {
            panel.points.push_back({row->measured / kind.scale, row->from_trace / kind.scale, false, t});
            if (row->blind) panel.points.push_back({row->measured / kind.scale, *row->blind / kind.scale, true, t});
            has_blind = has_blind || row->blind;
            ++runs;
          }
      }
      if (runs > 0) panel.legend.push_back({t, false, fmt::format("{}: {} figures", trainer_techniques()[t], runs)});
    }
    if (has_blind) panel.legend.push_back({0, true, "hollow: blind, by the profile"});
  }
  return panels;
}

// What the runs say, and what they don't.
std::string_view meaning_of(const Backend& backend) {
  if (backend.name() == "cpu")
    return "on the processor this proves bits, order and bytes: that plans are carried out as they were made. It says "
           "nothing of times on a GPU, nor of PyTorch's allocator: the simulator's own pool hands out the addresses";
  return "blind: by the profile alone, except for attention and the trainer's other kernels that no library has so, "
         "which "
         "keep their measured times (their share is printed): no claim about a library's step. From a trace: kernels "
         "as "
         "measured before, so it is overlap and waiting that are predicted. The simulator's own pool hands out the "
         "addresses, so memory is compared with PyTorch's allocator elsewhere (validate results)";
}

Json overlap_json(const Overlap& overlap) {
  return {{"transfer_seconds", overlap.transfer_seconds},
          {"hidden_seconds", overlap.hidden_seconds},
          {"exposed_seconds", overlap.exposed_seconds()},
          {"verdict", overlap_word(overlap)}};
}

Json kernel_summary_json(const KernelSummary& summary) {
  const bool is_step = summary.metric == "step_time" && !summary.is_blind;
  return {{"source", source_of(summary.metric, summary.is_blind)},
          {"metric", summary.metric},
          {"role", "validation"},
          {"n", summary.errors.n},
          {"median_abs_error", summary.errors.median_abs},
          {"p90_abs_error", summary.errors.p90_abs},
          {"worst_abs_error", summary.errors.worst_abs},
          {"mean_abs_error", summary.errors.mean_abs},
          {"median_error", summary.errors.median},
          {"tolerance",
           {{"median", is_step ? Json(step_time_median) : Json(nullptr)},
            {"worst", is_step ? Json(step_time_worst) : Json(nullptr)}}}};
}

Json outcomes_json(const std::vector<KernelOutcome>& outcomes, const Backend& backend, const std::string& hardware) {
  Json document = json_document("spillway-validation");
  document["backend"] = backend.name();
  document["device"] = backend.device();
  document["hardware"] = hardware;
  document["meaning"] = meaning_of(backend);
  for (const char* key : {"summary", "rows", "skipped", "runs", "warnings"}) document[key] = Json::array();
  for (const KernelSummary& summary : summarize(outcomes)) document["summary"].push_back(kernel_summary_json(summary));
  for (const KernelOutcome& outcome : outcomes) {
    const std::string name = outcome.run.model + ", " + outcome.run.technique;
    if (!outcome.skipped.empty()) {
      document["skipped"].push_back({{"case", name}, {"reason", outcome.skipped}});
      continue;
    }
    Json run = {{"case", name},
                {"first_loss", outcome.first_loss},
                {"last_loss", outcome.last_loss},
                {"same_bits", outcome.same_bits},
                {"order_kept", outcome.order_kept},
                {"transfers_kept", outcome.transfers_kept},
                {"pool_kept", outcome.pool_kept},
                {"pool_allocated_bytes", outcome.pool_allocated.count()},
                {"pool_reserved_bytes", outcome.pool_reserved.count()},
                {"file_access", outcome.file_access},
                {"as_predicted", is_right(outcome)}};
    if (outcome.measured_share > 0) run["measured_share_of_blind"] = outcome.measured_share;
    if (outcome.measured_overlap)
      run["overlap"] = {{"measured", overlap_json(*outcome.measured_overlap)},
                        {"predicted", overlap_json(*outcome.predicted_overlap)},
                        {"verdict_is_right", outcome.verdict_is_right()}};
    document["runs"].push_back(std::move(run));
    for (const KernelRow& row : outcome.rows)
      for (const bool is_blind : {true, false}) {
        if (is_blind && !row.blind) continue;
        const double predicted = is_blind ? *row.blind : row.from_trace, error = row.error_of(predicted);
        document["rows"].push_back({{"case", name},
                                    {"source", source_of(row.metric, is_blind)},
                                    {"metric", row.metric},
                                    {"unit", row.unit},
                                    {"measured", row.measured},
                                    {"predicted", predicted},
                                    {"relative_error", std::isfinite(error) ? Json(error) : Json(nullptr)},
                                    {"role", "validation"}});
      }
  }
  return document;
}

double median_step_error(const std::vector<KernelOutcome>& outcomes) {
  for (const KernelSummary& summary : summarize(outcomes))
    if (summary.metric == "step_time" && !summary.is_blind) return summary.errors.median_abs;
  return 0;
}

// A name in the temporary folder; the file itself loses it as soon as it is open.
std::string file_for(const ValidateKernelsArguments& arguments) {
  if (!arguments.file.empty()) return arguments.file;
  return temporary_folder() + fmt::format("/spillway-kernels-{}", getpid());
}

}  // namespace

void validate_kernels(const ValidateKernelsArguments& arguments, Context& context) {
  const std::unique_ptr<Backend> backend = backend_named(arguments.backend);
  const std::vector<KernelCase> cases = cases_for(*backend, arguments.techniques, arguments.models);
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
  const Json document = outcomes_json(outcomes, *backend, hardware.name);
  const std::string picture = scatter_svg("Predicted against measured: " + backend->device(), panels_of(outcomes));
  if (!arguments.output.empty()) write_text(arguments.output, kernel_table(outcomes).csv());
  if (!arguments.plot.empty()) write_text(arguments.plot, picture);
  if (!arguments.results.empty()) {
    std::filesystem::create_directories(arguments.results);
    const std::string name = arguments.results + "/" + today() + "-" + backend->name();
    write_text(name + ".csv", kernel_table(outcomes).csv());
    write_text(name + ".json", document.dump(1) + "\n");
    write_text(name + ".svg", picture);
  }
  if (context.json())
    print_json(document);
  else if (context.rows_only())
    print(context, kernel_table(outcomes));
  else
    print(outcome_table(outcomes).text() + "\n" + kernel_summary_table(summarize(outcomes)).text() +
          fmt::format("\nnote: {}\n", meaning_of(*backend)));
  for (const KernelOutcome& outcome : outcomes)
    if (!outcome.skipped.empty())
      warn(context, outcome.run.model + ", " + outcome.run.technique + ": skipped: " + outcome.skipped);
  const bool right = std::all_of(outcomes.begin(), outcomes.end(), [](const KernelOutcome& outcome) {
    return !outcome.skipped.empty() || is_right(outcome);
  });
  if (!right || median_step_error(outcomes) > step_time_median) context.exit_code = exit_answer_is_no;
}

}  // namespace spillway::cli
