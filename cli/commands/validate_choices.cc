#include "cli/commands/validate_choices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "cli/options/interrupt.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "validation/published/layout_choice.h"

namespace spillway::cli {
namespace {

Table choices_table(const std::vector<SetupChoice>& choices) {
  Table table({"set-up", "source", "GPUs", "batch", "published", "step (s)", "ours", "step (s)", "faster (%)", "rank",
               "of", "replayed"});
  for (const SetupChoice& choice : choices) {
    if (!choice.skipped.empty()) continue;
    table.add({choice.published->id, choice.published->source, std::to_string(choice.gpus),
               std::to_string(choice.batch),
               choice.published_layout + verdict_note(choice.published_verdict, " (", ")"),
               fmt::format("{:.4g}", choice.published_seconds), choice.chosen_layout,
               fmt::format("{:.4g}", choice.chosen_seconds),
               fmt::format("{:.1f}", 100 * (choice.published_seconds / choice.chosen_seconds - 1)),
               std::to_string(choice.rank), std::to_string(choice.points), std::to_string(choice.replayed)});
  }
  return table;
}

nlohmann::ordered_json choices_json(const std::vector<SetupChoice>& choices) {
  nlohmann::ordered_json json = json_document("spillway-choices");
  for (const char* key : {"rows", "skipped", "warnings"}) json[key] = nlohmann::ordered_json::array();
  for (const SetupChoice& choice : choices) {
    if (!choice.skipped.empty()) {
      json["skipped"].push_back({{"case", choice.published->id}, {"reason", choice.skipped}});
      continue;
    }
    json["rows"].push_back({{"case", choice.published->id},
                            {"source", choice.published->source},
                            {"gpus", choice.gpus},
                            {"global_batch", choice.batch},
                            {"published_layout", choice.published_layout},
                            {"published_step_time_seconds", choice.published_seconds},
                            {"published_fits", fits_json(choice.published_verdict)},
                            {"chosen_layout", choice.chosen_layout},
                            {"chosen_step_time_seconds", choice.chosen_seconds},
                            {"as_fast", choice.is_as_fast()},
                            {"published_rank", choice.rank},
                            {"points", choice.points},
                            {"replayed", choice.replayed},
                            {"not_replayed", choice.not_replayed}});
  }
  return json;
}

}  // namespace

void validate_choices(const ValidateChoicesArguments& arguments, const std::vector<CaseFile>& files, Context& context) {
  const std::vector<PublishedSetup> setups = published_setups(files, arguments.gpus);
  if (setups.empty())
    throw InputError("--gpus", std::to_string(arguments.gpus), "no published set-up is that small",
                     "take more GPUs or another --source");
  std::vector<SetupChoice> choices;
  std::size_t slower = 0;
  {
    const Progress progress(context);
    for (const PublishedSetup& setup : setups) {
      choices.push_back(
          choose_layout(setup, arguments.replays, [&](const std::string& what, std::int64_t done, auto all) {
            return progress.show(fmt::format("{} of {}, {}: {} {} of {}", choices.size() + 1, setups.size(),
                                             setup.fastest->id, what, done, all)) &&
                   !is_interrupted();
          }));
      if (is_interrupted()) throw Cancelled();
      slower += choices.back().skipped.empty() && !choices.back().is_as_fast() ? 1 : 0;
    }
  }
  if (slower > 0) context.exit_code = exit_answer_is_no;
  if (!arguments.output.empty()) {
    OutputFile out(arguments.output);
    out.write(choices_table(choices).csv());
    out.commit();
  }
  if (context.json()) return print_json(choices_json(choices));
  print(context, choices_table(choices));
  if (context.rows_only()) return;
  std::size_t skipped = 0;
  for (const SetupChoice& choice : choices) {
    if (choice.skipped.empty()) continue;
    ++skipped;
    print(fmt::format("{}: {}\n", choice.published->id, choice.skipped));
  }
  print(fmt::format("\n{} set-ups: our layout is as fast as the published one, or faster, in {}\n",
                    choices.size() - skipped, choices.size() - skipped - slower));
}

}  // namespace spillway::cli
