#include "cli/plan_order.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "planners/layout/layout_solver.h"
#include "planners/layout/result_check.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_check.h"
#include "planners/order/order_greedy.h"
#include "planners/order/order_json.h"
#include "planners/order/order_links.h"
#include "planners/order/order_solver.h"
#include "traces/base/byte_source.h"
#include "traces/base/input_error.h"
#include "traces/base/output_file.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t largest_file = 4'000'000'000;

struct OrderRequest {
  std::string file, output;
  OrderOptions options;
  bool layout = false, baselines = false;
};

struct OrderAnswer {
  OrderResult order;
  double seconds = 0;
  std::optional<LayoutResult> layout;  // of the ordered tensors, without the constant
  std::optional<std::int64_t> greedy_peak_bytes;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// An order that breaks a dependency is a defect of the solver, whatever the input.
std::int64_t checked_peak(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  const OrderVerdict verdict = check_order(graph, order);
  SPILLWAY_ASSERT(verdict.legal());
  return verdict.peak_bytes;
}

LayoutResult lay_out(const OrderGraph& graph, const OrderResult& order) {
  const std::vector<LayoutBuffer> buffers = buffers_of_order(graph, order.order);
  LayoutOptions options;
  options.effort = 2'000'000;
  options.progress = [](std::int64_t, std::int64_t) { return !is_interrupted(); };
  LayoutResult result = solve_layout(buffers, options);
  check_result(buffers, result);
  return result;
}

OrderAnswer solve(const Context& context, const OrderRequest& request, const OrderGraph& graph) {
  const Progress progress(context);
  OrderOptions options = request.options;
  std::int64_t shown = -1;
  options.progress = [&](std::int64_t peak, std::int64_t lower_bound) {
    if (peak == shown) return !is_interrupted();
    shown = peak;
    return progress.show(fmt::format("peak {} bytes, at least {}", peak, lower_bound));
  };
  OrderAnswer answer;
  const auto begin = Clock::now();
  answer.order = solve_order(graph, options);
  answer.seconds = seconds_since(begin);
  SPILLWAY_ASSERT(checked_peak(graph, answer.order.order) == answer.order.peak_bytes);
  if (request.layout) answer.layout = lay_out(graph, answer.order);
  if (request.baselines) {
    const std::vector<OperatorIndex> greedy = greedy_order(OrderLinks(graph), graph.program_order);
    answer.greedy_peak_bytes = checked_peak(graph, greedy);
  }
  return answer;
}

Json warnings_of(const OrderGraph& graph) {
  Json warnings = Json::array();
  if (const std::size_t broken = broken_dependencies(graph, graph.program_order); broken > 0)
    warnings.push_back(fmt::format("the program's order breaks {} of the graph's dependencies", broken));
  return warnings;
}

void print_order_json(const OrderGraph& graph, const OrderAnswer& answer) {
  Json document = json_document("spillway.plan_order");
  document["operators"] = graph.operators.size();
  document["tensors"] = graph.tensors.size();
  document["peak_bytes"] = answer.order.peak_bytes;
  document["program_order_peak_bytes"] = answer.order.program_order_peak_bytes;
  document["lower_bound_bytes"] = answer.order.lower_bound_bytes;
  document["constant_bytes"] = graph.constant_bytes;
  document["proven"] = answer.order.proven;
  document["stopped"] = answer.order.stopped;
  document["seconds"] = answer.seconds;
  if (answer.greedy_peak_bytes) document["greedy_peak_bytes"] = *answer.greedy_peak_bytes;
  if (answer.layout) {
    document["layout"] = {{"height_bytes", answer.layout->height + graph.constant_bytes},
                          {"lower_bound_bytes", answer.layout->lower_bound + graph.constant_bytes},
                          {"proven", answer.layout->proven}};
  }
  document["warnings"] = warnings_of(graph);
  print_json(document);
}

std::string in_mib(std::int64_t bytes) { return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / 1048576.0); }

void print_order(Context& context, const OrderGraph& graph, const OrderAnswer& answer) {
  if (context.json()) {
    print_order_json(graph, answer);
    return;
  }
  Table table({"figure", "value"});
  table.add({"operators", std::to_string(graph.operators.size())});
  table.add({"peak", in_mib(answer.order.peak_bytes)});
  table.add({"peak of the program's order", in_mib(answer.order.program_order_peak_bytes)});
  if (answer.greedy_peak_bytes) table.add({"peak of the greedy order", in_mib(*answer.greedy_peak_bytes)});
  table.add({"lower bound", in_mib(answer.order.lower_bound_bytes)});
  table.add({"proven", answer.order.proven ? "yes" : "no"});
  if (answer.layout) table.add({"height of the layout", in_mib(answer.layout->height + graph.constant_bytes)});
  table.add({"seconds", fmt::format("{:.3f}", answer.seconds)});
  print(context, table);
  for (const Json& warning : warnings_of(graph)) warn(context, warning.get<std::string>());
}

// One operator a line, in the order found.
void write_order(const OrderGraph& graph, const std::vector<OperatorIndex>& order, const std::string& path) {
  OutputFile output(path);
  for (const OperatorIndex op : order) output.write(graph.operators[op] + "\n");
  output.commit();
}

void run_order(Context& context, const OrderRequest& request) {
  const Progress progress(context);
  const std::string text =
      ByteSource::open(request.file, largest_file, progress.callback("reading " + request.file)).read_all(largest_file);
  const OrderGraph graph = read_order_graph(text, request.file);
  const OrderAnswer answer = solve(context, request, graph);
  if (!request.output.empty()) write_order(graph, answer.order.order, request.output);
  if (request.output != "-") print_order(context, graph, answer);
}

}  // namespace

void add_plan_order(CLI::App& group, Context& context) {
  CLI::App* command = group.add_subcommand("order", "The order of a graph's operators with the lowest peak of memory");
  const auto request = std::make_shared<OrderRequest>();
  command->add_option("FILE", request->file, "a graph as JSON: nodes, edges, pt_order; may be compressed")->required();
  command->add_option("--output", request->output, "write the operators in order, one a line; - for standard output")
      ->type_name("FILE");
  command->add_flag("--layout", request->layout, "also give the tensors addresses, as low as can be");
  command->add_flag("--baselines", request->baselines, "also the greedy order of LESCEA, for comparison");
  command->add_option("--effort", request->options.effort, "of the exhaustive search, in operators looked at")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  command->callback([&context, request] { run_order(context, *request); });
}

}  // namespace spillway
