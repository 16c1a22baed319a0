// The answer of `spillway fit` for people: verdict first, the ways that differ by group, what the chosen one changes
// and how it is launched, what was searched. Lines are no wider than the terminal, at most 100 characters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "studies/answer/fit_answer.h"

namespace spillway::cli {

struct FitPage {
  const studies::FitFindings& found;
  const studies::Answer& answer;  // of these
  bool all = false;               // every way that was tried
};

std::string fit_page(const FitPage& page);
// The same ways with all their figures, a row each: for spreadsheets and documents.
Table fit_table(const FitPage& page);

}  // namespace spillway::cli
