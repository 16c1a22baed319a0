// Reads training graphs as JSON: nodes, edges with their sources, sinks and bytes, the program's order.
#pragma once

#include <string>
#include <string_view>

#include "planners/order/order_graph.h"

namespace spillway::planners {

// The text of a graph file: an object of `nodes` [{name}], `edges` [{src: [i], sinks: [j...], size}] with sizes in
// bytes (0: only a dependency), and optionally `pt_order` (the program's order; the order of the nodes if absent) and
// `param_MiB` (the constant). Throws InputError naming the file and the place for what is malformed: an index out of
// range, several sources, a negative size, a cycle, a program order that leaves operators out or reads what is not
// there yet (it may break dependencies without bytes).
OrderGraph read_order_graph(std::string_view text, const std::string& file);

}  // namespace spillway::planners
