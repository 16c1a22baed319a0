#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "base/short_text.h"
#include "planners/technique/technique_table.h"
#include "sim/replay/fidelity.h"
#include "studies/answer/answer.h"

namespace spillway::studies {
namespace {

std::string gib_digits(Bytes bytes) { return three_digits(in_gib(bytes)); }

// Traffic of each set of drives in a step, alike ones once, and the lifetime of its drives.
std::vector<std::string> drive_words(const Result& result) {
  // Sets that do alike are one line, with the first one's name.
  struct Line {
    std::string name, words;
    std::size_t alike = 0;
  };
  std::vector<Line> traffic;
  std::vector<std::string> lives;
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, result.steps.size()));
  for (const DriveTraffic& drive : result.drives) {
    std::string words = fmt::format("{} written and {} read a step by {} drive{} per machine, of {} GPU{}{}",
                                    short_size(drive.written / steps), short_size(drive.read / steps), drive.drives,
                                    drive.drives == 1 ? "" : "s", drive.gpus, drive.gpus == 1 ? "" : "s",
                                    drive.cache_was_full ? ", some of it at their steady rate" : "");
    const auto same = std::find_if(traffic.begin(), traffic.end(), [&](const Line& one) { return one.words == words; });
    if (same != traffic.end())
      ++same->alike;
    else
      traffic.push_back({drive.name, std::move(words), 0});
  }
  for (const DriveTraffic& drive : result.drives) {
    std::string life;
    if (drive.life && std::isfinite(drive.life->years))
      life = fmt::format("{:.3g} years expected of {} ({:.3g} by its rating, to {:.3g}): {}", drive.life->years,
                         drive.model, drive.life->low_years, drive.life->high_years, drive.life->basis);
    else if (!drive.life && drive.written > Bytes(0))
      life = fmt::format("unknown: {} is not rated", drive.model.empty() ? drive.set : drive.model);
    if (!life.empty() && std::find(lives.begin(), lives.end(), life) == lives.end()) lives.push_back(std::move(life));
  }
  std::vector<std::string> all;
  for (const Line& line : traffic)
    all.push_back(line.name + (line.alike > 0 ? fmt::format(" and {} alike, each", line.alike) : "") + ": " +
                  line.words);
  for (const std::string& life : lives) all.push_back("life " + life);
  return all;
}

std::string step_words(const Result& result) {
  std::string step = short_duration(to_seconds(result.step_time));
  if (result.steps.size() > 2) step += fmt::format(", median of {} steps", result.steps.size() - 1);
  if (!result.may_fit()) step += " if it fitted";
  if (result.tokens_per_second > 0)
    step += fmt::format("; {} tokens/s", grouped_text(std::llround(result.tokens_per_second)));
  return step;
}

std::string utilisation_words(const Result& result) {
  std::vector<std::string> words;
  if (result.mfu > 0) words.push_back(percent_text(result.mfu) + " MFU");
  if (result.bubble && result.ranks.empty()) words.push_back("idle " + short_percent(*result.bubble));
  if (!result.bubble) words.emplace_back("idle not known: no work of a GPU");
  if (result.power)
    words.push_back(fmt::format("{:.0f} of {:.0f} W, {} of its clock", result.power->watts, result.power->limit_watts,
                                short_percent(result.power->clock_share)));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string binding_words_of(const Result& result) {
  std::vector<std::string> words;
  for (const AnswerShare& share : binding_shares(result))
    words.push_back(share.name + " " + short_percent(share.fraction));
  return words.empty() ? "nothing is simulated" : fmt::format("{}", fmt::join(words, ", "));
}

// A technique's word as people read it; of none the word.
std::string said(std::string_view key, const std::string& word) {
  const Technique* const row = technique_said(key, word);
  if (row == nullptr) return word;
  return key == allocator_key && !row->ways.empty() ? row->ways.front().about : row->title;
}

std::string memory_words(const Result& result) {
  const MemoryResult& memory = result.memory;
  std::string words = gib_digits(memory.peak_allocated) + " GiB at the peak";
  if (!memory.phase.empty()) words += fmt::format(" (the {})", memory.phase);
  if (memory.on_host) words += ", of host memory";
  if (!memory.on_host)
    words += fmt::format(", {} reserved ({})", gib_digits(memory.peak_reserved), said(allocator_key, memory.allocator));
  if (memory.capacity > Bytes(0)) words += fmt::format(" of {}", gib_digits(memory.capacity));
  if (const Bytes free = result.reserve.bytes(); free > Bytes(0))
    words += fmt::format("; {} kept free", gib_digits(free));
  return words;
}

std::string offload_words(const OffloadResult& offload, bool by_all) {
  return fmt::format("{}: {} GiB stored, {} read back, {} forwarded, {} kept{}{}", said(offload_key, offload.technique),
                     gib_digits(offload.stored), gib_digits(offload.loaded), gib_digits(offload.forwarded),
                     gib_digits(offload.kept), by_all ? ", by all stages" : "",
                     offload.settled ? "" : "; decisions about loads did not settle; the last simulation is shown");
}

}  // namespace

std::vector<AnswerPhase> phases_of(const Result& result) {
  const auto longest = std::max_element(result.phases.begin(), result.phases.end(),
                                        [](const auto& a, const auto& b) { return a.time < b.time; });
  std::vector<AnswerPhase> phases;
  for (auto phase = result.phases.begin(); phase != result.phases.end(); ++phase)
    phases.push_back({phase->name,
                      fmt::format("{}{}, {} held: {}; {}", short_duration(to_seconds(phase->time)),
                                  phase == longest ? ", the longest" : "", short_size(phase->peak),
                                  to_string(phase->verdict), phase->basis),
                      phase->verdict});
  return phases;
}

std::vector<AnswerFact> facts_of(const Result& result) {
  std::vector<AnswerFact> facts;
  const auto add = [&facts](const std::string& label, std::string words) {
    facts.push_back({label, std::move(words)});
  };
  if (!result.machine.empty())
    add("machine", result.machine + (result.machine_assumed.empty() ? "" : "; assumed: ") +
                       fmt::format("{}", fmt::join(result.machine_assumed, ", ")));
  add("step", step_words(result));
  add("80 %", "of steps like it: " + range_words(result));
  if (result.fidelity) {  // of a recorded step: how the replay compares with it
    const Fidelity& found = *result.fidelity;
    add("recorded", fmt::format("{}, {} as replayed", short_duration(to_seconds(found.recorded)),
                                signed_percent_text(found.error, 2)));
    if (found.unprofiled > Picos(0))
      add("unprofiled", fmt::format("{} measured, {} as replayed", short_duration(to_seconds(found.unprofiled)),
                                    signed_percent_text(found.unprofiled_error, 1)));
  }
  if (std::string words = utilisation_words(result); !words.empty()) add("GPU", std::move(words));
  add("limited by", binding_words_of(result));
  for (AnswerPhase& phase : phases_of(result)) add(phase.name, std::move(phase.words));
  if (result.memory.known) add("memory", memory_words(result));
  if (result.memory.known && result.host_memory.known && result.host_memory.peak > Bytes(0))
    add("host", fmt::format("{} of {} GiB held for the GPUs of a machine", gib_digits(result.host_memory.peak),
                            gib_digits(result.host_memory.capacity)));
  for (const PhaseResult& one : result.between_steps)
    add(one.name, fmt::format("{} of {}: {}; {}", short_size(one.peak), one.on_host ? "host memory" : "a GPU's memory",
                              to_string(one.verdict), one.basis));
  if (result.evaluation)
    add("evaluation", fmt::format("{} every {} steps, {} of the time; {} tokens/s trained with it",
                                  short_duration(to_seconds(result.evaluation->time)), result.evaluation->every_steps,
                                  short_percent(result.evaluation->time_share),
                                  grouped_text(std::llround(result.evaluation->tokens_per_second))));
  if (result.offload) add("offload", offload_words(*result.offload, result.ranks.size() > 1));
  for (std::string& words : drive_words(result)) add("drives", std::move(words));
  return facts;
}

}  // namespace spillway::studies
