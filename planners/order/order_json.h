// Reads training graphs as JSON: nodes, edges with their sources, sinks and bytes, the program's order.
#pragma once

#include <string>
#include <string_view>

#include "planners/order/order_graph.h"

namespace spillway::planners {

// Reads the text of a graph file, an object of:
//   nodes      [{name}]
//   edges      [{src: [i], sinks: [j...], size}], sizes in bytes (0: only a dependency)
//   pt_order   optional: the program's order; the order of the nodes if absent
//   param_MiB  optional: the constant
// Throws InputError with the file and the place of a fault: an index out of range, several sources, a negative size, a
// cycle. Also for a program order that leaves operators out or reads what is not there yet (it may break dependencies
// without bytes).
OrderGraph read_order_graph(std::string_view text, const std::string& file);

}  // namespace spillway::planners
