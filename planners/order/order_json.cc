#include "planners/order/order_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.h"
#include "base/json_error.h"

namespace spillway::planners {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t largest_bytes = std::int64_t{1} << 61;

class Reader {
 public:
  Reader(const Json& document, const std::string& file) : document_(document), file_(file) {}

  OrderGraph read() {
    if (!document_.is_object()) fail("/", "the document is not an object");
    for (const Json& node : list(document_, "nodes", "/nodes")) {
      if (!node.is_object() || !node.contains("name") || !node["name"].is_string())
        fail("/nodes/" + std::to_string(graph_.operators.size()), "an operator without a name");
      graph_.operators.push_back(node["name"].get<std::string>());
    }
    for (const Json& edge : list(document_, "edges", "/edges")) read_edge(edge);
    read_constant();
    read_order();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause,
                     "a graph is an object of nodes [{name}], edges [{src: [i], sinks: [j, ...], size}] and pt_order");
  }
  const Json& list(const Json& object, const char* key, const std::string& place) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_array())
      fail(place, std::string("no list \"") + key + "\"");
    return object[key];
  }
  OperatorIndex index(const Json& value, const std::string& place) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= graph_.operators.size())
      fail(place, value.dump() + " is not the position of an operator");
    return value.get<OperatorIndex>();
  }
  void read_edge(const Json& edge) {
    const std::string place = "/edges/" + std::to_string(graph_.tensors.size());
    OrderTensor tensor;
    const Json& sources = list(edge, "src", place);
    if (sources.size() != 1) fail(place, "an edge with " + std::to_string(sources.size()) + " sources, not one");
    tensor.source = index(sources[0], place);
    for (const Json& sink : list(edge, "sinks", place)) tensor.sinks.push_back(index(sink, place));
    std::sort(tensor.sinks.begin(), tensor.sinks.end());
    tensor.sinks.erase(std::unique(tensor.sinks.begin(), tensor.sinks.end()), tensor.sinks.end());
    if (std::binary_search(tensor.sinks.begin(), tensor.sinks.end(), tensor.source))
      fail(place, "operator \"" + graph_.operators[tensor.source] + "\" waits for itself");
    if (!edge.contains("size") || !edge["size"].is_number_unsigned()) fail(place, "a size that is no count of bytes");
    const std::uint64_t size = edge["size"].get<std::uint64_t>();
    if (size > static_cast<std::uint64_t>(largest_bytes - total_)) fail(place, "more than 2^61 bytes in all");
    tensor.size = static_cast<std::int64_t>(size);
    total_ += tensor.size;
    graph_.tensors.push_back(std::move(tensor));
  }
  void read_constant() {
    if (!document_.contains("param_MiB")) return;
    const Json& value = document_["param_MiB"];
    if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > 1e12)
      fail("/param_MiB", "not a size in MiB");
    graph_.constant_bytes = std::llround(value.get<double>() * 1024 * 1024);
  }
  void read_order() {
    if (document_.contains("pt_order")) {
      for (const Json& position : list(document_, "pt_order", "/pt_order"))
        graph_.program_order.push_back(index(position, "/pt_order"));
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
                                graph_.operators[tensor.source] + "\", whose output it reads");
  }

  const Json& document_;
  const std::string& file_;
  OrderGraph graph_;
  std::int64_t total_ = 0;
};

}  // namespace

OrderGraph read_order_graph(std::string_view text, const std::string& file) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::exception& error) {
    throw json_error(file, error, "give a graph as docs/roam.md describes it");
  }
  return Reader(document, file).read();
}

}  // namespace spillway::planners
