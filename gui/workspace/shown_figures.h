// The figures of the verdict strip: value, change against the baseline, and what each rests on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/workspace/outcome.h"

namespace spillway::gui {

enum class Change : std::uint8_t { none, better, worse, other };

// The weakest of what a figure rests on.
enum class Ground : std::uint8_t { unknown, measured, known, assumed };  // known: datasheet, or fitted to measurements
// One letter for it, a disc, half of one, a dashed one; empty: unknown. And words.
std::string_view ground_mark(Ground ground);
std::string_view ground_words(Ground ground);

struct ShownFigure {
  std::string id;             // "step-time"
  std::string title;          // "step time"
  std::string value, detail;  // "560.4 ms", "14,618 tokens/s"
  std::string short_value;    // where the value is too long for a cell; empty: it isn't
  std::string change;         // against the baseline: "-12.3 ms (-2.1 %)"; empty: none, or nothing to compare with
  Change direction = Change::none;
  bool is_alarm = false;    // the answer is no
  bool is_caution = false;  // or not a clear yes
  Ground ground = Ground::unknown;
  std::string provenance;  // one line: what the figure rests on
};

// In the strip's order: verdict, binding resource, step time, memory, PCIe, SSD life. baseline: may be null.
std::vector<ShownFigure> shown_figures(const Outcome& outcome, const Outcome* baseline);

}  // namespace spillway::gui
