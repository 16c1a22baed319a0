#include "cli/commands/plan_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/pipeline_settings.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "models/pipeline/pipeline_json.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"
#include "planners/pipeline/schedule_search.h"
#include "reports/pictures/pipeline_svg.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t largest_schedule = 1'000'000'000;

struct PipelineCall {
  std::string schedule{default_schedule}, output;
  PipelineRequest request;
  std::vector<std::string> settings;
  bool no_pairs = false, two_copies = false;
  std::vector<double> memory_limits;  // one, or one per stage; empty: none
  std::int64_t effort = 0;            // of the search; 0: its own
  std::int64_t offloaded_states = 0;  // chunks per device, deepest first
  std::string optimizer = "host";
};

struct PipelineAnswer {
  PipelinePlan plan;
  PipelineTimeline timeline;
  std::vector<double> peaks;
  std::optional<SearchResult> search;
  std::optional<WindowReport> windows;

  [[nodiscard]] double worst_peak() const { return *std::max_element(peaks.begin(), peaks.end()); }
  [[nodiscard]] Verdict verdict(const std::vector<double>& limits) const {
    if (limits.empty()) return Verdict::unknown;
    for (std::size_t d = 0; d < peaks.size(); ++d)
      if (peaks[d] > limits[limits.size() == 1 ? 0 : d] + 1e-9) return Verdict::does_not_fit;
    return Verdict::fits;
  }
  [[nodiscard]] double makespan() const { return static_cast<double>(timeline.makespan) / ticks_per_unit; }
};

PipelineAnswer played(PipelinePlan plan, const StageTimes& times, const ActivationRules& rules) {
  PipelineAnswer answer;
  answer.plan = std::move(plan);
  answer.timeline = execute_plan(answer.plan, times);
  answer.peaks = activation_peaks(answer.plan, answer.timeline, rules);
  return answer;
}

PipelineAnswer from_file(const PipelineCall& call, const PipelineSettings& settings) {
  const std::string text = read_file(call.schedule, largest_schedule);
  PipelinePlan plan = read_plan_json(text, call.schedule);
  const StageTimes times = stage_times(settings, plan.devices, plan.chunks);
  return played(std::move(plan), times, activation_rules(settings));
}

PipelineAnswer by_name(const PipelineCall& call, const PipelineSettings& settings) {
  PipelineRequest request = resolve_request(call.schedule, call.request);
  request.times = stage_times(settings, request.devices, request.chunks);
  request.weight_part = activation_rules(settings).weight_part;
  PipelinePlan plan = build_schedule(call.schedule, request);
  check_plan(plan);
  return played(std::move(plan), request.times, activation_rules(settings));
}

void print_json_answer(const PipelineCall& call, const PipelineAnswer& answer) {
  Json document = json_document("spillway.plan_pipeline");
  document["name"] = answer.plan.name;
  document["makespan"] = answer.makespan();
  document["bubble_makespan"] = answer.timeline.bubble_of_makespan();
  document["bubble_stage_span"] = answer.timeline.bubble_of_longest_span();
  document["peak_activations"] = answer.peaks;
  document["memory_limits"] = call.memory_limits;
  put_verdict(document, answer.verdict(call.memory_limits));
  if (answer.search) {
    document["best_named"] = answer.search->best_named.empty() ? Json(nullptr) : Json(answer.search->best_named);
    document["best_named_makespan"] = static_cast<double>(answer.search->best_named_makespan) / ticks_per_unit;
    document["lower_bound"] = static_cast<double>(answer.search->lower_bound) / ticks_per_unit;
    document["proven"] = answer.search->proven;
  }
  if (answer.windows) {
    Json& windows = document["optimizer_windows"] = Json::array();
    const auto units = [](Ticks ticks) { return static_cast<double>(ticks) / ticks_per_unit; };
    for (const OptimizerWindow& window : answer.windows->windows)
      windows.push_back({{"device", window.device},
                         {"chunk", window.chunk},
                         {"tail", units(window.tail)},
                         {"head", units(window.head)},
                         {"ready", units(window.ready)},
                         {"exposed", units(window.exposed)}});
    document["exposed"] = units(answer.windows->exposed);
  }
  add_plan_json(document, answer.plan);
  print_json(document);
}

std::string compact(double value) { return fmt::format("{:.6g}", value); }

void print_answer(Context& context, const PipelineCall& call, const PipelineAnswer& answer) {
  if (context.json()) return print_json_answer(call, answer);
  if (context.rows_only()) {
    Table table({"device", "peak_activations", "busy", "begin", "end"});
    for (std::size_t d = 0; d < answer.peaks.size(); ++d) {
      const auto& spans = answer.timeline.compute[d];
      const auto units = [](Ticks ticks) { return compact(static_cast<double>(ticks) / ticks_per_unit); };
      table.add({std::to_string(d), compact(answer.peaks[d]), units(answer.timeline.work[d]),
                 spans.empty() ? "" : units(spans.front().begin), spans.empty() ? "" : units(spans.back().end)});
    }
    return print(context, table);
  }
  std::string peaks;
  for (const double peak : answer.peaks) peaks += (peaks.empty() ? "" : " ") + compact(peak);
  Table table({"figure", "value"});
  table.add({"schedule", answer.plan.name});
  table.add({"step takes", compact(answer.makespan())});
  table.add({"idle, of the whole step", fmt::format("{:.2f} %", 100 * answer.timeline.bubble_of_makespan())});
  table.add(
      {"idle, of the longest device's span", fmt::format("{:.2f} %", 100 * answer.timeline.bubble_of_longest_span())});
  table.add({"activations, in micro-batches, at most", compact(answer.worst_peak())});
  table.add({"by device", peaks});
  if (!call.memory_limits.empty()) table.add({"fits", std::string(yes_or_no(answer.verdict(call.memory_limits)))});
  if (answer.windows)
    table.add({"exposed by offloaded states", compact(static_cast<double>(answer.windows->exposed) / ticks_per_unit)});
  if (answer.search) {
    const SearchResult& search = *answer.search;
    if (!search.best_named.empty())
      table.add({"best named schedule that fits",
                 fmt::format("{}, {}", search.best_named,
                             compact(static_cast<double>(search.best_named_makespan) / ticks_per_unit))});
    table.add({"proven shortest", search.proven ? "yes" : "no"});
  }
  print(context, table);
}

void write_output(const PipelineCall& call, const PipelineAnswer& answer, const PipelineSettings& settings) {
  std::string text;
  if (call.output.ends_with(".svg")) {
    PipelineSvgOptions options;
    options.title = fmt::format("{}: {} stages, {} micro-batches", answer.plan.name, answer.plan.devices,
                                answer.plan.micro_batches);
    if (answer.plan.chunks > 1) options.title += fmt::format(", {} chunks per stage", answer.plan.chunks);
    if (answer.plan.slices > 1) options.title += fmt::format(", {} slices", answer.plan.slices);
    options.ticks_per_unit = ticks_per_unit;
    if (!call.memory_limits.empty())
      options.memory_limit = *std::max_element(call.memory_limits.begin(), call.memory_limits.end());
    const ActivationProfile memory = activation_profile(answer.plan, answer.timeline, activation_rules(settings));
    text = pipeline_svg(answer.plan, answer.timeline, memory, options);
  } else if (call.output.ends_with(".json")) {
    Json document = json_document("spillway.plan_pipeline");
    document["name"] = answer.plan.name;
    add_plan_json(document, answer.plan);
    text = document.dump() + "\n";
  } else {
    throw InputError(call.output, "--output", "neither .svg nor .json",
                     "name a picture (.svg) or a file of the orders (.json)");
  }
  OutputFile output(call.output);
  output.write(text);
  output.commit();
}

std::optional<PipelineAnswer> searched(const Context& context, const PipelineCall& call,
                                       const PipelineSettings& settings) {
  const Progress progress(context);
  SearchRequest request;
  request.devices = call.request.devices;
  request.micro_batches = call.request.micro_batches;
  request.chunks = call.request.chunks;
  request.times = stage_times(settings, request.devices, std::max<std::int64_t>(1, request.chunks));
  request.limits = call.memory_limits;
  request.rules = activation_rules(settings);
  request.two_copies = call.two_copies;
  if (call.effort > 0) request.effort = call.effort;
  request.progress = [&] { return progress.show("searching"); };
  SearchResult result = search_schedule(request);
  if (!result.found) return std::nullopt;
  PipelineAnswer answer{result.plan, result.timeline, result.peaks, std::nullopt, std::nullopt};
  answer.search = std::move(result);
  return answer;
}

// Memory below what any order needs is an answer.
void report_nothing(Context& context, const PipelineCall& call) {
  context.exit_code = exit_answer_is_no;
  if (!context.json()) return note(context, "no schedule keeps within that memory");
  Json document = json_document("spillway.plan_pipeline");
  document["memory_limits"] = call.memory_limits;
  put_verdict(document, Verdict::does_not_fit);
  print_json(document);
}

// One line per schedule that can have these sizes; the others are named on standard error.
void compare_all(Context& context, const PipelineCall& call, const PipelineSettings& settings) {
  Table table({"schedule", "makespan", "bubble_makespan", "bubble_stage_span", "peak_activations", "weights", "fits"});
  Json rows = Json::array();
  for (const NamedSchedule& named : named_schedules()) {
    PipelineCall each = call;
    each.schedule = named.name;
    try {
      const PipelineAnswer answer = by_name(each, settings);
      const Verdict verdict = answer.verdict(call.memory_limits);
      table.add({each.schedule, compact(answer.makespan()), fmt::format("{:.4f}", answer.timeline.bubble_of_makespan()),
                 fmt::format("{:.4f}", answer.timeline.bubble_of_longest_span()), compact(answer.worst_peak()),
                 std::to_string(answer.plan.routes.size()), std::string(yes_or_no(verdict))});
      rows.push_back({{"name", each.schedule},
                      {"makespan", answer.makespan()},
                      {"bubble_makespan", answer.timeline.bubble_of_makespan()},
                      {"bubble_stage_span", answer.timeline.bubble_of_longest_span()},
                      {"peak_activations", answer.peaks},
                      {"weight_copies", answer.plan.routes.size()},
                      {"fits", fits_json(verdict)},
                      {"verdict", to_string(verdict)}});
    } catch (const InputError& error) {
      note(context, each.schedule + " left out: " + error.cause());
    }
  }
  if (!context.json()) return print(context, table);
  Json document = json_document("spillway.plan_pipeline_comparison");
  document["schedules"] = rows;
  print_json(document);
}

void add_windows(const PipelineCall& call, const PipelineSettings& settings, PipelineAnswer& answer) {
  if (answer.plan.routes.size() > 1 || call.offloaded_states > answer.plan.chunks)
    throw InputError("", "--offload-states", "the schedule has not so many chunks, or holds the weights twice",
                     "give at most the chunks of a device");
  const OptimizerPlace place = call.optimizer == "host" ? OptimizerPlace::host : OptimizerPlace::device;
  answer.windows = optimizer_windows(answer.plan, answer.timeline,
                                     offloaded_optimizer(settings, answer.plan.chunks, call.offloaded_states, place));
}

void run_pipeline(Context& context, PipelineCall& call) {
  const PipelineSettings settings = parse_pipeline_settings(call.settings);
  call.request.pairs = !call.no_pairs;
  if (call.schedule == "all") {
    if (!call.output.empty())
      throw InputError(call.output, "--output", "'all' is a comparison, not one schedule", "name a schedule");
    return compare_all(context, call, settings);
  }
  if (call.memory_limits.size() > 1 && call.memory_limits.size() != static_cast<std::size_t>(call.request.devices))
    throw InputError("", "--memory-limit", "there are neither one nor as many limits as stages",
                     "give one, or one per stage");
  std::optional<PipelineAnswer> found;
  if (call.schedule == "best") {
    found = searched(context, call, settings);
    if (!found) return report_nothing(context, call);
  } else {
    found = call.schedule.ends_with(".json") ? from_file(call, settings) : by_name(call, settings);
  }
  if (call.offloaded_states > 0) add_windows(call, settings, *found);
  const PipelineAnswer& answer = *found;
  if (!call.output.empty()) write_output(call, answer, settings);
  print_answer(context, call, answer);
  if (answer.verdict(call.memory_limits) == Verdict::does_not_fit) context.exit_code = exit_answer_is_no;
}

std::string names_for_help() {
  std::string names;
  for (const NamedSchedule& named : named_schedules()) names += (names.empty() ? "" : ", ") + std::string(named.name);
  return "one of " + names + "; best searches, all compares them; or a file of orders";
}

}  // namespace

void add_plan_pipeline(Command& group, Context& context) {
  Command* command = group.add_subcommand("pipeline", "A pipeline schedule: its time, idle time, memory and picture");
  const auto call = std::make_shared<PipelineCall>();
  command->add_option("--schedule", call->schedule, names_for_help())
      ->capture_default_str()
      ->type_name("NAME|best|all|FILE.json");
  command->add_option("--stages", call->request.devices, "devices the model is spread over")->type_name("P");
  command->add_option("--microbatches", call->request.micro_batches, "micro-batches of a step")->type_name("M");
  command
      ->add_option("--chunks", call->request.chunks, "parts of the model per device; the schedule's own if not given")
      ->type_name("V");
  command->add_option("--slices", call->request.slices, "parts of each sequence (seq1f1b, slimpipe)")->type_name("K");
  command
      ->add_option("--recompute", call->request.recomputed_chunks, "chunks per device recomputed, shallow ones first")
      ->type_name("R");
  command->add_option("--offload", call->request.offloaded_chunks, "chunks per device offloaded, shallow ones first")
      ->type_name("C");
  command
      ->add_option("--offload-states", call->offloaded_states,
                   "chunks per device, deepest first, with optimizer states on the host")
      ->check(non_negative_number())
      ->type_name("C");
  command->add_option("--optimizer", call->optimizer, "where their optimizer runs")
      ->choices({"host", "device"})
      ->capture_default_str()
      ->type_name("host|device");
  command->add_flag("--split", call->request.split_backward, "chronos: weight gradients as passes of their own");
  command->add_flag("--no-pairs", call->no_pairs, "dualpipe: forwards and backwards one after the other");
  command
      ->add_option(
          "--set", call->settings,
          "tf, tb, tw, tr (of a device's share of a micro-batch, or a list: one per part of the model), tfb, "
          "tcomm, toffload, treload, w_memory, checkpoint, blocking, sout, sin, supdate, pieces; may be repeated")
      ->type_name("KEY=VALUE");
  command
      ->add_option("--memory-limit", call->memory_limits,
                   "micro-batches of activations a device can hold; one for all, or one per stage: 4,4,3,3")
      ->delimiter(',')
      ->check(positive_number())
      ->type_name("X");
  command->add_flag("--two-copies", call->two_copies, "best: also schedules that hold the weights twice");
  command->add_option("--effort", call->effort, "best: states that the exact search may try")
      ->check(positive_number())
      ->type_name("N");
  command->add_option("--output", call->output, "write a picture (.svg) or the orders (.json)")
      ->to_write()
      ->type_name("FILE");
  command->callback([&context, call] { run_stoppable([&] { run_pipeline(context, *call); }); });
}

}  // namespace spillway::cli
