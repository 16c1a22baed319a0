// Buffers to lay out as MiniMalloc's comma-separated values, and layouts back.
//
//   id,lower,upper,size[,alignment][,offset]      one line each; the columns in any order
//   a,0,3,4                                       alive in [0, 3), 4 units large
//
// buffer or buffer_id may stand for id, start or begin for lower, and end for upper, which is inclusive then. An offset
// given is kept. Ids are any text, "quoted" where they hold commas.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

struct LayoutTable {
  std::vector<std::string> ids;
  std::vector<LayoutBuffer> buffers;
};

// Throws InputError with the line of the fault:
//   columns  missing, repeated or unknown
//   rows     too few or too many fields, something that is no whole number, a negative size, upper <= lower, an id met
//            before
//   table    sizes that add up to 2^62 or more, given offsets that overlap, no buffer at all
// `file` is for messages.
LayoutTable read_layout_csv(std::string_view text, const std::string& file);

// id,lower,upper,size,offset, in the order of the table.
std::string write_layout_csv(const LayoutTable& table, std::span<const std::int64_t> offsets);

}  // namespace spillway::planners
