#include "studies/answer/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/number_text.h"
#include "base/short_text.h"
#include "planners/offload/drive_life.h"
#include "scenario/drawn_run.h"
#include "scenario/relaxation_setting.h"
#include "scenario/scenario_memory.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/peak_owners.h"
#include "sim/replay/verdict_words.h"
#include "studies/fit/fit_rank.h"
#include "studies/offload/result_figures.h"

namespace spillway::studies {
namespace {

constexpr std::size_t all_bins = 9'600, fewest_bins = 300, most_bins = 1'200;  // over all stages; of each
constexpr double least_gain = 0.005;
constexpr std::string_view host_memory = "host memory";  // StageMemory::name

std::string gib_number(Bytes bytes) { return three_digits(in_gib(bytes)); }

Bytes held_by(const Result& result, TensorRole role) {
  for (const PeakOwner& owner : result.memory.owners)
    if (owner.name == to_string(role)) return owner.bytes;
  return Bytes(0);
}

template <class Share>
void sort_by_share(std::vector<Share>& shares) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.fraction > b.fraction; });
}

std::string binds_sentence(const std::vector<AnswerShare>& shares) {
  std::string sentence;
  for (const AnswerShare& share : shares)
    sentence += fmt::format("{}{} {}", sentence.empty() ? "" : ", ", share.name, short_percent(share.fraction));
  return sentence.empty() ? "" : "Of the critical path: " + sentence + ".";
}

std::string peak_detail(const AnswerFigures& figures) {
  const Bytes all = std::max(figures.capacity, figures.limit);
  if (all <= Bytes(0)) return "";
  const Bytes kept = figures.capacity - figures.limit;
  return "of " + short_size(all) +
         (kept > Bytes(0) && figures.limit > Bytes(0) ? ", " + gib_number(kept) + " kept free" : "");
}

std::vector<PeakOwner> shown_owners(const Result& result) {
  constexpr std::size_t most = 8;
  if (!result.memory.known) return {};
  std::vector<PeakOwner> owners = largest_owners(result.memory.owners, most);
  for (PeakOwner& owner : owners) owner.name = owner_words(owner.name);
  return owners;
}

// What losses that are neither fused nor computed in chunks hold of all logits in fp32 (models/network/eager_loss.cc).
bool is_of_plain_loss(const std::string& tensor) {
  return tensor.starts_with("loss.") &&
         (tensor.find("softmax") != tensor.npos || tensor.find("logits_fp32") != tensor.npos ||
          tensor.find("nll") != tensor.npos);
}

}  // namespace

std::vector<AnswerShare> binding_shares(const Result& result) {
  std::vector<AnswerShare> shares;
  for (int i = 0; i < binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    const double share = binding_share(result, binding);
    if (share >= least_gain) shares.push_back({std::string(describe_shortly(binding)), share});
  }
  sort_by_share(shares);
  return shares;
}

// The kinds and their order are a closed list: elsewhere, states, one request, fragments, activations, the largest
// owner.
AnswerWhy why_of(const Result& result) {
  const MemoryResult& memory = result.memory;
  if (!result.drives_refuse.empty()) return {.kind = "elsewhere"};  // the verdict says it
  if (result.host_memory.verdict() == Verdict::does_not_fit)
    return {"elsewhere",
            fmt::format("Host memory lacks: the step holds {} of {} GiB there for the GPUs of a machine.",
                        gib_number(result.host_memory.peak), gib_number(result.host_memory.capacity)),
            {}};
  for (const auto& one : result.between_steps)
    if (one.verdict == Verdict::does_not_fit && result.memory.verdict() != Verdict::does_not_fit)
      return {"elsewhere",
              fmt::format("Between steps {} takes {} of {}: {}.", one.name, short_size(one.peak),
                          one.on_host ? "host memory" : "a GPU's memory", one.basis),
              {}};
  for (const auto& phase : result.phases)
    if (phase.verdict == Verdict::does_not_fit && &phase != &result.phases.back())
      return {"elsewhere",
              fmt::format("The {} holds {} at once: {}.", phase.name, short_size(phase.peak), phase.basis),
              {}};
  if (!memory.known || memory.owners.empty()) return {};
  const Bytes states = held_by(result, TensorRole::weight) + held_by(result, TensorRole::optimizer_state);
  if (memory.verdict() == Verdict::does_not_fit && memory.limit > Bytes(0) && states > memory.limit)
    return {"states",
            fmt::format("Weights and the optimizer's states alone take {} GiB, and the allocator may have {}: "
                        "recomputing or offloading activations cannot help by itself.",
                        gib_number(states), gib_number(memory.limit)),
            {}};
  if (memory.short_of > Bytes(0) && 2 * memory.largest.bytes > memory.short_of)
    return {"request",
            fmt::format("One tensor, {}, takes {}{}.", memory.largest.name, short_size(memory.largest.bytes),
                        is_of_plain_loss(memory.largest.name)
                            ? ": a loss that is fused or computed in chunks keeps it from memory"
                            : ", more than half of what is missing"),
            {}};
  if (memory.verdict() == Verdict::does_not_fit && memory.peak_allocated <= memory.limit)
    return {"fragments",
            fmt::format("What the step holds, {}, would fit: the rest lies free in pieces too small to use.",
                        short_size(memory.peak_allocated)),
            {}};
  const PeakOwner& first = memory.owners.front();
  std::string name = owner_words(first.name);
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  std::string sentence =
      fmt::format("{}: {} of {} at the peak", name, short_size(first.bytes), short_size(memory.peak_allocated));
  if (memory.owners.size() > 1 && memory.owners[1].bytes > Bytes(0))
    sentence += fmt::format(", then {}: {}", owner_words(memory.owners[1].name), short_size(memory.owners[1].bytes));
  const bool activations = first.name == to_string(TensorRole::activation);
  if (activations && memory.verdict() == Verdict::does_not_fit)
    sentence += "; fewer sequences at a time, recomputing or offloading lowers that";
  return {activations ? "activations" : "owners", sentence + ".", {}};
}

std::string range_words(const Result& result) {
  const FigureRange& range = result.step_time_range;
  const double seconds = to_seconds(result.step_time);
  if (!range.known) return "not known: " + range.basis;
  return fmt::format("{} to {} ({})", short_duration(seconds * range.low), short_duration(seconds * range.high),
                     range.basis);
}

std::string warning_words(const std::string& warning) {
  const std::size_t end = warning.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
  if (end == std::string::npos || warning.compare(end, 2, " (") != 0) return warning;
  const std::size_t close = warning.find_first_not_of("0123456789", end + 2);
  if (close == std::string::npos || close == end + 2 || warning.compare(close, 3, "): ") != 0) return warning;
  const std::string count = warning.substr(end + 2, close - end - 2), words = warning.substr(close + 3);
  return count == "1" ? words : words + " (" + count + " times)";
}

bool is_of_modelled_times(const std::string& warning) { return warning.starts_with("modelled_durations"); }

void add_warnings(const Result& result, Answer& answer) {
  for (const std::string& warning : result.warnings)
    if (is_of_modelled_times(warning))
      answer.times = warning_words(warning);
    else
      answer.warnings.push_back(warning_words(warning));
}

std::string room_left(const Result& result) {
  const MemoryResult& memory = result.memory;
  if (!memory.known || memory.limit <= Bytes(0)) return "-";
  if (result.host_memory.known && result.host_memory.verdict() == Verdict::does_not_fit) return "host full";
  if (!result.drives_refuse.empty()) return "SSDs";
  if (!result.may_fit()) return memory.short_of > Bytes(0) ? "-" + gib_number(memory.short_of) : "too large";
  const std::string left = gib_number(memory.limit - memory.peak_reserved);
  return result.as_replayed() == Verdict::tight || leaves_little(result) ? left + " ▲" : left;
}

std::string room_words(const AnswerFigures& figures) {
  const std::string& left = figures.left;
  if (left.starts_with("-") && left.size() > 1) return "short " + left.substr(1) + " GiB";
  if (left.empty() || std::isdigit(static_cast<unsigned char>(left.front())) == 0) return figures.verdict;
  const std::size_t number = left.find(' ');
  return left.substr(0, number) + " GiB left" + (number == std::string::npos ? "" : ", tight ▲");
}

std::vector<HeadFigure> head_figures(const Answer& answer) {
  std::vector<HeadFigure> head;
  const AnswerFigures* const top = answer.now            ? &*answer.now
                                   : answer.ways.empty() ? nullptr
                                                         : &answer.ways.front().figures;
  const bool has_step = top != nullptr && top->step_time > Picos(0);
  if (has_step) {
    const std::string name = answer.now              ? top->short_of > Bytes(0) ? "step, if it fitted" : "step"
                             : is_yes(answer.answer) ? "step, best set-up"
                                                     : "step, nearest set-up";
    const FigureRange& range = top->step_time_range;
    const double seconds = to_seconds(top->step_time);
    head.push_back({name, top->step,
                    range.known ? fmt::format("{} to {} (80 %)", short_duration(seconds * range.low),
                                              short_duration(seconds * range.high))
                                : ""});
    if (top->tokens_per_second > 0)
      head.push_back({"tokens/s", grouped_text(std::llround(top->tokens_per_second)),
                      top->mfu_text.empty() ? "" : "MFU " + top->mfu_text});
  }
  const auto fullest =
      std::max_element(answer.stages.begin(), answer.stages.end(),
                       [](const StageMemory& a, const StageMemory& b) { return a.peak_allocated < b.peak_allocated; });
  const bool on_host = fullest != answer.stages.end() && fullest->name == host_memory;
  if (has_step && !on_host && top->peak_reserved >= Bytes(0))
    head.push_back({"peak reserved", short_size(top->peak_reserved), peak_detail(*top)});
  else if (fullest != answer.stages.end())
    head.push_back({"peak allocated", short_size(fullest->peak_allocated),
                    on_host ? "" : short_size(fullest->peak_reserved) + " reserved"});
  return head;
}

AnswerFigures figures_of(const Result& result, const Result* given) {
  AnswerFigures figures{.answer = result.answer(),
                        .step_time = result.step_time,
                        .step_time_range = result.step_time_range,
                        .tokens_per_second = result.tokens_per_second,
                        .mfu = result.mfu,
                        .fingerprint = result.fingerprint,
                        .verdict = verdict_cell(result),
                        .step = result.step_time > Picos(0) ? short_duration(to_seconds(result.step_time)) : "-",
                        .tokens = "-",
                        .left = room_left(result),
                        .binds = std::string(describe_shortly(result.binding)),
                        .mfu_text = result.mfu > 0 ? percent_text(result.mfu) : ""};
  if (result.memory.known) {
    figures.peak_allocated = result.memory.peak_allocated;
    figures.peak_reserved = result.memory.peak_reserved;
    figures.capacity = result.memory.capacity;
    figures.limit = result.memory.limit;
    figures.short_of = result.memory.short_of;
  }
  if (result.host_memory.known) figures.host = result.host_memory.peak;
  if (const double life = planners::shortest_life_years(result); std::isfinite(life)) figures.life_years = life;
  if (result.tokens_per_second > 0) {
    figures.tokens = grouped_text(std::llround(result.tokens_per_second));
    if (given != nullptr && given->tokens_per_second > 0) {
      const double change = result.tokens_per_second / given->tokens_per_second - 1;
      figures.tokens = std::abs(change) < least_gain ? "0 %" : signed_short_percent(change);
    }
  }
  return figures;
}

Answer run_answer(const LoadedScenario& loaded, const Result& result, std::string command) {
  Answer answer;
  answer.title = result.title;
  if (!result.memory.on_host) answer.machine = result.machine.empty() ? loaded.hardware.title : result.machine;
  answer.assumed = result.machine_assumed;
  answer.answer = result.answer();
  answer.verdict = to_string(result.verdict());
  answer.heading = verdict_shape(result.answer()) + " " + verdict_heading(result);
  answer.hangs_on = result.hangs_on;
  answer.why = why_of(result);
  answer.why.owners = shown_owners(result);
  answer.now = figures_of(result, nullptr);
  answer.facts = facts_of(result);
  answer.phases = phases_of(result);
  if (result.ranks.size() > 1) answer.gpus = result.ranks;
  answer.shares = binding_shares(result);
  answer.binds = binds_sentence(answer.shares);
  answer.inputs = result.provenance;
  answer.warnings = fidelity_warnings(result);
  add_warnings(result, answer);
  AnswerWork kept{std::string(kept_as_recorded), {}};
  for (const KeptIdle& row : result.kept_idle)
    if (row.on_path > Picos(0)) kept.rows.push_back({.name = row.name, .count = row.count, .time = row.on_path});
  if (!kept.rows.empty()) answer.work.push_back(std::move(kept));
  answer.command = std::move(command);
  answer.fingerprint = result.fingerprint;
  return answer;
}

void add_helps(const std::vector<Relaxation>& relaxations, const Result& result, Answer& answer) {
  for (const Relaxation& one : relaxations) {
    constexpr std::string_view twice = " x2";
    std::string name = one.resource;
    if (name.ends_with(twice)) name.replace(name.size() - twice.size(), twice.size(), " twice as fast");
    if (one.gain >= least_gain)
      answer.helps.push_back(
          {std::move(name), one.gain, one.step_time, path_share_of_relaxation(one.resource, result)});
    else
      answer.no_help.push_back(std::move(name));
  }
  sort_by_share(answer.helps);
}

void add_defaults(const std::vector<DefaultStake>& stakes, const Result& result, Answer& answer) {
  for (const DefaultStake& stake : stakes)
    answer.defaults.push_back({stake.key, stake.value, stake_sentence(stake, result)});
}

void add_diagnosis(const StepDiagnosis& diagnosis, Answer& answer) {
  const auto add = [&answer](const char* kind, const std::vector<DiagnosisRow>& rows) {
    if (!rows.empty()) answer.work.push_back({kind, rows});
  };
  add("host calls", diagnosis.host);
  add("kernels", diagnosis.kernels);
  add("operators", diagnosis.operators);
  add("Python's own time", diagnosis.frames);
  add("modules", diagnosis.modules);
  for (const Relief& relief : diagnosis.reliefs)
    if (relief.gain >= least_gain) answer.helps.push_back({relief.what, relief.gain, {}, {}});
  sort_by_share(answer.helps);
}

void add_pictures(const LoadedScenario& loaded, const ScenarioRun& run, Answer& answer) {
  const std::size_t ranks = std::max<std::size_t>(1, run.result.ranks.size());
  answer.stages = stage_memories(loaded, run, std::clamp(all_bins / ranks, fewest_bins, most_bins));
  answer.held = "at the peak";
  const std::string few = drawn_words(loaded);
  const bool has_phases = !run.result.phases.empty();  // the last is drawn
  std::string part = has_phases ? run.result.phases.back().name : "";
  if (!few.empty()) part += (part.empty() ? "" : ", ") + few;
  if (!part.empty()) answer.drawn += (answer.drawn.empty() ? "" : ", ") + part;
  answer.lanes = step_lanes(run.trace(loaded), run.result);
  if (answer.stages.empty()) return;
  const auto fullest =
      std::max_element(answer.stages.begin(), answer.stages.end(),
                       [](const StageMemory& a, const StageMemory& b) { return a.peak_allocated < b.peak_allocated; });
  answer.when = fmt::format("Peak: {} allocated", short_size(fullest->peak_allocated));
  if (answer.stages.size() > 1) answer.when += " on " + fullest->name;
  const std::int64_t drawn = std::accumulate(fullest->at_peak.begin(), fullest->at_peak.end(), std::int64_t{0});
  if (drawn < fullest->peak_allocated.count()) {
    answer.when += ", before the step that is drawn";
  } else {
    if (!fullest->peak_words.empty()) answer.when += ", " + fullest->peak_words;
    if (fullest->timed && few.empty())
      answer.when +=
          fmt::format(", {} into the {}", short_duration(to_seconds(Picos(fullest->peak_at - fullest->begin))),
                      has_phases ? run.result.phases.back().name : "step");
  }
  answer.when += ".";
}

Answer step_answer(const LoadedScenario& loaded, const ScenarioRun& run, const std::optional<StepDiagnosis>& diagnosis,
                   std::string command) {
  Answer answer = run_answer(loaded, run.result, std::move(command));
  if (diagnosis) add_diagnosis(*diagnosis, answer);
  add_pictures(loaded, run, answer);
  return answer;
}

void add_search(const Answer& found, Answer& step) {
  step.is_search = true;
  step.ways = found.ways;
  step.ways_heading = found.heading;
  step.best = found.best;
  step.advice = found.advice;
  step.search = found.search;
  step.search_state = found.search_state;
}

}  // namespace spillway::studies
