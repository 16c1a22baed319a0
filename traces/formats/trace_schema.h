// The JSON Schema of spillway's readable trace file (traces/formats/spillway_json.h), made of the one list of a trace's
// columns (traces/trace_columns.h).
#pragma once

#include <string>

namespace spillway::traces {

std::string trace_schema();

}  // namespace spillway::traces
