#include "studies/sweep/sweep_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/log.h"
#include "studies/sweep/sweep_front.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_points = std::int64_t{1} << 40;
constexpr std::size_t most_remaining = 10'000'000;
constexpr std::size_t wave_points = 32;  // replays between two looks at what remains

void add(std::map<std::string, SweepReason>& sum, const std::map<std::string, SweepReason>& more) {
  for (const auto& [reason, count] : more) {
    const auto [at, is_new] = sum.emplace(reason, count);
    if (is_new) continue;
    at->second.points += count.points;
    at->second.example = std::min(at->second.example, count.example);
  }
}

class Sweep {
 public:
  Sweep(const SweepFile& file, const SweepOptions& options, SweepWorkers& workers, SweepStore& store)
      : file_(file),
        options_(options),
        workers_(workers),
        store_(store),
        space_(file),
        screen_(file),
        sure_(file.objectives.size()) {
    outcome_.points = file.points();
  }

  SweepOutcome run() {
    screen_all();
    if (!stopped_) replay_waves();
    if (!stopped_ && outcome_.rows.empty() && outcome_.is_whole) replay_nearest();
    finish();
    return std::move(outcome_);
  }

 private:
  // ---- screen ----

  [[nodiscard]] bool goes_on(const std::string& what, std::int64_t done, std::int64_t all) {
    return !options_.progress || options_.progress(what, done, all);
  }

  void screen_all() {
    if (outcome_.points > most_points)
      throw InputError(
          file_.path, "/axes",
          fmt::format("{:.3g} configurations are too many to estimate", static_cast<double>(outcome_.points)),
          "take fewer or shorter axes: an axis that doesn't matter for the rest is a separate sweep");
    const std::int64_t blocks = (outcome_.points + sweep_block_points - 1) / sweep_block_points;
    std::vector<SweepTask> mine;
    for (std::int64_t b = options_.shard; b < blocks; b += options_.shards) mine.push_back({false, b});
    std::int64_t done = 0;
    if (is_verbose())
      log_choice("search",
                 fmt::format("{} configurations, {} of {} blocks estimated", outcome_.points, mine.size(), blocks));
    const std::int64_t all = std::min(outcome_.points, static_cast<std::int64_t>(mine.size()) * sweep_block_points);
    stopped_ = !goes_on("configurations estimated", 0, all) ||
               !do_tasks(file_, mine, workers_, store_, [&](std::size_t, const std::string& record) {
                 take(parse_sweep_block(record));
                 return goes_on("configurations estimated", std::min(all, ++done * sweep_block_points), all);
               });
    drop_beaten();
    outcome_.is_whole = !stopped_ && options_.shards == 1;
  }

  void take(const SweepBlock& block) {
    add(outcome_.left_out, block.left_out);
    add(outcome_.invalid, block.invalid);
    outcome_.screened += block.screened;
    outcome_.unable += block.unable;
    outcome_.beaten += block.beaten;
    nearest_.take(block.nearest);
    for (const SweepValues& values : block.sure) sure_.add(values);
    remaining_.insert(remaining_.end(), block.remaining.begin(), block.remaining.end());
    if (remaining_.size() > 2 * kept_ + 100'000) drop_beaten();
    if (remaining_.size() > most_remaining)
      throw InputError(file_.path, "/",
                       fmt::format("estimates can't rule out more than {} configurations", most_remaining),
                       "require more, add conditions under where, take a smaller margin, or take fewer values");
  }

  void drop_beaten() {
    const auto beaten = std::erase_if(remaining_, [&](const SweepRemaining& one) { return sure_.beats(one.best); });
    outcome_.beaten += static_cast<std::int64_t>(beaten);
    kept_ = remaining_.size();
  }

  // ---- replay ----

  void replay_waves() {
    if (is_verbose())
      log_choice(
          "search",
          fmt::format("{} configurations may be on the Pareto front by their estimates; the best are simulated, up to "
                      "{} (replays)",
                      remaining_.size(), file_.replays));
    const SweepValues typical = typical_logs();
    std::vector<std::pair<double, SweepRemaining>> queue;
    for (const SweepRemaining& one : remaining_) queue.emplace_back(rank(one, typical), one);
    std::sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.number) < std::pair(b.first, b.second.number);
    });
    std::vector<SweepRemaining> waiting;
    for (const auto& [value, one] : queue) waiting.push_back(one);
    SweepFront front(file_.objectives.size());
    while (!stopped_) {
      outcome_.beaten_by_replay +=
          std::erase_if(waiting, [&](const SweepRemaining& one) { return front.beats(one.best); });
      const std::vector<SweepRemaining> wave = next_wave(waiting);
      if (wave.empty()) break;
      replay_wave(wave, static_cast<std::int64_t>(queue.size()), front);
      take_twins(wave, waiting);
    }
    outcome_.beaten_by_replay +=
        std::erase_if(waiting, [&](const SweepRemaining& one) { return front.beats(one.best); });
    outcome_.not_replayed += static_cast<std::int64_t>(waiting.size());
    outcome_.unproven = SweepValues{};
    for (std::size_t i = 0; i < file_.objectives.size(); ++i)
      for (const SweepRemaining& one : waiting)
        if (&one == &waiting.front() || one.best[i] < outcome_.unproven[i]) outcome_.unproven[i] = one.best[i];
  }

  // Where estimates leave nothing, what comes nearest tells by how much.
  void replay_nearest() {
    if (nearest_.number < 0 || file_.replays < 1) return;
    const SweepEstimate estimate = screen_.estimate(space_.settings(space_.at(nearest_.number)));
    SweepFront front(file_.objectives.size());
    --outcome_.unable;
    replay_wave({{.number = nearest_.number,
                  .step_seconds = estimate.metrics.step_seconds,
                  .peak_bytes = estimate.metrics.peak_bytes,
                  .is_bound = estimate.is_bound}},
                1, front);
  }

  // Points of the wave's states take its replays as theirs. Equal states have equal estimates, so these are looked at
  // first.
  void take_twins(const std::vector<SweepRemaining>& wave, std::vector<SweepRemaining>& waiting) {
    const auto estimate_of = [](const SweepRemaining& one) { return std::pair(one.step_seconds, one.peak_bytes); };
    std::map<std::pair<double, double>, std::vector<std::pair<std::uint64_t, std::int64_t>>> states;
    for (const SweepRemaining& one : wave)
      if (const std::uint64_t key = state_of(one.number); key != 0)
        states[estimate_of(one)].emplace_back(key, one.number);
    std::erase_if(waiting, [&](const SweepRemaining& one) {
      const auto alike = states.find(estimate_of(one));
      if (alike == states.end()) return false;
      const std::uint64_t key = state_of(one.number);
      for (const auto& [state, like] : alike->second) {
        if (state != key) continue;
        const auto first = std::find_if(outcome_.rows.begin(), outcome_.rows.end(),
                                        [number = like](const SweepRow& row) { return row.number == number; });
        if (first == outcome_.rows.end()) return false;
        outcome_.rows.push_back(row_of(one, Row(*first)));
        if (options_.replayed) options_.replayed(outcome_.rows.back());
        return true;
      }
      return false;
    });
  }
  std::uint64_t state_of(std::int64_t number) { return screen_.state_key(space_.settings(space_.at(number))); }

  // Points of one estimated peak are one kind: its first is replayed alone, and when it turns out not to fit, the
  // others come last of all (a layout with every size of bucket). Where the peak is not known, each is of its own.
  static double kind_of(std::int64_t number, double peak_bytes) {
    return peak_bytes > 0 ? peak_bytes : -static_cast<double>(number);
  }

  // Takes them out of `waiting`. O(waiting log kinds).
  std::vector<SweepRemaining> next_wave(std::vector<SweepRemaining>& waiting) {
    const auto most = static_cast<std::size_t>(file_.replays);
    const std::size_t room = std::min(wave_points, most - std::min(most, static_cast<std::size_t>(outcome_.replays)));
    std::vector<SweepRemaining> wave;
    std::vector<bool> taken(waiting.size());
    std::set<double> first;             // of kinds not known so far
    std::vector<std::uint64_t> states;  // of the wave
    // A point that a step can't tell from one of the wave waits for that one's replay.
    const auto has_twin = [&](const SweepRemaining& one, std::uint64_t state) {
      for (std::size_t i = 0; i < wave.size(); ++i)
        if (state != 0 && states[i] == state && wave[i].step_seconds == one.step_seconds) return true;
      return false;
    };
    const auto take_where = [&](const auto& may) {
      for (std::size_t i = 0; i < waiting.size() && wave.size() < room; ++i)
        if (!taken[i] && may(kind_of(waiting[i].number, waiting[i].peak_bytes))) {
          const std::uint64_t state = state_of(waiting[i].number);
          if (has_twin(waiting[i], state)) continue;
          states.push_back(state);
          taken[i] = true;
          wave.push_back(waiting[i]);
        }
    };
    take_where([&](double kind) {
      const auto known = kinds_.find(kind);
      return known == kinds_.end() ? first.insert(kind).second : known->second;
    });
    if (wave.empty()) take_where([](double) { return true; });
    std::size_t at = 0;
    std::erase_if(waiting, [&](const SweepRemaining&) { return taken[at++]; });
    return wave;
  }

  // Of each objective, the mean logarithm of what is known of it.
  [[nodiscard]] SweepValues typical_logs() const {
    SweepValues typical{};
    for (std::size_t i = 0; i < file_.objectives.size(); ++i) {
      double sum = 0, known = 0;
      for (const SweepRemaining& one : remaining_)
        if (one.best[i] > 0) {
          sum += std::log(one.best[i]);
          ++known;
        }
      if (known > 0) typical[i] = sum / known;
    }
    return typical;
  }
  // Bounds alone put the steps with the largest bubbles and the least memory to spare first: what they are likely to
  // take counts instead. What isn't known of a point at all counts as what is typical, so that such points wait for
  // their turn; one that is likely not to fit comes after those somewhat slower that do.
  [[nodiscard]] double rank(const SweepRemaining& one, const SweepValues& typical) const {
    constexpr double overfull = 3;  // half as much again as there is counts as 3.4 times slower
    const double slower =
        one.likely_seconds > 0 && one.step_seconds > 0 ? std::log(one.likely_seconds / one.step_seconds) : 0;
    double sum = file_.must_fit && one.likely_use > 1 ? overfull * std::log(one.likely_use) : 0;
    for (std::size_t i = 0; i < file_.objectives.size(); ++i) {
      const Objective objective = file_.objectives[i];
      if (objective == Objective::peak_memory && one.likely_bytes > 0)
        sum += std::log(one.likely_bytes);
      else
        sum += (one.best[i] > 0 ? std::log(one.best[i]) : typical[i]) + (goes_by_time(objective) ? slower : 0);
    }
    return sum;
  }
  static bool goes_by_time(Objective objective) {
    return objective != Objective::peak_memory && objective != Objective::gpus && objective != Objective::ssd_life;
  }

  void replay_wave(const std::vector<SweepRemaining>& wave, std::int64_t all, SweepFront& front) {
    std::vector<SweepTask> tasks;
    for (const SweepRemaining& one : wave) tasks.push_back({true, one.number});
    const std::size_t before = outcome_.rows.size();
    stopped_ = !do_tasks(file_, tasks, workers_, store_, [&](std::size_t i, const std::string& record) {
      outcome_.rows.push_back(row_of(wave[i], parse_sweep_replay(record)));
      ++outcome_.replays;
      if (options_.replayed) options_.replayed(outcome_.rows.back());
      return goes_on("points replayed", outcome_.replays, std::min(all, file_.replays));
    });
    for (std::size_t i = before; i < outcome_.rows.size(); ++i) {
      const SweepRow& row = outcome_.rows[i];
      kinds_[kind_of(row.number, row.screened.peak_bytes)] |= row.result.fits() || !file_.must_fit;
      if (row.does) front.add(objective_values(file_, row.replayed));
    }
    outcome_.is_whole &= !stopped_;
  }

  SweepRow row_of(const SweepRemaining& one, Row replay) {
    const SweepPoint point = space_.at(one.number);
    SweepRow row;
    static_cast<Row&>(row) = std::move(replay);
    row.replayed = figures_of(row);
    row.number = one.number;
    row.candidate = {space_.label(point), edits_of(space_.settings(point))};
    for (std::size_t axis = 0; axis < file_.axes.size(); ++axis)
      row.options.push_back(file_.axes[axis].options[point.options[axis]].label);
    row.screened.step_seconds = one.step_seconds;
    row.screened.peak_bytes = one.peak_bytes;
    row.is_bound = one.is_bound;
    row.does = meets_requirements(file_, row);
    return row;
  }

  void finish() {
    std::sort(outcome_.rows.begin(), outcome_.rows.end(),
              [](const SweepRow& a, const SweepRow& b) { return a.number < b.number; });
    mark_front(file_, outcome_.rows);
    mark_twins(outcome_.rows);
    std::vector<double> times, peaks, above;
    for (const SweepRow& row : outcome_.rows) {
      if (!row.ran() || row.twin_of) continue;
      if (row.is_bound) {
        if (row.screened.step_seconds <= 0 || row.replayed.step_seconds <= 0) continue;
        const double gap = row.replayed.step_seconds / row.screened.step_seconds - 1;
        above.push_back(std::max(0.0, gap));
        outcome_.below_bound += gap < 0 ? 1 : 0;
        continue;
      }
      const auto compare = [](double screened, double replayed, std::vector<double>& errors) {
        if (screened > 0 && replayed > 0) errors.push_back(std::abs(screened / replayed - 1));
      };
      compare(row.screened.step_seconds, row.replayed.step_seconds, times);
      compare(row.screened.peak_bytes, row.replayed.peak_bytes, peaks);
    }
    outcome_.time_error = sweep_error(std::move(times));
    outcome_.memory_error = sweep_error(std::move(peaks));
    outcome_.within_margins =
        outcome_.time_error.worst <= file_.margin && outcome_.memory_error.worst <= file_.memory_margin;
    outcome_.time_above_bound = sweep_error(std::move(above));
  }

  const SweepFile& file_;
  const SweepOptions& options_;
  SweepWorkers& workers_;
  SweepStore& store_;
  SweepSpace space_;
  SweepScreen screen_;
  SweepFront sure_;
  SweepOutcome outcome_;
  std::vector<SweepRemaining> remaining_;
  SweepNearest nearest_;
  std::size_t kept_ = 0;          // of them after the last look
  std::map<double, bool> kinds_;  // replayed ones: whether one of them fits
  bool stopped_ = false;
};

}  // namespace

SweepError sweep_error(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const std::size_t last = errors.size() - 1;
  return {errors.size(), errors[last / 2], errors[last * 9 / 10], errors[last]};
}

void mark_twins(std::vector<SweepRow>& rows) {
  std::map<std::string, std::int64_t> first;
  for (SweepRow& row : rows) {
    row.twin_of.reset();
    if (!row.ran()) continue;
    const Figures& m = row.replayed;
    const std::string state =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {}", row.result.fingerprint, m.step_seconds, m.peak_bytes, m.gpus,
                    m.tokens_per_step, m.rates.usd_per_hour, m.rates.rest_watts, m.rates.busy_watts, m.life_years,
                    m.rated_years, to_string(row.result.verdict()));
    const auto [at, is_new] = first.emplace(state, row.number);
    if (!is_new) row.twin_of = at->second;
  }
}

void mark_front(const SweepFile& file, std::vector<SweepRow>& rows) {
  for (SweepRow& row : rows) row.does = meets_requirements(file, row);
  const bool any = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.does; });
  SweepFront front(file.objectives.size());
  for (SweepRow& row : rows) {
    if (!any) row.does = meets_requirements(file, row, Verdict::tight);
    if (row.does) front.add(objective_values(file, row.replayed));
  }
  for (SweepRow& row : rows) row.on_front = row.does && !front.beats(objective_values(file, row.replayed));
}

std::optional<SweepShortfall> nearest_to_meet(const SweepFile& file, const SweepOutcome& outcome) {
  std::optional<SweepShortfall> nearest;
  for (const SweepRow& row : outcome.rows) {
    if (row.does) return std::nullopt;
    if (!row.ran()) continue;
    SweepShortfall one{&row, misses(file.constraints, row), 0};
    const Result& result = row.result;
    if (file.must_fit && !sim::is_yes(result.verdict())) {
      const double capacity = static_cast<double>(result.memory.capacity.count());
      const bool has_figure = result.memory.short_of > Bytes(0) && capacity > 0;
      one.misses.insert(one.misses.begin(), {sim::verdict_sentence(result),
                                             has_figure ? static_cast<double>(result.memory.short_of.count()) / capacity
                                                        : std::numeric_limits<double>::infinity()});
    }
    for (const Miss& miss : one.misses) one.share = std::max(one.share, miss.share);
    if (!nearest || one.share < nearest->share) nearest = std::move(one);
  }
  return nearest;
}

SweepOutcome run_sweep(const SweepFile& file, const SweepOptions& options, SweepStore& store) {
  if (options.workers != nullptr) return Sweep(file, options, *options.workers, store).run();
  LocalWorkers workers(file);
  return Sweep(file, options, workers, store).run();
}

}  // namespace spillway::studies
