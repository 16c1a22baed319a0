#include "cli/commands/fit_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/number_text.h"
#include "cli/output/row_report.h"
#include "cli/output/text_page.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/drive_life.h"
#include "planners/offload/offload_settings.h"
#include "scenario/machine_power.h"
#include "sim/replay/verdict_words.h"
#include "studies/fit/way_names.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {
namespace {

using studies::FitGroup;
using studies::FitOutcome;
using studies::FitWay;
using studies::OtherTraining;
using studies::Row;
using studies::ShownWay;

constexpr std::size_t number_width = 4, step_width = 9, tokens_width = 8, left_width = 10, runs_width = 16;

std::string or_dash(bool known, const std::string& text) { return known ? text : "-"; }

// "12.3", "-78.8" for what is short, "-" where nobody knows.
std::string room_left(const Row& row) {
  const MemoryResult& memory = row.result.memory;
  if (!row.ran() || !memory.known || memory.limit <= Bytes(0)) return "-";
  if (row.result.host_memory.known && row.result.host_memory.verdict() == Verdict::does_not_fit) return "host full";
  if (!row.result.drives_refuse.empty()) return "SSDs";
  if (!row.result.may_fit())
    return memory.short_of > Bytes(0) ? "-" + three_digits(in_gib(memory.short_of)) : "too large";
  const std::string left = three_digits(in_gib(memory.limit - memory.peak_reserved));
  return row.result.as_replayed() == Verdict::tight ? left + " ▲" : left;
}

// "torchtitan +1": who launches it as it is; "deepspeed*": with a line in the program; "own code": neither.
std::string runs_in(const FitWay& way, const studies::Launchers& launched_by) {
  if (way.carrier != studies::Carrier::frameworks) return std::string(to_string(way.carrier));
  if (!launched_by) return "-";
  if (launched_by->empty()) return "own code";
  return launched_by->size() == 1 ? launched_by->front()
                                  : fmt::format("{} +{}", launched_by->front(), launched_by->size() - 1);
}

class Page {
 public:
  explicit Page(const FitPage& page) : page_(page), outcome_(page.outcome), width_(page_width()) {
    for (const FitWay& way : outcome_.ways)
      if (way.row.candidate.edits.empty() && way.row.ran()) given_ = &way.row;
  }

  std::string text() {
    title();
    verdict();
    ways();
    if (outcome_.any()) chosen();
    exports();
    ends();
    return std::move(text_);
  }

 private:
  void line(std::string_view words, std::size_t indent = 0) { text_ += paragraph(words, width_, indent); }
  // A scenario's own step, which ways are compared with; of a model on machines there is none.
  [[nodiscard]] bool has_now() const { return !page_.subject.is_model_alone && given_ != nullptr; }

  void title() {
    const studies::FitSubject& subject = page_.subject;
    std::string words = subject.model ? subject.model->title : subject.parsed.title;
    if (subject.model) {
      const TrainingSetup& setup = subject.parsed.training;
      words += setup.sequence > 0 ? fmt::format(", {} x {} tokens a step", grouped_text(setup.step_sequences()),
                                                grouped_text(setup.sequence))
                                  : fmt::format(", {} sequences a step", grouped_text(setup.step_sequences()));
    }
    if (subject.gpus > subject.hardware.gpu_count) words += fmt::format("; {} GPUs", subject.gpus);
    if (!subject.hardware.title.empty()) words += "; " + subject.hardware.title;
    line(words);
    text_ += "\n";
  }

  void verdict() {
    if (has_now()) line(verdict_shape(given_->result.answer()) + " As given: " + verdict_sentence(given_->result), 2);
    FoundWays found{.tight = outcome_.fitting, .tried = outcome_.replayed, .ended_early = ended_early(outcome_)};
    for (const ShownWay& way : page_.shown)
      if (const FitWay& one = outcome_.ways[way.way]; does_work(one.row))
        ++(group_of(one) <= FitGroup::planner    ? found.same
           : group_of(one) == FitGroup::numerics ? found.numerics
                                                 : found.research);
    const Result* const unknown = outcome_.any() && outcome_.ways.front().row.result.is_in_doubt()
                                      ? &outcome_.ways.front().row.result
                                      : outcome_.unknown();
    if (unknown != nullptr) found.unknown = unknown->why_unknown();
    if (!page_.framework.empty()) found.how = "as " + page_.framework + " launches it";
    const std::string& best = outcome_.ways.front().row.candidate.name;
    line(search_heading(found) + (outcome_.any() ? "; best for " + page_.goal + ": " : "; nearest: ") + best, 2);
    lacks_host_memory();
    text_ += "\n";
  }

  // Where nothing that trains alike fits, and some lack memory of a host that nobody spoke of.
  void lacks_host_memory() {
    const FitWay* least = nullptr;
    for (const FitWay& way : outcome_.ways) {
      if (group_of(way) > FitGroup::planner || !way.row.ran()) continue;
      if (does_fit(way.row)) return;
      const Result& result = way.row.result;
      if (!result.host_memory.known || result.host_memory.verdict() != Verdict::does_not_fit ||
          !is_yes(result.memory.verdict()))
        continue;
      if (least == nullptr || result.host_memory.peak < least->row.result.host_memory.peak) least = &way;
    }
    if (least == nullptr) return;
    const HostMemoryResult& host = least->row.result.host_memory;
    const bool is_assumed = page_.subject.hardware.host.dram.origin.provenance == hwprofiles::OriginKind::assumed;
    line(fmt::format("  With {} GiB of host memory ({} are {}) it fits: {}", std::ceil(in_gib(host.peak)),
                     three_digits(in_gib(host.capacity)),
                     is_assumed ? "assumed; +ram=256GiB behind the machine" : "there", least->row.candidate.name),
         2);
  }

  // ---- the table ----

  void row(const std::string& number, const Row& row, const std::string& runs) {
    const std::size_t figures = step_width + tokens_width + left_width;
    const std::size_t name_width = width_ - number_width - figures - 2 - runs_width;
    const std::vector<std::string> names =
        wrapped(row.ran() ? row.candidate.name : row.candidate.name + ": " + row.error, name_width);
    const double step = to_seconds(row.result.step_time);
    const auto right = [](const std::string& cell, std::size_t width) {
      return std::string(width - std::min(width, shown_width(cell)), ' ') + cell;
    };
    text_ += right(number, number_width - 2) + "  " + names.front() +
             std::string(name_width - std::min(name_width, shown_width(names.front())), ' ') +
             right(or_dash(row.ran(), short_duration(step)), step_width) + right(tokens(row), tokens_width) +
             right(room_left(row), left_width) + "  " + runs + "\n";
    for (std::size_t i = 1; i < names.size(); ++i) text_ += std::string(number_width, ' ') + names[i] + "\n";
  }
  // Against the step as given, or as they are.
  [[nodiscard]] std::string tokens(const Row& row) const {
    if (!row.ran() || row.result.tokens_per_second <= 0) return "-";
    if (!has_now() || given_->result.tokens_per_second <= 0)
      return grouped_text(std::llround(row.result.tokens_per_second));
    const double change = row.result.tokens_per_second / given_->result.tokens_per_second - 1;
    return std::abs(change) < 0.005 ? "0 %" : signed_percent_text(change, std::abs(change) < 0.095 ? 1 : 0);
  }

  void ways() {
    const std::size_t name_width = width_ - number_width - step_width - tokens_width - left_width - 2 - runs_width;
    text_ += fmt::format("{:{}}{:>{}}{:>{}}{:>{}}  runs in\n", "", number_width + name_width, "step", step_width,
                         "tok/s", tokens_width, "GiB left", left_width);
    std::optional<FitGroup> group;
    const auto add = [&](std::size_t index, const std::string& number, const std::string& runs) {
      const FitWay& way = outcome_.ways[index];
      // Ranked all together there are none.
      if (group != group_of(way) && !page_.question.any_numerics) line(fmt::format("  {}", title_of(group_of(way))));
      group = group_of(way);
      row(number, way.row, runs);
    };
    if (page_.all)
      for (std::size_t i = 0; i < outcome_.ways.size(); ++i)
        add(i, "", std::string(to_string(outcome_.ways[i].carrier)));
    else
      for (std::size_t i = 0; i < page_.shown.size(); ++i)
        add(page_.shown[i].way, std::to_string(i + 1),
            runs_in(outcome_.ways[page_.shown[i].way], page_.launched_by[i]));
    others();
    more_gpus();
    text_ += "\n";
  }

  void more_gpus() {
    if (!page_.machine) return;
    line("  On more of the same GPUs");
    Row row = page_.machine->best.row;
    row.candidate.name =
        fmt::format("{} GPUs (--on {}): {}", page_.machine->gpus, page_.machine->machine, lowered(row.candidate.name));
    this->row("", row, "");
  }

  void others() {
    bool has_title = false;
    for (const OtherTraining& other : page_.others) {
      if (!other.best) continue;
      if (!has_title) line("  Changes the training");
      has_title = true;
      Row row = other.best->row;
      row.candidate.name = fmt::format("Train adapters only ({}){}", other.name,
                                       row.candidate.name == "As given" ? "" : ", " + lowered(row.candidate.name));
      this->row("", row, "");
    }
  }
  // "Recompute ..." within a sentence; names stay.
  static std::string lowered(std::string name) {
    constexpr std::array<std::string_view, 6> names = {"ZeRO", "Adam", "Adafactor", "Muon", "SGD", "8-bit"};
    if (std::none_of(names.begin(), names.end(), [&](std::string_view one) { return name.starts_with(one); }))
      name.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(name.front())));
    return name;
  }

  // ---- the chosen way ----

  void chosen() {
    const std::size_t index = page_.shown[page_.chosen].way;
    const FitWay& way = outcome_.ways[index];
    line(fmt::format("{:>2}  {}: what it changes", page_.chosen + 1, way.row.candidate.name), number_width);
    std::size_t key_width = 0, value_width = 0;
    std::vector<std::pair<std::string, std::string>> changes;
    for (const std::string& setting : way.row.candidate.edits) {
      const std::size_t equals = setting.find('=');
      const std::string key = setting.substr(0, equals), now = value_now(key), then = setting.substr(equals + 1);
      if (now == then) continue;  // keeps the sequences of a step
      changes.emplace_back(key, fmt::format("{} -> {}", now, then));
      key_width = std::max(key_width, shown_width(key));
      value_width = std::max(value_width, shown_width(changes.back().second));
    }
    value_width = std::min(value_width, width_ / 3);
    std::set<std::size_t> told;
    for (const auto& [key, change] : changes) {
      const std::string worth = index == 0 ? worth_of(key, told) : "";
      const std::string first = fmt::format("    {:{}}  ", key, key_width);
      line(worth.empty() ? first + change : fmt::format("{}{:{}}  {}", first, change, value_width, worth), 6);
    }
    if (changes.empty()) line("    nothing: it fits as given");
    const Result& result = way.row.result;
    line(fmt::format("    binds: {}; 80 % of steps like it: {}", describe_shortly(result.binding),
                     step_range_words(result)),
         6);
    if (const auto cost = way.row.cost_per_million_tokens())
      line(fmt::format("    {} USD per million tokens", three_digits(*cost)), 6);
    if (result.host_memory.known)
      line(fmt::format("    host memory: {} of {} GiB", three_digits(in_gib(result.host_memory.peak)),
                       three_digits(in_gib(result.host_memory.capacity))),
           6);
    if (const std::string life = life_cell(result); life != "-") line("    the SSDs last " + life + " years", 6);
    if (page_.chosen == 0) smallest_change();
    text_ += "\n";
  }

  [[nodiscard]] std::string value_now(const std::string& key) const {
    constexpr std::string_view model = "model.";
    if (page_.subject.model && key.starts_with(model))
      return field_text(page_.subject.parsed.training, std::string_view(key).substr(model.size()));
    return setting_of(page_.subject.scenario.text, key).value_or("not set");
  }

  // What the step would be without the edit, of those that take this key back; each is told once.
  std::string worth_of(const std::string& key, std::set<std::size_t>& told) const {
    const Row& best = outcome_.ways.front().row;
    for (std::size_t i = 0; i < outcome_.worth.size(); ++i) {
      const Row& row = outcome_.ways[outcome_.worth[i].way].row;
      if (told.contains(i) || !is_taken_back(key, best.candidate.edits, row.candidate.edits)) continue;
      told.insert(i);
      if (!row.ran()) return "needed: " + row.error;
      if (!row.result.may_fit()) return "needed: else short of " + lacking(row.result);
      const double slower = to_seconds(row.result.step_time) / to_seconds(best.result.step_time) - 1;
      const double less = in_gib(row.result.memory.peak_reserved - best.result.memory.peak_reserved);
      const std::string time = std::abs(slower) < 0.005 ? "no faster"
                               : slower > 0             ? percent_text(slower, slower < 0.095 ? 1 : 0) + " faster"
                                                        : percent_text(-slower, -slower < 0.095 ? 1 : 0) + " slower";
      return std::abs(less) < 0.05
                 ? time
                 : fmt::format("{}, {} GiB {}", time, three_digits(std::abs(less)), less > 0 ? "less" : "more");
    }
    return "";
  }
  static bool is_taken_back(const std::string& key, const std::vector<std::string>& from,
                            const std::vector<std::string>& to) {
    const auto has = [&](const std::vector<std::string>& settings) {
      const auto found = std::find_if(settings.begin(), settings.end(),
                                      [&](const std::string& one) { return one.starts_with(key + "="); });
      return found == settings.end() ? std::string() : *found;
    };
    return has(from) != has(to);
  }

  // The way with fewest edits, where it isn't among those shown.
  void smallest_change() {
    const FitWay* least = nullptr;
    for (std::size_t i = 0; i < outcome_.fitting; ++i) {
      const FitWay& way = outcome_.ways[i];
      if (does_work(way.row) && group_of(way) == FitGroup::same &&
          (least == nullptr || changes_of(way.row) < changes_of(least->row)))
        least = &way;
    }
    const bool is_shown = std::any_of(page_.shown.begin(), page_.shown.end(),
                                      [&](const ShownWay& one) { return &outcome_.ways[one.way] == least; });
    if (least == nullptr || is_shown) return;
    line(fmt::format("    smallest change that fits: {}, {}, {} GiB left ({})", lowered(least->row.candidate.name),
                     short_duration(to_seconds(least->row.result.step_time)), room_left(least->row),
                     edits_text(least->row.candidate.edits)),
         6);
  }

  // As `spillway export` writes it, replayed as each framework would run that.
  void exports() {
    if (page_.exports.empty()) return;
    line("  As a framework launches it (spillway export)");
    for (const studies::Exported& one : page_.exports) {
      std::vector<std::string> unsaid;
      for (const launch::UnsaidKey& each : one.launch.unsaid) unsaid.push_back(each.key.substr(each.key.find('.') + 1));
      const std::string cannot = unsaid.empty() ? "" : fmt::format("; can't say {}", fmt::join(unsaid, ", "));
      const auto figures = [](const Result& result) {
        return fmt::format("{} {}, {}", verdict_shape(result.answer()), short_duration(to_seconds(result.step_time)),
                           lacking(result).empty() ? to_spare(result) : "short of " + lacking(result));
      };
      line(fmt::format("    {:10}  {}", one.target, one.alone ? figures(*one.alone) + cannot : "✖ " + one.refusal), 16);
      if (const std::string flags = lines_of(one); !flags.empty()) line(fmt::format("    {:10}  {}", "", flags), 16);
      if (one.with_code)
        line(fmt::format("    {:10}  * {} with {}", "", figures(*one.with_code), fmt::join(one.code, ", ")), 16);
    }
    text_ += "\n";
  }
  // What the file says of the way's edits.
  [[nodiscard]] std::string lines_of(const studies::Exported& one) const {
    const bool runs = (one.alone && is_yes(one.alone->answer())) || (one.with_code && is_yes(one.with_code->answer()));
    if (!runs) return "";
    std::vector<std::string> lines;
    for (const std::string& setting : outcome_.ways[page_.shown[page_.chosen].way].row.candidate.edits)
      for (const launch::SaidKey& said : one.launch.said)
        if (setting.starts_with(said.key + "="))
          lines.push_back(said.as.empty() ? said.flag : said.flag + " " + said.as);
    return fmt::format("{}", fmt::join(lines, ", "));
  }

  // ---- what it rests on ----

  void ends() {
    for (const std::string& each : page_.subject.assumptions) line("assumed: " + each, 2);
    std::size_t folded = 0;
    for (const ShownWay& way : page_.shown) folded += way.folded.size();
    const char* const state = outcome_.stopped     ? "stopped before the search had ended"
                              : outcome_.exhausted ? "more would be tried with --effort"
                              : outcome_.any()     ? "no single edit of the best that was tried is better"
                                                   : "search finished";
    line(fmt::format("{} layouts estimated, {} ways replayed, {} fit; {}{}", outcome_.screened, outcome_.replayed,
                     outcome_.fitting, state,
                     folded > 0 ? fmt::format("; {} alike or no better folded (--all)", folded) : ""),
         2);
    if (outcome_.any()) line("next: --way N for what way N changes and how to launch it, --output way.json", 2);
  }

  const FitPage& page_;
  const FitOutcome& outcome_;
  const std::size_t width_;
  const Row* given_ = nullptr;
  std::string text_;
};

}  // namespace

bool ended_early(const FitOutcome& outcome) { return outcome.stopped || outcome.exhausted; }

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
               row.ran() ? room_left(row) : row.error, life_cell(result),
               or_dash(cost.has_value(), fmt::format("{:.3g}", cost.value_or(0))),
               or_dash(row.ran(), std::string(to_string(result.binding))), std::string(to_string(way.carrier)),
               std::string(title_of(group_of(way)))});
  };
  if (page.all)
    for (const FitWay& way : page.outcome.ways) add(way);
  else
    for (const ShownWay& way : page.shown) add(page.outcome.ways[way.way]);
  return table;
}

}  // namespace spillway::cli
