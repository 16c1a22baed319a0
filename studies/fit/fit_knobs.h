// Every key of a training set-up, and what `fit` may do with it: each that changes memory or time and leaves the
// question as it is, is a move.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/floors.h"
#include "models/spec/training_setup.h"

namespace spillway::studies {

enum class KeyRole : std::uint8_t {
  question,  // what is asked: model, sequences, framework, what routers and evaluations do
  numerics,  // other arithmetic
  layout,    // how the step is spread over GPUs and the host: moved together (fit_layouts.h, fit_moves.h)
  knob,      // anything else: tried one by one
};

// The role of every key of models::training_setup_keys(); a test holds them together.
KeyRole role_of(std::string_view key);

// "key=value" of each other value that a knob may take at the set-up, in the order of the keys: flags the other way,
// words each, numbers near by. None that only a program of the past has. Some may turn out impossible.
std::vector<std::string> knob_settings(const TrainingSetup& setup, std::int64_t layers);

}  // namespace spillway::studies
