#include "cli/commands/plan_order.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "cli/commands/plan_order_replay.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/setting_options.h"
#include "cli/output/order_report.h"
#include "cli/output/progress.h"
#include "planners/layout/layout_csv.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_json.h"
#include "planners/order/order_trace.h"
#include "scenario/scenario.h"
#include "traces/formats/read.h"

namespace spillway::cli {
namespace {

constexpr std::uint64_t largest_graph = 4'000'000'000;

const std::map<std::string, OrderMethod>& methods() {
  static const std::map<std::string, OrderMethod> all = [] {
    std::map<std::string, OrderMethod> named;
    for (int m = 0; m < order_method_count; ++m)
      named.emplace(to_string(static_cast<OrderMethod>(m)), static_cast<OrderMethod>(m));
    return named;
  }();
  return all;
}

struct OrderRequest {
  std::string file, output, layout_output, method = "best";
  OrderMethodOptions options;
  bool layout = false, baselines = false, compare = false;
  std::string execution_trace;
  std::vector<std::string> settings;  // of a scenario

  [[nodiscard]] bool wants_layout() const { return layout || !layout_output.empty(); }
};

OrderAnswer solve_order(const Context& context, const OrderRequest& request, const OrderGraph& graph,
                        OrderMethod method, bool layout) {
  const Progress progress(context);
  OrderMethodOptions options = request.options;
  std::int64_t shown = -1;
  const OrderProgress show = [&](std::int64_t peak, std::int64_t lower_bound) {
    if (peak == shown) return !is_interrupted();
    shown = peak;
    return progress.show(lower_bound > 0 ? fmt::format("peak {} bytes, at least {}", peak, lower_bound)
                                         : fmt::format("peak {} bytes", peak));
  };
  options.best.progress = options.roam.progress = show;
  options.roam.layout = layout;
  return answer_order(method, graph, options, layout);
}

// One operator a line, in the order found.
void write_order(const OrderGraph& graph, const std::vector<OperatorIndex>& order, const std::string& path) {
  OutputFile output(path);
  for (const OperatorIndex op : order) output.write(graph.operators[op] + "\n");
  output.commit();
}

// The tensors of positive size, by position among the graph's tensors, in MiniMalloc's form.
void write_layout(const OrderGraph& graph, const OrderAnswer& answer, const std::string& path) {
  LayoutTable table;
  table.buffers = buffers_of_order(graph, answer.outcome.order);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].size > 0) table.ids.push_back(std::to_string(t));
  OutputFile output(path);
  output.write(write_layout_csv(table, answer.layout->offsets));
  output.commit();
}

void compare(Context& context, const OrderRequest& request, const OrderGraph& graph) {
  std::vector<OrderAnswer> answers;
  for (const OrderMethod method :
       {OrderMethod::program, OrderMethod::greedy, OrderMethod::lescea, OrderMethod::roam, OrderMethod::best})
    answers.push_back(solve_order(context, request, graph, method, true));
  print_orders(context, graph, answers);
}

// Formats of traces that can say what operators read and write; any other file is taken for a graph.
bool is_trace_with_uses(const std::string& file) {
  try {
    const TraceFormat format = detect_format(file);
    return format == TraceFormat::execution_trace || format == TraceFormat::chakra ||
           format == TraceFormat::spillway_binary || format == TraceFormat::spillway_json ||
           format == TraceFormat::recording;
  } catch (const InputError&) {
    return false;
  }
}

OrderGraph read_graph(const Context& context, const std::string& file) {
  const Progress progress(context);
  if (is_trace_with_uses(file)) {
    ReadOptions options;
    options.progress = progress.callback("reading " + file);
    return order_graph_of(read_trace(file, options), file);
  }
  const std::string text = read_file(file, largest_graph, progress.callback("reading " + file));
  return read_order_graph(text, file);
}

// A step whose order is to be a plan for the replay.
bool is_for_replay(const OrderRequest& request) {
  if (is_scenario_file(request.file) || !request.execution_trace.empty()) return true;
  if (!request.output.ends_with(".json")) return false;
  ByteSource source = ByteSource::open(request.file, largest_graph);
  const auto head = source.peek(64 << 10);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  // A graph has nodes, as an ExecutionTrace has, but no schema.
  return text.find("\"nodes\"") == std::string_view::npos || text.find("\"schema\"") != std::string_view::npos;
}

void run_order(Context& context, const OrderRequest& request) {
  if (is_for_replay(request)) {
    if (request.compare)
      throw InputError(request.file, "--compare", "methods are compared on a graph, not on a step to be replayed",
                       "name a graph or an ExecutionTrace, or run `spillway techniques`");
    return run_trace_order(
        context, {request.file, request.output, request.execution_trace, request.settings, methods().at(request.method),
                  request.options.best, request.layout, request.baselines});
  }
  const OrderGraph graph = read_graph(context, request.file);
  if (request.compare) {
    compare(context, request, graph);
    return;
  }
  OrderAnswer answer = solve_order(context, request, graph, methods().at(request.method), request.wants_layout());
  if (request.baselines) answer.greedy_peak_bytes = order_by(OrderMethod::greedy, graph).peak_bytes;
  if (!request.output.empty()) write_order(graph, answer.outcome.order, request.output);
  if (!request.layout_output.empty()) write_layout(graph, answer, request.layout_output);
  if (request.output != "-" && request.layout_output != "-") print_order(context, graph, answer);
}

}  // namespace

void add_plan_order(Command& group, Context& context) {
  Command* command = group.add_subcommand("order", "The order of a graph's operators with the lowest peak of memory");
  const auto request = std::make_shared<OrderRequest>();
  command
      ->add_option("FILE", request->file,
                   "a graph as JSON (nodes, edges, pt_order), a trace with uses, or a scenario; may be compressed")
      ->required();
  command
      ->add_option("--method", request->method,
                   "best: the lowest peak found; roam: ROAM as published; lescea, greedy: list orders; program: as it "
                   "is")
      ->choices(methods())
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--compare", request->compare, "a table of all methods on the graph, with their layouts");
  command
      ->add_option(
          "--output", request->output,
          "write the operators in order, one a line; - for standard output. Of a scenario, or of a trace if the "
          "name ends in .json: a plan for `run --set plan=FILE`")
      ->to_write()
      ->type_name("FILE");
  command->add_option("--execution-trace", request->execution_trace, "ExecutionTrace of a Kineto capture's run")
      ->type_name("FILE");
  add_setting_options(*command, request->settings);
  command->add_flag("--layout", request->layout, "also give the tensors addresses, as low as can be");
  command
      ->add_option("--layout-output", request->layout_output,
                   "write the layout as a table id,lower,upper,size,offset; - for standard output")
      ->to_write()
      ->type_name("FILE");
  command->add_flag("--baselines", request->baselines, "also the greedy order of LESCEA, for comparison");
  command->add_option("--effort", request->options.best.effort, "of the exhaustive search, in operators tried")
      ->check(positive_number())
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--node-limit", request->options.roam.node_limit, "roam: operators of a leaf of the subgraph tree")
      ->check(positive_number())
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--roam-ratio", request->options.roam.ratio,
                   "roam: a gradient this many times its inputs may be updated late; the published ratio")
      ->check(non_negative_number())
      ->capture_default_str()
      ->type_name("R");
  command->callback([&context, request] { run_order(context, *request); });
}

}  // namespace spillway::cli
