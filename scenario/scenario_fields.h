// The fields of a scenario: one description for the loader, --set, the published schema, the window and the tables of
// the documentation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/field_rows.h"
#include "scenario/scenario.h"

namespace spillway::scenario {

void describe(Scenario& scenario, FieldVisitor& visitor);

// Objects of a scenario that floors above read: "capacity", "procurement". A program that knows their fields says so
// before it loads scenarios (studies/study_sections.h); until then they may hold any key.
using SectionFields = void (*)(FieldVisitor& visitor);
void set_section_fields(std::string_view section, SectionFields fields);

// With the fields of the sections set so far.
std::vector<FieldRow> scenario_rows();
// docs/schemas/scenario.schema.json
std::string scenario_schema();

// Words of the scenario's lists, in the order of the enums; planners/technique/technique_table.h has the others.
const Words& tier_words();
const Words& route_words();
const Words& prefetch_words();

}  // namespace spillway::scenario
