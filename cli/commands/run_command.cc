#include "cli/commands/run_command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/short_text.h"
#include "cli/commands/explain_technique.h"
#include "cli/commands/memory_command.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/reserve_option.h"
#include "cli/options/scenario_argument.h"
#include "cli/options/setting_options.h"
#include "cli/options/store_option.h"
#include "cli/options/text_page.h"
#include "cli/output/answer_output.h"
#include "cli/output/diagnosis_report.h"
#include "cli/output/memory_explanation.h"
#include "cli/output/result_report.h"
#include "cli/output/run_page.h"
#include "cli/output/stretch_report.h"
#include "cli/output/training_run_report.h"
#include "reports/pictures/timeline_file.h"
#include "scenario/recompute_gain.h"
#include "scenario/relaxation_setting.h"
#include "scenario/scenario_memory.h"
#include "scenario/scenario_run.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/torch_settings.h"
#include "sim/replay/fidelity.h"
#include "studies/answer/answer_json.h"
#include "studies/diagnosis/default_stakes.h"
#include "studies/diagnosis/step_diagnosis.h"
#include "studies/diagnosis/training_run.h"
#include "studies/offload/roofline.h"
#include "traces/formats/read.h"
#include "traces/formats/torch_snapshot_writer.h"

namespace spillway::cli {
namespace {

struct RunArguments {
  std::string first, second;
  std::vector<std::string> settings;
  std::string tie_order, reserve, timeline, memory_snapshot, plan_output, stacks, range, output;
  std::optional<std::int64_t> steps;
  std::optional<double> tokens;
  PictureFiles pictures;
  ExplainTechniqueCall technique;
};

std::vector<std::string> run_settings(const RunArguments& arguments, const std::vector<std::string>& what_if) {
  std::vector<std::string> settings = with_reserve(what_if, arguments.reserve);
  if (!arguments.tie_order.empty()) settings.push_back("replay.tie_order=" + arguments.tie_order);
  return settings;
}

LoadedScenario load_with(const std::string& path, const RunArguments& arguments) {
  return load_argument(path, run_settings(arguments, arguments.settings));
}

Result figures_of(const std::string& path, const RunArguments& arguments, const std::vector<std::string>& what_if) {
  return run_argument_briefly(path, run_settings(arguments, what_if)).run.result;
}

void check_timeline_name(const std::string& path) {
  if (!path.ends_with(".svg") && !path.ends_with(".json"))
    throw InputError(path, "--timeline", "neither .svg nor .json", "name a picture (.svg) or a Perfetto file (.json)");
}

// As PyTorch calls them.
std::vector<SnapshotSetting> snapshot_settings(const PlacedAllocations& placed) {
  const bool expandable = placed.policy == expandable_policy;
  if (!expandable && placed.policy != torch_policy) return {{"allocator", placed.policy}};
  const TorchSettings settings = parse_torch_settings(placed.setting);
  const Bytes split = settings.max_split_size;
  return {{"PYTORCH_CUDA_ALLOC_CONF", placed.setting},
          {"max_split_size", split == Bytes::max() ? std::int64_t{-1} : split.count()},
          {"garbage_collection_threshold", settings.garbage_collection_threshold},
          {"expandable_segments", expandable || settings.expandable_segments}};
}

void write_snapshot(const LoadedScenario& loaded, const ScenarioRun& run, const std::string& path) {
  constexpr std::array needed = {Capability::memory};
  run.trace(loaded).require(needed, "--memory-snapshot");
  const PlacedAllocations placed = placed_allocations(loaded, run);
  if (placed.stitches > 0)
    throw InputError(path, "--memory-snapshot",
                     fmt::format("GMLake stitched {} blocks from pieces of several segments, and a block of a memory "
                                 "snapshot lies in one",
                                 placed.stitches),
                     "draw it with --map and --curve, or choose another memory.allocator");
  OutputFile out(path);
  write_allocator_snapshot(placed.trace, out, snapshot_settings(placed));
  out.commit();
}

std::string defaults_text(const studies::Answer& answer) {
  std::string text;
  for (const studies::AnswerDefault& one : answer.defaults)
    text += fmt::format("  {:<15}{}\n", text.empty() ? "by default" : "", one.sentence);
  return text.empty() ? text : "\n" + text;
}

nlohmann::ordered_json stakes_json(const std::vector<studies::DefaultStake>& stakes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const studies::DefaultStake& stake : stakes)
    list.push_back({{"key", stake.key},
                    {"value", stake.value},
                    {"other", stake.other},
                    {"hangs_bytes", stake.hangs.count()},
                    {"peak_reserved_bytes", stake.peak.count()},
                    {"turns", stake.turns}});
  return list;
}

// What hangs on defaults takes replays of its own: where it may turn the verdict, and where people ask for more.
std::vector<studies::DefaultStake> stakes_of_run(const Context& context, const LoadedScenario& loaded,
                                                 const Result& result) {
  const bool wants_all = is_verbose() && !context.json();  // options of words change no result
  return studies::default_stakes(loaded, result, !wants_all && result.answer() == Verdict::fits);
}

// The page has what every modelled step rests on.
void print_warnings(const Context& context, const Result& result) {
  for (const std::string& warning : result.warnings)
    if (context.rows_only() || !studies::is_of_modelled_times(warning)) warn(context, studies::warning_words(warning));
}

void print_result_page(const studies::Answer& answer, const Result& result, const std::string& parts) {
  constexpr std::size_t indent = 17;
  print(run_page(answer) +
        paragraphs(parts + (is_verbose() ? "\n" + result_details(result) : ""), page_width(), indent));
}

std::string step_command(const char* command, const RunArguments& arguments) {
  std::vector<std::string> words = {command, arguments.first};
  if (!arguments.reserve.empty()) words.insert(words.end(), {"--keep-free", arguments.reserve});
  if (!arguments.tie_order.empty()) words.insert(words.end(), {"--tie-order", arguments.tie_order});
  return told_command(std::move(words), arguments.settings);
}

// The answer without what further replays would find.
studies::Answer run_document(const char* command, const RunArguments& arguments, const LoadedScenario& loaded,
                             ScenarioRun run, const std::optional<StepDiagnosis>& diagnosis) {
  take_replayed_order(loaded, run);
  return studies::step_answer(loaded, run, diagnosis, step_command(command, arguments));
}

// And without its pictures.
studies::Answer short_document(const char* command, const RunArguments& arguments, const LoadedScenario& loaded,
                               const Result& result, const std::optional<StepDiagnosis>& diagnosis) {
  studies::Answer answer = run_answer(loaded, result, step_command(command, arguments));
  if (diagnosis) add_diagnosis(*diagnosis, answer);
  return answer;
}

// Whether the run is asked for more than its figures: for what goes op by op.
bool wants_trace(const RunArguments& arguments) {
  return !arguments.output.empty() || !arguments.range.empty() || !arguments.timeline.empty() ||
         !arguments.plan_output.empty() || !arguments.memory_snapshot.empty() || arguments.pictures.wanted();
}

BriefRun run_argument(const RunArguments& arguments) {
  if (!wants_trace(arguments))
    return run_argument_briefly(arguments.first, run_settings(arguments, arguments.settings));
  LoadedScenario loaded = load_with(arguments.first, arguments);
  ScenarioRun run = run_traced(loaded);
  return {std::move(loaded), std::move(run)};
}

bool wants_training_run(const RunArguments& arguments) { return arguments.steps || arguments.tokens; }

// None: not asked for, or there is none, since the step does not fit.
std::optional<TrainingRun> asked_training_run(const RunArguments& arguments, const LoadedScenario& loaded,
                                              const Result& result) {
  if (!wants_training_run(arguments)) return std::nullopt;
  if (result.step_time <= Picos(0))
    throw InputError(arguments.first, arguments.steps ? "--steps" : "--tokens", "no step time is known of it",
                     "run a scenario, or a capture of torch.profiler");
  const std::int64_t steps =
      arguments.steps ? *arguments.steps : steps_for_tokens(loaded, *arguments.tokens, "--tokens");
  if (!result.may_fit()) return std::nullopt;
  return training_run(loaded, result, steps);
}

void run_scenario(const RunArguments& arguments, Context& context) {
  if (!arguments.timeline.empty()) check_timeline_name(arguments.timeline);
  if (!arguments.output.empty()) check_answer_path(arguments.output);
  if (arguments.steps && arguments.tokens)
    throw InputError("", "--steps", "given beside --tokens", "give one of the two");
  if (wants_training_run(arguments) && context.rows_only())
    throw InputError("", arguments.steps ? "--steps" : "--tokens", "a row of figures has none of a training run",
                     "take --format json, or the text");
  auto [loaded, run] = run_argument(arguments);
  if (std::string note = recomputes_for_nothing(loaded.scenario, run.result); !note.empty())
    run.result.warnings.push_back(std::move(note));
  const Result& result = run.result;
  const std::optional<TrainingRun> training = asked_training_run(arguments, loaded, result);
  std::optional<StretchReport> stretch;
  if (!arguments.range.empty()) stretch = stretch_report(run.trace(loaded), result, arguments.range);
  if (!arguments.timeline.empty()) reports::write_timeline(loaded, run, arguments.timeline);
  std::optional<StepDiagnosis> diagnosis;
  if (!arguments.output.empty() || !context.rows_only())
    diagnosis = diagnose_capture(loaded, run, DiagnosisDepth::short_form);
  const std::vector<studies::DefaultStake> stakes = arguments.output.empty() && context.rows_only()
                                                        ? std::vector<studies::DefaultStake>()
                                                        : stakes_of_run(context, loaded, result);
  if (!arguments.output.empty()) {
    studies::Answer document = run_document("run", arguments, loaded, run, diagnosis);
    add_defaults(stakes, result, document);
    write_answer(document, arguments.output);
  }
  if (!arguments.plan_output.empty()) write_text(arguments.plan_output, plan_json(whole_plan(loaded, run)));
  if (!arguments.memory_snapshot.empty()) write_snapshot(loaded, run, arguments.memory_snapshot);
  if (arguments.pictures.wanted()) {
    constexpr std::array needed = {Capability::memory};
    run.trace(loaded).require(needed, "--curve and --map");
    if (!result.memory.known)
      throw InputError(arguments.first, "--curve and --map", "its memory events tell no block from another",
                       "take a memory snapshot, or a profile with addresses");
    write_pictures(arguments.pictures, loaded, run);
  }
  if (context.rows_only()) {
    print_warnings(context, result);
    warn_of_verdict(context, result);
    print(context, result_row(result));
  } else {
    if (!context.json()) print_warnings(context, result);
    warn_of_verdict(context, result);
    studies::Answer answer = short_document("run", arguments, loaded, result, diagnosis);
    add_defaults(stakes, result, answer);
    if (context.json()) {
      nlohmann::ordered_json document = result_json(result);
      if (diagnosis) document["diagnosis"] = diagnosis_json(*diagnosis);
      if (stretch) document["range"] = stretch_json(*stretch);
      if (wants_training_run(arguments))
        document["training_run"] = training ? training_run_json(*training) : nlohmann::ordered_json();
      document["answer"] = answer_json(answer);
      print_json(document);
    } else {
      print_result_page(answer, result,
                        defaults_text(answer) + (diagnosis ? diagnosis_text(*diagnosis) : "") +
                            (stretch ? stretch_text(*stretch) : "") +
                            (training                        ? training_run_text(*training, result)
                             : wants_training_run(arguments) ? "\n  training run   none: the step does not fit\n"
                                                             : ""));
      print("\n" + next_command(result, arguments.first));
    }
  }
  const bool is_worn = training && training->wears_out();
  context.exit_code = is_worn ? exit_answer_is_no : exit_code_of(result);
}

void compare_scenarios(const RunArguments& arguments, Context& context) {
  const bool is_what_if = arguments.second.empty();
  if (is_what_if && arguments.settings.empty()) throw missing_argument("B, or --set for a what-if on A");
  const Result a = figures_of(arguments.first, arguments, is_what_if ? std::vector<std::string>() : arguments.settings);
  const Result b = figures_of(is_what_if ? arguments.first : arguments.second, arguments, arguments.settings);
  for (const Result* result : {&a, &b}) {
    warn_of_verdict(context, *result);
    for (const std::string& warning : fidelity_warnings(*result)) warn(context, result->title + ": " + warning);
  }
  if (context.json()) return print_json(comparison_json(a, b));
  if (!context.rows_only())
    print(paragraph(fmt::format("A: {}: {}", a.title, verdict_sentence(a)), page_width(), 3) +
          paragraph(fmt::format("B: {}: {}", b.title, verdict_sentence(b)), page_width(), 3) + "\n");
  print(context, comparison(a, b, context.rows_only() || is_verbose()));
}

nlohmann::ordered_json roofline_json(const Roofline& roofline) {
  nlohmann::ordered_json document = {{"peak_flops_per_second", number_or_null(roofline.peak_flops)},
                                     {"memory_bytes_per_second", number_or_null(roofline.bandwidth)},
                                     {"kernels", nlohmann::ordered_json::array()}};
  for (const RooflineKernel& kernel : roofline.kernels)
    document["kernels"].push_back({{"name", kernel.name},
                                   {"count", kernel.count},
                                   {"time_ns", whole_nanoseconds(kernel.time)},
                                   {"flops", kernel.flops > 0 ? nlohmann::ordered_json(kernel.flops) : nullptr},
                                   {"bytes", kernel.bytes}});
  return document;
}

bool is_snapshot(const std::string& path) {
  try {
    return detect_format(path) == TraceFormat::torch_snapshot;
  } catch (const InputError&) {
    return false;  // a scenario, or something that is told what it is when it is read
  }
}

void write_stacks(const LoadedScenario& loaded, const std::string& path) {
  if (loaded.scenario.trace.empty())
    throw InputError(path, "--stacks", "a generated step has no recorded operators", "explain a capture");
  write_text(path, folded_host_stacks(read_captured(loaded.scenario, {.keep_python = true})));
}

// Where a resource has most of the path, twice of it may gain little: another chain then ends the step.
std::string help_text(const studies::Answer& answer) {
  constexpr std::string_view twice = " twice as fast";
  const auto noun = [&](std::string name) {
    if (name.ends_with(twice)) name.resize(name.size() - twice.size());
    return name;
  };
  std::string text;
  for (const studies::AnswerHelp& help : answer.helps)
    if (help.of_path)
      text += fmt::format("  {:<26}{:>10}{:>8}{:>14}\n", noun(help.name), short_duration(to_seconds(help.step_time)),
                          short_percent(help.fraction), percent_text(*help.of_path, 0));
  text = fmt::format("\n  {:<26}{:>10}{:>8}{:>14}\n", "twice as fast", "step", "gain", "of the path") + text;
  std::vector<std::string> none;
  for (const std::string& name : answer.no_help) none.push_back(noun(name));
  if (!none.empty())
    text += paragraph(fmt::format("  no gain from a faster {}", fmt::join(none, ", ")), page_width(), 4);
  return text;
}

ExplainTechniqueCall technique_call(const RunArguments& arguments) {
  ExplainTechniqueCall call = arguments.technique;
  call.output = arguments.output;
  return call;
}

void explain_scenario(const RunArguments& arguments, Context& context) {
  if (!arguments.technique.question.technique.empty())
    return explain_technique(context, arguments.first, run_settings(arguments, arguments.settings),
                             technique_call(arguments));
  if (!arguments.technique.question.axes.empty() || arguments.technique.question.together)
    throw InputError("", "--axis and --together", "given without --technique",
                     "name a technique: --technique ssdtrain");
  if (arguments.output.ends_with(".svg"))
    throw InputError(arguments.output, "--output", "without --technique there is no map",
                     "name a technique, or a page (answer.html)");
  if (!arguments.output.empty()) check_answer_path(arguments.output);
  const auto explain_memory_alone = [&](const std::string& trace, const Result* judged) {
    explain_snapshot(trace, step_command("explain", arguments), arguments.output, judged, context);
  };
  if (is_snapshot(arguments.first) && arguments.settings.empty()) return explain_memory_alone(arguments.first, nullptr);
  const LoadedScenario loaded = load_with(arguments.first, arguments);
  if (!loaded.scenario.trace.empty() && !loaded.trace.has(Capability::times)) {
    const Result judged = scenario::run_memory(loaded).result;
    return explain_memory_alone(loaded.scenario.trace, judged.memory.capacity > Bytes(0) ? &judged : nullptr);
  }
  const ScenarioRun ran = run_traced(loaded);
  const Result& result = ran.result;
  if (!context.json() && !context.rows_only()) print_warnings(context, result);
  warn_of_verdict(context, result);
  if (!arguments.stacks.empty()) write_stacks(loaded, arguments.stacks);
  const std::optional<StepDiagnosis> diagnosis = diagnose_capture(loaded, ran);
  const std::vector<Relaxation> relaxations = explain(loaded, result);
  const std::vector<studies::DefaultStake> stakes = studies::default_stakes(loaded, result);
  std::optional<MemoryExplanation> memory;
  const bool stays = !loaded.offloads();
  if (result.memory.known && !result.memory.on_host && stays)
    memory = explain_memory(ran.trace(loaded), allocations_of(loaded, ran));
  const auto finished = [&](studies::Answer answer) {
    add_helps(relaxations, result, answer);
    add_defaults(stakes, result, answer);
    return answer;
  };
  if (!arguments.output.empty())
    write_answer(finished(run_document("explain", arguments, loaded, ran, diagnosis)), arguments.output);
  const studies::Answer answer = finished(short_document("explain", arguments, loaded, result, diagnosis));
  if (context.json()) {
    nlohmann::ordered_json document = result_json(result);
    document["schema"] = "spillway-explanation";
    for (const Relaxation& r : relaxations)
      document["relaxations"].push_back({{"resource", r.resource},
                                         {"path_share", path_share_of_relaxation(r.resource, result)},
                                         {"step_time_ns", whole_nanoseconds(r.step_time)},
                                         {"gain_fraction", r.gain}});
    document["defaults"] = stakes_json(stakes);
    if (memory) {
      const nlohmann::ordered_json parts = explanation_json(*memory);
      for (const auto& [key, value] : parts.items()) document["memory"][key] = value;
    }
    document["roofline"] = roofline_json(roofline(loaded, ran));
    if (diagnosis) document["diagnosis"] = diagnosis_json(*diagnosis);
    document["answer"] = answer_json(answer);
    return print_json(document);
  }
  Table table({"relaxed", "of the critical path", "step time (ms)", "gain"});
  for (const Relaxation& r : relaxations)
    table.add({r.resource, percent_text(path_share_of_relaxation(r.resource, result)),
               fmt::format("{:.3f}", to_seconds(r.step_time) * 1e3), fmt::format("{:.1f} %", r.gain * 100)});
  if (context.rows_only()) return print(context, table);
  print_result_page(answer, result,
                    defaults_text(answer) + help_text(answer) + (memory ? explanation_text(*memory) : "") +
                        (diagnosis ? diagnosis_text(*diagnosis) : ""));
}

constexpr const char* written_answer = "write the answer as one interactive page (.html), or what it holds (.json)";

void add_output_option(Command& command, RunArguments& arguments, const std::string& about) {
  command.add_option("--output", arguments.output, about)->to_write()->type_name("FILE");
}

void add_run_options(Command& command, RunArguments& arguments) {
  add_setting_options(command, arguments.settings);
  add_reserve_option(command, arguments.reserve);
  command.add_option("--tie-order", arguments.tie_order, "order of simultaneous events")
      ->type_name("fifo|reverse|shuffle:SEED");
}

}  // namespace

void add_run_commands(Command& app, Context& context) {
  const auto arguments = std::make_shared<RunArguments>();

  Command* run_app =
      app.add_subcommand("run", "Simulate a scenario or a trace: does it fit, how fast, what is the bottleneck");
  run_app->add_option("SCENARIO", arguments->first, "scenario file, or a trace to replay as captured")->required();
  run_app
      ->add_option("--timeline", arguments->timeline,
                   "write the simulation as a picture (.svg) or for Perfetto (.json)")
      ->to_write()
      ->type_name("FILE");
  run_app->add_option("--memory-snapshot", arguments->memory_snapshot, "write its allocations for PyTorch's memory_viz")
      ->to_write()
      ->type_name("FILE");
  run_app->add_option("--plan-output", arguments->plan_output, "write the plan; `run --set plan=FILE` applies it")
      ->to_write()
      ->type_name("FILE");
  run_app
      ->add_option("--range", arguments->range,
                   "sum up this time range of the simulation, milliseconds: work by kind and name, passes, how busy "
                   "the GPU, PCIe and the drives are")
      ->type_name("FROM..TO");
  run_app
      ->add_option("--steps", arguments->steps,
                   "of a training run of so many steps like this one: time, tokens, energy, wear of the drives")
      ->check(positive_number())
      ->type_name("N");
  run_app->add_option("--tokens", arguments->tokens, "the same, of the steps that train so many tokens, e.g. 2T")
      ->amount(Dimension::tokens, "")
      ->check(positive_number())
      ->type_name("N");
  add_output_option(*run_app, *arguments, written_answer);
  add_picture_options(*run_app, arguments->pictures);
  add_run_options(*run_app, *arguments);
  run_app->callback([arguments, &context] { run_stoppable([&] { run_scenario(*arguments, context); }); });

  Command* compare_app = app.add_subcommand(
      "compare", "Simulate two scenarios, or one and a what-if on it (--set), and show what differs");
  compare_app->add_option("A", arguments->first, "scenario file or trace")->required();
  compare_app->add_option("B", arguments->second, "scenario file or trace; left out, A with what --set changes");
  add_run_options(*compare_app, *arguments);
  compare_app->callback([arguments, &context] { run_stoppable([&] { compare_scenarios(*arguments, context); }); });

  Command* explain_app = app.add_subcommand("explain", "What limits the step, and what each relaxation would gain");
  explain_app->add_option("SCENARIO", arguments->first, "scenario file or trace; or a memory snapshot: who holds it")
      ->required();
  explain_app
      ->add_option("--stacks", arguments->stacks,
                   "write the recorded host time as folded stacks, one a line with its microseconds: input of flame "
                   "graphs")
      ->to_write()
      ->type_name("FILE");
  ExplainTechniqueCall& technique = arguments->technique;
  explain_app
      ->add_option("--technique", technique.question.technique,
                   "where would it pay: the least change of machine or step at which it saves memory for little time")
      ->type_name("NAME[+NAME...]");
  explain_app
      ->add_option("--saves", technique.saves_percent,
                   "of --technique: least share of the plain step's reserved memory, percent (10)")
      ->check(positive_number())
      ->type_name("PERCENT");
  explain_app
      ->add_option("--slower", technique.slower_percent,
                   "of --technique: most of the plain step's time on top, percent (2)")
      ->type_name("PERCENT");
  explain_app
      ->add_option("--axis", technique.question.axes,
                   "of --technique: change this alone: " + studies::payoff_axis_words().listed() + "; may be repeated")
      ->allow_extra_args(false)
      ->type_name("AXIS");
  explain_app->add_flag("--together", technique.question.together,
                        "of --technique: change the two axes named both at once, too");
  explain_app->add_option("--effort", technique.effort, "of --technique: times the search's usual work (1)")
      ->check(positive_number())
      ->type_name("TIMES");
  add_store_option(*explain_app, technique.store);
  add_output_option(*explain_app, *arguments,
                    std::string(written_answer) + "; of --technique a map of what was tried (.svg)");
  add_run_options(*explain_app, *arguments);
  explain_app->callback([arguments, &context] { run_stoppable([&] { explain_scenario(*arguments, context); }); });
}

}  // namespace spillway::cli
