// The nesting of a trace's spans, and which of them autograd ran.
#pragma once

#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// The parent of each span: the innermost on its thread that encloses its start; SpanId::none for outermost ones and
// for spans without times. Precondition: spans are sorted by (start, longest first), as the readers leave them. O(n).
std::vector<SpanId> span_parents(const Trace& trace);

// Operators that run a node of autograd's graph: "autograd::engine::evaluate_function: X", "XBackward", "XBackward0".
bool is_autograd_node(std::string_view operator_name);

}  // namespace spillway::traces
