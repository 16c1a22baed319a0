// Kineto events of a part of the time.
#pragma once

#include <cstdint>

#include "traces/formats/kineto/kineto_reader.h"

namespace spillway::traces {

struct KinetoPart {
  std::int64_t from_us = 0, until_us = 0;  // of the file's own clock, half-open
};
// As read_kineto(), without the timed events that begin outside.
Trace read_kineto_part(ByteSource& source, const ReadOptions& options, const KinetoPart& part);

}  // namespace spillway::traces
