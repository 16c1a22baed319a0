#include "studies/fit/fit_exports.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/input_error.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique.h"
#include "scenario/brief_run.h"
#include "sim/devices/memory/memory_policies.h"
#include "studies/fit/fit_knobs.h"
#include "studies/fit/fit_point.h"
#include "studies/fit/fit_rank.h"
#include "studies/fit/way_mechanisms.h"

namespace spillway::studies {
namespace {

// What a program has for a key that its framework's file can't say.
struct Recipe {
  std::string_view key, value, line;
};
constexpr std::string_view fused_kernels_key = "model.fused_kernels";
constexpr std::array<Recipe, 12> recipes = {{
    {recompute_key, "full", "model.gradient_checkpointing_enable(), or checkpoint_wrapper on each layer"},
    {recompute_key, "selective", "torch.utils.checkpoint around the attention core"},
    {recompute_key, "operators", "create_selective_checkpoint_contexts, saving matrix products and attention"},
    {"model.recompute_layers", "", "checkpoint_wrapper on so many layers"},
    {"model.recompute_every", "", "checkpoint_wrapper on every so many-th layer"},
    {"model.loss", "fused", "Liger's LigerCrossEntropyLoss"},
    {"model.loss", "chunked", "Liger's LigerFusedLinearCrossEntropyLoss"},
    {fused_kernels_key, "true", "Liger's norms, rotary embedding and gate"},
    {"model.optimizer", "adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
    {"model.optimizer", "adafactor", "transformers.optimization.Adafactor"},
    {"model.optimizer_form", "fused", "torch.optim.AdamW(..., fused=True)"},
    {allocator_key, expandable_policy, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
}};

const Recipe* recipe_of(const launch::UnsaidKey& unsaid) {
  const auto found = std::find_if(recipes.begin(), recipes.end(), [&](const Recipe& one) {
    return unsaid.key == one.key && (one.value.empty() || unsaid.value == one.value);
  });
  return found == recipes.end() ? nullptr : &*found;
}

// Parts of the question that the framework answers by itself.
constexpr std::string_view autocast_key = "model.autocast";
bool is_frameworks_own(std::string_view field) {
  return field == "framework" || field == "compile" || field == "autocast";
}

// What the framework does by itself where its file can't say what the scenario has, nor, `with_code`, a program by a
// recipe; what the question itself is, the program says.
std::vector<std::string> done_otherwise(const launch::LaunchExport& made, bool with_code) {
  std::vector<std::string> edits;
  for (const launch::UnsaidKey& each : made.unsaid) {
    const std::string_view key = each.key;
    if (with_code && recipe_of(each) != nullptr) continue;
    if (key == offload_key) edits.push_back(setting(offload_key, no_offload));
    if (key == allocator_key) edits.push_back(setting(allocator_key, torch_policy));
    constexpr std::string_view model = "model.";
    if (!each.otherwise || !key.starts_with(model)) continue;
    const std::string_view field = key.substr(model.size());
    if (is_frameworks_own(field) || role_of(field) != KeyRole::question) edits.push_back(setting(key, *each.otherwise));
  }
  return edits;
}

Scenario as_said(Scenario scenario, const launch::LaunchExport& made, bool with_code) {
  for (const launch::UnsaidKey& each : made.unsaid) {
    if (each.key == "plan") scenario.plan.clear();
    if (each.key == "memory.plan") scenario.memory_plan.clear();
  }
  constexpr std::string_view model = "model.";
  for (const std::string& edit : done_otherwise(made, with_code)) {
    const std::size_t equals = edit.find('=');
    const std::string key = edit.substr(0, equals), value = edit.substr(equals + 1);
    if (key == offload_key) scenario.offload.technique = value;
    if (key == allocator_key) scenario.allocator = value;
    if (key.starts_with(model)) set_field(scenario.training, std::string_view(key).substr(model.size()), value);
  }
  return scenario;
}

}  // namespace

namespace {

Exported launched(const Scenario& scenario, std::string_view target) {
  Exported one{.target = std::string(target), .launch = launch::export_launch(scenario, target)};
  for (const launch::UnsaidKey& each : one.launch.unsaid)
    if (const Recipe* recipe = recipe_of(each)) one.code.emplace_back(recipe->line);
  return one;
}

Exported replayed(Exported one, const Scenario& scenario) {
  const auto figures = [&](bool with_code) {
    return run_briefly(as_said(scenario, one.launch, with_code), Detail::figures).run.result;
  };
  try {
    one.alone = figures(false);
    const bool changes = done_otherwise(one.launch, true) != done_otherwise(one.launch, false);
    if (!one.code.empty()) one.with_code = changes ? figures(true) : one.alone;
  } catch (const InputError& error) {
    one.refusal = error.cause();
  }
  return one;
}

// Of what a file can't say, how ranks share the work.
std::string unsaid_splits(const launch::LaunchExport& made) {
  constexpr std::array<std::string_view, 4> splits = {"model.tensor_parallel", "model.context_parallel",
                                                      "model.pipeline_parallel", "model.expert_parallel"};
  std::string unsaid;
  for (const launch::UnsaidKey& each : made.unsaid)
    if (std::find(splits.begin(), splits.end(), each.key) != splits.end())
      unsaid += (unsaid.empty() ? "" : ", ") + each.key.substr(std::string_view("model.").size());
  return unsaid;
}

// Why the target would train something else: a whole program that can't be told of adapters trains all weights;
// elsewhere the program makes them. Empty: it trains the same.
std::string other_weights(const launch::LaunchExport& made) {
  const bool is_unsaid = std::any_of(made.unsaid.begin(), made.unsaid.end(),
                                     [](const launch::UnsaidKey& each) { return each.key == "model.trainable"; });
  return made.is_whole_program && is_unsaid ? "it trains all weights, not adapters" : "";
}

}  // namespace

Exported exported(const Scenario& scenario, std::string_view target) {
  Exported one = launched(scenario, target);
  one.refusal = other_weights(one.launch);
  return one.refusal.empty() ? replayed(std::move(one), scenario) : one;
}

namespace {

// Of a long step, what few of its micro-batches come to tells it where much is left, or where they are too much
// already.
bool does_launch(const Scenario& scenario) {
  constexpr double clearly = 0.02;  // of the limit
  if (const std::optional<Scenario> brief = brief_step(scenario)) {
    const Result result = run_briefly(*brief, Detail::times).run.result;
    const MemoryResult& memory = result.memory;
    const Bytes left = memory.limit - memory.peak_reserved;
    if (!result.may_fit()) return false;
    if (static_cast<double>(left.count()) > clearly * static_cast<double>(memory.limit.count()))
      return is_yes(result.as_replayed());
  }
  return is_yes(run_briefly(scenario, Detail::times).run.result.as_replayed());
}

struct Needs {
  bool is_said = true, code = false;  // each edit by the file, or by a line of the program; some by such a line
};
Needs needs_of(const launch::LaunchExport& made, const std::vector<std::string>& edits) {
  Needs needs;
  for (const launch::UnsaidKey& unsaid : made.unsaid) {
    const bool is_edit = std::any_of(edits.begin(), edits.end(),
                                     [&](const std::string& one) { return one.starts_with(unsaid.key + "="); });
    needs.code |= is_edit;
    needs.is_said &= !is_edit || recipe_of(unsaid) != nullptr;
  }
  return needs;
}

void files_first(std::vector<std::string>& targets) {
  std::stable_sort(targets.begin(), targets.end(),
                   [](const std::string& a, const std::string& b) { return a.ends_with('*') < b.ends_with('*'); });
}

}  // namespace

std::string imported_target(const Scenario& scenario) {
  return std::string(launch::export_target_of(scenario.imported.launcher));
}

std::vector<std::string> launched_by(const std::vector<Exported>& exports, const std::vector<std::string>& edits) {
  std::vector<std::string> targets;
  for (const Exported& one : exports) {
    const Needs needs = needs_of(one.launch, edits);
    const std::optional<Result>& result = needs.code ? one.with_code : one.alone;
    if (needs.is_said && result && is_yes(result->as_replayed()))
      targets.push_back(one.target + (needs.code ? "*" : ""));
  }
  files_first(targets);
  return targets;
}

std::vector<std::string> launched_by(const Scenario& scenario, const std::vector<std::string>& edits) {
  std::vector<std::string> targets;
  for (const Word& target : launch::export_target_words()) {
    try {
      const launch::LaunchExport made = launch::export_launch(scenario, target.name);
      const Needs needs = needs_of(made, edits);
      if (other_weights(made).empty() && needs.is_said && does_launch(as_said(scenario, made, needs.code)))
        targets.push_back(std::string(target.name) + (needs.code ? "*" : ""));
    } catch (const InputError&) {
      // it has no such set-up
    }
  }
  files_first(targets);
  return targets;
}

std::vector<Exported> exported(const Scenario& scenario) {
  std::vector<Exported> all;
  for (const Word& target : launch::export_target_words()) {
    Exported one = launched(scenario, target.name);
    const std::string splits = unsaid_splits(one.launch);
    one.refusal = splits.empty() ? other_weights(one.launch) : "runs another layout: has no " + splits;
    if (one.refusal.empty()) one = replayed(std::move(one), scenario);
    all.push_back(std::move(one));
  }
  return all;
}

FitQuestion asked_by(FitQuestion question, const FitSubject& subject, std::string_view target) {
  question.launcher = target;
  const launch::LaunchExport made = launch::export_launch(subject.parsed, target);
  for (std::string& edit : done_otherwise(made, true))
    if (!edit.starts_with(autocast_key)) question.settings.push_back(std::move(edit));  // of some layouts alone
  // Its modules as they stand: fused ones are a way, told with the line that they take.
  for (const launch::UnsaidKey& each : made.unsaid)
    if (each.key == fused_kernels_key && each.otherwise)
      question.settings.push_back(setting(fused_kernels_key, *each.otherwise));
  return question;
}

std::optional<FitPoint> launched_point(const FitSubject& subject, const FitPoints& points, const FitPoint& point,
                                       std::string_view target) {
  try {
    const launch::LaunchExport made =
        launch::export_launch(scenario_of(subject.scenario, points.candidate(point).edits), target);
    if (!other_weights(made).empty() || !unsaid_splits(made).empty()) return std::nullopt;
    return points.with(point, done_otherwise(made, true));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

namespace {

// Whether the file alone says each of the edits.
bool says_all(const launch::LaunchExport& made, const std::vector<std::string>& edits) {
  const Needs needs = needs_of(made, edits);
  return needs.is_said && !needs.code && other_weights(made).empty() && unsaid_splits(made).empty();
}

}  // namespace

void find_plain(const FitSubject& subject, std::string_view target, FitOutcome& outcome) {
  for (FitWay& way : std::span(outcome.ways).first(outcome.fitting)) {
    const std::vector<std::string>& edits = way.row.candidate.edits;
    try {
      way.is_plain = way.carrier == Carrier::frameworks &&
                     says_all(launch::export_launch(scenario_of(subject.scenario, edits), target), edits);
    } catch (const InputError&) {
      // it has no such set-up
    }
  }
}

FitOutcome as_launched(const FitQuestion& question, const FitSubject& subject, const FitOutcome& outcome,
                       std::string_view target, const FitOptions& options) {
  constexpr std::size_t most_tried = 24;
  const FitPoints points(subject);
  FitOutcome launched = outcome;
  launched.ways.clear();
  launched.worth.clear();
  launched.proof.reset();  // it is of the ways as searched
  launched.fitting = 0;
  std::vector<Candidate> ways;  // that are not as they were searched
  std::vector<std::size_t> of;  // their places
  std::set<std::vector<std::string>> seen;
  bool has_plain = false;
  for (std::size_t i = 0; i < outcome.fitting && (launched.ways.size() < most_tried || !has_plain); ++i) {
    std::vector<std::string> edits = outcome.ways[i].row.candidate.edits;
    try {
      const launch::LaunchExport made = launch::export_launch(scenario_of(subject.scenario, edits), target);
      const bool is_plain = says_all(made, edits);
      if (!other_weights(made).empty() || (launched.ways.size() >= most_tried && !is_plain)) continue;
      has_plain |= is_plain;
      std::erase_if(edits, keeps_sequences);  // a candidate's own, made again below
      for (std::string& edit : done_otherwise(made, true)) edits.push_back(std::move(edit));
      const FitPoint point = points.with(points.as_given(), edits);
      if (!seen.insert(points.settings(point)).second) continue;
      FitWay& way = launched.ways.emplace_back(outcome.ways[i]);
      if (Candidate one = points.candidate(point); one.edits != way.row.candidate.edits) {
        ways.push_back(std::move(one));
        of.push_back(launched.ways.size() - 1);
      }
      way.carrier = Carrier::frameworks;
      way.changes_maths = points.changes_maths(point);
      way.mechanisms = mechanisms_of(points, point);
      way.layout = layout_of(point.setup);
    } catch (const InputError&) {
      // it has no such set-up
    }
  }
  std::vector<Row> rows = evaluate(subject.scenario, ways, {.store = options.store});
  for (std::size_t i = 0; i < rows.size(); ++i) launched.ways[of[i]].row = std::move(rows[i]);
  for (FitWay& way : launched.ways) {
    launched.stopped |= !way.row.is_done;
    launched.fitting += does_fit(way.row) ? 1 : 0;
    if (way.row.ran()) way.binding_provenance = binding_provenance(way.row.result, subject.hardware);
  }
  std::vector<RankedRow> ranked;
  for (const FitWay& way : launched.ways)
    ranked.push_back({&way.row, group_of(way.carrier, way.changes_maths && !question.any_numerics), way.mechanisms});
  std::vector<FitWay> ordered;
  for (const std::size_t i : shown_order(question.goal, ranked)) ordered.push_back(std::move(launched.ways[i]));
  launched.ways = std::move(ordered);
  find_plain(subject, target, launched);
  return launched;
}

}  // namespace spillway::studies
