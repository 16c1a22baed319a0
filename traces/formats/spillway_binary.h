// spillway's compact trace file: every column of a Trace as one compressed section.
//
//   "SPLWTRC1"  u32 version
//   section*    u8 name length, name ("ops.start_ps"), u64 rows, u64 compressed bytes, zstd frame with checksum
//   section     name "end", 0 rows, 0 bytes
//
// Integers are little-endian. A column of numbers is, before compression, the differences of consecutive rows as
// zigzag varints; a list of texts is varint length and bytes of each. Sections come in the order of
// traces/trace_columns.h, first the texts and the remainder; a version is a fixed list. Reading back gives every
// field as it was. Nothing is allocated on the word of the file alone: rows are at most the decompressed bytes.
#pragma once

#include "base/byte_source.h"
#include "base/output_file.h"
#include "traces/formats/read.h"

namespace spillway::traces {

constexpr std::string_view spillway_binary_magic = "SPLWTRC1";

// Throws InputError (place: byte offset) for anything damaged, cut off or of a later version. O(bytes).
Trace read_spillway_binary(ByteSource& source, const ReadOptions& options);
// Does not commit. O(size).
void write_spillway_binary(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
