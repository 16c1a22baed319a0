// What the requests of studies have in common: sizes of layouts to be searched, and the price list they name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/floors.h"

namespace spillway::studies {

inline constexpr double most_request_gpus = 0x1p20;

struct LayoutSizes {
  std::vector<std::int64_t> tensor_parallel, pipeline_parallel, micro_batch;  // empty: not said
};
void describe(LayoutSizes& sizes, FieldVisitor& visitor);

// 1, 2, 4, ... at most `most`.
std::vector<std::int64_t> powers_of_two(std::int64_t most);
// Where nothing is said these, of a split up to the GPUs of a machine.
LayoutSizes or_usual(LayoutSizes said, std::int64_t gpus_in_machine);

// The file with entries over the bundled price list's: the flag's, else what is said, seen from `folder`; empty: none.
void describe_prices(std::string& said, FieldVisitor& visitor);
std::string price_file(const std::string& flag, const std::string& said, const std::string& folder);

}  // namespace spillway::studies
