// spillway's readable trace file: a Trace as JSON, column by column (schema: docs/schemas/trace.schema.json).
//
//   {"schema": "spillway.trace", "version": 1, "strings": [...], "about": {"numbers": [...], "texts": [...]},
//    "ops": {"name": ["gemm", ...], "kind": ["kernel", ...], "start_ps": [0, null, ...], ...}, "edges": {...}, ...}
//
// Names and kinds are texts, times are integer picoseconds, null is "not known", ids are row numbers of their table.
// "strings" keeps the numbering of texts, so that reading back gives every field as it was; texts that are not in it
// are added. For big traces use traces/formats/spillway_binary.h.
#pragma once

#include "base/byte_source.h"
#include "base/output_file.h"
#include "traces/formats/read.h"

namespace spillway::traces {

inline constexpr const char* trace_json_schema = "spillway.trace";
inline constexpr std::int64_t trace_json_version = 1;

// Tables and columns that are missing are empty or unknown. Throws InputError. O(bytes).
Trace read_spillway_json(ByteSource& source, const ReadOptions& options);
// Texts that are not UTF-8 are made so. Does not commit. O(size).
void write_spillway_json(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
