// CaseFile: measurements others published, or your own, each with the set-up it was made with, as executable cases.
//
//   {
//     "schema": "spillway-cases", "version": 1,
//     "title": "Our cluster, spring", "note": "...",
//     "tolerance": {"median": 0.05, "p90": 0.12, "kendall": 0.93},
//     "held_to": [{"source": "Our cluster", "metric": "iteration_time", "p90": 0.2}],
//     "models": {"tiny": { a model by docs/schemas/model.schema.json }},
//     "common": {"source": "Our cluster", "metric": "iteration_time", "unit": "ms", "hardware.profile": "dgx-a100"},
//     "columns": ["id", "value", "model.name", "model.micro_batch"],
//     "rows": [["a", 212.5, "tiny", 4], ["b", 430, "tiny", 8]],
//     "cases": [{"id": "c", "value": 1.2, "unit": "s", "model.name": "gpt2-xl", "note": "..."}]
//   }
//
// A case is a flat set of keys: the fields below, and any path of a scenario (docs/schemas/scenario.schema.json) as
// --set takes it. Keys of `common` hold for each case that does not state them itself. A row of `rows` is a case with
// the keys in `columns`, null for one it does not give. Published schema: docs/schemas/cases.schema.json.
//
//   id          unique in the file                     required
//   source      whom the figure is from                required; results are summed up by source, metric and role
//   metric      what was measured (validation/published/metric.h)  required
//   value,unit  the figure, > 0, in its own unit       required
//   stage       of a peak: the pipeline stage it was measured on, from 0; else the GPU that reserves most
//   value_to    the upper end, where a range was published; what lies within it has no error
//   confidence  how sure the reading is: "exact", "text", "read-off-figure", ...
//   role        "validation" (default), "fit" for a case that any constant of the program was fitted to, or "derived"
//               for one whose formula, or whose set-up, was read off what gave the figure
//   against     of trainable_ratio and throughput_ratio: settings over the case's own, as --set takes them, of what it
//               is compared with
//   note        for people
//   projection.*  instead of a scenario: a closed form's inputs (validation/published/projection_case.h)
//   skip        why the case can't be simulated; it is listed, not run
//
// `tolerance` is what is asked of every group of validation cases: one source's of one metric. `held_to` states, group
// by group, where that isn't reached yet: what the group is held to until it is, so that it can't get worse unseen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/model_spec.h"
#include "scenario/scenario.h"
#include "validation/published/metric.h"
#include "validation/published/projection_case.h"

namespace spillway::validation {

struct Case {
  std::string id, source, confidence, role = "validation", note;
  Metric metric = Metric::iteration_time;
  std::string unit;
  double measured = 0;                // in `unit`
  std::optional<std::int64_t> stage;  // of a peak
  double measured_to = 0;             // of a range its upper end; else as `measured`
  std::string skip;                   // reason; empty: it is run
  std::string setup;                  // the scenario's settings in one line: cases with the same one share a replay
  std::vector<std::string> settings;  // the same, each as --set takes it
  Scenario scenario;                  // of cases that are run
  std::optional<Scenario> against;    // of metrics that have one (has_against())
  std::optional<ProjectionCase> projection;  // then there is no scenario
};

// Limits on the errors of a file's validation cases, source by source; none: nothing is asked.
struct Tolerance {
  std::optional<double> median, p90;  // of absolute relative errors
  std::optional<double> kendall;      // least rank correlation

  // This, except what `other` states.
  [[nodiscard]] Tolerance but_for(const Tolerance& other) const;
  [[nodiscard]] bool states_nothing() const { return !median && !p90 && !kendall; }
};

// Limits of a group of validation cases where it misses what its file asks.
struct HeldGroup {
  std::string source;
  Metric metric = Metric::iteration_time;
  Tolerance tolerance;  // wider than the file's
};

struct CaseFile {
  std::string path, title;
  Tolerance tolerance;
  std::vector<HeldGroup> held_to;
  std::map<std::string, ModelSpec> models;  // by the name that cases give them; these come before the library's
  std::vector<Case> cases;
};

// Throws InputError naming the file and the place. Faults are no such metric or unit, an id twice, an unknown key
// (nearest one offered), a value that is not positive, a scenario that is none. A held group without cases or no wider
// than asked is one, too.
CaseFile load_cases(const std::string& path);
// `file` stands for the text in messages; paths in cases are relative to its folder.
CaseFile parse_cases(std::string_view json_text, const std::string& file);

// The bundled case files, sorted by name. Folders, first match wins: $SPILLWAY_DATA/validation, the source tree, the
// installed share directory. Throws InputError when none is there.
std::vector<std::string> published_case_files();

}  // namespace spillway::validation
