// Role of each tensor, deduced from who touches it in which phase.
//
//   existed before, touched by the optimizer and by forward or backward      weight
//   existed before, touched by the optimizer alone                           optimizer_state
//   existed before, else                                                     input
//   made in forward, read in backward                                        activation
//   made in backward, read by the optimizer                                  gradient
//   anything else                                                            temporary
//
// All tensors of one storage get the same role. Known roles stay.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// Needs phases; without any op of backward or optimizer nothing is deduced. O(uses + tensors).
void infer_tensor_roles(Trace& trace);

}  // namespace spillway::traces
