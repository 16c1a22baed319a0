#include "cli/commands/schema_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/field_rows.h"
#include "base/input_error.h"
#include "cli/options/command_options.h"
#include "hwprofiles/profile_schema.h"
#include "models/spec/model_fields.h"
#include "models/step/operator_list.h"
#include "scenario/module_plan.h"
#include "scenario/scenario_fields.h"
#include "sim/replay/plan_fields.h"
#include "studies/answer/answer_json.h"
#include "studies/sweep/sweep_fields.h"
#include "traces/formats/trace_schema.h"
#include "validation/published/case_fields.h"

namespace spillway::cli {
namespace {

struct Document {
  const char* name;
  std::string (*schema)();
};
constexpr Document documents[] = {{"scenario", scenario_schema},
                                  {"sweep", sweep_schema},
                                  {"profile", profile_schema},
                                  {"model", model_schema},
                                  {"prices", prices_schema},
                                  {"plan", plan_schema},
                                  {"cases", cases_schema},
                                  {"trace", trace_schema},
                                  {"module-plan", module_plan_schema},
                                  {"operators", models::operator_list_schema},
                                  {"answer", studies::answer_schema}};

struct SchemaCall {
  std::string name;
  bool is_table = false;
};

void print_schema(const SchemaCall& request) {
  std::string text;
  for (const Document& document : documents)
    if (request.name == document.name) text = document.schema();
  if (request.is_table && request.name != "scenario")
    throw InputError("", "--table", "only the keys of a scenario are printed as a table", "leave it out");
  if (request.is_table) text = markdown_table(scenario_rows());
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_schema_command(Command& app) {
  const auto request = std::make_shared<SchemaCall>();
  std::vector<std::string> names;
  for (const Document& document : documents) names.emplace_back(document.name);
  Command* command = app.add_subcommand("schema", "Print the JSON Schema of a kind of file");
  command->add_option("NAME", request->name, "kind of file")->required()->choices(names);
  command->add_flag("--table", request->is_table, "of a scenario: its keys as a Markdown table");
  command->callback([request] { print_schema(*request); });
}

}  // namespace spillway::cli
