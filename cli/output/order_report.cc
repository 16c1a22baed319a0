#include "cli/output/order_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/number_text.h"
#include "cli/options/interrupt.h"
#include "cli/output/table.h"
#include "planners/order/order_buffers.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Json warnings_of(const OrderGraph& graph) {
  Json warnings = Json::array();
  if (const std::size_t broken = broken_dependencies(graph, graph.program_order); broken > 0)
    warnings.push_back(fmt::format("the program's order breaks {} of the graph's dependencies", broken));
  return warnings;
}

Json document_of(const OrderGraph& graph) {
  Json document = json_document("spillway.plan_order");
  document["operators"] = graph.operators.size();
  document["tensors"] = graph.tensors.size();
  document["program_order_peak_bytes"] = peak_of_order(graph, graph.program_order);
  document["constant_bytes"] = graph.constant_bytes;
  return document;
}

Json roam_json(const RoamResult& roam) {
  return {{"branches", roam.branches},
          {"delayed_branches", roam.delayed},
          {"key_points", roam.key_points},
          {"segments", roam.segments},
          {"unproven_segments", roam.unproven_segments},
          {"leaves", roam.leaves},
          {"evicted_tensors", roam.evicted}};
}

// Bytes that no method can do without: the largest of the bounds found.
std::int64_t bound_of(const std::vector<OrderAnswer>& answers) {
  std::int64_t bound = 0;
  for (const OrderAnswer& answer : answers) bound = std::max(bound, answer.outcome.lower_bound_bytes);
  return bound;
}

std::int64_t height_of(const OrderGraph& graph, const OrderAnswer& answer) {
  return answer.layout->height + graph.constant_bytes;
}

Json reserved_json(const OrderGraph& graph, const EmulatedReserve& reserved) {
  return {{std::string(torch_policy), reserved.torch + graph.constant_bytes},
          {std::string(expandable_policy), reserved.expandable + graph.constant_bytes}};
}

std::string reserved_text(const OrderGraph& graph, std::int64_t reserved) {
  return mib_text(Bytes(reserved + graph.constant_bytes));
}

double percent_over(std::int64_t value, std::int64_t least) {
  return least == 0 ? 0 : 100.0 * static_cast<double>(value - least) / static_cast<double>(least);
}

void print_order_json(const OrderGraph& graph, const OrderAnswer& answer) {
  Json document = document_of(graph);
  const OrderOutcome& outcome = answer.outcome;
  document["method"] = to_string(answer.method);
  document["peak_bytes"] = outcome.peak_bytes;
  if (outcome.lower_bound_bytes > 0 || outcome.proven) document["lower_bound_bytes"] = outcome.lower_bound_bytes;
  document["proven"] = outcome.proven;
  document["stopped"] = outcome.stopped;
  document["seconds"] = answer.seconds;
  if (answer.greedy_peak_bytes) document["greedy_peak_bytes"] = *answer.greedy_peak_bytes;
  document["emulated_reserved_bytes"] = reserved_json(graph, answer.reserved);
  if (answer.layout) {
    document["layout"] = {{"height_bytes", height_of(graph, answer)},
                          {"lower_bound_bytes", answer.layout->lower_bound + graph.constant_bytes},
                          {"proven", answer.layout->proven},
                          {"seconds", answer.layout_seconds}};
  }
  if (outcome.roam) document["roam"] = roam_json(*outcome.roam);
  document["warnings"] = warnings_of(graph);
  print_json(document);
}

void add_roam(Table& table, const RoamResult& roam) {
  table.add({"update branches", fmt::format("{}, {} delayed", roam.branches, roam.delayed)});
  table.add({"key points", std::to_string(roam.key_points)});
  table.add({"segments", fmt::format("{}, {} without proof", roam.segments, roam.unproven_segments)});
  if (roam.leaves > 0) table.add({"leaves", fmt::format("{}, {} tensors evicted", roam.leaves, roam.evicted)});
}

}  // namespace

OrderAnswer answer_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options, bool layout) {
  OrderAnswer answer;
  answer.method = method;
  const auto begin = Clock::now();
  answer.outcome = order_by(method, graph, options);
  answer.seconds = seconds_since(begin);
  answer.reserved = emulated_reserve(buffers_of_order(graph, answer.outcome.order));
  if (!layout) return answer;
  LayoutOptions layout_options;
  layout_options.effort = 600'000;
  layout_options.progress = [](std::int64_t, std::int64_t) { return !is_interrupted(); };
  const auto layout_begin = Clock::now();
  answer.layout = layout_by(method, graph, answer.outcome, layout_options);
  answer.layout_seconds = seconds_since(layout_begin);
  return answer;
}

void print_order(Context& context, const OrderGraph& graph, const OrderAnswer& answer) {
  if (context.json()) {
    print_order_json(graph, answer);
    return;
  }
  const OrderOutcome& outcome = answer.outcome;
  Table table({"figure", "value"});
  table.add({"operators", std::to_string(graph.operators.size())});
  table.add({"peak", mib_text(Bytes(outcome.peak_bytes))});
  table.add({"peak of the program's order", mib_text(Bytes(peak_of_order(graph, graph.program_order)))});
  if (answer.greedy_peak_bytes) table.add({"peak of the greedy order", mib_text(Bytes(*answer.greedy_peak_bytes))});
  if (outcome.lower_bound_bytes > 0) table.add({"lower bound", mib_text(Bytes(outcome.lower_bound_bytes))});
  table.add({"proven", outcome.proven ? "yes" : "no"});
  if (outcome.roam) add_roam(table, *outcome.roam);
  if (answer.layout) table.add({"height of the layout", mib_text(Bytes(height_of(graph, answer)))});
  table.add({fmt::format("reserved by {}", torch_policy), reserved_text(graph, answer.reserved.torch)});
  table.add({fmt::format("reserved by {}", expandable_policy), reserved_text(graph, answer.reserved.expandable)});
  table.add({"seconds", fmt::format("{:.3f}", answer.seconds)});
  print(context, table);
  for (const Json& warning : warnings_of(graph)) warn(context, warning.get<std::string>());
}

void print_orders(Context& context, const OrderGraph& graph, const std::vector<OrderAnswer>& answers) {
  const std::int64_t bound = bound_of(answers);
  if (context.json()) {
    Json document = document_of(graph);
    document["lower_bound_bytes"] = bound;
    document["methods"] = Json::array();
    for (const OrderAnswer& answer : answers)
      document["methods"].push_back({{"method", to_string(answer.method)},
                                     {"peak_bytes", answer.outcome.peak_bytes},
                                     {"proven", answer.outcome.peak_bytes <= bound},
                                     {"height_bytes", height_of(graph, answer)},
                                     {"layout_proven", answer.layout->proven},
                                     {"emulated_reserved_bytes", reserved_json(graph, answer.reserved)},
                                     {"seconds", answer.seconds},
                                     {"layout_seconds", answer.layout_seconds}});
    document["warnings"] = warnings_of(graph);
    print_json(document);
    return;
  }
  Table table({"method", "peak", "over bound", "proven", "height", "over peak", std::string(torch_policy),
               std::string(expandable_policy), "seconds", "layout seconds"});
  for (const OrderAnswer& answer : answers) {
    const std::int64_t peak = answer.outcome.peak_bytes, height = height_of(graph, answer);
    table.add({std::string(to_string(answer.method)), mib_text(Bytes(peak)),
               fmt::format("{:.2f} %", percent_over(peak, bound)), peak <= bound ? "yes" : "no",
               mib_text(Bytes(height)), fmt::format("{:.3f} %", percent_over(height, peak)),
               reserved_text(graph, answer.reserved.torch), reserved_text(graph, answer.reserved.expandable),
               fmt::format("{:.3f}", answer.seconds), fmt::format("{:.3f}", answer.layout_seconds)});
  }
  print(context, table);
  for (const Json& warning : warnings_of(graph)) warn(context, warning.get<std::string>());
}

}  // namespace spillway::cli
