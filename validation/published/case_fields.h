// Fields (base/fields.h) of a file of cases (validation/published/case_file.h), before it is checked.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "validation/published/case_file.h"

namespace spillway::validation {

// A case's own keys, on top of what is common.
struct CaseDocument {
  std::string id, source, metric, unit, confidence, role = "validation", note, skip;
  std::optional<std::int64_t> stage;
  std::optional<double> value, value_to;
  std::vector<std::string> against;                      // settings
  std::vector<std::pair<std::string, Scalar>> settings;  // of a scenario or a projection; the last of a key counts
};

struct HeldDocument {
  std::string source, metric;
  Tolerance tolerance;
};

struct CasesDocument {
  std::string title, note;
  Tolerance tolerance;
  std::vector<std::pair<std::string, std::string>> models;  // JSON
  CaseDocument common;
  std::vector<std::string> columns;
  std::vector<std::vector<Scalar>> rows;
  std::vector<CaseDocument> cases;
  std::vector<HeldDocument> held_to;
};

void describe(CaseDocument& one, FieldVisitor& visitor);
void describe(CasesDocument& document, FieldVisitor& visitor);
std::string cases_schema();

}  // namespace spillway::validation
