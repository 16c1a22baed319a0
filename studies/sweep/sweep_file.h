// A sweep: a scenario, axes along which it changes, what its points must satisfy, and what is wanted of them.
//
//   {
//     "schema": "spillway-sweep", "version": 1, "title": "GPT-3 175B on 512 A100",
//     "base": {"model": {"name": "gpt3-175b", "global_batch": 512}, "hardware": {"profile": "dgx-a100"}},
//     "constants": {"gpus": 512},
//     "axes": [
//       {"name": "t", "key": "model.tensor_parallel", "values": [1, 2, 4, 8]},
//       {"name": "p", "key": "model.pipeline_parallel", "from": 1, "to": 64, "times": 2},
//       {"name": "m", "key": "model.micro_batch", "from": 1, "to": 8, "step": 1},
//       {"name": "technique", "options": {"keep": {}, "full": {"model.recompute": "full"}}}
//     ],
//     "derived": [{"name": "d", "key": "model.data_parallel", "value": "gpus / (t * p)"}],
//     "where": ["t <= 8", {"is": "p * m <= 256", "reason": "too deep"}],
//     "objectives": ["step_time", "peak_memory"],
//     "require": {"fits": true, "step_time_seconds": 60},
//     "margin": 0.15, "memory_margin": 0.15, "replays": 500
//   }
//
// The first axis changes slowest; points are numbered in this order, invalid ones too. A derived value with a key must
// come out whole. An axis of texts or options counts as 0, 1, 2 ... in expressions, and its options' names that are
// identifiers and nothing else stand for those numbers there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/spec/model_spec.h"
#include "studies/sweep/sweep_fields.h"

namespace spillway::studies {

struct SweepOption {
  std::string label;
  double number = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // scenario key and text, as in --set
};

struct SweepAxis {
  std::string name;
  std::vector<SweepOption> options;  // not empty
};

struct SweepDerived {
  std::string name, key, expression;  // key may be empty
};

struct SweepRule {
  std::string expression, reason;
};

struct SweepFile : SweepTerms {
  std::string path, folder;
  std::string base;  // a scenario as JSON text, schema and version included
  std::map<std::string, double> constants;
  std::vector<SweepAxis> axes;
  std::vector<SweepDerived> derived;
  std::vector<SweepRule> rules;
  std::vector<Objective> objectives = {Objective::step_time};
  std::uint64_t digest = 0;                 // of the file's content and of all profiles, models and files it may name
  std::string text;                         // the file as it is
  std::string kind;                         // its part that records depend on: not title, note and replays
  std::string procurement;                  // JSON, read by studies/procurement/procurement_request.h; empty: none
  std::map<std::string, ModelSpec> models;  // of the caller's own, by the name the base gives; before the library's

  ReplayStore* replays_kept = nullptr;  // no part of the file; null: none are

  // Raw points. Throws InputError when they are more than 2^62.
  [[nodiscard]] std::int64_t points() const;
};

// Throws InputError with file, JSON pointer, cause and remedy.
SweepFile load_sweep(const std::string& path);
SweepFile parse_sweep(const std::string& text, const std::string& name, const std::string& folder);

}  // namespace spillway::studies
