// The sweep that a store's results are of: a record of the store, so that it can be merged and opened on its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_store.h"

namespace spillway::studies {

struct SweepOrigin {
  std::string folder, path;  // of the sweep's file
  std::uint64_t digest = 0;  // of it and all it names, when the store was made
  std::string sweep;         // its text
};

// None: the store has no such record. Throws InputError (file: `store`) for a record that is none.
std::optional<SweepOrigin> origin_in(const SweepStore& results, const std::string& store);
void append_origin(SweepStore& results, const SweepFile& file);
// `name`: of the file, for messages.
SweepFile parse_sweep(const SweepOrigin& origin, const std::string& name);

}  // namespace spillway::studies
