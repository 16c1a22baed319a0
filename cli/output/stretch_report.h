// The work within a time range of a replay, as text and JSON: what the window shows of a selected range.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/diagnosis/counters.h"
#include "studies/diagnosis/passes.h"
#include "studies/diagnosis/work_sum.h"

namespace spillway::cli {

struct StretchReport {
  studies::Stretch stretch;
  std::vector<studies::KindRow> kinds;
  std::vector<studies::WorkRow> work;
  std::vector<std::vector<studies::Pass>> passes;  // by rank, those that touch the range
  bool numbered = false;                           // passes say their micro-batch
  std::vector<studies::Counter> counters;          // of the first rank, over the whole step
};

// text: "FROM..TO" in milliseconds of the replay; either may be left out. Throws InputError.
StretchReport stretch_report(const Trace& trace, const Result& result, const std::string& text);

std::string stretch_text(const StretchReport& report);
nlohmann::ordered_json stretch_json(const StretchReport& report);

}  // namespace spillway::cli
