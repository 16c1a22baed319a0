// Answer: the document that a person gets of a run, of a search for ways to fit, or of a memory snapshot. It is made
// once. The terminal, the page (reports/answer_html.h) and readers of its JSON (answer_json.h) lay it out.
//
//   verdict -> when and why -> now -> ways -> search -> binds, helps -> stages, timeline -> rests on -> reproduce
//
// Verdicts are in words of sim/replay/verdict_words alone. Sizes are bytes, times picoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "studies/answer/stage_memory.h"
#include "studies/answer/step_lanes.h"
#include "studies/diagnosis/default_stakes.h"
#include "studies/diagnosis/step_diagnosis.h"

namespace spillway::studies {

// Figures of a step; texts are those that every face prints.
struct AnswerFigures {
  Verdict answer = Verdict::unknown;
  Picos step_time{};
  FigureRange step_time_range;
  double tokens_per_second = 0, mfu = 0;        // 0: unknown
  Bytes peak_allocated{-1}, peak_reserved{-1};  // -1: unknown
  Bytes capacity{}, limit{}, short_of{};        // 0: none
  std::optional<Bytes> host;
  std::optional<double> usd_per_million_tokens, life_years;
  std::uint64_t fingerprint = 0;
  std::string verdict;                              // verdict_cell()
  std::string step, tokens, left, binds, mfu_text;  // "2.09 s", "-47 %" or "3,919", "17.6", "GPU arithmetic", "38.2 %"
};

struct AnswerChange {
  std::string key, from, to;
  std::string worth;  // "needed: else short 70.9 GiB"; empty: not asked
};

// A way as a framework launches it (studies/fit/fit_exports.h).
enum class LaunchState : std::uint8_t { runs, with_code, no };
struct AnswerLaunch {
  std::string framework;
  LaunchState state = LaunchState::no;
  std::string figures;            // "✔ 2.11 s, 7.84 GiB free": of the file alone; else why it can't be had
  std::string with_code_figures;  // empty: there is no such program
  std::vector<std::string> lines, code, cannot_say;
};

// One figure over time, for an outline over another step's memory.
struct WayOutline {
  std::string stage;
  std::int64_t begin = 0, end = 1;
  std::vector<std::int64_t> allocated;  // bytes by bin, the most of each
  std::vector<Pass> passes;
};

struct AnswerFolded {
  std::string name, reason;
  AnswerFigures figures;
};

struct AnswerWay {
  std::string name, group;
  std::size_t number = 0;          // as people call it: --way; 0: it has none
  std::vector<std::string> edits;  // as --set takes them
  std::vector<AnswerChange> changes;
  std::string runs_in;  // "torchtitan +1"
  AnswerFigures figures;
  std::vector<std::string> sentences;
  std::vector<AnswerLaunch> launches;  // none: not asked
  std::vector<AnswerFolded> folded;
  std::vector<WayOutline> outlines;  // by stage; none: its step was not drawn
};

struct AnswerShare {
  std::string name;
  double fraction = 0;
};

// A change that would make the step shorter, and by how much of it.
struct AnswerHelp {
  std::string name;
  double fraction = 0;
  Picos step_time{};              // then; 0: not simulated
  std::optional<double> of_path;  // of the critical path, what goes through it today; none: not known
};

// A key that nobody said, on which the memory hangs.
struct AnswerDefault {
  std::string key, value, sentence;
};

// Time of a recorded step by rows of one kind, most time first.
struct AnswerWork {
  std::string kind;  // "kernels", "host calls", ..., or kept_as_recorded
  std::vector<DiagnosisRow> rows;
};

// Idle time of the critical path.
constexpr std::string_view kept_as_recorded = "kept as recorded: nothing in the capture explains it";

struct AnswerWhy {
  std::string kind;  // "states", "activations", "elsewhere", ...; empty: not known
  std::string sentence;
  std::vector<PeakOwner> owners;  // of the memory at the peak, by names that people read, most first
};

// A figure of the step in words: "GPU", "38.2 % MFU; idle 0.5 %".
struct AnswerFact {
  std::string label, words;
};

// A part of the step that runs by itself, as of GRPO: rollout, reference, training.
struct AnswerPhase {
  std::string name, words;
  Verdict answer = Verdict::unknown;
};

struct Answer {
  std::string title, machine;
  std::string verdict, heading;  // "does not fit"; with its shape
  std::string best;              // of a search: "best for speed: Adam on the CPU", "nearest: ..."
  Verdict answer = Verdict::unknown;
  std::vector<std::string> hangs_on;  // clauses
  std::string as_given;               // of a search: the scenario's own verdict, with its shape
  std::string advice;                 // a sentence; what would turn a verdict of no without another way
  std::string when;
  AnswerWhy why;
  std::optional<AnswerFigures> now;
  std::vector<AnswerFact> facts;
  std::vector<AnswerPhase> phases;  // among the facts, too; none: it is of one part
  std::vector<RankResult> gpus;     // of a step on several
  bool is_search = false;
  std::vector<AnswerWay> ways;
  std::string ways_heading;
  std::string search;        // what was searched, in a sentence
  std::string search_state;  // "finished", "stopped"
  std::string binds;
  std::vector<AnswerShare> shares;
  std::vector<AnswerHelp> helps;
  std::vector<std::string> no_help;
  std::vector<AnswerWork> work;
  std::string held;   // when the stages' tensors are held: "at the peak"
  std::string drawn;  // the drawn step: "as given", "as recorded", or a way's name
  std::vector<StageMemory> stages;
  StepLanes lanes;
  std::vector<InputProvenance> inputs;
  std::string times;  // where the kernel times come from, if not from a table of this GPU
  std::vector<std::string> assumed, warnings;
  std::vector<AnswerDefault> defaults;
  std::string command;
  std::uint64_t fingerprint = 0;
};

// "17.6 GiB left", "short of 78.8 GiB"; where neither is known, the verdict.
std::string room_words(const AnswerFigures& figures);

// A figure of the answer's head: "step, if it fitted", "1.12 s", "1.00 s to 1.17 s (80 %)".
struct HeadFigure {
  std::string name, value, detail;
};
// Step, tokens and peak of the answer's step, or of the first way of a model alone, as far as they are known.
std::vector<HeadFigure> head_figures(const Answer& answer);

// "12.3", "-78.8" for what is short, "-" where nobody knows.
std::string room_left(const Result& result);
// Shares of the critical path, in words of describe_shortly(), most first; those of less than half a per cent left out.
std::vector<AnswerShare> binding_shares(const Result& result);
// The reason in a result's memory, or in what else it lacks.
AnswerWhy why_of(const Result& result);
// The range of 80 % of like steps: "1.00 s to 1.17 s (published steps)", "not known: ...".
std::string range_words(const Result& result);
// A result's warning without the word by which programs know its kind: "kernel times come from ... (12 times)".
std::string warning_words(const std::string& warning);
// The warning that every modelled step has, Answer::times.
bool is_of_modelled_times(const std::string& warning);
// A result's warnings and times, without the words by which programs know their kinds.
void add_warnings(const Result& result, Answer& answer);
std::vector<AnswerPhase> phases_of(const Result& result);
// The step's figures, in the order in which people read them.
std::vector<AnswerFact> facts_of(const Result& result);
// `given`: what tokens are compared with; null: nothing.
AnswerFigures figures_of(const Result& result, const Result* given);

// The answer of a run, without what needs further replays (helps) and what a picture shows (stages, timeline).
Answer run_answer(const LoadedScenario& loaded, const Result& result, std::string command);
// `explain`'s: what each relaxation of the result's step gains.
void add_helps(const std::vector<Relaxation>& relaxations, const Result& result, Answer& answer);
void add_defaults(const std::vector<DefaultStake>& stakes, const Result& result, Answer& answer);
// Adds a recorded step's kernels, operators and host calls; and what each would give, where that was asked.
void add_diagnosis(const StepDiagnosis& diagnosis, Answer& answer);
// Memory over time and what runs when, of a run with its ops. It replays each GPU's allocations. Precondition:
// take_replayed_order(loaded, run).
void add_pictures(const LoadedScenario& loaded, const ScenarioRun& run, Answer& answer);
// All of these but the helps. Precondition: take_replayed_order(loaded, run).
Answer step_answer(const LoadedScenario& loaded, const ScenarioRun& run, const std::optional<StepDiagnosis>& diagnosis,
                   std::string command);
// The ways that fit_answer() found of the same step, in its answer.
void add_search(const Answer& found, Answer& step);

}  // namespace spillway::studies
