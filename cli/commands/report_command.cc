#include "cli/commands/report_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "cli/commands/report_procurement.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/reserve_option.h"
#include "cli/options/scenario_argument.h"
#include "cli/options/setting_options.h"
#include "cli/output/answer_output.h"
#include "cli/output/diagnosis_report.h"
#include "cli/output/report_output.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "hwprofiles/price_list.h"
#include "reports/diagnosis_section.h"
#include "reports/pcie_report.h"
#include "reports/ssd_report.h"
#include "reports/step_report.h"
#include "scenario/scenario_fields.h"
#include "scenario/scenario_memory.h"
#include "sim/replay/fidelity.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ReportArguments {
  std::string scenario, baseline, reserve, prices;
  std::vector<std::string> settings, drives, outputs;
  std::optional<double> used_percent;
  std::optional<std::int64_t> drives_per_gpu, drives_per_machine, count;
  SsdQuestion question;
};

// What the scenario or --set says of a key; none: neither does.
std::optional<std::string> said_of(const ReportArguments& arguments, std::string_view key) {
  std::error_code none;
  if (std::filesystem::exists(arguments.scenario, none) && is_scenario_file(arguments.scenario))
    return setting_of(scenario_text(arguments.scenario, arguments.settings), std::string(key));
  std::string text = "{}";
  for (const std::string& setting : arguments.settings) text = with_setting(text, setting);
  return setting_of(text, std::string(key));
}

// Of a model that the machine is to have instead of its own, where nobody says a number: as many.
std::int64_t count_for_machine(const ReportArguments& arguments, const LoadedScenario& loaded) {
  std::int64_t own = 0;
  for (const DriveGroup& group : loaded.hardware.drives) own += group.count;
  const bool is_said = own == 0 || !loaded.scenario.offload.drives.empty() ||
                       said_of(arguments, "offload.drives_per_machine").has_value();
  return is_said ? loaded.scenario.offload.drives_per_machine : own;
}

// One footing: a number says of what it is, and is of drives that are named.
void read_numbers(const ReportArguments& arguments, const LoadedScenario& loaded, SsdQuestion& question) {
  if (arguments.count)
    throw InputError("", "--count", "doesn't say whether a GPU or a machine has so many",
                     "write --drives-per-gpu N or --drives-per-machine N instead");
  if (arguments.drives_per_gpu && arguments.drives_per_machine)
    throw InputError("", "--drives-per-gpu", "given beside --drives-per-machine", "give one of the two");
  if ((arguments.drives_per_gpu || arguments.drives_per_machine) && arguments.drives.empty())
    throw InputError("", arguments.drives_per_gpu ? "--drives-per-gpu" : "--drives-per-machine",
                     "given without --drives, and the machine's own sets are as its profile says",
                     "name the drives: --drives MODEL");
  question.drives_per_gpu = arguments.drives_per_gpu.value_or(0);
  question.drives_per_machine =
      question.drives_per_gpu > 0 ? 0 : arguments.drives_per_machine.value_or(count_for_machine(arguments, loaded));
}

SsdQuestion question_of(const ReportArguments& arguments, const LoadedScenario& loaded) {
  SsdQuestion question = arguments.question;
  read_numbers(arguments, loaded, question);
  question.replays = true;
  const ProfileLibrary library = ProfileLibrary::standard();
  const PriceList prices = PriceList::load(arguments.prices, arguments.drives);
  for (const std::string& name : arguments.drives) {
    question.drives.push_back(library.load_nvme(name));
    question.drives.back().price_usd = prices.drive_usd(question.drives.back());
  }
  const double used = loaded.scenario.offload.demands.used_fraction;
  question.endurance.used_fraction = arguments.used_percent ? *arguments.used_percent / 100 : used;
  return question;
}

void add_setting(LoadedScenario& loaded, const std::string& setting, const ReportArguments& arguments) {
  const bool is_first = arguments.settings.empty() && loaded.scenario.title.find(" with offload.") == std::string::npos;
  loaded.scenario.title += (is_first ? " with " : ", ") + setting;
}

// A step that moves nothing is asked about as SSDTrain would move it, where there are drives for it.
void let_move(LoadedScenario& loaded, const ReportArguments& arguments) {
  const bool has_drives = !arguments.drives.empty() || !loaded.hardware.drives.empty();
  if (!has_drives || loaded.offloads() || studies::uses_drives(loaded.trace)) return;
  if (said_of(arguments, "offload.technique") == planners::no_offload)
    throw InputError(
        arguments.scenario, "offload.technique", "none moves nothing, so there is no load to judge",
        fmt::format("leave it out, to judge {0}, or name what moves: --set offload.technique={0}", ssdtrain_word));
  loaded.scenario.offload.technique = ssdtrain_word;
  add_setting(loaded, fmt::format("offload.technique={}", ssdtrain_word), arguments);
}

// Stores that nothing waits for may pile up until memory runs out; where the host waits for them, the step is longer
// and may fit.
ScenarioRun run_for_report(LoadedScenario& loaded, const ReportArguments& arguments) {
  ScenarioRun ran = run_traced(loaded);
  const bool may_wait = loaded.scenario.offload.technique == ssdtrain_word && !loaded.scenario.offload.in_flight;
  if (ran.result.may_fit() || !may_wait || loaded.capacity <= Bytes(0)) return ran;
  constexpr std::int64_t share = 10;
  LoadedScenario waiting = loaded;
  const Bytes most(loaded.capacity.count() / share);
  waiting.scenario.offload.in_flight = most;
  ScenarioRun bounded = run_traced(waiting);
  if (!bounded.result.may_fit()) return ran;
  add_setting(waiting, fmt::format("offload.in_flight_bytes={}", most.count()), arguments);
  loaded = std::move(waiting);
  return bounded;
}

LoadedScenario load_for_report(const ReportArguments& arguments) {
  LoadedScenario loaded = load_argument(arguments.scenario, arguments.settings);
  let_move(loaded, arguments);
  prepare_for_offload(loaded);
  std::vector<std::string> own = {loaded.hardware.name};
  own.insert(own.end(), arguments.drives.begin(), arguments.drives.end());
  for (const DriveGroup& group : loaded.hardware.drives) own.push_back(group.drive.name);
  const PriceList prices = PriceList::load(arguments.prices, own);
  for (DriveGroup& group : loaded.hardware.drives) group.drive.price_usd = prices.drive_usd(group.drive);
  return loaded;
}

Json step_json(const std::optional<StepOnDrives>& step) {
  if (!step) return {};
  return {{"technique", step->technique},
          {"fits", fits_json(step->verdict)},
          {"verdict", to_string(step->verdict)},
          {"short_of_bytes", step->short_of.count()},
          {"step_time_ns", whole_nanoseconds(step->step_time)},
          {"stored_bytes", step->written.count()},
          {"loaded_bytes", step->read.count()},
          {"saved_bytes", step->saved.count()},
          {"saves_nothing", step->saves_nothing}};
}

Json tests_json(const std::vector<JudgedTest>& tests) {
  Json json = Json::array();
  for (const JudgedTest& test : tests)
    json.push_back({{"test", test.name}, {"asked", test.asked}, {"given", test.given}, {"holds", test.holds}});
  return json;
}

Json drive_json(const DriveAnswer& drive, std::int64_t in_machine, double asked_years) {
  return {{"drive", drive.drive.name},
          {"drives_per_set", drive.count},
          {"gpus_per_set", drive.sharers},
          {"drives_per_gpu", static_cast<double>(drive.count) / static_cast<double>(drive.sharers)},
          {"drives_per_machine",
           static_cast<double>(drive.count) * static_cast<double>(in_machine) / static_cast<double>(drive.sharers)},
          {"answer", drive.is_yes()},
          {"verdict", drive.verdict(asked_years)},
          {"endurance_bytes", number_or_null(drive.endurance.bytes)},
          {"endurance_low_bytes", number_or_null(drive.endurance.low)},
          {"endurance_high_bytes", number_or_null(drive.endurance.high)},
          {"endurance_basis", drive.endurance.basis},
          {"life_years", number_or_null(drive.years)},
          {"life_low_years", number_or_null(drive.low_years)},
          {"life_high_years", number_or_null(drive.high_years)},
          {"first_write_bytes_per_second", drive.first_rate},
          {"steady_write_bytes_per_second", drive.steady_rate},
          {"steady_step_time_ns", whole_nanoseconds(drive.load.steady.length)},
          {"steps_until_cache_full", drive.load.steps_to_full},
          {"life_bound", life_bound_words()[drive.bound].name},
          {"step_with_drives", step_json(drive.step)},
          {"holds_with_empty_cache", drive.holds_first},
          {"holds_steady", drive.holds_steady},
          {"throttled", drive.load.throttled},
          {"tests", tests_json(drive.cannot_tell.empty() ? drive.tests(asked_years) : std::vector<JudgedTest>())},
          {"drives_per_set_for_life", drive.count_for_life},
          {"drives_per_set_for_rate", drive.count_for_rate},
          {"pcie_lanes", drive.lanes},
          {"set_bytes_written_per_step", drive.written.count()},
          {"usd_per_billion_tokens", drive.usd_per_billion_tokens ? Json(*drive.usd_per_billion_tokens) : Json()},
          {"assumptions", drive.endurance.assumptions}};
}

Json head_json(const char* schema, const LoadedScenario& loaded, const Result& result, const OffloadTraffic& traffic) {
  Json document = json_document(schema);
  document["title"] = loaded.scenario.title;
  document["fingerprint"] = fmt::format("{:016x}", result.fingerprint);
  document["step_time_ns"] = whole_nanoseconds(traffic.replayed);
  document["unhindered_step_time_ns"] = whole_nanoseconds(traffic.load.step);
  document["bytes_written_per_step"] = traffic.load.written().count();
  document["bytes_read_per_step"] = traffic.load.read().count();
  document["bytes_to_host_per_step"] = traffic.to_host.count();
  document["bytes_from_host_per_step"] = traffic.from_host.count();
  Json causes = Json::array();
  for (const TrafficCause& cause : traffic.causes)
    causes.push_back({{"name", cause.name},
                      {"tensors", cause.tensors},
                      {"written_bytes", cause.written.count()},
                      {"read_bytes", cause.read.count()}});
  document["causes"] = causes;
  return document;
}

void finish(Context& context, const ReportArguments& arguments, const LoadedScenario& loaded, const Json& json,
            const ReportDocument& document) {
  for (const std::string& output : arguments.outputs) write_report(document, output);
  for (const std::string& warning : loaded.warnings) warn(context, studies::warning_words(warning));
  if (context.json())
    print_json(json);
  else
    print_document(context, document);
  if (document.answer == Verdict::does_not_fit) context.exit_code = exit_answer_is_no;
}

void report_ssd(Context& context, const ReportArguments& arguments) {
  check_report_paths(arguments.outputs);
  LoadedScenario loaded = load_for_report(arguments);
  const SsdQuestion question = question_of(arguments, loaded);
  loaded = on_first_drives(std::move(loaded), question);
  const ScenarioRun ran = run_for_report(loaded, arguments);
  const SsdAnswer answer = answer_ssd(loaded, ran, question);
  Json json = head_json("spillway-ssd-report", loaded, ran.result, answer.traffic);
  json["answer"] = answer.is_yes();
  json["required_write_bytes_per_second"] = answer.required_rate;
  json["life_years_asked"] = question.life_years;
  json["drives"] = Json::array();
  const std::int64_t in_machine = std::min(answer.gpus, loaded.hardware.gpu_count);
  for (const DriveAnswer& drive : answer.drives)
    json["drives"].push_back(drive_json(drive, in_machine, question.life_years));
  json["warnings"] = loaded.warnings;
  finish(context, arguments, loaded, json, ssd_report(loaded, answer, question));
}

void report_pcie(Context& context, const ReportArguments& arguments) {
  check_report_paths(arguments.outputs);
  LoadedScenario loaded = load_for_report(arguments);
  const SsdQuestion question = question_of(arguments, loaded);
  loaded = on_first_drives(std::move(loaded), question);
  const ScenarioRun ran = run_for_report(loaded, arguments);
  const PcieAnswer answer = answer_pcie(loaded, ran, question);
  Json json = head_json("spillway-pcie-report", loaded, ran.result, answer.traffic);
  json["answer"] = answer.is_yes();
  json["required_bytes_per_second"] = answer.required_rate;
  json["step_with_drives"] = step_json(answer.step);
  json["tests"] = tests_json(answer.tests());
  json["write_bytes_per_second"] = answer.write_rate;
  json["read_bytes_per_second"] = answer.read_rate;
  json["links"] = Json::array();
  for (const LinkAnswer& link : answer.links)
    json["links"].push_back({{"name", link.name},
                             {"capacity_bytes_per_second", to_bytes_per_second(link.capacity)},
                             {"written_bytes", link.written},
                             {"read_bytes", link.read},
                             {"copied_bytes", link.copied},
                             {"required_bytes_per_second", link.required},
                             {"headroom", link.headroom()}});
  json["warnings"] = loaded.warnings;
  finish(context, arguments, loaded, json, pcie_report(loaded, answer, question));
}

bool is_page(const std::string& path) { return path.ends_with(".html"); }

studies::Answer answer_of(const ReportArguments& arguments, const LoadedScenario& loaded, ScenarioRun ran,
                          const std::optional<StepDiagnosis>& diagnosis) {
  take_replayed_order(loaded, ran);
  std::vector<std::string> words = {"run", arguments.scenario};
  if (!arguments.reserve.empty()) words.insert(words.end(), {"--keep-free", arguments.reserve});
  return studies::step_answer(loaded, ran, diagnosis, told_command(std::move(words), arguments.settings));
}

void report_step(Context& context, const ReportArguments& arguments) {
  check_report_paths(arguments.outputs);
  const LoadedScenario loaded = load_argument(arguments.scenario, with_reserve(arguments.settings, arguments.reserve));
  const ScenarioRun ran = run_traced(loaded);
  const Result& result = ran.result;
  std::optional<Result> baseline;
  if (!arguments.baseline.empty())
    baseline = run(load_argument(arguments.baseline, with_reserve({}, arguments.reserve)));
  for (const std::string& warning : fidelity_warnings(result)) warn(context, warning);
  warn_of_verdict(context, result);
  Json json = baseline ? comparison_json(*baseline, result) : result_json(result);
  ReportDocument document = step_report(result_on_gpu_clock(loaded, ran), baseline ? &*baseline : nullptr);
  const std::optional<StepDiagnosis> diagnosis = diagnose_capture(loaded, ran);
  if (diagnosis) {
    document.sections.insert(document.sections.begin() + 1, diagnosis_section(*diagnosis));
    json["diagnosis"] = diagnosis_json(*diagnosis);
  }
  // By itself a step's page is its answer's; beside a baseline, a document.
  ReportArguments documents = arguments;
  if (!baseline)
    documents.outputs.erase(std::remove_if(documents.outputs.begin(), documents.outputs.end(), is_page),
                            documents.outputs.end());
  for (const std::string& output : arguments.outputs)
    if (!baseline && is_page(output)) write_answer(answer_of(arguments, loaded, ran, diagnosis), output);
  finish(context, documents, loaded, json, document);
  context.exit_code = exit_code_of(result);
}

void add_settings(Command& command, ReportArguments& arguments) {
  command
      .add_option("--output", arguments.outputs,
                  "write the report: .html, .pdf, .xlsx or .csv; may be repeated, of one and the same run")
      ->to_write()
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_setting_options(command, arguments.settings);
}

void add_report_options(Command& command, ReportArguments& arguments) {
  command.add_option("SCENARIO", arguments.scenario, "a scenario, or a trace that says what is kept for the backward")
      ->required();
  command
      .add_option("--drives", arguments.drives, "drive profiles, separated by commas; the machine's own if not given")
      ->delimiter(',')
      ->type_name("MODEL");
  command
      .add_option(
          "--drives-per-machine", arguments.drives_per_machine,
          "of each model, in one RAID-0 set for all GPUs; the scenario's offload.drives_per_machine if not given, else "
          "as many as the machine has")
      ->check(positive_number())
      ->type_name("N");
  command
      .add_option("--drives-per-gpu", arguments.drives_per_gpu, "of each model, in a RAID-0 set for every GPU, instead")
      ->check(positive_number())
      ->type_name("N");
  command.add_option("--count", arguments.count, "refused: it doesn't say of what")->hide();
  command.add_word<DriveRoute>("--route", arguments.question.route, route_words(), "how bytes get to the drives")
      ->choices({"gpudirect", "bounce"})
      ->default_word("gpudirect");
  add_settings(command, arguments);
}

}  // namespace

void add_report_commands(Command& app, Context& context) {
  Command* group =
      app.add_subcommand("report", "A step as a document; what it asks of machines, drives and links, for buying them");
  group->require_subcommand();
  const auto ssd = std::make_shared<ReportArguments>();
  Command* drives = group->add_subcommand(
      "ssd", "Write rate, lifetime and cost of SSDs under offloaded activations; exit code 1 if none holds and lasts");
  add_report_options(*drives, *ssd);
  drives->add_option("--life-years", ssd->question.life_years, "how long the drives should last")
      ->check(positive_number())
      ->capture_default_str()
      ->type_name("N");
  drives
      ->add_word<LifeBound>("--life-bound", ssd->question.bound, life_bound_words(),
                            "end of a life's range that must reach --life-years")
      ->choices({"rated", "expected", "high"})
      ->default_word("rated");
  drives->add_option("--prices", ssd->prices, "entries that go over those of the bundled price list")
      ->type_name("FILE");
  drives->add_option("--tokens", ssd->question.tokens, "tokens of a whole training run, to be costed")
      ->amount(Dimension::tokens, "")
      ->check(positive_number())
      ->type_name("N");
  drives
      ->add_option("--used", ssd->used_percent,
                   "how much of the drives' rated life is used up, in percent; the scenario's if not given")
      ->range(0.0, 100.0)
      ->type_name("PERCENT");
  drives
      ->add_option("--write-amplification", ssd->question.endurance.write_amplification,
                   "of the workload itself; 1 for files written whole and freed whole")
      ->range(1.0, 1000.0)
      ->capture_default_str()
      ->type_name("X");
  drives
      ->add_word<RetentionRelaxation>(
          "--retention", ssd->question.endurance.retention, retention_words(),
          "credit flash for data that is kept for weeks (x6.67) or a day (x86), as publications do and no vendor does")
      ->choices({"rated", "weeks", "day"})
      ->default_word("rated");
  drives->callback([&context, ssd] { run_stoppable([&] { report_ssd(context, *ssd); }); });
  const auto pcie = std::make_shared<ReportArguments>();
  Command* links =
      group->add_subcommand("pcie", "Load of every link between GPUs and drives; exit code 1 if one is too slow");
  add_report_options(*links, *pcie);
  links->callback([&context, pcie] { run_stoppable([&] { report_pcie(context, *pcie); }); });
  const auto step = std::make_shared<ReportArguments>();
  Command* whole = group->add_subcommand("step", "The simulated step as a document; exit code 1 if the answer is no");
  whole->add_option("SCENARIO", step->scenario, "a scenario, or a trace")->required();
  whole->add_option("--baseline", step->baseline, "a scenario or trace to compare with")->type_name("SCENARIO");
  add_settings(*whole, *step);
  add_reserve_option(*whole, step->reserve);
  whole->callback([&context, step] { run_stoppable([&] { report_step(context, *step); }); });
  add_procurement_report(*group, context);
}

}  // namespace spillway::cli
