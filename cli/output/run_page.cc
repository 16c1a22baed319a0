#include "cli/output/run_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "cli/options/text_page.h"
#include "cli/output/result_report.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/peak_owners.h"
#include "sim/replay/verdict_words.h"
#include "studies/answer/answer.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {
namespace {

constexpr std::size_t label_width = 12, value_width = 9, longest_bar = 30;
constexpr double least_share = 0.005;  // of what is held: not worth a row

std::string gib_digits(Bytes bytes) { return three_digits(in_gib(bytes)); }

class Page {
 public:
  explicit Page(const Result& result) : result_(result), memory_(result.memory), width_(page_width()) {}

  std::string text() {
    line(result_.title);
    text_ += "\n";
    line(verdict_shape(result_.answer()) + " " + verdict_heading(result_), 2);
    if (!result_.may_fit()) line("  " + studies::why_of(result_).sentence, 2);
    text_ += "\n";
    figures();
    moved();
    owners();
    stages();
    idle();
    grounds();
    return std::move(text_);
  }

 private:
  void line(std::string_view words, std::size_t indent = 0) { text_ += paragraph(words, width_, indent); }
  void row(std::string_view label, std::string_view words) {
    line(fmt::format("  {:<{}}{}", label, label_width, words), label_width + 2);
  }

  void figures() {
    if (!result_.machine.empty())
      row("machine", result_.machine + (result_.machine_assumed.empty() ? "" : "; assumed: ") +
                         fmt::format("{}", fmt::join(result_.machine_assumed, ", ")));
    std::string step = short_duration(to_seconds(result_.step_time));
    if (result_.steps.size() > 2) step += fmt::format(", median of {} steps", result_.steps.size() - 1);
    if (!result_.may_fit()) step += " if it fitted";
    if (result_.tokens_per_second > 0)
      step += fmt::format("; {} tokens/s", grouped_text(std::llround(result_.tokens_per_second)));
    row("step", step);
    row("80 %", "of steps like it: " + studies::range_words(result_));
    recorded();
    if (const std::string words = utilisation(); !words.empty()) row("GPU", words);
    row("limited by", bindings());
    held();
    if (result_.evaluation)
      row("evaluation", fmt::format("{} every {} steps, {} of the time; {} tokens/s trained with it",
                                    short_duration(to_seconds(result_.evaluation->time)),
                                    result_.evaluation->every_steps, short_percent(result_.evaluation->time_share),
                                    grouped_text(std::llround(result_.evaluation->tokens_per_second))));
  }

  // Of a recorded step: how the replay compares with it.
  void recorded() {
    if (!result_.fidelity) return;
    const Fidelity& found = *result_.fidelity;
    row("recorded", fmt::format("{}, {} as replayed", short_duration(to_seconds(found.recorded)),
                                signed_percent_text(found.error, 2)));
    if (found.unprofiled > Picos(0))
      row("unprofiled", fmt::format("{} measured, {} as replayed", short_duration(to_seconds(found.unprofiled)),
                                    signed_percent_text(found.unprofiled_error, 1)));
  }

  [[nodiscard]] std::string utilisation() const {
    std::vector<std::string> words;
    if (result_.mfu > 0) words.push_back(percent_text(result_.mfu) + " MFU");
    if (result_.bubble && result_.ranks.empty()) words.push_back("idle " + short_percent(*result_.bubble));
    if (!result_.bubble) words.emplace_back("idle not known: no work of a GPU");
    if (result_.power)
      words.push_back(fmt::format("{:.0f} of {:.0f} W, {} of its clock", result_.power->watts,
                                  result_.power->limit_watts, short_percent(result_.power->clock_share)));
    return fmt::format("{}", fmt::join(words, "; "));
  }

  [[nodiscard]] std::string bindings() const {
    std::vector<std::string> words;
    for (const studies::AnswerShare& share : studies::binding_shares(result_))
      words.push_back(share.name + " " + short_percent(share.fraction));
    return words.empty() ? "nothing is simulated" : fmt::format("{}", fmt::join(words, ", "));
  }

  void held() {
    if (!memory_.known) return;
    std::string words = gib_digits(memory_.peak_allocated) + " GiB at the peak";
    if (memory_.on_host) words += ", of host memory";
    if (!memory_.on_host)
      words += fmt::format(", {} reserved ({} allocator)", gib_digits(memory_.peak_reserved), memory_.allocator);
    if (memory_.capacity > Bytes(0)) words += fmt::format(" of {}", gib_digits(memory_.capacity));
    if (const Bytes free = result_.reserve.bytes(); free > Bytes(0))
      words += fmt::format("; {} kept free", gib_digits(free));
    row("memory", words);
    if (result_.host_memory.known && result_.host_memory.peak > Bytes(0))
      row("host", fmt::format("{} of {} GiB held for the GPUs of a machine", gib_digits(result_.host_memory.peak),
                              gib_digits(result_.host_memory.capacity)));
  }

  void moved() {
    if (result_.offload) {
      const OffloadResult& offload = *result_.offload;
      row("offload", fmt::format("{}: {} GiB stored, {} read back, {} forwarded, {} kept{}", offload.technique,
                                 gib_digits(offload.stored), gib_digits(offload.loaded), gib_digits(offload.forwarded),
                                 gib_digits(offload.kept), result_.ranks.size() > 1 ? ", by all stages" : ""));
      if (!offload.settled) row("", "decisions about loads did not settle; the last simulation is shown");
    }
    for (const std::string& words : drive_words(result_)) row("drives", words);
  }

  void owners() {
    if (!memory_.known || memory_.owners.empty()) return;
    const double most = static_cast<double>(
        std::max_element(memory_.owners.begin(), memory_.owners.end(), [](const PeakOwner& a, const PeakOwner& b) {
          return a.bytes < b.bytes;
        })->bytes.count());
    const Bytes all = sum_of(memory_.owners);
    std::size_t name_width = 24;
    for (const PeakOwner& owner : memory_.owners)
      name_width = std::max(name_width, studies::owner_words(owner.name).size() + 1);
    text_ += fmt::format("\n  {:<{}}{:>{}}\n", "at the peak", name_width, "GiB", value_width);
    for (const PeakOwner& owner : largest_owners(memory_.owners, 8)) {
      if (static_cast<double>(owner.bytes.count()) < least_share * static_cast<double>(all.count())) continue;
      const auto blocks = std::llround(static_cast<double>(owner.bytes.count()) / most * longest_bar);
      std::string bar;
      for (long long i = 0; i < blocks; ++i) bar += "█";
      std::string words = fmt::format("  {:<{}}{:>{}}  {}", studies::owner_words(owner.name), name_width,
                                      gib_digits(owner.bytes), value_width, bar);
      words.erase(words.find_last_not_of(' ') + 1);
      text_ += words + "\n";
    }
  }

  void stages() {
    const std::vector<RankResult>& ranks = result_.ranks;
    if (ranks.size() < 2) return;
    constexpr std::size_t cell = 6;
    const std::size_t each = (width_ - label_width - 2) / cell;
    text_ += "\n";
    for (std::size_t from = 0; from < ranks.size(); from += each) {
      std::string names = fmt::format("  {:<{}}", "stage", label_width);
      std::string held = fmt::format("  {:<{}}", "GiB", label_width),
                  idle = fmt::format("  {:<{}}", "idle %", label_width);
      for (std::size_t i = from; i < std::min(ranks.size(), from + each); ++i) {
        const std::string_view name = ranks[i].name;
        const std::string_view number = name.substr(name.rfind(' ') + 1);
        names += fmt::format("{:>{}}", number.size() < cell ? number : number.substr(number.size() - cell + 1), cell);
        const bool is_no = ranks[i].verdict == Verdict::does_not_fit;
        const std::string amount = (is_no ? "✖" : "") + gib_digits(ranks[i].peak_reserved);
        held += std::string(cell - std::min(cell, shown_width(amount)), ' ') + amount;
        idle += fmt::format("{:>{}}", ranks[i].bubble ? three_digits(*ranks[i].bubble * 100) : "?", cell);
      }
      text_ += (from > 0 ? "\n" : "") + names + "\n" + held + "\n" + idle + "\n";
    }
  }

  // Of a capture: pauses that are on the path as they were recorded.
  void idle() {
    constexpr std::size_t most = 4;
    bool has_title = false;
    for (std::size_t i = 0; i < std::min(most, result_.kept_idle.size()); ++i) {
      const KeptIdle& one = result_.kept_idle[i];
      if (one.on_path <= Picos(0)) break;
      if (!has_title) text_ += "\n  idle time kept as recorded\n";
      has_title = true;
      line(fmt::format("  {:>10}  {}", short_duration(to_seconds(one.on_path)), one.name), label_width + 2);
    }
  }

  void grounds() {
    for (const std::string& warning : result_.warnings)
      if (is_of_modelled_times(warning)) {
        text_ += "\n";
        row("rests on", warning.substr(warning.find(": ") + 2));
      }
  }

  const Result& result_;
  const MemoryResult& memory_;
  const std::size_t width_;
  std::string text_;
};

}  // namespace

bool is_of_modelled_times(const std::string& warning) { return warning.starts_with("modelled_durations"); }

std::string run_page(const Result& result) { return Page(result).text(); }

std::string which_gpu() {
  return paragraph("next: --set hardware.profile=NAME says whether it fits that GPU; `spillway list gpus` has them",
                   page_width(), 2);
}

std::string next_command(const Result& result, const std::string& file) {
  const MemoryResult& memory = result.memory;
  if (memory.known && !memory.on_host && memory.capacity <= Bytes(0)) return which_gpu();
  const std::string command = result.may_fit() ? "explain" : "fit";
  return paragraph(
      fmt::format("next: spillway {} {}{}", command, file, is_verbose() ? "" : "; --verbose for all figures"),
      page_width(), 2);
}

}  // namespace spillway::cli
