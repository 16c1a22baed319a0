// The graph of a trace with ops that say what they read and write: the order solver's input from a real program.
//
//   storage life   w1 - r r - w2 - r    One tensor from its first writer to its last user, however often it is written
//                  |==============|     in between; each write waits for the reads before it, each read for its write.
//
// A storage with a read as its first use was there before: its bytes are part of the constant. Storages that no device
// work touches have no bytes. A storage stays until its last use: traces that end with it in use do not say so.
#pragma once

#include "planners/order/order_graph.h"
#include "traces/trace.h"

namespace spillway::planners {

// Ops with uses, in the trace's order, named "name #op". Throws InputError (naming `file`) for a trace without uses, or
// with more than 2^61 bytes. Uses times log.
OrderGraph order_graph_of(const Trace& trace, const std::string& file);

}  // namespace spillway::planners
