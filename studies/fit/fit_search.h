// `spillway fit`: ways to make a step fit, ranked by a goal.
//
//  1. The scenario as given is replayed. Every layout is estimated in closed form (fit_layouts.h, fit_screen.h): with
//     everything kept; where that seems too large with lean kernels, with some or all layers computed again, with the
//     optimizer and the weights on the CPU; where there is room with larger micro-batches.
//  2. Those that should fit are replayed: the best by each mechanism, of each kind, of all, until none that is left can
//     beat what was found, by what replays taught of the estimates of its kind. Where none fits: states on drives, and
//     what holds least.
//  3. From the best way each single edit (fit_moves.h, fit_knobs.h) is replayed; the best of them is the next best way,
//     until a round of all of them gains less than half a per cent. Then what packs near misses, activations that
//     leave, fates searched, and, unless the question wants it as it is, other numerics.
//  4. The winner without each of its techniques: what each is worth.
// Ways that people can run and that train alike are ranked first (fit_carrier.h); those that nobody runs are searched
// where asked for. Every verdict and figure is a replay's (candidates/evaluate.h). The answer is a function of the
// question alone, its work among it, except where the caller stopped it. The search goes where estimates point, and one
// edit at a time from there; FitProof says of what it didn't replay what can't be better.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "studies/candidates/evaluate.h"
#include "studies/fit/binding_provenance.h"
#include "studies/fit/fit_moves.h"
#include "studies/fit/fit_proof.h"
#include "studies/fit/fit_question.h"

namespace spillway::studies {

struct FitWay {
  Row row;
  std::string layout;                           // how it spreads the step over GPUs: equal texts, equal layouts
  Carrier carrier = Carrier::frameworks;        // who can run it
  bool changes_maths = false;                   // FitPoints::changes_maths()
  std::uint32_t mechanisms = 0;                 // mechanisms_of()
  bool is_plain = false;                        // by its file alone the framework at hand launches it
  std::vector<std::string> binding_provenance;  // of what ran (binding_provenance.h)
};

// The winner without one of its techniques, or with a part of it as in the plainest step.
struct FitAblation {
  std::string name;  // "without full recomputation"
  std::size_t way = 0;
};

struct FitOutcome {
  std::vector<FitWay> ways;  // all that were replayed or refused, best first
  // The number of ways that fit, the first of `ways`, as replayed whatever their verdict depends on; the tight ones
  // behind those that keep the reserve.
  std::size_t fitting = 0;
  std::vector<FitAblation> worth;  // of ways[0], where that fits
  std::size_t screened = 0;        // layouts that were estimated
  std::optional<FitProof> proof;   // of speed and cost, where a way fits
  std::size_t replayed = 0;
  std::int64_t work = 0;   // of FitQuestion::work, what was taken
  bool stopped = false;    // by the caller: the best so far
  bool exhausted = false;  // more was to be tried than the question's replays or its work

  [[nodiscard]] bool any() const { return fitting > 0; }
  // Result of the first way that may fit for all that is known, while none is known to; null: there is none.
  [[nodiscard]] const Result* unknown() const;
  // The best that leaves the arithmetic as it is; ways.size(): none fits.
  [[nodiscard]] std::size_t best_of_same_maths() const;
};

struct FitOptions {
  ReplayStore* store = nullptr;  // what replays are taken from and kept in
  // The present work and how far it is; one call at a time; false: stop with the best so far.
  std::function<bool(const std::string& what, std::size_t replays)> progress;
};

// Sets how much is missing of what is shown and doesn't fit: the nearest ways, the scenario as given, the best without
// a technique. The search itself needs none of these replays.
void find_shortages(const FitSubject& subject, ReplayStore* store, FitOutcome& outcome);

// Stops by the thread's StopScope, too, with what there is. Throws InputError where no way can be run at all.
FitOutcome find_fit(const FitQuestion& question, const FitSubject& subject, const FitOptions& options = {});

}  // namespace spillway::studies
