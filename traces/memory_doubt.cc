#include "traces/memory_doubt.h"

#include <algorithm>
#include <array>

namespace spillway::traces {
namespace {

constexpr std::array kinds = {
    // rows that were left out
    std::string_view("bad_block"), std::string_view("bad_memory_event"), std::string_view("bad_row"),
    std::string_view("bad_segment"), std::string_view("damaged_event"), std::string_view("memory_without_bytes"),
    std::string_view("memory_without_time"), std::string_view("truncated_file"),
    std::string_view("unknown_memory_action"),
    // rows of which something is missing, or stands for something else
    std::string_view("device_out_of_range"), std::string_view("memory_before_unknown"),
    std::string_view("memory_from_uses"), std::string_view("memory_without_address")};

}  // namespace

bool doubts_memory(std::string_view kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }

std::string memory_doubt(const Trace& trace) {
  std::string words;
  for (const Finding& finding : trace.findings) {
    if (!doubts_memory(finding.kind)) continue;
    words += (words.empty() ? "" : "; ") + finding.remedy;
    if (finding.count > 1) words += " (" + std::to_string(finding.count) + " times)";
  }
  return words;
}

void add_unusable(std::uint64_t count, std::string& doubt) {
  if (count == 0) return;
  doubt += (doubt.empty() ? "" : "; ") + std::to_string(count) + " events and segments of impossible size are left out";
}

}  // namespace spillway::traces
