// The answer of `spillway fit`: the ways that differ, what each changes, what it is worth and who runs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/answer/answer.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/other_training.h"
#include "studies/fit/shown_ways.h"

namespace spillway::studies {

// The findings for a question, with all that the answer says of them.
struct FitFindings {
  FitQuestion question;
  FitSubject subject;
  FitOutcome outcome;
  std::vector<OtherTraining> others;
  std::vector<OtherMachine> machines;  // where nothing that trains alike fits
  std::string framework;               // as which ways are launched; empty: as they are
  std::vector<ShownWay> shown;
  std::vector<Launchers> launched_by;  // of each numbered way
  std::size_t chosen = 0;              // of the numbered ways
  std::vector<Exported> exports;       // of the chosen way

  // From 0: the ways shown, then the best of each other training.
  [[nodiscard]] const FitWay& numbered(std::size_t index) const;
  [[nodiscard]] std::size_t count() const;
  // Whether the chosen way is one to launch: of those shown, where any fits.
  [[nodiscard]] bool has_choice() const { return outcome.any() || chosen >= shown.size(); }
};

// Searches for ways, and for what else would do; nothing of it is launched yet. Stopped by `options`, or by the
// thread's StopScope: what was found until then. Throws as find_fit() does.
FitFindings find_ways(FitQuestion question, FitSubject subject, std::string framework, const FitOptions& options);
// Each numbered way as frameworks launch it, the chosen one with all figures. None of a capture, or of a search that
// was stopped.
void launch_ways(std::size_t chosen, FitFindings& findings);

// The answer's ways: those shown and other trainings, numbered from 1. Other GPUs follow without a number: they are
// another question's.
Answer fit_answer(const FitFindings& findings, std::string command);

// Figures of any way that was tried.
AnswerFigures way_figures(const FitFindings& findings, const Row& row);
// A scenario's own step, which ways are compared with; null: of a model on machines there is none.
const Result* given_step(const FitFindings& findings);
// The search was stopped or exhausted its effort; the verdict no needs a whole one.
bool ended_early(const FitOutcome& outcome);
// Adds the launches of each numbered way that frameworks carry out; the chosen one has them already. Replays each. None
// of a capture.
void add_launches(const FitFindings& findings, Answer& answer);
// The stages and lanes of the scenario as given, else of the first way; and each shown way's memory as an outline.
// A replay each.
void add_fit_pictures(const FitFindings& findings, Answer& answer);
// The memory of the scenario with those edits over time, by stage: a replay. None: it can't be run.
std::vector<WayOutline> way_outlines(const BaseScenario& scenario, const std::vector<std::string>& edits);

}  // namespace spillway::studies
