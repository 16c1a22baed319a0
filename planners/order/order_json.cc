#include "planners/order/order_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/field_reader.h"
#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t largest_bytes = std::int64_t{1} << 61;
constexpr double most_operators = 4e9;  // positions are 32 bits wide
constexpr double most_mebibytes = 1e12;

struct EdgeDocument {
  std::vector<std::int64_t> sources, sinks;
  std::int64_t size = 0;
};

struct GraphDocument {
  std::vector<std::string> nodes;
  std::vector<EdgeDocument> edges;
  double constant_mebibytes = 0;
  std::optional<std::vector<std::int64_t>> order;
};

// Exporters say more of nodes and edges; it isn't needed here.
void describe(GraphDocument& document, FieldVisitor& visitor) {
  visitor.others();
  fields::list(visitor, {.key = "nodes", .about = "[{name}, ...]: operators.", .required = true}, document.nodes,
               [&](std::string& name) {
                 visitor.others();
                 fields::text(visitor, {.key = "name", .required = true, .even_empty = true}, name);
               });
  fields::list(visitor,
               {.key = "edges", .about = "[{src: [i], sinks: [j, ...], size}, ...]: tensors.", .required = true},
               document.edges, [&](EdgeDocument& edge) {
                 visitor.others();
                 visitor.integers({.key = "src", .max = most_operators, .required = true}, edge.sources);
                 visitor.integers({.key = "sinks", .max = most_operators, .required = true}, edge.sinks);
                 fields::integer(visitor,
                                 {.key = "size",
                                  .max = static_cast<double>(largest_bytes),
                                  .about = "A count of bytes; 0: only a dependency.",
                                  .required = true},
                                 edge.size);
               });
  fields::number(visitor, {.key = "param_MiB", .max = most_mebibytes, .about = "Bytes alive all along, in MiB."},
                 document.constant_mebibytes);
  std::vector<std::int64_t> order{-1};
  visitor.integers({.key = "pt_order", .max = most_operators, .about = "Positions in the program's order."}, order);
  if (order != std::vector<std::int64_t>{-1}) document.order = std::move(order);
}

// What a document means.
class Reader {
 public:
  Reader(const GraphDocument& document, const std::string& file) : document_(document), file_(file) {}

  OrderGraph read() {
    graph_.operators = document_.nodes;
    for (const EdgeDocument& edge : document_.edges) read_edge(edge);
    graph_.constant_bytes = std::llround(document_.constant_mebibytes * 1024 * 1024);
    read_order();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause,
                     "a graph is an object of nodes [{name}], edges [{src: [i], sinks: [j, ...], size}] and pt_order");
  }
  [[nodiscard]] OperatorIndex index(std::int64_t value, const std::string& place) const {
    if (value >= static_cast<std::int64_t>(graph_.operators.size()))
      fail(place, std::to_string(value) + " is not the position of an operator");
    return static_cast<OperatorIndex>(value);
  }
  void read_edge(const EdgeDocument& edge) {
    const std::string place = "/edges/" + std::to_string(graph_.tensors.size());
    OrderTensor tensor;
    if (edge.sources.size() != 1)
      fail(place, "an edge with " + std::to_string(edge.sources.size()) + " sources, not one");
    tensor.source = index(edge.sources.front(), place);
    for (const std::int64_t sink : edge.sinks) tensor.sinks.push_back(index(sink, place));
    std::sort(tensor.sinks.begin(), tensor.sinks.end());
    tensor.sinks.erase(std::unique(tensor.sinks.begin(), tensor.sinks.end()), tensor.sinks.end());
    if (std::binary_search(tensor.sinks.begin(), tensor.sinks.end(), tensor.source))
      fail(place, "operator \"" + graph_.operators[tensor.source] + "\" waits for itself");
    if (edge.size > largest_bytes - total_) fail(place, "more than 2^61 bytes in all");
    tensor.size = edge.size;
    total_ += tensor.size;
    graph_.tensors.push_back(std::move(tensor));
  }
  void read_order() {
    if (document_.order) {
      for (const std::int64_t position : *document_.order) graph_.program_order.push_back(index(position, "/pt_order"));
    } else {
      for (OperatorIndex i = 0; i < graph_.operators.size(); ++i) graph_.program_order.push_back(i);
    }
    std::vector<bool> seen(graph_.operators.size(), false);
    for (const OperatorIndex op : graph_.program_order) {
      if (seen[op]) fail("/pt_order", "operator \"" + graph_.operators[op] + "\" runs twice");
      seen[op] = true;
    }
    if (graph_.program_order.size() != seen.size()) fail("/pt_order", "some operators do not run");
    check_dependencies();
  }
  // A framework may run an update before the last read of an older value that hazards of our own speak of; but nothing
  // is read before it is there.
  void check_dependencies() const {
    if (legal_order(graph_).size() != graph_.operators.size()) fail("/edges", "operators that wait for each other");
    std::vector<std::size_t> step(graph_.operators.size());
    for (std::size_t i = 0; i < step.size(); ++i) step[graph_.program_order[i]] = i;
    for (const OrderTensor& tensor : graph_.tensors)
      for (const OperatorIndex sink : tensor.sinks)
        if (tensor.size > 0 && step[sink] < step[tensor.source])
          fail("/pt_order", "operator \"" + graph_.operators[sink] + "\" runs before \"" +
                                graph_.operators[tensor.source] + "\" and reads its output");
  }

  const GraphDocument& document_;
  const std::string& file_;
  OrderGraph graph_;
  std::int64_t total_ = 0;
};

}  // namespace

OrderGraph read_order_graph(std::string_view text, const std::string& file) {
  GraphDocument document;
  read_document(
      text, file, [&](FieldVisitor& visitor) { describe(document, visitor); },
      "give a graph as docs/internals/roam.md describes it");
  return Reader(document, file).read();
}

}  // namespace spillway::planners
