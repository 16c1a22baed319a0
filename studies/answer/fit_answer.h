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

struct FitFindings {
  const FitQuestion& question;
  const FitSubject& subject;
  const FitOutcome& outcome;
  const std::vector<ShownWay>& shown;
  const std::vector<Launchers>& launched_by;  // of each shown
  const std::vector<OtherTraining>& others;
  const std::optional<OtherMachine>& machine;  // where nothing that trains alike fits
  std::string goal;                            // "speed"
  std::string framework;                       // as which ways are launched; empty: as they are
};

// Its ways: those shown, numbered from 1, and behind them what other trainings and more GPUs come to, which have no
// number.
Answer fit_answer(const FitFindings& findings, std::string command);

// Of any way that was tried.
AnswerFigures way_figures(const FitFindings& findings, const Row& row);
// A scenario's own step, which ways are compared with; null: of a model on machines there is none.
const Result* given_step(const FitFindings& findings);
// A no needs a whole search.
bool ended_early(const FitOutcome& outcome);
// What the file says of the edits, and what the program must; figures of both.
AnswerLaunch launch_of(const Exported& exported, const std::vector<std::string>& edits);
// Of each shown way that frameworks carry out: launches. Replays each. None of a capture.
void add_launches(const FitFindings& findings, Answer& answer);
// The stages and lanes of the scenario as given, else of the first way; and each shown way's memory as an outline.
// A replay each.
void add_fit_pictures(const FitFindings& findings, Answer& answer);

}  // namespace spillway::studies
