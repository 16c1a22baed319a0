// A variant's figures, small enough to keep many: kernels, memory at the peak and over the step. Compared figures are
// per token, so that steps of different size are comparable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/canvas/tokens.h"
#include "gui/workspace/outcome.h"
#include "studies/candidates/row.h"

namespace spillway::gui {

// Without times in the file the result has neither a step's time nor what follows from it.
struct VariantFigures : studies::Row {
  std::string text;                               // of the scenario they are of
  std::string shape, verdict;                     // its sign; in a sentence, or why it can't be replayed
  std::optional<double> written_bytes_per_token;  // none: not known
  // Time of all kernels of a name, and of the copies, in microseconds a token, or a step where tokens are not known.
  std::map<std::string, double> kernels;
  std::map<std::string, Token> kernel_tokens;
  std::vector<std::pair<std::string, double>> owners;  // at the peak: GiB, from the bottom of the stack
  std::vector<Token> owner_tokens;                     // of owners
  // By column of the step: the most held in it, GiB, by owner (as owners).
  std::vector<std::vector<float>> curve;
};
inline constexpr int figure_columns = 120;

inline double step_ms(const VariantFigures& figures) { return to_seconds(figures.result.step_time) * 1e3; }

VariantFigures variant_figures(const Outcome& outcome);

// A key that isn't the same in all of them: its value in each, as --set takes it; none: the key isn't there.
struct ChangedKey {
  std::string key;
  std::vector<std::optional<std::string>> values;
};
// In the order in which the files have them; titles and notes aside. texts: scenarios.
std::vector<ChangedKey> changed_keys(const std::vector<std::string>& texts);

}  // namespace spillway::gui
