// What a variant came to, small enough to be kept of many: figures, kernels, memory at the peak and over the step. What
// is compared is per token, so that steps of different size are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/canvas/tokens.h"
#include "gui/workspace/outcome.h"

namespace spillway::gui {

struct VariantFigures {
  std::string text;     // of the scenario they are of
  std::string verdict;  // in a sentence
  Verdict state = Verdict::unknown;
  double step_ms = 0;  // 0: the file has no times
  // None: not known, or it has no such thing.
  std::optional<double> tokens_per_second, mfu_percent, allocated_gib, reserved_gib, written_bytes_per_token,
      life_years;
  double capacity_gib = 0;  // 0: not known
  double tokens = 0;        // of a step; 0: not known
  std::string binding;      // in words; empty: not known
  // Time of all kernels of a name, and of the copies, in microseconds a token, or a step where tokens are not known.
  std::map<std::string, double> kernels;
  std::map<std::string, Token> kernel_tokens;
  std::vector<std::pair<std::string, double>> owners;  // at the peak: GiB, from the bottom of the stack
  std::vector<Token> owner_tokens;                     // of owners
  // By column of the step: the most held in it, GiB, by owner (as owners).
  std::vector<std::vector<float>> curve;
};
inline constexpr int figure_columns = 120;

VariantFigures variant_figures(const Outcome& outcome);

// A key that isn't the same in all of them: its value in each, as --set takes it; none: the key isn't there.
struct ChangedKey {
  std::string key;
  std::vector<std::optional<std::string>> values;
};
// In the order in which the files have them; titles and notes aside. texts: scenarios.
std::vector<ChangedKey> changed_keys(const std::vector<std::string>& texts);

}  // namespace spillway::gui
