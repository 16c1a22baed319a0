// A Result as bytes and back, exactly: what a store of results keeps (scenario/replay_store.h). Leaves out the columns
// as long as the replayed trace: path, op_start, op_end, op_runs. Little-endian; no format for others: a store keeps
// the program's version beside the bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/replay/result.h"

namespace spillway::scenario {

std::string bytes_of(const Result& result);
// None: the bytes are no result, or cut short, or more than one.
std::optional<Result> result_of(std::string_view bytes);

}  // namespace spillway::scenario
