#include "cli/commands/explain_technique.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "cli/options/interrupt.h"
#include "cli/options/store_option.h"
#include "cli/output/progress.h"
#include "cli/output/row_report.h"
#include "cli/output/table.h"
#include "planners/technique/technique_table.h"
#include "reports/pictures/cells_svg.h"
#include "studies/candidates/compare_techniques.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using studies::PayoffAnswer;
using studies::PayoffOutcome;
using studies::PayoffTrial;

std::string share(std::optional<double> part, bool is_signed = false) {
  if (!part) return "-";
  const double percent = std::abs(*part) < 5e-5 ? 0 : 100 * *part;
  return is_signed ? fmt::format("{:+.1f} %", percent) : fmt::format("{:.1f} %", percent);
}

std::string own_value(const PayoffAnswer& answer) {
  return fmt::format("{:.4g}{}", answer.axis.shown, answer.axis.unit);
}

// "32 (saves 8.1 %, +0.3 %)", the value with the largest saving of those fast enough; empty: none could be compared.
std::string best_of(const PayoffAnswer& answer) {
  const PayoffTrial* best = nullptr;
  for (const PayoffTrial& trial : answer.trials)
    if (trial.saving() && (best == nullptr || *trial.saving() > *best->saving())) best = &trial;
  if (best == nullptr) return answer.trials.empty() ? "" : answer.trials.back().with.error;
  return fmt::format("most at {}: saves {}, time {}{}", best->value, share(best->saving()), share(best->slower(), true),
                     best->with.is_yes() ? "" : ", " + row_verdict(best->with));
}

std::string tried(const PayoffAnswer& answer) {
  if (answer.trials.empty()) return own_value(answer);
  const std::string first = answer.trials.front().factor < 1 ? answer.trials.front().value : own_value(answer);
  const std::string last = answer.trials.back().factor > 1 ? answer.trials.back().value : own_value(answer);
  return first + " to " + last;
}

std::string end_words(const PayoffAnswer& answer) {
  switch (answer.end) {
    case PayoffAnswer::End::found:
      return (answer.least->factor > 1 ? "from " : "down from ") + answer.least->value +
             (answer.least->factor > 1 ? " on" : "");
    case PayoffAnswer::End::no:
      return "not from " + tried(answer);
    case PayoffAnswer::End::indifferent:
      return "makes no difference";
    case PayoffAnswer::End::impossible:
      return "can't be run there";
    case PayoffAnswer::End::unfinished:
      return answer.trials.empty() ? "not known" : "not from " + tried(answer) + ", not known beyond";
  }
  return "";
}

Json payoff_trial_json(const PayoffTrial& trial) {
  return {{"value", trial.value},
          {"edits", edits_json(trial.edits)},
          {"pays", trial.pays},
          {"saving", number_or_null(trial.saving())},
          {"slower", number_or_null(trial.slower())},
          {"plain", row_json(trial.plain)},
          {"with", row_json(trial.with)}};
}

constexpr const char* end_names[] = {"found", "no", "no difference", "can't be run", "not known"};

void print_payoff_json(const PayoffOutcome& outcome, const studies::PayoffQuestion& question,
                       const std::string& scenario, const std::string& taken_out) {
  Json document = json_document("spillway.payoff");
  document["scenario"] = scenario;
  document["technique"] = question.technique;
  document["saves"] = question.saves;
  document["slower"] = question.slower;
  document["warnings"] = Json::array();
  if (!taken_out.empty()) document["warnings"].push_back(taken_out);
  document["finished"] = outcome.finished();
  document["work"] = outcome.work;
  document["pairs"] = outcome.pairs;
  document["here"] = outcome.times_work > 1 ? Json() : payoff_trial_json(outcome.here);
  document["axes"] = Json::array();
  for (const PayoffAnswer& answer : outcome.answers) {
    Json one = {{"axis", answer.axis.name},
                {"key", answer.axis.key},
                {"own", own_value(answer)},
                {"end", end_names[static_cast<std::size_t>(answer.end)]},
                {"least", answer.least ? payoff_trial_json(*answer.least) : Json()},
                {"trials", Json::array()}};
    for (const PayoffTrial& trial : answer.trials) one["trials"].push_back(payoff_trial_json(trial));
    document["axes"].push_back(std::move(one));
  }
  print_json(document);
}

reports::MapCell cell_of(const PayoffTrial& trial, std::string value, const studies::PayoffQuestion& question) {
  reports::MapCell cell{.value = std::move(value), .first = {}, .second = {}};
  if (!trial.saving()) {
    cell.first = "can't be run";
    return cell;
  }
  cell.first = (*trial.saving() < 0 ? "+" : "-") + share(std::abs(*trial.saving()));
  cell.second = share(trial.slower(), true) + " time";
  cell.mark = trial.pays                                     ? reports::CellMark::good
              : *trial.saving() < question.saves             ? reports::CellMark::little
              : trial.slower().value_or(0) > question.slower ? reports::CellMark::costly
                                                             : reports::CellMark::none;
  return cell;
}

std::string payoff_map(const PayoffOutcome& outcome, const studies::PayoffQuestion& question) {
  std::vector<reports::MapRow> rows;
  const auto own = [&](std::string value) {
    reports::MapCell cell = cell_of(outcome.here, std::move(value), question);
    cell.is_own = true;
    return cell;
  };
  for (const PayoffAnswer& answer : outcome.answers) {
    reports::MapRow row{answer.axis.name, end_words(answer), {}};
    bool is_past = false;
    for (const PayoffTrial& trial : answer.trials) {
      if (!std::exchange(is_past, is_past || trial.factor > 1) && trial.factor > 1)
        row.cells.push_back(own(own_value(answer)));
      row.cells.push_back(cell_of(trial, trial.value, question));
    }
    if (!is_past) row.cells.push_back(own(own_value(answer)));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) rows.push_back({"as it is", "pays", {own("")}});
  return reports::cells_svg(fmt::format("Where it pays to {}: saves {:g} % of memory for at most {:g} % of time",
                                        words_of_ways(question.technique), 100 * question.saves, 100 * question.slower),
                            rows,
                            {"pays", "saves enough, too slow", "saves too little", "doesn't fit, or can't be run"});
}

void print_payoff(const Context& context, const PayoffOutcome& outcome, const studies::PayoffQuestion& question,
                  const std::string& taken_out) {
  const PayoffTrial& here = outcome.here;
  if (!context.rows_only()) {
    std::string text =
        here.with.ran() ? fmt::format("{} here: {} GiB reserved instead of {} (saves {}), time {}: {}\n",
                                      words_of_ways(question.technique), gib(here.with.result.memory.peak_reserved),
                                      gib(here.plain.result.memory.peak_reserved), share(here.saving()),
                                      share(here.slower(), true), here.pays ? "pays" : "doesn't pay")
                        : fmt::format("{} here can't be run: {}\n", words_of_ways(question.technique), here.with.error);
    if (!taken_out.empty()) text += taken_out + "\n";
    if (here.plain.ran() && here.plain.result.answer() == Verdict::does_not_fit)
      text += "the plain step doesn't fit here; whether others do isn't asked (spillway fit)\n";
    text += fmt::format("to pay is to save {:g} % for at most {:g} % of time (--saves, --slower)\n\n",
                        100 * question.saves, 100 * question.slower);
    print(text);
  }
  if (outcome.answers.empty()) return;
  Table table({"axis", "here", "pays", "saves", "time", "fits", "as edits, or what came nearest"});
  for (const PayoffAnswer& answer : outcome.answers) {
    const PayoffTrial* const least = answer.least ? &*answer.least : nullptr;
    table.add({answer.axis.name, own_value(answer), end_words(answer), least != nullptr ? share(least->saving()) : "-",
               least != nullptr ? share(least->slower(), true) : "-", least != nullptr ? row_verdict(least->with) : "-",
               least != nullptr ? edits_text(least->edits) : best_of(answer)});
  }
  print(context, table);
}

}  // namespace

void explain_technique(Context& context, const std::string& scenario, const std::vector<std::string>& settings,
                       ExplainTechniqueCall call) {
  if (!call.output.empty() && !call.output.ends_with(".svg"))
    throw InputError(call.output, "--output", "not .svg", "name a picture: where.svg");
  studies::PayoffQuestion& question = call.question;
  question.saves = call.saves_percent / 100;
  question.slower = call.slower_percent / 100;
  question.work = std::llround(static_cast<double>(question.work) * call.effort);
  studies::BaseScenario base = studies::base_scenario(scenario);
  for (const std::string& setting : settings) base.text = with_setting(base.text, setting);
  const Progress progress(context);
  StoreInUse store(context, call.store);
  const PayoffOutcome outcome = studies::find_payoff(
      base, question,
      {.detail = Detail::times, .store = store.get(), .progress = [&](const studies::Row& row, std::size_t done, auto) {
         return progress.show(fmt::format("replay {}: {}", done, words_of_ways(row.candidate.name))) &&
                !is_interrupted();
       }});
  const std::string too_much = fmt::format(
      "not known: the plain step and this technique alone take {:.1f} times the search's work; --effort {:.0f}",
      outcome.times_work, std::ceil(10 * outcome.times_work));
  if (outcome.times_work > 1) {
    if (context.json()) print_payoff_json(outcome, question, scenario, studies::taken_out(base));
    warn(context, too_much);
  } else if (outcome.here.plain.is_done && outcome.here.with.is_done) {
    if (!call.output.empty()) {
      OutputFile output(call.output);
      output.write(payoff_map(outcome, question));
      output.commit();
    }
    if (context.json())
      print_payoff_json(outcome, question, scenario, studies::taken_out(base));
    else
      print_payoff(context, outcome, question, studies::taken_out(base));
  }
  if (outcome.stopped) throw Cancelled();
  if (!outcome.found()) context.exit_code = outcome.finished() ? exit_answer_is_no : exit_not_known;
}

}  // namespace spillway::cli
