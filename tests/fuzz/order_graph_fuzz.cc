// Graphs of operators: any bytes become a graph with a legal order, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <cstdlib>

#include "base/input_error.h"
#include "planners/order/order_graph.h"
#include "planners/order/order_json.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(order_graph) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::planners::OrderGraph graph = spillway::planners::read_order_graph(text, "fuzz.json");
    const auto order = spillway::planners::legal_order(graph);
    if (spillway::planners::broken_dependencies(graph, order) != 0) std::abort();
    if (spillway::planners::peak_of_order(graph, order) < 0) std::abort();
  } catch (const spillway::InputError&) {
  }
  return 0;
}
