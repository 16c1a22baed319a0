// The least change of the machine or of the step at which a technique pays, searched along one axis at a time. It pays
// if it saves a stated share of memory for at most a stated share of time. `spillway explain --technique`.
//
//   drives   4 --- 8 --- 16 ------ 32      doubled until it pays, then halved twice between the last that didn't
//            no    no    no  24    yes     and the first that did: from 24 on
//                            yes
//
// Each value is a pair of rows of `spillway techniques` with the change as edits: the plain step and the technique. It
// pays where the technique's step runs, reserves less by the share asked, takes no longer than asked, and fits, if the
// plain step as it stands does. All axes take a step outward before any takes the next. If a value's pair would take
// more than is left of the work, its axis ends unfinished, which is no verdict. Values between two that were tried are
// not tested. Two axes together: by how many doublings both take, 1 and 1, 1 and 2, 2 and 1, ..., the fewest first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/candidates/evaluate.h"

namespace spillway::studies {

struct PayoffQuestion {
  std::string technique;          // "roam+layout", as `techniques` takes it
  std::vector<std::string> axes;  // by name; empty: all that the scenario has
  bool together = false;          // the two axes named are also changed both at once
  double saves = 0.10;            // least share of what the plain step reserves
  double slower = 0.02;           // most of its time on top
  // Layers run forward and backward in all replays, a plan counting as several: what the search may take, whatever the
  // machine it runs on.
  std::int64_t work = 18'000;
};

// What can be changed.
struct PayoffAxis {
  std::string name, key;          // "drives", "offload.drives_per_machine"
  std::string unit;               // behind a value, for people: " GiB"
  double own = 1;                 // the scenario's value
  double shown = 1;               // of the own value, as people count it: GiB of bytes
  std::int64_t grain = 1;         // values are its multiples; 0: a factor
  double most = 0;                // 0: none
  bool both_ways = false;         // smaller values are tried as well
  bool narrows = true;            // values between two that were tried are possible
  bool is_of_machine = false;     // the step's work doesn't change
  bool is_of_transfers = false;   // of what carries tensors that leave the GPU
  std::vector<std::string> also;  // further edits
};
// Names of all axes, with what they are.
const Words& payoff_axis_words();
// The axes that the scenario has, before any change. Throws InputError for a name that is none, or none of this
// scenario's.
std::vector<PayoffAxis> payoff_axes(const BaseScenario& scenario, std::span<const std::string> names = {});

struct PayoffTrial {
  double factor = 1;  // of the own value
  std::string value;  // for people
  std::vector<std::string> edits;
  Row plain, with;
  bool pays = false;

  // Shares of the plain step's; none: one of them can't be run, or its memory isn't known.
  [[nodiscard]] std::optional<double> saving() const;
  [[nodiscard]] std::optional<double> slower() const;
};

struct PayoffAnswer {
  enum class End : std::uint8_t {
    found,        // `least` is the least change that was found
    no,           // at no value that was tried, and all were
    indifferent,  // of a machine: neither the saving nor the time on top changes along it
    impossible,   // at no value that was tried both steps can be run
    unfinished    // the work was used up
  };
  PayoffAxis axis;
  End end = End::unfinished;
  std::optional<PayoffTrial> least;
  std::vector<PayoffTrial> trials;  // by factor, the scenario's own not among them
};

struct PayoffOutcome {
  PayoffTrial here;  // without any change
  std::vector<PayoffAnswer> answers;
  std::int64_t work = 0, pairs = 0;
  bool stopped = false;   // by the caller: axes that had no end are unfinished
  double times_work = 0;  // above 1: the pair as it stands would take so many times the work; nothing was replayed

  [[nodiscard]] bool found() const;     // it pays here, or somewhere
  [[nodiscard]] bool finished() const;  // no axis is unfinished
};

// Throws InputError for an unknown technique or axis, and where the plain step can't be run.
PayoffOutcome find_payoff(const BaseScenario& scenario, const PayoffQuestion& question,
                          const EvaluateOptions& options = {});

}  // namespace spillway::studies
