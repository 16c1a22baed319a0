#include "planners/sweep/sweep_run.h"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planners/offload/drive_life.h"
#include "planners/scenario.h"
#include "planners/scenario_run.h"
#include "planners/sweep/sweep_front.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t block_points = 1 << 15;
constexpr std::size_t wave_points = 32;  // replays between two looks at what remains
constexpr int store_version = 1;         // of what records hold and how points are estimated

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

struct Remaining {
  std::int64_t number = 0;
  double step_seconds = 0, peak_bytes = 0;
  SweepValues best{};
};

// What the screen found in a block of points.
struct Block {
  std::map<std::string, SweepReason> left_out, invalid;
  std::int64_t screened = 0, unable = 0, beaten = 0;
  std::vector<SweepValues> sure;  // front of the worst that points turn out which do what is required for sure
  std::vector<Remaining> remaining;
};

Json json_of(const std::map<std::string, SweepReason>& reasons) {
  Json json = Json::object();
  for (const auto& [reason, count] : reasons) json[reason] = {count.points, count.example};
  return json;
}
std::map<std::string, SweepReason> reasons_of(const Json& json) {
  std::map<std::string, SweepReason> reasons;
  for (const auto& [reason, count] : json.items())
    reasons[reason] = {count.at(0).get<std::int64_t>(), count.at(1).get<std::int64_t>()};
  return reasons;
}

// Infinity is null in JSON.
Json json_of(const SweepValues& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(std::isfinite(value) ? Json(value) : Json());
  return json;
}
SweepValues values_of(const Json& json) {
  SweepValues values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = json.at(i).is_null() ? std::numeric_limits<double>::infinity() : json.at(i).get<double>();
  return values;
}

std::string text_of(const Block& block, const std::string& key) {
  Json json = {{"key", key},
               {"screened", block.screened},
               {"unable", block.unable},
               {"beaten", block.beaten},
               {"left_out", json_of(block.left_out)},
               {"invalid", json_of(block.invalid)},
               {"sure", Json::array()},
               {"remaining", Json::array()}};
  for (const SweepValues& values : block.sure) json["sure"].push_back(json_of(values));
  for (const Remaining& one : block.remaining)
    json["remaining"].push_back({one.number, one.step_seconds, one.peak_bytes, json_of(one.best)});
  return json.dump();
}

Block block_of(const std::string& text) {
  const Json json = Json::parse(text);
  Block block;
  block.screened = json.at("screened").get<std::int64_t>();
  block.unable = json.at("unable").get<std::int64_t>();
  block.beaten = json.at("beaten").get<std::int64_t>();
  block.left_out = reasons_of(json.at("left_out"));
  block.invalid = reasons_of(json.at("invalid"));
  for (const Json& values : json.at("sure")) block.sure.push_back(values_of(values));
  for (const Json& one : json.at("remaining"))
    block.remaining.push_back(
        {one.at(0).get<std::int64_t>(), one.at(1).get<double>(), one.at(2).get<double>(), values_of(one.at(3))});
  return block;
}

void add(std::map<std::string, SweepReason>& sum, const std::map<std::string, SweepReason>& more) {
  for (const auto& [reason, count] : more) {
    const auto [at, is_new] = sum.emplace(reason, count);
    if (is_new) continue;
    at->second.points += count.points;
    at->second.example = std::min(at->second.example, count.example);
  }
}

SweepError error_of(std::vector<double> errors) {
  SweepError error;
  if (errors.empty()) return error;
  std::sort(errors.begin(), errors.end());
  const std::size_t last = errors.size() - 1;
  return {errors.size(), errors[last / 2], errors[last * 9 / 10], errors[last]};
}

class Sweep {
 public:
  Sweep(const SweepFile& file, const SweepOptions& options, SweepStore& store)
      : file_(file), options_(options), store_(store), screen_(file), sure_(file.objectives.size()) {
    outcome_.points = file.points();
    prefix_ = fmt::format("{}-{}-{:016x}", SPILLWAY_VERSION, store_version, file.digest);
  }

  SweepOutcome run() {
    screen_all();
    if (!stopped_) replay_waves();
    finish();
    return std::move(outcome_);
  }

 private:
  // ---- screen ----

  [[nodiscard]] bool goes_on(const std::string& what, std::int64_t done, std::int64_t all) {
    const std::lock_guard lock(mutex_);
    if (!stopped_ && options_.progress && !options_.progress(what, done, all)) stopped_ = true;
    return !stopped_;
  }

  void screen_all() {
    const std::int64_t blocks = (outcome_.points + block_points - 1) / block_points;
    std::vector<std::int64_t> mine;
    for (std::int64_t b = options_.shard; b < blocks; b += options_.shards) mine.push_back(b);
    std::int64_t done = 0;
    oneapi::tbb::parallel_for(std::size_t{0}, mine.size(), [&](std::size_t i) {
      if (!goes_on("points screened", done * block_points, static_cast<std::int64_t>(mine.size()) * block_points))
        return;
      const Block block = stored_block(mine[i]);
      const std::lock_guard lock(mutex_);
      take(block);
      ++done;
    });
    if (stopped_) outcome_.is_whole = false;
    drop_beaten();
    outcome_.is_whole &= options_.shards == 1;
  }

  Block stored_block(std::int64_t number) {
    const std::string key = fmt::format("{}-block-{}", prefix_, number);
    if (const auto text = store_.find(key)) return block_of(*text);
    Block block = screen_block(number);
    store_.append(key, text_of(block, key));
    return block;
  }

  Block screen_block(std::int64_t number) {
    SweepSpace space(file_);
    Block block;
    SweepFront sure(file_.objectives.size());
    const std::int64_t until = std::min(outcome_.points, (number + 1) * block_points);
    std::int64_t at = number * block_points;
    while (const auto point = space.next(at, until)) {
      at = point->number + 1;
      const SweepEstimate estimate = screen_.estimate(space.settings(*point));
      if (!estimate.invalid.empty()) {
        const auto [reason, is_new] =
            block.invalid.emplace(without_figures(estimate.invalid), SweepReason{0, point->number});
        ++reason->second.points;
        continue;
      }
      ++block.screened;
      if (!estimate.may_do(file_)) {
        ++block.unable;
        continue;
      }
      if (estimate.does(file_)) sure.add(estimate.worst(file_));
      block.remaining.push_back(
          {point->number, estimate.metrics.step_seconds, estimate.metrics.peak_bytes, estimate.best(file_)});
    }
    for (const auto& [reason, skipped] : space.take_skipped()) block.left_out[reason] = skipped;
    const auto beaten = std::erase_if(block.remaining, [&](const Remaining& one) { return sure.beats(one.best); });
    block.beaten = static_cast<std::int64_t>(beaten);
    block.sure = sure.points();
    return block;
  }

  void take(const Block& block) {
    add(outcome_.left_out, block.left_out);
    add(outcome_.invalid, block.invalid);
    outcome_.screened += block.screened;
    outcome_.unable += block.unable;
    outcome_.beaten += block.beaten;
    for (const SweepValues& values : block.sure) sure_.add(values);
    remaining_.insert(remaining_.end(), block.remaining.begin(), block.remaining.end());
    if (remaining_.size() > 2 * kept_ + 100'000) drop_beaten();
  }

  void drop_beaten() {
    const auto beaten = std::erase_if(remaining_, [&](const Remaining& one) { return sure_.beats(one.best); });
    outcome_.beaten += static_cast<std::int64_t>(beaten);
    kept_ = remaining_.size();
  }

  // ---- replay ----

  void replay_waves() {
    const auto rank = [&](const Remaining& one) {
      double sum = 0;
      for (std::size_t i = 0; i < file_.objectives.size(); ++i)
        sum += std::log(std::max(one.best[i], std::numeric_limits<double>::min()));
      return sum;
    };
    std::vector<std::pair<double, Remaining>> queue;
    for (const Remaining& one : remaining_) queue.emplace_back(rank(one), one);
    std::sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.number) < std::pair(b.first, b.second.number);
    });
    SweepFront front(file_.objectives.size());
    std::size_t next = 0;
    while (next < queue.size() && !stopped_) {
      std::vector<Remaining> wave;
      const std::size_t room = static_cast<std::size_t>(file_.replays) -
                               std::min<std::size_t>(static_cast<std::size_t>(file_.replays), outcome_.rows.size());
      for (; next < queue.size() && wave.size() < std::min(wave_points, room); ++next) {
        if (front.beats(queue[next].second.best))
          ++outcome_.beaten_by_replay;
        else
          wave.push_back(queue[next].second);
      }
      if (wave.empty()) break;
      replay_wave(wave, static_cast<std::int64_t>(queue.size()), front);
    }
    for (; next < queue.size(); ++next)
      ++(front.beats(queue[next].second.best) ? outcome_.beaten_by_replay : outcome_.not_replayed);
  }

  void replay_wave(const std::vector<Remaining>& wave, std::int64_t all, SweepFront& front) {
    std::vector<std::optional<SweepRow>> rows(wave.size());
    oneapi::tbb::parallel_for(std::size_t{0}, wave.size(), [&](std::size_t i) {
      if (!goes_on("points replayed", static_cast<std::int64_t>(outcome_.rows.size() + i),
                   std::min(all, file_.replays)))
        return;
      rows[i] = stored_row(wave[i]);
      if (!options_.replayed) return;
      const std::lock_guard lock(mutex_);
      options_.replayed(*rows[i]);
    });
    for (const auto& row : rows) {
      if (!row) {
        outcome_.is_whole = false;
        continue;
      }
      if (row->does) front.add(values_of(*row));
      outcome_.rows.push_back(*row);
    }
  }

  [[nodiscard]] SweepValues values_of(const SweepRow& row) const {
    SweepValues values{};
    for (std::size_t i = 0; i < file_.objectives.size(); ++i) values[i] = row.replayed.value(file_.objectives[i]);
    return values;
  }

  SweepRow stored_row(const Remaining& one) {
    SweepSpace space(file_);
    const SweepPoint point = space.at(one.number);
    SweepRow row;
    row.number = one.number;
    row.label = space.label(point);
    row.settings = space.settings(point);
    for (std::size_t axis = 0; axis < file_.axes.size(); ++axis)
      row.options.push_back(file_.axes[axis].options[point.options[axis]].label);
    row.screened.step_seconds = one.step_seconds;
    row.screened.peak_bytes = one.peak_bytes;
    const std::string key = fmt::format("{}-replay-{}", prefix_, one.number);
    const auto text = store_.find(key);
    if (text) {
      read_record(Json::parse(*text), row);
    } else {
      replay_point(row);
      store_.append(key, record_of(row, key).dump());
    }
    row.does = does(row);
    return row;
  }

  void replay_point(SweepRow& row) const {
    std::vector<std::string> assignments;
    for (const auto& [name, value] : row.settings) assignments.push_back(name + "=" + value);
    try {
      const LoadedScenario loaded = load(parse_scenario(file_.base, file_.path, file_.folder, assignments));
      const Result result = spillway::run(loaded);
      row.replayed.step_seconds = to_seconds(result.step_time);
      row.replayed.peak_bytes = static_cast<double>(result.memory.peak_reserved.count());
      row.replayed.gpus = static_cast<double>(std::max<std::int64_t>(1, loaded.setup.gpus()));
      row.replayed.tokens_per_step = static_cast<double>(loaded.options.tokens_per_step);
      row.replayed.usd_per_hour = price_per_hour(loaded.hardware) * row.replayed.gpus;
      row.replayed.life_years = shortest_life_years(result);
      row.fits = result.fits();
      row.binding = to_string(result.binding);
      row.mfu = result.mfu;
    } catch (const InputError& error) {
      row.failure = error.cause();
    }
  }

  [[nodiscard]] bool does(const SweepRow& row) const {
    if (!row.failure.empty() || (file_.must_fit && !row.fits)) return false;
    if (file_.most_step_seconds && row.replayed.step_seconds > *file_.most_step_seconds) return false;
    if (file_.most_gpus && row.replayed.gpus > *file_.most_gpus) return false;
    return !file_.least_life_years || row.replayed.life_years >= *file_.least_life_years;
  }

  static Json record_of(const SweepRow& row, const std::string& key) {
    Json settings = Json::object();
    for (const auto& [name, value] : row.settings) settings[name] = value;
    const SweepMetrics& metrics = row.replayed;
    return {{"key", key},
            {"settings", settings},
            {"failure", row.failure},
            {"fits", row.fits},
            {"step_seconds", metrics.step_seconds},
            {"peak_reserved_bytes", metrics.peak_bytes},
            {"gpus", metrics.gpus},
            {"tokens_per_step", metrics.tokens_per_step},
            {"usd_per_hour", metrics.usd_per_hour},
            {"life_years", std::isfinite(metrics.life_years) ? Json(metrics.life_years) : Json()},
            {"binding_resource", row.binding},
            {"mfu", row.mfu}};
  }
  static void read_record(const Json& json, SweepRow& row) {
    row.failure = json.at("failure").get<std::string>();
    row.fits = json.at("fits").get<bool>();
    row.replayed.step_seconds = json.at("step_seconds").get<double>();
    row.replayed.peak_bytes = json.at("peak_reserved_bytes").get<double>();
    row.replayed.gpus = json.at("gpus").get<double>();
    row.replayed.tokens_per_step = json.at("tokens_per_step").get<double>();
    row.replayed.usd_per_hour = json.at("usd_per_hour").get<double>();
    row.replayed.life_years =
        json.at("life_years").is_null() ? std::numeric_limits<double>::infinity() : json.at("life_years").get<double>();
    row.binding = json.at("binding_resource").get<std::string>();
    row.mfu = json.at("mfu").get<double>();
  }

  void finish() {
    std::sort(outcome_.rows.begin(), outcome_.rows.end(),
              [](const SweepRow& a, const SweepRow& b) { return a.number < b.number; });
    SweepFront front(file_.objectives.size());
    for (const SweepRow& row : outcome_.rows)
      if (row.does) front.add(values_of(row));
    std::vector<double> times, peaks;
    for (SweepRow& row : outcome_.rows) {
      row.on_front = row.does && !front.beats(values_of(row));
      if (!row.failure.empty()) continue;
      const auto compare = [](double screened, double replayed, std::vector<double>& errors) {
        if (screened > 0 && replayed > 0) errors.push_back(std::abs(screened / replayed - 1));
      };
      compare(row.screened.step_seconds, row.replayed.step_seconds, times);
      compare(row.screened.peak_bytes, row.replayed.peak_bytes, peaks);
    }
    outcome_.time_error = error_of(std::move(times));
    outcome_.memory_error = error_of(std::move(peaks));
  }

  const SweepFile& file_;
  const SweepOptions& options_;
  SweepStore& store_;
  SweepScreen screen_;
  SweepFront sure_;
  SweepOutcome outcome_;
  std::string prefix_;
  std::vector<Remaining> remaining_;
  std::size_t kept_ = 0;  // of them after the last look
  std::mutex mutex_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

SweepOutcome run_sweep(const SweepFile& file, const SweepOptions& options, SweepStore& store) {
  return Sweep(file, options, store).run();
}

}  // namespace spillway
