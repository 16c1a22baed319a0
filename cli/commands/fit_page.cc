#include "cli/commands/fit_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/number_text.h"
#include "cli/options/text_page.h"
#include "cli/output/row_report.h"
#include "planners/offload/drive_life.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {
namespace {

using studies::FitWay;
using studies::Row;
using studies::ShownWay;

constexpr std::size_t number_width = 4, step_width = 9, tokens_width = 8, left_width = 10, runs_width = 16;

std::string or_dash(bool known, const std::string& text) { return known ? text : "-"; }

class Page {
 public:
  explicit Page(const FitPage& page) : page_(page), answer_(page.answer), width_(page_width()) {}

  std::string text() {
    title();
    verdict();
    ways();
    if (page_.found.has_choice()) chosen();
    exports();
    ends();
    return std::move(text_);
  }

 private:
  void line(std::string_view words, std::size_t indent = 0) { text_ += paragraph(words, width_, indent); }

  void title() {
    line(answer_.title + (answer_.machine.empty() ? "" : "; " + answer_.machine));
    text_ += "\n";
  }

  void verdict() {
    if (!answer_.as_given.empty()) line(answer_.as_given, 2);
    if (!answer_.why.sentence.empty()) line("  " + answer_.why.sentence, 2);
    line(answer_.heading + "; " + answer_.best, 2);
    if (!answer_.advice.empty()) line("  " + answer_.advice, 2);
    text_ += "\n";
  }

  // ---- the table ----

  void row(const std::string& number, const std::string& name, const studies::AnswerFigures& shown,
           const std::string& runs) {
    const std::size_t figures = step_width + tokens_width + left_width;
    const std::size_t name_width = width_ - number_width - figures - 2 - runs_width;
    const std::vector<std::string> names = wrapped(name, name_width);
    const auto right = [](const std::string& cell, std::size_t width) {
      return std::string(width - std::min(width, shown_width(cell)), ' ') + cell;
    };
    text_ += right(number, number_width - 2) + "  " + names.front() +
             std::string(name_width - std::min(name_width, shown_width(names.front())), ' ') +
             right(shown.step, step_width) + right(shown.tokens, tokens_width) + right(shown.left, left_width) + "  " +
             runs + "\n";
    for (std::size_t i = 1; i < names.size(); ++i) text_ += std::string(number_width, ' ') + names[i] + "\n";
  }

  void ways() {
    const std::size_t name_width = width_ - number_width - step_width - tokens_width - left_width - 2 - runs_width;
    text_ += fmt::format("{:{}}{:>{}}{:>{}}{:>{}}  runs in\n", "", number_width + name_width, "step", step_width,
                         "tok/s", tokens_width, "GiB left", left_width);
    std::string group;
    // Ways that are ranked all together have no titles.
    const bool is_mixed = page_.found.question.any_numerics;
    const auto under = [&](const std::string& title, bool is_ranked) {
      if (group != title && !(is_mixed && is_ranked)) line("  " + title);
      group = title;
    };
    if (page_.all)
      for (const FitWay& way : page_.found.outcome.ways) {
        under(std::string(title_of(group_of(way))), true);
        row("", way.row.ran() ? way.row.candidate.name : way.row.candidate.name + ": " + way.row.error,
            way_figures(page_.found, way.row), std::string(to_string(way.carrier)));
      }
    for (const studies::AnswerWay& way : answer_.ways) {
      const bool is_ranked = way.number > 0 && way.number <= page_.found.shown.size();
      if (page_.all && is_ranked) continue;
      under(way.group, is_ranked);
      row(way.number > 0 ? std::to_string(way.number) : "", way.name, way.figures, way.runs_in);
    }
    const bool any_tight = std::any_of(answer_.ways.begin(), answer_.ways.end(),
                                       [](const studies::AnswerWay& way) { return way.figures.left.ends_with("▲"); });
    if (any_tight) line("  ▲ tight: little is left, or what is kept free is needed", 4);
    text_ += "\n";
  }

  // ---- the chosen way ----

  void chosen() {
    const studies::AnswerWay& way = answer_.ways[page_.found.chosen];
    line(fmt::format("{:>2}  {}: what it changes", way.number, way.name), number_width);
    std::size_t key_width = 0, value_width = 0;
    const auto told = [](const studies::AnswerChange& change) {
      return fmt::format("{} -> {}", change.from, change.to);
    };
    for (const studies::AnswerChange& change : way.changes) {
      key_width = std::max(key_width, shown_width(change.key));
      value_width = std::max(value_width, shown_width(told(change)));
    }
    value_width = std::min(value_width, width_ / 3);
    for (const studies::AnswerChange& change : way.changes) {
      const std::string first = fmt::format("    {:{}}  ", change.key, key_width);
      line(change.worth.empty() ? first + told(change)
                                : fmt::format("{}{:{}}  {}", first, told(change), value_width, change.worth),
           6);
    }
    if (way.changes.empty()) line("    nothing: it fits as given");
    for (const std::string& sentence : way.sentences) line("    " + sentence, 6);
    text_ += "\n";
  }

  // As `spillway export` writes it, replayed as each framework would run that.
  void exports() {
    if (answer_.ways.empty() || page_.found.exports.empty()) return;
    line("  As a framework launches it (spillway export)");
    for (const studies::AnswerLaunch& launch : answer_.ways[page_.found.chosen].launches) {
      const std::string cannot =
          launch.cannot_say.empty() ? "" : fmt::format("; can't say {}", fmt::join(launch.cannot_say, ", "));
      line(fmt::format("    {:10}  {}{}", launch.framework, launch.figures, cannot), 16);
      if (!launch.lines.empty()) line(fmt::format("    {:10}  {}", "", fmt::join(launch.lines, ", ")), 16);
      if (!launch.with_code_figures.empty())
        line(fmt::format("    {:10}  * {} with {}", "", launch.with_code_figures, fmt::join(launch.code, "; ")), 16);
    }
    text_ += "\n";
  }

  // ---- what it rests on ----

  void ends() {
    for (const std::string& each : answer_.assumed) line("assumed: " + each, 2);
    line(answer_.search, 2);
    if (page_.found.outcome.any() || page_.found.count() > page_.found.shown.size())
      line(fmt::format("next: --way N for what set-up N changes and how to launch it; --all for those folded; {}"
                       "--output answer.html",
                       page_.found.outcome.exhausted ? "--effort 2 to try more; " : ""),
           2);
  }

  const FitPage& page_;
  const studies::Answer& answer_;
  const std::size_t width_;
  std::string text_;
};

}  // namespace

std::string fit_page(const FitPage& page) { return Page(page).text(); }

Table fit_table(const FitPage& page) {
  Table table({"way", "fits", "step (s)", "80 % within", "tokens/s", "MFU (%)", "peak (GiB)", "GiB left",
               "life (years)", "USD/Mtoken", "binds", "runs in", "group"});
  const auto add = [&](const FitWay& way) {
    const Row& row = way.row;
    const Result& result = row.result;
    const std::optional<double> cost = row.ran() ? row.cost_per_million_tokens() : std::nullopt;
    table.add({row.candidate.name, row_verdict(row),
               or_dash(row.ran(), fmt::format("{:.4g}", to_seconds(result.step_time))),
               or_dash(row.ran(), range_cell(result.step_time_range, to_seconds(result.step_time))),
               or_dash(result.tokens_per_second > 0, fmt::format("{:.0f}", result.tokens_per_second)),
               or_dash(result.mfu > 0, fmt::format("{:.1f}", result.mfu * 100)),
               or_dash(row.ran() && result.memory.known, gib(result.memory.peak_reserved)),
               row.ran() ? studies::room_left(result) : row.error, life_cell(result),
               or_dash(cost.has_value(), fmt::format("{:.3g}", cost.value_or(0))),
               or_dash(row.ran(), std::string(to_string(result.binding))), std::string(to_string(way.carrier)),
               std::string(title_of(group_of(way)))});
  };
  if (page.all)
    for (const FitWay& way : page.found.outcome.ways) add(way);
  else
    for (const ShownWay& way : page.found.shown) add(page.found.outcome.ways[way.way]);
  return table;
}

}  // namespace spillway::cli
