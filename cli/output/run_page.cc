#include "cli/output/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/log.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "cli/options/text_page.h"
#include "sim/replay/peak_owners.h"

namespace spillway::cli {
namespace {

constexpr std::size_t label_width = 12, value_width = 9, longest_bar = 30;
constexpr double least_share = 0.005;  // of what is held: not worth a row

std::string gib_digits(Bytes bytes) { return three_digits(in_gib(bytes)); }

class Page {
 public:
  explicit Page(const studies::Answer& answer) : answer_(answer), width_(page_width()) {}

  std::string text() {
    line(answer_.title);
    text_ += "\n";
    line(answer_.heading, 2);
    const bool may_fit = answer_.answer != Verdict::does_not_fit && answer_.hangs_on.empty();
    if (!may_fit && !answer_.why.sentence.empty()) line("  " + answer_.why.sentence, 2);
    text_ += "\n";
    for (const studies::AnswerFact& fact : answer_.facts) row(fact.label, fact.words);
    owners();
    gpus();
    idle();
    if (!answer_.times.empty()) {
      text_ += "\n";
      row("rests on", answer_.times);
    }
    return std::move(text_);
  }

 private:
  void line(std::string_view words, std::size_t indent = 0) { text_ += paragraph(words, width_, indent); }
  void row(std::string_view label, std::string_view words) {
    line(fmt::format("  {:<{}}{}", label, label_width, words), label_width + 2);
  }

  void owners() {
    const std::vector<PeakOwner>& owners = answer_.why.owners;
    if (owners.empty()) return;
    const auto held = [](const PeakOwner& owner) { return static_cast<double>(owner.bytes.count()); };
    const double all = static_cast<double>(sum_of(owners).count());
    double most = 0;
    std::size_t name_width = 24;
    for (const PeakOwner& owner : owners) {
      most = std::max(most, held(owner));
      name_width = std::max(name_width, shown_width(owner.name) + 1);
    }
    text_ += fmt::format("\n  {:<{}}{:>{}}\n", "at the peak", name_width, "GiB", value_width);
    for (const PeakOwner& owner : owners) {
      if (held(owner) < least_share * all) continue;
      std::string bar;
      for (auto blocks = std::llround(held(owner) / most * longest_bar); blocks > 0; --blocks) bar += "█";
      std::string words =
          fmt::format("  {:<{}}{:>{}}  {}", owner.name, name_width, gib_digits(owner.bytes), value_width, bar);
      words.erase(words.find_last_not_of(' ') + 1);
      text_ += words + "\n";
    }
  }

  void gpus() {
    const std::vector<RankResult>& ranks = answer_.gpus;
    if (ranks.empty()) return;
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
    const auto kept = std::find_if(answer_.work.begin(), answer_.work.end(), [](const studies::AnswerWork& work) {
      return work.kind == studies::kept_as_recorded;
    });
    if (kept == answer_.work.end()) return;
    constexpr std::size_t most = 4;
    text_ += "\n  idle time kept as recorded\n";
    for (std::size_t i = 0; i < std::min(most, kept->rows.size()); ++i)
      line(fmt::format("  {:>10}  {}", short_duration(to_seconds(kept->rows[i].time)), kept->rows[i].name),
           label_width + 2);
  }

  const studies::Answer& answer_;
  const std::size_t width_;
  std::string text_;
};

}  // namespace

std::string run_page(const studies::Answer& answer) { return Page(answer).text(); }

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
