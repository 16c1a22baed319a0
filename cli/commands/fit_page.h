// The answer of `spillway fit` for people: verdict first, the ways that differ by group, what the chosen one changes
// and how it is launched, what was searched. Lines are no wider than the terminal, at most 100 characters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/context.h"
#include "cli/output/table.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/other_training.h"
#include "studies/fit/shown_ways.h"

namespace spillway::cli {

struct FitPage {
  const studies::FitQuestion& question;
  const studies::FitSubject& subject;
  const studies::FitOutcome& outcome;
  const std::vector<studies::ShownWay>& shown;
  const std::vector<studies::Launchers>& launched_by;  // of each shown
  const std::vector<studies::OtherTraining>& others;
  const std::optional<studies::OtherMachine>& machine;  // where nothing that trains alike fits
  const std::vector<studies::Exported>& exports;        // of the chosen way
  std::string goal;                                     // "speed"
  std::string framework;                                // as which ways are launched; empty: as they are
  std::size_t chosen = 0;                               // of `shown`
  bool all = false;                                     // every way that was tried
};

std::string fit_page(const FitPage& page);
// The same ways with all their figures, a row each: for spreadsheets and documents.
Table fit_table(const FitPage& page);
// A no needs a whole search.
bool ended_early(const studies::FitOutcome& outcome);

}  // namespace spillway::cli
