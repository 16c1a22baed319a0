#include "studies/sweep/sweep_task.h"

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <charconv>
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
#include "studies/sweep/sweep_looks.h"
#include "studies/sweep/sweep_seeds.h"

namespace spillway::studies {
namespace {

constexpr int record_version = 14;  // of what records hold and how points are estimated

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
    visitor.refuse(info, "another number of objectives", "make the store again");
}

std::string hex_of(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  return text;
}
// As far as it is that.
std::string bytes_of_hex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    unsigned char byte = 0;
    if (std::from_chars(text.data(), text.data() + 2, byte, 16).ptr != text.data() + 2) break;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

// A record, with the key it is stored under.
struct BlockRecord {
  std::string key;
  SweepBlock block;
};
struct ReplayRecord {
  std::string key;
  Row row;
};

void describe(BlockRecord& record, FieldVisitor& visitor) {
  SweepBlock& block = record.block;
  fields::text(visitor, {.key = "key", .required = true}, record.key);
  fields::integer(visitor, {.key = "screened", .required = true}, block.screened);
  fields::integer(visitor, {.key = "unable", .required = true}, block.unable);
  fields::integer(visitor, {.key = "beaten", .required = true}, block.beaten);
  fields::integer(visitor, {.key = "nearest", .min = -1}, block.nearest.number);
  fields::number(visitor, {.key = "nearest_share"}, block.nearest.share);
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

void describe(ReplayRecord& record, FieldVisitor& visitor) {
  Row& row = record.row;
  const auto number = [&](std::string_view key, double& value) {
    fields::number(visitor, {.key = key, .min = below_zero, .required = true}, value);
  };
  fields::text(visitor, {.key = "key", .required = true}, record.key);
  fields::text(visitor, {.key = "error", .required = true, .even_empty = true}, row.error);
  number("usd_per_hour", row.rates.usd_per_hour);
  number("rest_watts", row.rates.rest_watts);
  number("busy_watts", row.rates.busy_watts);
  const FieldInfo replay{.key = "replay", .required = true, .even_empty = true};  // hexadecimal; none of an error
  std::string text = row.ran() ? hex_of(record_of(row)) : "";
  fields::text(visitor, replay, text);
  row.is_done = true;
  if (std::optional<KeptReplay> kept = replay_of(bytes_of_hex(text)))
    static_cast<KeptReplay&>(row) = std::move(*kept);
  else if (row.error.empty())
    visitor.refuse(replay, "is no replay", "make the store again");
}

// As the store has it: one line.
template <class Record>
std::string line_of(Record record) {
  FieldWriter writer;
  describe(record, writer);
  return writer.line();
}

template <class Record>
Record parsed_record(const std::string& line) {
  Record record;
  read_document(
      line, "", [&](FieldVisitor& visitor) { describe(record, visitor); }, "make the store again");
  return record;
}

bool asks_life(const SweepFile& file) {
  return file.constraints.least_life_years > 0 ||
         std::find(file.objectives.begin(), file.objectives.end(), Objective::ssd_life) != file.objectives.end();
}

}  // namespace

SweepBlock parse_sweep_block(const std::string& record) { return parsed_record<BlockRecord>(record).block; }

Row parse_sweep_replay(const std::string& record) { return parsed_record<ReplayRecord>(record).row; }

Row SweepWorker::replay(std::vector<std::string> edits) {
  Row row = evaluate_one(BaseScenario{file_.base, file_.path, file_.folder}, {"", std::move(edits)}, machines_,
                         {.store = file_.replays_kept, .models = &file_.models});
  if (const DriveTraffic* const unrated = unrated_writes(row.result); unrated != nullptr && asks_life(file_))
    row.error = told_unrated(*unrated);
  return row;
}

bool meets_requirements(const SweepFile& file, const Row& row, Verdict worst) {
  return row.ran() && (!file.must_fit || row.result.verdict() <= worst) && missed(file.constraints, row).empty();
}

SweepValues objective_values(const SweepFile& file, const Figures& figures) {
  SweepValues values{};
  for (std::size_t i = 0; i < file.objectives.size(); ++i) values[i] = figures.value(file.objectives[i]);
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
  return line_of(ReplayRecord{key, replay(edits_of(space.settings(space.at(task.number))))});
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
  std::vector<std::pair<double, std::int64_t>> bounds;  // of points that can't do: by what they lack at least
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
      bounds.emplace_back(estimate.lacks_share(file_, 0), point);
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
  // Where nothing may do, the nearest is sought: the likeliest first, as long as one may be nearer.
  constexpr std::size_t most_sought = 64;
  std::sort(bounds.begin(), bounds.end());
  if (!block.remaining.empty() || !block.sure.empty()) bounds.clear();
  for (std::size_t i = 0; i < std::min(most_sought, bounds.size()); ++i) {
    const auto [least, point] = bounds[i];
    if (block.nearest.number >= 0 && least >= block.nearest.share) break;
    SweepEstimate& estimate = looks.second(point);
    screen_.add_cached(estimate, space.settings(space.at(point)));
    block.nearest.take({point, estimate.lacks_share(file_, 0)});
  }
  return block;
}

}  // namespace spillway::studies
