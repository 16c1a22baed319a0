#include "gui/workspace/shown_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/number_text.h"
#include "base/short_text.h"
#include "studies/diagnosis/memory_diagnosis.h"
#include "studies/offload/result_figures.h"

namespace spillway::gui {
namespace {

std::string step_words(Picos time) { return short_duration(to_seconds(time)); }

// "gpu.memory 24 GiB (datasheet)", of the inputs whose names begin so.
std::string rests_on(const Outcome& outcome, const std::string& how, std::initializer_list<const char*> prefixes) {
  std::string text = how;
  for (const InputProvenance& input : outcome.result().provenance)
    for (const char* prefix : prefixes)
      if (input.name.starts_with(prefix)) {
        text += fmt::format("; {} {} ({})", input.name, input.value, input.provenance);
        break;
      }
  return text;
}

Ground ground_of(const std::string& provenance) {
  if (provenance == "measured") return Ground::measured;
  return provenance == "assumed" ? Ground::assumed : Ground::known;
}

// The figure rests on these inputs, of which the weakest counts; `least`: on that in any case.
void ground_on(const Outcome& outcome, Ground least, std::initializer_list<const char*> prefixes, ShownFigure& figure) {
  figure.ground = std::max(figure.ground, least);
  for (const InputProvenance& input : outcome.result().provenance)
    for (const char* prefix : prefixes)
      if (input.name.starts_with(prefix)) figure.ground = std::max(figure.ground, ground_of(input.provenance));
}

// What was recorded, replayed on its own timings, was measured; what a what-if or a plan makes of it is not.
Ground record_or_model(const Outcome& outcome) {
  const bool is_own =
      !outcome.loaded.scenario.trace.empty() && !outcome.run.planned && outcome.loaded.options.speed == RelativeSpeed();
  return is_own ? Ground::measured : Ground::known;
}

// Of a step's times: recorded ones need no profile.
void ground_on_times(const Outcome& outcome, ShownFigure& figure) {
  const Ground times = record_or_model(outcome);
  if (times == Ground::measured) return ground_on(outcome, times, {}, figure);
  ground_on(outcome, times, {"gpu.memory_bandwidth", "gpu.launch_to_start", "gpu.kernel_gap", "host.dispatch_cost"},
            figure);
}

std::string gib_words(Bytes bytes) { return three_digits(in_gib(bytes)); }

constexpr const char* no_times = "the file has no times";

bool has_times(const Outcome& outcome) { return outcome.trace().has(Capability::times); }

// Without a limit there is no verdict on the replay, but the record may have one: the failed allocation. Null: none.
const MemoryEvent* ran_out_when_recorded(const Outcome& outcome) {
  if (outcome.result().verdict() != Verdict::unknown) return nullptr;
  const auto& events = outcome.trace().memory_events;
  const auto failed = std::find_if(events.begin(), events.end(), [](const MemoryEvent& event) {
    return event.action == MemoryAction::out_of_memory;
  });
  return failed == events.end() ? nullptr : &*failed;
}

ShownFigure recorded_verdict(const Outcome& outcome, const MemoryEvent& failed) {
  ShownFigure figure{.id = "verdict", .title = ran_out_mark(), .is_alarm = true};
  const Bytes free = failed.address == Addr(0) ? Bytes(-1) : Bytes(static_cast<std::int64_t>(failed.address.count()));
  figure.value = ran_out_heading(studies::own_place(outcome.trace(), failed.stack), failed.bytes, free);
  figure.short_value = "Ran out as recorded";
  figure.detail = short_size(failed.bytes) + " asked for" + (free < Bytes(0) ? "" : ", " + short_size(free) + " free");
  figure.provenance = "recorded: the allocation that failed";
  return figure;
}

ShownFigure memory_verdict(const Outcome& outcome, const Outcome* baseline) {
  const Result& result = outcome.result();
  if (const MemoryEvent* failed = ran_out_when_recorded(outcome)) return recorded_verdict(outcome, *failed);
  ShownFigure figure{.id = "verdict", .title = verdict_mark(result)};
  figure.value = verdict_sentence(result);
  figure.short_value = verdict_cell(result);  // one sentence that a cell holds; the whole is its tip
  figure.is_alarm = result.answer() == Verdict::does_not_fit;
  if (result.fits() && !result.drives_refuse.empty() && result.memory.capacity > Bytes(0))
    figure.detail = "memory fits, " + to_spare(result);
  else if (result.reserve.margin > Bytes(0) && result.fits())
    figure.detail = "with " + short_size(result.reserve.bytes()) + " kept in reserve";
  else if (result.memory.verdict() == Verdict::does_not_fit)
    figure.detail = short_size(result.memory.peak_allocated) + " wanted at the peak";
  else if (result.verdict() == Verdict::unknown)
    figure.detail = result.why_unknown();
  const auto margin = [](const Result& r) { return r.memory.capacity - r.memory.peak_reserved; };
  const bool both = baseline != nullptr && result.memory.known && baseline->result().memory.known;
  if (both && result.memory.capacity > Bytes(0) && baseline->result().memory.capacity > Bytes(0)) {
    const Bytes gain = margin(result) - margin(baseline->result());
    figure.change = gain == Bytes(0) ? "no change" : (gain < Bytes(0) ? "" : "+") + short_size(gain) + " of margin";
    figure.direction = gain == Bytes(0) ? Change::none : gain > Bytes(0) ? Change::better : Change::worse;
  }
  figure.is_caution = result.verdict() == Verdict::tight || result.verdict() == Verdict::unknown;
  if (result.verdict() != Verdict::unknown) {
    ground_on(outcome, record_or_model(outcome), {"gpu.context_memory"}, figure);
    for (const ReservePart& part : result.reserve.parts)
      figure.ground = std::max(figure.ground, ground_of(part.provenance));
  }
  figure.provenance = rests_on(outcome, "simulated", {"gpu.memory ", "gpu.memory", "gpu.context_memory"});
  for (const ReservePart& part : result.reserve.parts)
    if (!part.in_capacity)
      figure.provenance += fmt::format("; {} kept free: {} ({})", short_size(part.bytes), part.name, part.provenance);
  return figure;
}

ShownFigure binding(const Outcome& outcome, const Outcome* baseline) {
  const Result& result = outcome.result();
  ShownFigure figure{.id = "binding", .title = "limited by"};
  if (!has_times(outcome)) {
    figure.value = "not known";
    figure.provenance = no_times;
    return figure;
  }
  figure.value = std::string(describe(result.binding));
  figure.short_value = std::string(describe_shortly(result.binding));
  figure.detail = short_percent(binding_share(result, result.binding)) + " of the critical path";
  if (baseline != nullptr && baseline->result().binding != result.binding) {
    figure.change = "was " + std::string(describe(baseline->result().binding));
    figure.direction = Change::other;
  }
  ground_on_times(outcome, figure);
  figure.provenance = "simulated: the chain of waits that ends the step, walked back to its start";
  return figure;
}

// Of steps with as many tokens: their time. Of others the tokens in a second: a longer step may well be the better one.
void compare_step(const Result& result, const Result& baseline, ShownFigure& figure) {
  const double before = to_seconds(baseline.step_time), now = to_seconds(result.step_time);
  if (before <= 0 || now <= 0) return;
  const double rate_before = baseline.tokens_per_second, rate = result.tokens_per_second;
  const bool has_rates = rate_before > 0 && rate > 0;
  const bool same_size = !has_rates || std::abs(rate * now / (rate_before * before) - 1) < 1e-9;
  const double gain = same_size ? before / now - 1 : rate / rate_before - 1;
  const double ratio = (same_size ? now / before - 1 : gain) * 100;
  const int digits = std::abs(ratio) < 10 ? 1 : 0;  // short: a narrow cell holds it
  figure.change = same_size ? fmt::format("{}{} {:+.{}f} %", now < before ? "-" : "+",
                                          short_duration(std::abs(now - before)), ratio, digits)
                            : fmt::format("{:+.0f} tokens/s {:+.{}f} %", rate - rate_before, ratio, digits);
  figure.direction = gain == 0 ? Change::none : gain > 0 ? Change::better : Change::worse;
  if (gain == 0) figure.change = "no change";
}

ShownFigure step_time(const Outcome& outcome, const Outcome* baseline) {
  const Result& result = outcome.result();
  ShownFigure figure{.id = "step-time", .title = result.may_fit() ? "step time" : "step time, if it fitted"};
  if (!has_times(outcome)) {
    figure.value = "not known";
    figure.provenance = no_times;
    return figure;
  }
  figure.value = step_words(result.step_time);
  if (result.tokens_per_second > 0) figure.detail = grouped_text(std::llround(result.tokens_per_second)) + " tokens/s";
  if (result.mfu > 0) figure.detail += fmt::format(", MFU {}", short_percent(result.mfu));
  if (const FigureRange& range = result.step_time_range; range.known) {
    const double seconds = to_seconds(result.step_time);
    figure.detail += fmt::format("{}80 %: {} to {}", figure.detail.empty() ? "" : "; ",
                                 short_duration(seconds * range.low), short_duration(seconds * range.high));
  }
  if (baseline != nullptr && has_times(*baseline)) compare_step(result, baseline->result(), figure);
  ground_on_times(outcome, figure);
  figure.provenance = rests_on(
      outcome,
      outcome.loaded.scenario.trace.empty() ? "simulated from modelled kernel times" : "replayed from a capture",
      {"gpu.memory_bandwidth", "gpu.launch_to_start", "gpu.kernel_gap", "host.dispatch_cost", "trace."});
  figure.provenance += "; 80 % of steps like it: " + step_range_words(result);
  return figure;
}

ShownFigure memory_peak(const Outcome& outcome, const Outcome* baseline) {
  const MemoryResult& memory = outcome.result().memory;
  ShownFigure figure{.id = "memory", .title = "peak memory"};
  if (!memory.known) {
    figure.value = "not known";
    figure.provenance = "the trace has no usable memory events";
    return figure;
  }
  figure.value = short_size(memory.peak_reserved) + " reserved";
  figure.short_value = short_size(memory.peak_reserved);
  figure.detail = short_size(memory.peak_allocated) + " allocated";
  if (memory.capacity > Bytes(0)) {
    figure.short_value = fmt::format("{} of {}", gib_words(memory.peak_reserved), short_size(memory.capacity));
    figure.detail += ", of " + short_size(memory.capacity);
  }
  if (baseline != nullptr && baseline->result().memory.known) {
    const Bytes more = memory.peak_reserved - baseline->result().memory.peak_reserved;
    figure.change = more == Bytes(0) ? "no change" : (more < Bytes(0) ? "" : "+") + short_size(more);
    figure.direction = more == Bytes(0) ? Change::none : more < Bytes(0) ? Change::better : Change::worse;
  }
  ground_on(outcome, record_or_model(outcome), {}, figure);
  figure.provenance = rests_on(outcome, "simulated: the step's requests through the " + memory.allocator + " allocator",
                               {"gpu.context_memory"});
  figure.provenance += "; 80 % of its peaks: " + peak_range_words(outcome.result());
  return figure;
}

ShownFigure pcie(const Outcome& outcome, const Outcome* baseline) {
  ShownFigure figure{.id = "pcie", .title = "PCIe busy"};
  const auto busy = pcie_busy(outcome.result());
  figure.value = !busy ? "not used" : *busy < 0.0005 ? "under 0.1 %" : short_percent(*busy);
  if (busy) figure.detail = "busiest slot and direction";
  const auto before = baseline != nullptr ? pcie_busy(baseline->result()) : std::nullopt;
  if (baseline != nullptr && (busy || before)) {
    const double points = (busy.value_or(0) - before.value_or(0)) * 100;
    if (std::abs(points) >= 0.05) figure.change = fmt::format("{:+.1f} points", points);
    figure.direction = std::abs(points) < 0.05 ? Change::none : Change::other;
  }
  if (busy) ground_on(outcome, Ground::known, {"gpu.pcie"}, figure);
  figure.provenance =
      "simulated: bytes over the link's capacity and the replayed time; lanes and generation of the profile";
  return figure;
}

ShownFigure ssd_life(const Outcome& outcome, const Outcome* baseline) {
  ShownFigure figure{.id = "ssd-life", .title = "SSD life"};
  const DriveTraffic* drive = shortest_lived(outcome.result());
  if (drive == nullptr) {
    const bool writes = std::any_of(outcome.result().drives.begin(), outcome.result().drives.end(),
                                    [](const DriveTraffic& one) { return one.written > Bytes(0); });
    figure.value = writes ? "unknown" : "nothing is written";
    figure.detail = writes ? "the drives are not rated" : "no drive wear";
    figure.provenance = "no drive's endurance is asked for";
    return figure;
  }
  figure.value = fmt::format("{:.3g} years", drive->life->years);
  figure.detail = fmt::format("{:.2g} as rated, {:.2g} at most; {} x {} per machine", drive->life->low_years,
                              drive->life->high_years, drive->drives, drive->model);
  figure.is_alarm = !outcome.result().drives_refuse.empty() || drive->life->years < 1;
  const DriveTraffic* before = baseline != nullptr ? shortest_lived(baseline->result()) : nullptr;
  if (before != nullptr) {
    const double more = drive->life->years - before->life->years;
    figure.change = fmt::format("{:+.3g} years", more);
    figure.direction = more == 0 ? Change::none : more > 0 ? Change::better : Change::worse;
  }
  figure.ground = drive->life->assumptions.empty() ? Ground::known : Ground::assumed;
  figure.provenance = "endurance: " + drive->life->basis;
  for (const std::string& assumption : drive->life->assumptions) figure.provenance += "; assumed: " + assumption;
  return figure;
}

}  // namespace

// A minus is one, not a hyphen.
static std::string with_minus(std::string text) {
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 1))
    if (at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0)
      text.replace(at, 1, "\u2212");
  return text;
}

std::string_view ground_mark(Ground ground) {
  switch (ground) {
    case Ground::measured:
      return "\u25cf";
    case Ground::known:
      return "\u25d0";
    case Ground::assumed:
      return "\u25cc";
    case Ground::unknown:
      break;
  }
  return "";
}

std::string_view ground_words(Ground ground) {
  switch (ground) {
    case Ground::measured:
      return "rests on measurements";
    case Ground::known:
      return "rests on datasheets, or on models fitted to measurements";
    case Ground::assumed:
      return "rests on an assumption";
    case Ground::unknown:
      break;
  }
  return "";
}

std::vector<ShownFigure> shown_figures(const Outcome& outcome, const Outcome* baseline) {
  std::vector<ShownFigure> figures = {memory_verdict(outcome, baseline), binding(outcome, baseline),
                                      step_time(outcome, baseline),      memory_peak(outcome, baseline),
                                      pcie(outcome, baseline),           ssd_life(outcome, baseline)};
  for (ShownFigure& figure : figures) figure.change = with_minus(std::move(figure.change));
  return figures;
}

}  // namespace spillway::gui
