#include "cli/commands/plan_order_replay.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/number_text.h"
#include "base/output_file.h"
#include "cli/options/interrupt.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "planners/order/order_greedy.h"
#include "planners/order/order_links.h"
#include "planners/order/trace_order.h"
#include "scenario/scenario_run.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

// Replays of the step as it is and as planned; none without times.
struct Replays {
  std::optional<Result> plain, planned;
};

struct TraceAnswer {
  TraceOrder found;
  double seconds = 0;
  std::optional<std::int64_t> greedy_peak_bytes;
  Replays replays;
};

Json order_warnings(const TraceOrder& found) {
  Json warnings = Json::array();
  if (const Finding* finding = found.trace.finding("memory_from_uses")) warnings.push_back(finding->remedy);
  std::uint64_t left_out = 0;
  for (const RankOrder& rank : found.ranks) left_out += rank.graph.edges_left_out;
  if (left_out > 0)
    warnings.push_back(
        fmt::format("{} edges of the trace lead against the order its ops are issued in; left out", left_out));
  return warnings;
}

// Of several GPUs'; null: none was asked for.
const LayoutResult* highest(const TraceOrder& found) {
  const LayoutResult* highest = nullptr;
  for (const auto& [device, layout] : found.layouts)
    if (highest == nullptr || layout.height > highest->height) highest = &layout;
  return highest;
}

Json replay_json(const Result& result) {
  if (!result.memory.known) return {{"step_time_ns", whole_nanoseconds(result.step_time)}};
  return {{"step_time_ns", whole_nanoseconds(result.step_time)},
          {"allocator", result.memory.allocator},
          {"peak_allocated_bytes", result.memory.peak_allocated.count()},
          {"peak_reserved_bytes", result.memory.peak_reserved.count()},
          {"fits", fits_json(result.verdict())},
          {"verdict", to_string(result.verdict())}};
}

void print_trace_json(const TraceAnswer& answer) {
  const TraceOrder& found = answer.found;
  const RankOrder& widest = found.widest();
  Json document = json_document("spillway.plan_order");
  document["operators"] = widest.graph.graph.operators.size();
  document["tensors"] = widest.graph.graph.tensors.size();
  document["peak_bytes"] = widest.peak;
  document["program_order_peak_bytes"] = widest.program_peak;
  document["recorded_peak_bytes"] = widest.recorded_peak < 0 ? Json() : Json(widest.recorded_peak);
  document["lower_bound_bytes"] = widest.order.lower_bound_bytes;
  document["constant_bytes"] = widest.graph.graph.constant_bytes;
  document["proven"] = widest.order.proven;
  document["stopped"] = widest.order.stopped;
  document["seconds"] = answer.seconds;
  if (answer.greedy_peak_bytes) document["greedy_peak_bytes"] = *answer.greedy_peak_bytes;
  if (const LayoutResult* layout = highest(found))
    document["layout"] = {
        {"height_bytes", layout->height}, {"lower_bound_bytes", layout->lower_bound}, {"proven", layout->proven}};
  if (found.ranks.size() > 1)
    for (const RankOrder& rank : found.ranks)
      document["ranks"].push_back({{"device", rank.graph.device},
                                   {"operators", rank.graph.graph.operators.size()},
                                   {"peak_bytes", rank.peak},
                                   {"program_order_peak_bytes", rank.program_peak}});
  if (answer.replays.plain) document["plain"] = replay_json(*answer.replays.plain);
  if (answer.replays.planned) document["planned"] = replay_json(*answer.replays.planned);
  document["warnings"] = order_warnings(found);
  print_json(document);
}

void print_trace(Context& context, const TraceAnswer& answer) {
  if (context.json()) return print_trace_json(answer);
  const TraceOrder& found = answer.found;
  const RankOrder& widest = found.widest();
  Table table({"figure", "value"});
  table.add({"operators", std::to_string(widest.graph.graph.operators.size())});
  table.add({"peak", mib_text(Bytes(widest.peak))});
  table.add({"peak of the program's order", mib_text(Bytes(widest.program_peak))});
  if (widest.recorded_peak >= 0) table.add({"peak as the trace frees", mib_text(Bytes(widest.recorded_peak))});
  if (answer.greedy_peak_bytes) table.add({"peak of the greedy order", mib_text(Bytes(*answer.greedy_peak_bytes))});
  table.add({"lower bound", mib_text(Bytes(widest.order.lower_bound_bytes))});
  table.add({"proven", widest.order.proven ? "yes" : "no"});
  if (const LayoutResult* layout = highest(found)) table.add({"height of the layout", mib_text(Bytes(layout->height))});
  const auto add = [&table](const char* name, const Result& result) {
    table.add({fmt::format("{} step time", name), fmt::format("{:.3f} ms", to_seconds(result.step_time) * 1e3)});
    if (!result.memory.known) return;
    table.add({fmt::format("{} peak allocated", name), mib_text(result.memory.peak_allocated)});
    table.add(
        {fmt::format("{} peak reserved, {}", name, result.memory.allocator), mib_text(result.memory.peak_reserved)});
  };
  if (answer.replays.plain) add("plain", *answer.replays.plain);
  if (answer.replays.planned) add("planned", *answer.replays.planned);
  table.add({"seconds", fmt::format("{:.3f}", answer.seconds)});
  print(context, table);
  for (const Json& warning : order_warnings(found)) warn(context, warning.get<std::string>());
}

LoadedScenario load_step(const Context& context, const TraceOrderRequest& request) {
  const Progress progress(context);
  std::vector<std::string> settings = request.settings;
  if (!request.execution_trace.empty()) settings.push_back("execution_trace=" + request.execution_trace);
  return load(is_scenario_file(request.file) ? load_scenario(request.file, settings)
                                             : scenario_for_trace(request.file, settings),
              {.progress = progress.callback("reading " + request.file)});
}

}  // namespace

void run_trace_order(Context& context, const TraceOrderRequest& request) {
  LoadedScenario loaded = load_step(context, request);
  TraceAnswer answer;
  const Progress progress(context);
  TraceOrderOptions options;
  options.method = request.method;
  options.order.best = request.options;
  options.order.best.progress = options.order.roam.progress = [&progress](std::int64_t peak, std::int64_t lower_bound) {
    return progress.show(fmt::format("peak {} bytes, at least {}", peak, lower_bound));
  };
  options.layout = request.layout;
  options.layout_options.effort = 2'000'000;
  options.layout_options.progress = [](std::int64_t, std::int64_t) { return !is_interrupted(); };
  const auto begin = std::chrono::steady_clock::now();
  answer.found = plan_order(loaded.trace, options);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (request.baselines) {
    const OrderGraph& graph = answer.found.widest().graph.graph;
    answer.greedy_peak_bytes = peak_of_order(graph, greedy_order(OrderLinks(graph), graph.program_order));
  }
  if (!request.output.empty()) {
    OutputFile output(request.output);
    output.write(plan_json(answer.found.plan));
    output.commit();
  }
  if (request.output == "-") return;
  if (loaded.trace.has(Capability::times)) {
    answer.replays.plain = run(loaded);
    apply_plan(loaded, answer.found.plan);
    answer.replays.planned = run(loaded);
  }
  print_trace(context, answer);
}

}  // namespace spillway::cli
