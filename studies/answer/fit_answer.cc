#include "studies/answer/fit_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "base/stop.h"
#include "hwprofiles/price_list.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/drive_life.h"
#include "scenario/drawn_run.h"
#include "scenario/scenario_memory.h"
#include "sim/replay/verdict_words.h"
#include "studies/offload/result_figures.h"

namespace spillway::studies {
namespace {

constexpr std::size_t outline_bins = 300;
constexpr std::string_view accumulation = "model.gradient_accumulation";
constexpr std::string_view other_training = "Changes the training", more_gpus = "On more of the same GPUs",
                           larger_gpus = "On larger GPUs, cheapest token first";

// "Recompute ..." within a sentence; names stay.
std::string lowered(std::string name) {
  constexpr std::array<std::string_view, 6> names = {"ZeRO", "Adam", "Adafactor", "Muon", "SGD", "8-bit"};
  if (std::none_of(names.begin(), names.end(), [&](std::string_view one) { return name.starts_with(one); }))
    name.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(name.front())));
  return name;
}

bool is_of(const std::string& launcher, const std::string& framework) {
  return launcher == framework || launcher == framework + "*";
}

// "torchtitan +1": who launches it as it is; "deepspeed*": with a line in the program; "own code": neither.
std::string told_carrier(const FitWay& way, const Launchers& launched_by) {
  if (way.carrier != Carrier::frameworks) return std::string(to_string(way.carrier));
  if (!launched_by) return "-";
  if (launched_by->empty()) return "own code";
  return launched_by->size() == 1 ? launched_by->front()
                                  : fmt::format("{} +{}", launched_by->front(), launched_by->size() - 1);
}

// Whether `to` is `from` without the edit of the key. One that edits a key of its own turns off what was asked for.
bool is_taken_back(const std::string& key, const std::vector<std::string>& from, const std::vector<std::string>& to) {
  const auto edit_of = [](const std::vector<std::string>& settings, const std::string& name) {
    const auto found = std::find_if(settings.begin(), settings.end(),
                                    [&](const std::string& one) { return one.starts_with(name + "="); });
    return found == settings.end() ? std::string() : *found;
  };
  const bool is_other = std::any_of(to.begin(), to.end(), [&](const std::string& setting) {
    return edit_of(from, setting.substr(0, setting.find('='))).empty();
  });
  return !is_other && edit_of(from, key) != edit_of(to, key);
}

// What the file says of the edits, and what the program must; figures of both.
AnswerLaunch launch_of(const Exported& exported, const std::vector<std::string>& edits) {
  AnswerLaunch to{.framework = exported.target};
  const auto runs = [](const std::optional<Result>& result) { return result && is_yes(result->answer()); };
  const auto figures = [](const Result& result) {
    return fmt::format("{} {}, {}", verdict_shape(result.answer()), short_duration(to_seconds(result.step_time)),
                       lacking(result).empty() ? to_spare(result) : short_words(result));
  };
  to.state = runs(exported.alone)       ? LaunchState::runs
             : runs(exported.with_code) ? LaunchState::with_code
                                        : LaunchState::no;
  to.figures = exported.alone ? figures(*exported.alone) : "✖ " + exported.refusal;
  if (exported.alone)
    for (const launch::UnsaidKey& each : exported.launch.unsaid)
      if (each.key != "model.name" && each.key != "model.framework")  // the program's, and the target itself
        to.cannot_say.push_back(each.key.substr(each.key.find('.') + 1));
  if (to.state != LaunchState::no)
    for (const std::string& setting : edits)
      for (const launch::SaidKey& said : exported.launch.said)
        if (setting.starts_with(said.key + "="))
          to.lines.push_back(said.as.empty() ? said.flag : said.flag + " " + said.as);
  if (exported.with_code) {
    to.with_code_figures = figures(*exported.with_code);
    to.code = exported.code;
  }
  return to;
}

class FitAnswerMaker {
 public:
  explicit FitAnswerMaker(const FitFindings& findings)
      : findings_(findings), outcome_(findings.outcome), given_(given_step(findings)) {}

  Answer made(std::string command) {
    answer_.is_search = true;
    answer_.command = std::move(command);
    title();
    verdict();
    for (const ShownWay& shown : findings_.shown) answer_.ways.push_back(shown_way(shown));
    for (const OtherTraining& other : findings_.others)
      if (other.best) answer_.ways.push_back(other_way(other));
    for (const OtherMachine& machine : findings_.machines) answer_.ways.push_back(on_machine(machine));
    if (outcome_.any() && !answer_.ways.empty())
      for (std::string& words : kept_in_sight()) answer_.ways.front().sentences.push_back(std::move(words));
    ends();
    return std::move(answer_);
  }

 private:
  void title() {
    const FitSubject& subject = findings_.subject;
    answer_.title = subject.model ? subject.model->title : subject.parsed.title;
    if (subject.model) {
      const TrainingSetup& setup = subject.parsed.training;
      answer_.title += setup.sequence > 0 ? fmt::format(", {} x {} tokens a step", grouped_text(setup.step_sequences()),
                                                        grouped_text(setup.sequence))
                                          : fmt::format(", {} sequences a step", grouped_text(setup.step_sequences()));
    }
    if (subject.gpus > subject.hardware.gpu_count) answer_.machine = fmt::format("{} GPUs", subject.gpus);
    if (!subject.hardware.title.empty())
      answer_.machine += (answer_.machine.empty() ? "" : "; ") + subject.hardware.title;
  }

  void verdict() {
    if (given_ != nullptr) {
      answer_.as_given = verdict_shape(given_->answer()) + " As given: " + verdict_sentence(*given_);
      answer_.now = figures_of(*given_, nullptr);
      if (given_->answer() == Verdict::does_not_fit) answer_.why = why_of(*given_);
    }
    FoundWays found{.tight = outcome_.fitting, .tried = outcome_.replayed, .ended_early = ended_early(outcome_)};
    for (const ShownWay& way : findings_.shown)
      if (const FitWay& one = outcome_.ways[way.way]; does_work(one.row))
        ++(group_of(one) <= FitGroup::planner    ? found.same
           : group_of(one) == FitGroup::numerics ? found.numerics
                                                 : found.research);
    const Result* const unknown = outcome_.any() && outcome_.ways.front().row.result.is_in_doubt()
                                      ? &outcome_.ways.front().row.result
                                      : outcome_.unknown();
    if (unknown != nullptr) found.unknown = unknown->why_unknown();
    if (!findings_.framework.empty()) found.how = "as " + findings_.framework + " launches it";
    answer_.answer = !found.unknown.empty()                             ? Verdict::unknown
                     : found.same + found.numerics + found.research > 0 ? Verdict::fits
                     : found.tight > 0                                  ? Verdict::tight
                     : found.ended_early                                ? Verdict::unknown
                                                                        : Verdict::does_not_fit;
    answer_.verdict = to_string(answer_.answer);
    const std::string& best = outcome_.ways.front().row.candidate.name;
    answer_.heading = search_heading(found);
    if (std::string assumed = lacks_host_memory(); !assumed.empty()) {
      answer_.heading += "; hangs on " + assumed;
      answer_.hangs_on.push_back(std::move(assumed));
    }
    if (const std::size_t with_code = needing_code(); with_code > 0)
      answer_.heading += fmt::format(", {} with code of your own (*)", with_code);
    answer_.best = (outcome_.any() ? "best for " + std::string(fit_goal_words()[findings_.question.goal].name) + ": "
                                   : "nearest: ") +
                   best;
  }

  // Of the ways that the framework launches and train the same.
  [[nodiscard]] std::size_t needing_code() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < findings_.shown.size() && !findings_.framework.empty(); ++i) {
      const FitWay& way = findings_.numbered(i);
      const Launchers& launchers = findings_.launched_by[i];
      if (does_work(way.row) && group_of(way) <= FitGroup::planner && launchers && !launchers->empty() &&
          launchers->front() == findings_.framework + "*")
        ++count;
    }
    return count;
  }

  // Where nothing that trains alike fits, and some lack host memory alone: what would do. What the verdict hangs on, if
  // nobody spoke of the host; else empty.
  std::string lacks_host_memory() {
    const FitWay* least = nullptr;
    for (const FitWay& way : outcome_.ways) {
      if (group_of(way) > FitGroup::planner || !way.row.ran()) continue;
      if (does_fit(way.row)) return "";
      const Result& result = way.row.result;
      if (!result.host_memory.known || result.host_memory.verdict() != Verdict::does_not_fit ||
          !is_yes(result.memory.verdict()))
        continue;
      if (least == nullptr || result.host_memory.peak < least->row.result.host_memory.peak) least = &way;
    }
    if (least == nullptr) return "";
    const HostMemoryResult& host = least->row.result.host_memory;
    const bool is_assumed = findings_.subject.hardware.host.dram.origin.provenance == hwprofiles::OriginKind::assumed;
    answer_.advice =
        fmt::format("With {} GiB of host memory ({} are {}) it fits: {}", std::ceil(in_gib(host.peak)),
                    three_digits(in_gib(host.capacity)),
                    is_assumed ? "assumed; +ram=256GiB behind the machine" : "there", least->row.candidate.name);
    return is_assumed ? short_size(host.capacity) + " of host memory, which are assumed" : "";
  }

  [[nodiscard]] AnswerFigures figures(const Row& row) const { return way_figures(findings_, row); }

  // Of the next number.
  AnswerWay numbered_way(std::string name, std::string_view group, bool is_best) {
    const std::size_t index = answer_.ways.size();
    const FitWay& way = findings_.numbered(index);
    AnswerWay to{.name = std::move(name),
                 .group = std::string(group),
                 .number = index + 1,
                 .edits = way.row.candidate.edits,
                 .changes = changes(way.row, is_best),
                 .runs_in = told_carrier(way, findings_.launched_by[index]),
                 .figures = figures(way.row)};
    if (way.row.ran()) to.sentences = sentences(way.row);
    if (index == findings_.chosen)
      for (const Exported& one : findings_.exports) to.launches.push_back(launch_of(one, to.edits));
    return to;
  }

  AnswerWay shown_way(const ShownWay& shown) {
    const FitWay& way = outcome_.ways[shown.way];
    AnswerWay to = numbered_way(way.row.ran() ? way.row.candidate.name : way.row.candidate.name + ": " + way.row.error,
                                title_of(group_of(way)), shown.way == 0);
    for (const FoldedWay& one : shown.folded) {
      const Row& row = outcome_.ways[one.way].row;
      to.folded.push_back({row.candidate.name, std::string(one.reason), figures(row)});
    }
    return to;
  }

  AnswerWay other_way(const OtherTraining& other) {
    const std::string& name = other.best->row.candidate.name;
    return numbered_way(
        fmt::format("Train adapters only ({}){}", other.name, name == "As given" ? "" : ", " + lowered(name)),
        other_training, false);
  }

  // Its edits are of the question on that machine.
  [[nodiscard]] AnswerWay on_machine(const OtherMachine& machine) const {
    const Row& row = machine.best.row;
    return {.name = fmt::format("{} GPU{} (--on {}): {}", machine.gpus, machine.gpus == 1 ? "" : "s", machine.machine,
                                lowered(row.candidate.name)),
            .group = std::string(machine.is_larger ? larger_gpus : more_gpus),
            .figures = figures(row),
            .sentences = sentences(row)};
  }

  [[nodiscard]] std::vector<AnswerChange> changes(const Row& row, bool is_best) const {
    std::vector<AnswerChange> changes;
    std::set<std::size_t> told;
    for (const std::string& setting : row.candidate.edits) {
      const std::size_t equals = setting.find('=');
      AnswerChange change{setting.substr(0, equals), value_now(setting.substr(0, equals)), setting.substr(equals + 1),
                          ""};
      if (change.key == accumulation) {  // derived from the sequences of a step
        change.from = accumulated({});
        change.to = accumulated(row.candidate.edits);
      }
      if (change.from == change.to) continue;  // keeps the sequences of a step
      if (change.to == "null") change.to = "not set";
      if (is_best) change.worth = worth_of(change.key, told);
      changes.push_back(std::move(change));
    }
    return changes;
  }

  [[nodiscard]] std::string value_now(const std::string& key) const {
    constexpr std::string_view model = "model.";
    const FitSubject& subject = findings_.subject;
    if (subject.model && key.starts_with(model)) {
      const std::string now = field_text(subject.parsed.training, std::string_view(key).substr(model.size()));
      return now.empty() ? "none" : now;
    }
    return setting_of(subject.scenario.text, key).value_or("not set");
  }

  // Micro-batches of a replica in a step, with these edits.
  [[nodiscard]] std::string accumulated(const std::vector<std::string>& edits) const {
    TrainingSetup setup = findings_.subject.parsed.training;
    const std::int64_t sequences = setup.step_sequences();
    for (const std::string& setting : edits) {
      const std::size_t equals = setting.find('=');
      const std::string key = setting.substr(0, equals);
      if (key == "model.micro_batch" || key == "model.data_parallel")
        set_field(setup, key.substr(key.find('.') + 1), setting.substr(equals + 1));
    }
    return std::to_string(sequences / (setup.micro_batch * setup.data_parallel));
  }

  // What the step would be without the edit, of those that take this key back; each is told once.
  std::string worth_of(const std::string& key, std::set<std::size_t>& told) const {
    const Row& best = outcome_.ways.front().row;
    for (std::size_t i = 0; i < outcome_.worth.size(); ++i) {
      const Row& row = outcome_.ways[outcome_.worth[i].way].row;
      if (told.contains(i) || !is_taken_back(key, best.candidate.edits, row.candidate.edits)) continue;
      told.insert(i);
      if (!row.ran()) return "needed: " + row.error;
      if (!row.result.may_fit()) return "needed: else " + short_words(row.result);
      const double slower = to_seconds(row.result.step_time) / to_seconds(best.result.step_time) - 1;
      const double less = in_gib(row.result.memory.peak_reserved - best.result.memory.peak_reserved);
      const std::string time = std::abs(slower) < 0.005 ? "no faster"
                               : slower > 0             ? short_percent(slower) + " faster"
                                                        : short_percent(-slower) + " slower";
      return std::abs(less) < 0.05
                 ? time
                 : fmt::format("{}, {} GiB {}", time, three_digits(std::abs(less)), less > 0 ? "less" : "more");
    }
    return "";
  }

  // How the machines are paid for, as scenario::gpu_usd_per_hour() counts.
  [[nodiscard]] static std::string_view told_payment(const Row& row) {
    static const hwprofiles::PriceList prices = hwprofiles::PriceList::bundled();
    const bool is_bought =
        row.hardware && !row.hardware->gpu.price_usd_per_hour && prices.machine(*row.hardware).price_usd;
    return is_bought ? "machines bought and always busy for 36 months" : "machines rented";
  }

  [[nodiscard]] static std::vector<std::string> sentences(const Row& row) {
    const Result& result = row.result;
    std::vector<std::string> lines = {
        fmt::format("limited by {}; 80 % of steps like it: {}", describe_shortly(result.binding), range_words(result))};
    if (const auto cost = row.cost_per_million_tokens())
      lines.push_back(fmt::format("{} USD per million tokens, {}", three_digits(*cost), told_payment(row)));
    if (result.host_memory.known && result.host_memory.peak > Bytes(0))
      lines.push_back(fmt::format("host memory: {} of {} GiB", three_digits(in_gib(result.host_memory.peak)),
                                  three_digits(in_gib(result.host_memory.capacity))));
    if (const std::string life = planners::life_cell(result); life != "-")
      lines.push_back("the SSDs last " + life + " years");
    return lines;
  }

  // What is no row of its own, though it was asked for: the way with fewest edits, and the best that takes no code.
  [[nodiscard]] std::vector<std::string> kept_in_sight() const {
    const FitWay* least = nullptr;
    for (std::size_t i = 0; i < outcome_.fitting; ++i) {
      const FitWay& way = outcome_.ways[i];
      if (does_work(way.row) && group_of(way) == FitGroup::same &&
          (least == nullptr || changes_of(way.row) < changes_of(least->row)))
        least = &way;
    }
    const std::optional<std::size_t> plain = best_plain(outcome_);
    std::vector<std::string> lines;
    const auto tell = [&](std::string_view what, const FitWay* way) {
      const bool is_shown = std::any_of(findings_.shown.begin(), findings_.shown.end(),
                                        [&](const ShownWay& one) { return &outcome_.ways[one.way] == way; });
      if (way == nullptr || is_shown) return;
      const std::vector<std::string>& edits = way->row.candidate.edits;
      lines.push_back(fmt::format("{}: {}, {}, {} GiB left ({})", what, lowered(way->row.candidate.name),
                                  short_duration(to_seconds(way->row.result.step_time)), room_left(way->row.result),
                                  edits.empty() ? "-" : fmt::format("{}", fmt::join(edits, " "))));
    };
    tell("smallest change that fits", least);
    const FitWay* const best = plain ? &outcome_.ways[*plain] : nullptr;
    if (best != least) tell("best without code of your own", best);
    return lines;
  }

  void ends() {
    answer_.assumed = findings_.subject.assumptions;
    std::size_t folded = 0;
    for (const ShownWay& way : findings_.shown) folded += way.folded.size();
    answer_.search_state = ended_early(outcome_) ? "stopped" : "finished";
    const char* const state = outcome_.stopped     ? "stopped before the search had ended"
                              : outcome_.exhausted ? "more would be tried with more effort"
                              : outcome_.any()     ? "no single edit of the best that was tried is better"
                                                   : "search finished";
    answer_.search = fmt::format("{} layout{} estimated, {} set-ups simulated, {} fit; {}{}{}", outcome_.screened,
                                 outcome_.screened == 1 ? "" : "s", outcome_.replayed, outcome_.fitting, state,
                                 told_proof(), folded > 0 ? fmt::format("; {} alike or no better folded", folded) : "");
    if (!outcome_.any()) return;
    const Result& best = outcome_.ways.front().row.result;
    answer_.fingerprint = best.fingerprint;
    answer_.inputs = best.provenance;
    add_warnings(best, answer_);
  }

  [[nodiscard]] std::string told_proof() const {
    if (!outcome_.proof) return "";
    const studies::FitProof& proof = *outcome_.proof;
    if (proof.is_proven()) return fmt::format("; proven the best of {} set-ups by bounds", proof.set_ups);
    return fmt::format("; by bounds {} of {} set-ups can't fit, {} can't be better; {} are open, none below {}",
                       proof.too_large, proof.set_ups, proof.slower, proof.open, short_duration(proof.least_seconds));
  }

  const FitFindings& findings_;
  const FitOutcome& outcome_;
  const Result* given_;
  Answer answer_;
};

// None: it can't be run.
std::optional<BriefRun> drawn_run(const BaseScenario& scenario, const std::vector<std::string>& edits) {
  try {
    BriefRun drawn = run_to_draw(scenario_of(scenario, edits));
    take_replayed_order(drawn.loaded, drawn.run);
    return drawn;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Of each numbered way the frameworks whose file says all of it and that run it so.
void find_launchers(FitFindings& findings) {
  const std::string imported_from = imported_target(findings.subject.parsed);
  const FitOutcome& outcome = findings.outcome;
  for (std::size_t i = outcome.any() ? 0 : findings.shown.size(); i < findings.count(); ++i) {
    const FitWay& way = findings.numbered(i);
    if (way.carrier != Carrier::frameworks) continue;
    const std::vector<std::string>& edits = way.row.candidate.edits;
    findings.launched_by[i] = i == findings.chosen && !findings.exports.empty()
                                  ? launched_by(findings.exports, edits)
                                  : launched_by(scenario_of(findings.subject.scenario, edits), edits);
    // The framework that was asked for is told first, else that of the launch the scenario was imported from.
    std::vector<std::string>& targets = *findings.launched_by[i];
    const std::string& first = findings.framework.empty() ? imported_from : findings.framework;
    std::stable_partition(targets.begin(), targets.end(), [&](const std::string& one) { return is_of(one, first); });
  }
}

}  // namespace

Answer fit_answer(const FitFindings& findings, std::string command) {
  return FitAnswerMaker(findings).made(std::move(command));
}

const FitWay& FitFindings::numbered(std::size_t index) const {
  if (index < shown.size()) return outcome.ways[shown[index].way];
  std::size_t left = index - shown.size();
  const auto other =
      std::find_if(others.begin(), others.end(), [&](const OtherTraining& one) { return one.best && left-- == 0; });
  SPILLWAY_ASSERT(other != others.end());
  return *other->best;
}

std::size_t FitFindings::count() const {
  return shown.size() + static_cast<std::size_t>(std::count_if(others.begin(), others.end(),
                                                               [](const auto& one) { return one.best.has_value(); }));
}

FitFindings find_ways(FitQuestion question, FitSubject subject, std::string framework, const FitOptions& options) {
  FitFindings found{.question = std::move(question), .subject = std::move(subject), .framework = std::move(framework)};
  FitOutcome& outcome = found.outcome;
  outcome = find_fit(found.question, found.subject, options);
  if (!outcome.stopped && !(outcome.any() && found.subject.gpus > most_gpus_for_adapters))
    found.others = other_trainings(found.question, found.subject, options, found.framework);
  const auto trains_alike = [](const FitWay& way) { return group_of(way) <= FitGroup::planner && does_fit(way.row); };
  if (!outcome.stopped && std::none_of(outcome.ways.begin(), outcome.ways.end(), trains_alike))
    found.machines = on_other_machines(found.question, found.subject, options);
  if (!found.framework.empty() && outcome.any())
    outcome = as_launched(found.question, found.subject, outcome, found.framework, {.store = options.store});
  else if (const std::string from = imported_target(found.subject.parsed); !from.empty())
    find_plain(found.subject, from, outcome);
  found.shown = shown_ways(outcome);
  found.launched_by.resize(found.count());
  return found;
}

void launch_ways(std::size_t chosen, FitFindings& findings) {
  findings.chosen = chosen;
  const FitSubject& subject = findings.subject;
  if (findings.outcome.stopped || !subject.model) return;
  try {
    try {
      if (findings.has_choice())
        findings.exports = exported(scenario_of(subject.scenario, findings.numbered(chosen).row.candidate.edits));
    } catch (const InputError&) {
      // no launch has such a set-up
    }
    find_launchers(findings);
  } catch (const Cancelled&) {
    findings.outcome.stopped = true;
  }
}

AnswerFigures way_figures(const FitFindings& findings, const Row& row) {
  if (!row.ran()) return {.verdict = row.error, .step = "-", .tokens = "-", .left = "-"};
  AnswerFigures figures = figures_of(row.result, given_step(findings));
  figures.usd_per_million_tokens = row.cost_per_million_tokens();
  return figures;
}

const Result* given_step(const FitFindings& findings) {
  if (findings.subject.is_model_alone) return nullptr;
  const Result* given = nullptr;
  for (const FitWay& way : findings.outcome.ways)
    if (way.row.candidate.edits.empty() && way.row.ran()) given = &way.row.result;
  return given;
}

bool ended_early(const FitOutcome& outcome) { return outcome.stopped || outcome.exhausted; }

void add_launches(const FitFindings& findings, Answer& answer) {
  if (!findings.subject.model) return;
  for (AnswerWay& way : answer.ways) {
    if (way.number == 0 || !way.launches.empty()) continue;
    const FitWay& found = findings.numbered(way.number - 1);
    if (found.carrier != Carrier::frameworks || !does_fit(found.row)) continue;
    try {
      for (const Exported& one : exported(scenario_of(findings.subject.scenario, way.edits)))
        way.launches.push_back(launch_of(one, way.edits));
    } catch (const InputError&) {
      // no launch has such a set-up
    }
  }
}

void add_fit_pictures(const FitFindings& findings, Answer& answer) {
  const bool has_given = given_step(findings) != nullptr;
  const std::size_t first = has_given ? answer.ways.size() : 0;
  if (std::optional<BriefRun> drawn =
          drawn_run(findings.subject.scenario, has_given ? std::vector<std::string>() : answer.ways.front().edits)) {
    answer.drawn = has_given ? "as given" : answer.ways.front().name;
    answer.why = why_of(drawn->run.result);
    add_pictures(drawn->loaded, drawn->run, answer);
    if (!has_given)
      for (std::string* sentence : {&answer.why.sentence, &answer.when})
        if (!sentence->empty()) *sentence = "Set-up 1: " + lowered(*sentence);
  }
  for (std::size_t i = 0; i < answer.ways.size(); ++i)
    if (i != first && answer.ways[i].group != more_gpus && answer.ways[i].group != larger_gpus)
      answer.ways[i].outlines = way_outlines(findings.subject.scenario, answer.ways[i].edits);
}

std::vector<WayOutline> way_outlines(const BaseScenario& scenario, const std::vector<std::string>& edits) {
  std::vector<WayOutline> outlines;
  std::optional<BriefRun> drawn = drawn_run(scenario, edits);
  if (!drawn) return outlines;
  for (StageMemory& stage : stage_memories(drawn->loaded, drawn->run, outline_bins)) {
    WayOutline& outline = outlines.emplace_back();
    outline.stage = stage.name;
    outline.begin = stage.begin;
    outline.end = stage.end;
    for (const std::vector<std::int64_t>& bin : stage.bins) {
      std::int64_t sum = 0;
      for (const std::int64_t bytes : bin) sum += bytes;
      outline.allocated.push_back(sum);
    }
    outline.passes = std::move(stage.passes);
  }
  return outlines;
}

}  // namespace spillway::studies
