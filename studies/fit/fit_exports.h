// A scenario in the frameworks that can launch it: exported, and replayed as what is written has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_export.h"
#include "sim/replay/result.h"
#include "studies/fit/fit_search.h"

namespace spillway::studies {

struct Exported {
  std::string target;  // a word of launch::export_target_words()
  launch::LaunchExport launch;
  // Without what the file can't say, as the framework has it by itself, under its own kernels. The question itself (the
  // sequence, dropout) is the program's to say, not the file's. None: see `refusal`.
  std::optional<Result> alone;
  // Lines of the program for what the file can't say, and the same with them; none: there are no such lines.
  std::vector<std::string> code;
  std::optional<Result> with_code;
  std::string refusal;  // why the framework can't run that
};

// The target of the launch that the scenario was imported from; empty: none, or no target writes it.
std::string imported_target(const Scenario& scenario);
// Throws InputError as export_launch() does.
Exported exported(const Scenario& scenario, std::string_view target);
using Launchers = std::optional<std::vector<std::string>>;  // none: nobody looked, as of captures
// The targets that say each of the edits and fit as replayed, as they run it. "torchtitan": its file says all of it;
// "deepspeed*": its program needs lines besides. Files alone first. None of a set-up that no launch has.
std::vector<std::string> launched_by(const Scenario& scenario, const std::vector<std::string>& edits);
// The same of what was exported already.
std::vector<std::string> launched_by(const std::vector<Exported>& exports, const std::vector<std::string>& edits);
// All targets, in the order of their words. A target is refused, not replayed, if its file has no key for how the ranks
// share the work: it would run another layout.
std::vector<Exported> exported(const Scenario& scenario);

// The question as the target asks it: with its framework, and what else it does by itself, set before everything else.
// Throws InputError where it has no such set-up.
FitQuestion asked_by(FitQuestion question, const FitSubject& subject, std::string_view target);
// The point as the target launches it: what neither its file nor a line of the program can say is as the target has it.
// None: it has no such set-up, or trains other weights.
std::optional<FitPoint> launched_point(const FitSubject& subject, const FitPoints& points, const FitPoint& point,
                                       std::string_view target);

// Sets which of the ways that fit the target launches by its file alone (FitWay::is_plain).
void find_plain(const FitSubject& subject, std::string_view target, FitOutcome& outcome);
// The ways that fit, as the target runs them: keys that neither its file nor a line of the program can say are as the
// target has them. Each is replayed again and ranked as the search ranks. The first 24 are tried, and the first that
// the file alone says. Its edits of each make that. Threads and stopping as of evaluate().
FitOutcome as_launched(const FitQuestion& question, const FitSubject& subject, const FitOutcome& outcome,
                       std::string_view target, const FitOptions& options);

}  // namespace spillway::studies
