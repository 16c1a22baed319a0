// The fields of a sweep file, as they stand there; sweep_file.h has what they mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "studies/candidates/objective.h"

namespace spillway::studies {

inline constexpr std::string_view sweep_schema_name = "spillway-sweep";

// Terms that a sweep takes from its file as they are.
struct SweepTerms {
  std::string title;
  bool must_fit = true;
  Constraints constraints;      // describe_bounds()
  double margin = 0.15;         // of the screen's times
  double memory_margin = 0.15;  // of the screen's peaks
  std::int64_t replays = 500;   // at most
};

struct SweepDocument : SweepTerms {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  struct Axis {
    std::string name, key;
    std::vector<Scalar> values;
    std::optional<double> from, to, step, times;
    std::vector<std::pair<std::string, Settings>> options;
    std::vector<std::string> techniques;
  };
  struct Derived {
    std::string name, key, value;
  };
  struct Rule {
    std::string is, reason;
  };
  std::optional<std::string> base, procurement;  // JSON
  std::vector<std::pair<std::string, double>> constants;
  std::vector<Axis> axes;
  std::vector<Derived> derived;
  std::vector<Rule> where;
  std::vector<std::size_t> objectives;  // empty: not given
};

void describe(SweepDocument& document, FieldVisitor& visitor);

// docs/schemas/sweep.schema.json
std::string sweep_schema();

}  // namespace spillway::studies
