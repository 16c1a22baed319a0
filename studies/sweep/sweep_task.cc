#include "studies/sweep/sweep_task.h"

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "base/version.h"
#include "planners/offload/drive_life.h"
#include "scenario/brief_run.h"
#include "scenario/scenario.h"
#include "scenario/scenario_run.h"
#include "studies/sweep/sweep_looks.h"
#include "studies/sweep/sweep_seeds.h"

namespace spillway::studies {
namespace {

constexpr int record_version = 12;  // of what records hold and how points are estimated

// Figures are taken out so that like reasons count together.
std::string without_figures(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c < '0' || c > '9')
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  }
  return result;
}

constexpr double below_zero = -std::numeric_limits<double>::infinity();

// Why points are out: how many, and one of them.
void describe(std::map<std::string, SweepReason>& reasons, std::string_view key, FieldVisitor& visitor) {
  fields::map(visitor, {.key = key, .required = true, .as_tuple = true, .even_empty = true}, reasons,
              [&](SweepReason& reason) {
                fields::integer(visitor, {.key = "points"}, reason.points);
                fields::integer(visitor, {.key = "example"}, reason.example);
              });
}

// Infinity is null in JSON.
void describe(SweepValues& values, const FieldInfo& info, FieldVisitor& visitor) {
  std::vector<double> list(values.begin(), values.end());
  visitor.numbers({.key = info.key, .min = below_zero, .least_items = values.size(), .or_null = true}, list);
  if (list.size() == values.size())
    std::copy(list.begin(), list.end(), values.begin());
  else
    visitor.refuse(info, "another number of objectives", "make the store anew");
}

// A record, with the key it is stored under.
struct BlockRecord {
  std::string key;
  SweepBlock block;
};
struct ReplayRecord {
  std::string key;
  SweepSettings settings;
  SweepReplay row;
};

void describe(BlockRecord& record, FieldVisitor& visitor) {
  SweepBlock& block = record.block;
  fields::text(visitor, {.key = "key", .required = true}, record.key);
  fields::integer(visitor, {.key = "screened", .required = true}, block.screened);
  fields::integer(visitor, {.key = "unable", .required = true}, block.unable);
  fields::integer(visitor, {.key = "beaten", .required = true}, block.beaten);
  describe(block.left_out, "left_out", visitor);
  describe(block.invalid, "invalid", visitor);
  fields::list(visitor, {.key = "sure", .required = true, .as_value = true, .even_empty = true}, block.sure,
               [&](SweepValues& values) { describe(values, {.key = ""}, visitor); });
  fields::list(visitor, {.key = "remaining", .required = true, .as_tuple = true, .even_empty = true}, block.remaining,
               [&](SweepRemaining& one) {
                 fields::integer(visitor, {.key = "number"}, one.number);
                 fields::number(visitor, {.key = "step_seconds"}, one.step_seconds);
                 fields::number(visitor, {.key = "peak_bytes"}, one.peak_bytes);
                 fields::flag(visitor, {.key = "is_bound"}, one.is_bound);
                 describe(one.best, {.key = "best"}, visitor);
                 fields::number(visitor, {.key = "likely_seconds"}, one.likely_seconds);
                 fields::number(visitor, {.key = "likely_bytes"}, one.likely_bytes);
                 fields::number(visitor, {.key = "likely_use"}, one.likely_use);
               });
}

void describe(FigureRange& range, std::string_view key, FieldVisitor& visitor) {
  fields::group(visitor, {.key = key, .required = true}, [&] {
    fields::flag(visitor, {.key = "known", .required = true}, range.known);
    fields::number(visitor, {.key = "low", .required = true}, range.low);
    fields::number(visitor, {.key = "high", .required = true}, range.high);
    fields::text(visitor, {.key = "basis", .required = true, .even_empty = true}, range.basis);
  });
}

void describe(ReplayRecord& record, FieldVisitor& visitor) {
  using fields::number;
  SweepMetrics& metrics = record.row.replayed;
  fields::text(visitor, {.key = "key", .required = true}, record.key);
  fields::map(visitor, {.key = "settings", .even_empty = true}, record.settings, [&](std::string& value) {
    fields::text(visitor, {.key = "", .required = true, .even_empty = true}, value);
  });
  fields::text(visitor, {.key = "failure", .required = true, .even_empty = true}, record.row.failure);
  std::optional<bool> fits;
  if (const auto json = fits_json(record.row.verdict); !json.is_null()) fits = json.get<bool>();
  visitor.flag({.key = "fits", .required = true, .or_null = true}, fits);
  std::string verdict(to_string(record.row.verdict));
  fields::text(visitor, {.key = "verdict", .required = true}, verdict);
  record.row.verdict = verdict_of_json(fits ? nlohmann::ordered_json(*fits) : nlohmann::ordered_json(), verdict);
  fields::text(visitor, {.key = "why_unknown"}, record.row.why_unknown);
  std::optional<bool> in_doubt;  // written where it is
  if (record.row.is_in_doubt) in_doubt = true;
  visitor.flag({.key = "is_in_doubt"}, in_doubt);
  record.row.is_in_doubt = in_doubt.value_or(false);
  number(visitor, {.key = "step_seconds", .required = true}, metrics.step_seconds);
  describe(record.row.step_time_range, "step_time_range", visitor);
  number(visitor, {.key = "peak_allocated_bytes", .required = true}, metrics.allocated_bytes);
  number(visitor, {.key = "peak_reserved_bytes", .required = true}, metrics.peak_bytes);
  describe(record.row.peak_range, "peak_range", visitor);
  number(visitor, {.key = "capacity_bytes"}, record.row.capacity_bytes);
  number(visitor, {.key = "gpus", .required = true}, metrics.gpus);
  number(visitor, {.key = "tokens_per_step", .required = true}, metrics.tokens_per_step);
  number(visitor, {.key = "busy_seconds", .min = below_zero, .required = true}, metrics.busy_seconds);
  number(visitor, {.key = "usd_per_hour", .required = true}, metrics.usd_per_hour);
  number(visitor, {.key = "rest_watts", .min = below_zero, .required = true}, metrics.rest_watts);
  number(visitor, {.key = "busy_watts", .min = below_zero, .required = true}, metrics.busy_watts);
  number(visitor, {.key = "life_years", .required = true, .or_null = true}, metrics.life_years);
  number(visitor, {.key = "life_low_years", .required = true, .or_null = true}, metrics.rated_years);
  fields::text(visitor, {.key = "binding_resource", .required = true, .even_empty = true}, record.row.binding);
  number(visitor, {.key = "mfu", .required = true}, record.row.mfu);
  fields::text(visitor, {.key = "fingerprint", .required = true, .even_empty = true}, record.row.fingerprint);
}

// As the store has it: one line.
template <class Record>
std::string line_of(Record record) {
  FieldWriter writer;
  describe(record, writer);
  return writer.line();
}

template <class Record>
Record record_of(const std::string& line) {
  Record record;
  read_document(
      line, "", [&](FieldVisitor& visitor) { describe(record, visitor); }, "make the store anew");
  return record;
}

bool asks_life(const SweepFile& file) {
  return file.least_life_years ||
         std::find(file.objectives.begin(), file.objectives.end(), SweepObjective::ssd_life) != file.objectives.end();
}

}  // namespace

SweepBlock parse_sweep_block(const std::string& record) { return record_of<BlockRecord>(record).block; }

SweepReplay parse_sweep_replay(const std::string& record) { return record_of<ReplayRecord>(record).row; }

KeptReplay SweepWorker::kept_point(const Scenario& scenario, HardwareProfile& hardware) {
  if (scenario.model.empty())
    return kept_brief_replay(file_.replays_kept, scenario, Detail::times, [&] {
      BriefRun brief = run_briefly(scenario, Detail::times);
      hardware = brief.loaded.hardware;
      return brief;
    });
  const auto own = file_.models.find(scenario.model);
  const auto machine = machines_.of(scenario);
  hardware = machine->hardware;
  return kept_brief_replay(file_.replays_kept, scenario, Detail::times, [&] {
    return run_briefly(scenario, own == file_.models.end() ? find_model(scenario.model) : own->second, *machine,
                       Detail::times);
  });
}

SweepReplay SweepWorker::replay(const SweepSettings& settings) {
  SweepReplay row;
  std::vector<std::string> assignments;
  for (const auto& [name, value] : settings) assignments.push_back(name + "=" + value);
  try {
    const Scenario scenario = parse_scenario(file_.base, file_.path, file_.folder, assignments);
    HardwareProfile hardware;
    const KeptReplay replay = kept_point(scenario, hardware);
    const Result& result = replay.result;
    row.replayed.step_seconds = to_seconds(result.step_time);
    row.step_time_range = result.step_time_range;
    row.peak_range = result.peak_range;
    row.replayed.allocated_bytes = static_cast<double>(result.memory.peak_allocated.count());
    row.replayed.peak_bytes = static_cast<double>(result.memory.peak_reserved.count());
    row.replayed.gpus = static_cast<double>(std::max<std::int64_t>(1, replay.gpus));
    row.replayed.tokens_per_step = static_cast<double>(replay.tokens_per_step);
    row.replayed.busy_seconds = row.replayed.step_seconds * (1 - result.bubble.value_or(0));
    set_rates(row.replayed, gpu_rates(hardware));
    row.replayed.life_years = shortest_life_years(result);
    row.replayed.rated_years = shortest_rated_years(result);
    row.verdict = result.verdict();
    if (row.verdict == Verdict::unknown) row.why_unknown = result.why_unknown();
    row.is_in_doubt = result.is_in_doubt();
    row.capacity_bytes = static_cast<double>(result.memory.capacity.count());
    row.binding = to_string(result.binding);
    row.mfu = result.mfu;
    if (const DriveTraffic* const unrated = unrated_writes(result); unrated != nullptr && asks_life(file_))
      row.failure = told_unrated(*unrated);
    row.fingerprint = fmt::format("{:016x}", result.fingerprint);
  } catch (const InputError& error) {
    row.failure = error.cause();
  }
  return row;
}

bool meets_requirements(const SweepFile& file, const SweepReplay& row, Verdict worst) {
  if (!row.failure.empty() || (file.must_fit && row.verdict > worst)) return false;
  if (file.most_step_seconds && row.replayed.step_seconds > *file.most_step_seconds) return false;
  if (file.most_gpus && row.replayed.gpus > *file.most_gpus) return false;
  return !file.least_life_years || row.replayed.rated_years >= *file.least_life_years;
}

SweepValues objective_values(const SweepFile& file, const SweepMetrics& metrics) {
  SweepValues values{};
  for (std::size_t i = 0; i < file.objectives.size(); ++i) values[i] = metrics.value(file.objectives[i]);
  return values;
}

std::string sweep_key(const SweepFile& file, const SweepTask& task) {
  return fmt::format("{}-{}-{:016x}-{}-{}", program_version(), record_version, file.digest,
                     task.is_replay ? "replay" : "block", task.number);
}

std::string SweepWorker::record(const SweepTask& task) {
  const std::string key = sweep_key(file_, task);
  if (!task.is_replay) return line_of(BlockRecord{key, screen_block(task.number)});
  SweepSpace space(file_);
  const SweepSettings settings = space.settings(space.at(task.number));
  return line_of(ReplayRecord{key, settings, replay(settings)});
}

// Isolated: a thread that waits for a part of it must not begin another block meanwhile, which waits for the whole.
void SweepWorker::prepare() {
  oneapi::tbb::this_task_arena::isolate(
      [&] { std::call_once(prepared_, [&] { seeds_ = sweep_seeds(file_, screen_); }); });
}

SweepBlock SweepWorker::screen_block(std::int64_t number) {
  prepare();
  SweepSpace space(file_);
  SweepLooks looks(file_, space, screen_);
  SweepBlock block;
  SweepFront sure = seeds_;
  std::vector<std::pair<std::int64_t, SweepEstimate*>> remaining;
  const auto take = [&](std::int64_t point, SweepEstimate& estimate) {
    if (!estimate.invalid.empty()) {
      const auto [reason, is_new] = block.invalid.emplace(without_figures(estimate.invalid), SweepReason{0, point});
      ++reason->second.points;
      reason->second.example = std::min(reason->second.example, point);
      return;
    }
    ++block.screened;
    if (!estimate.may_do(file_)) {
      ++block.unable;
      return;
    }
    // The allocator is run for those alone that may still be ahead.
    if (sure.beats(estimate.best(file_))) {
      ++block.beaten;
      return;
    }
    if (estimate.does(file_) && !sure.beats(estimate.worst(file_))) {
      screen_.add_cached(estimate, space.settings(space.at(point)));
      if (estimate.does(file_)) sure.add(estimate.worst(file_));
    }
    remaining.emplace_back(point, &estimate);
  };
  std::vector<std::pair<SweepValues, std::int64_t>> later;  // known by lower bounds alone
  const std::int64_t until = std::min(space.size(), (number + 1) * sweep_block_points);
  std::int64_t at = number * sweep_block_points;
  while (const SweepPoint* const next = space.next(at, until)) {
    const std::int64_t point = next->number;
    at = point + 1;
    SweepEstimate& estimate = looks.first(point);
    if (estimate.is_least && estimate.may_do(file_))
      later.emplace_back(estimate.best(file_), point);
    else
      take(point, estimate);
  }
  for (const auto& [reason, skipped] : space.take_skipped()) block.left_out[reason] = skipped;
  std::sort(later.begin(), later.end());
  for (const auto& [best, point] : later) {
    if (sure.beats(best)) {
      ++block.screened;
      ++block.beaten;
    } else {
      take(point, looks.second(point));
    }
  }
  std::sort(remaining.begin(), remaining.end());
  for (const auto& [point, estimate] : remaining) {
    const bool is_ahead = !sure.beats(estimate->best(file_));
    if (is_ahead) screen_.add_cached(*estimate, space.settings(space.at(point)));
    if (is_ahead && !sure.beats(estimate->best(file_)))
      block.remaining.push_back({point, estimate->metrics.step_seconds, estimate->metrics.peak_bytes,
                                 estimate->is_bound, estimate->best(file_), estimate->likely_seconds,
                                 estimate->likely_bytes,
                                 estimate->capacity_bytes > 0 ? estimate->likely_bytes / estimate->capacity_bytes : 0});
    else
      ++block.beaten;
  }
  block.sure = sure.points();
  return block;
}

}  // namespace spillway::studies
