#include "studies/fit/fit_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/log.h"
#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"
#include "studies/fit/fit_layouts.h"
#include "studies/fit/fit_screen.h"

namespace spillway::studies {
namespace {

constexpr double time_margin = 0.1, memory_margin = 0.15;  // of estimates, against replays
constexpr double bound_margin = 0.1;                       // of bounds, whose closed forms are off as well
constexpr double lost_clearly = 1.05;                      // of the goal's figure: not tried again
constexpr double trifle = 0.005;                           // of it: not worth another round
constexpr std::size_t wave = 8;                            // replays between two looks at what is known
constexpr std::size_t most_layouts = 24, most_savings = 40, alike_layouts = 2, most_rounds = 6;

// Edits that keep the sequences of a step (FitSubject::batch_edits) change nothing of it.
std::size_t changes_of(const WayRow& row) {
  return static_cast<std::size_t>(
      std::count_if(row.way.settings.begin(), row.way.settings.end(), [](const std::string& setting) {
        return !setting.starts_with("model.global_batch=") && !setting.starts_with("model.gradient_accumulation=");
      }));
}

// What ways are ranked by, less is better.
using Rank = std::tuple<int, double, double, double, std::size_t, std::string>;
enum Class { works, tight, not_known, too_large, impossible };

double figure_of(FitGoal goal, const WayRow& row) {
  switch (goal) {
    case FitGoal::speed:
      return to_seconds(row.result.step_time);
    case FitGoal::cost:
      return row.cost_per_million_tokens().value_or(to_seconds(row.result.step_time) * static_cast<double>(row.gpus));
    case FitGoal::life:
      if (unrated_writes(row.result) != nullptr) return 0;  // unknown: behind every life
      return row.life_years ? -*row.life_years : -std::numeric_limits<double>::infinity();
    case FitGoal::memory:
      return static_cast<double>(row.result.memory.peak_reserved.count());
    case FitGoal::gpus:
      return static_cast<double>(row.gpus);
    case FitGoal::change:
      return static_cast<double>(changes_of(row));
  }
  return 0;
}

// Of what doesn't fit: how much is missing; host memory and drives after device memory.
double missing(const WayRow& row) {
  constexpr double elsewhere = 1e18;
  const HostMemoryResult& host = row.result.host_memory;
  if (!row.result.drives_refuse.empty()) return 2 * elsewhere;
  if (host.verdict() == Verdict::does_not_fit)
    return elsewhere + static_cast<double>((host.peak - host.capacity).count());
  return static_cast<double>(row.result.memory.excess().count());
}

double written_to_drives(const Result& result) {
  double bytes = 0;
  for (const DriveTraffic& traffic : result.drives) bytes += static_cast<double>(traffic.written.count());
  return bytes;
}

Rank rank_of(FitGoal goal, const WayRow& row) {
  const std::size_t edits = changes_of(row);
  const double step = to_seconds(row.result.step_time);
  if (!row.ran()) return {impossible, 0, 0, 0, edits, row.way.name};
  const double written = written_to_drives(row.result);
  if (row.works()) return {works, figure_of(goal, row), step, written, edits, row.way.name};
  if (row.result.may_fit() && row.result.drives_refuse.empty())
    return {row.result.verdict() == Verdict::tight ? tight : not_known,
            figure_of(goal, row),
            step,
            written,
            edits,
            row.way.name};
  return {too_large, missing(row), step, written, edits, row.way.name};
}

struct Stopped {};

class Search {
 public:
  Search(const FitQuestion& question, const FitSubject& subject, const FitOptions& options)
      : question_(question),
        subject_(subject),
        options_(options),
        points_(subject),
        moves_(question, subject, points_) {
    if (subject.model) screen_.emplace(subject, points_);
    static const PriceList prices = PriceList::bundled();
    usd_per_hour_ = gpu_usd_per_hour(subject.hardware, prices);
  }

  FitOutcome run() {
    try {
      replay("as given", {points_.as_given()});
      if (question_.goal == FitGoal::change) single_moves();
      if (subject_.model) look_at_layouts();
      if (!rows_.front().works()) single_moves();
      climb([this](const FitPoint& point) { return moves_.from(point, found()); });
      pack_near_misses();
      search_fates();
      climb([this](const FitPoint& point) { return moves_.other_maths(point); });
      ablate();
    } catch (const Stopped&) {
      outcome_.stopped = true;
    } catch (const Cancelled&) {
      outcome_.stopped = true;
    }
    return finish();
  }

 private:
  struct Candidate {
    FitPoint point;
    FitEstimate estimate;
    double figure = 0;  // of the goal, as far as the estimate says
  };
  using Settings = std::vector<std::string>;

  // ---- replays ----

  // Those that are new; false: the question's replays are used up, unless these come on top.
  bool replay(const std::string& what, const std::vector<FitPoint>& points, bool on_top = false) {
    std::vector<Way> fresh;
    std::vector<FitPoint> of;
    for (const FitPoint& point : points) {
      Way way = points_.way(point);
      if (!seen_.emplace(points_.settings(point), rows_.size() + fresh.size()).second) continue;
      if (!on_top && static_cast<std::int64_t>(rows_.size() + fresh.size()) > question_.replays) {
        seen_.erase(points_.settings(point));
        outcome_.exhausted = true;
        break;
      }
      fresh.push_back(std::move(way));
      of.push_back(point);
    }
    const auto progress = [&](const WayRow& /*row*/, std::size_t /*done*/, std::size_t /*all*/) {
      return goes_on(what, ++outcome_.replayed);
    };
    std::vector<WayRow> rows = evaluate_ways(subject_.scenario, fresh, {.store = options_.store, .progress = progress});
    bool whole = true;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      whole &= rows[i].is_done;
      take(std::move(rows[i]), of[i]);
    }
    if (!whole || stopped_) throw Stopped{};
    return !outcome_.exhausted;
  }

  void take(WayRow row, const FitPoint& point) {
    rows_.push_back(std::move(row));
    of_row_.push_back(point);
    const std::size_t index = rows_.size() - 1;
    if (rows_[index].is_done && (!best_ || rank(index) < rank(*best_))) best_ = index;
  }

  [[nodiscard]] bool goes_on(const std::string& what, std::size_t replays) {
    if (options_.progress && !options_.progress(what, replays)) stopped_ = true;
    return !stopped_;
  }

  [[nodiscard]] Rank rank(std::size_t row) const { return rank_of(question_.goal, rows_[row]); }
  [[nodiscard]] bool found() const { return best_ && rows_[*best_].works(); }
  [[nodiscard]] double best_figure() const {
    return found() ? figure_of(question_.goal, rows_[*best_]) : std::numeric_limits<double>::infinity();
  }

  // ---- layouts ----

  // Which the goal lets vary; otherwise all there are.
  [[nodiscard]] std::vector<std::int64_t> gpu_counts() const {
    if (question_.goal != FitGoal::gpus && question_.goal != FitGoal::cost) return {subject_.gpus};
    std::vector<std::int64_t> counts;
    for (const std::int64_t each : divisors(subject_.gpus))
      if (each <= subject_.hardware.gpu_count || each % subject_.hardware.gpu_count == 0) counts.push_back(each);
    return counts;
  }

  void look_at_layouts() {
    if (question_.goal == FitGoal::gpus) {
      for (const std::int64_t gpus : gpu_counts()) {
        look_at(fit_layouts(subject_, points_, gpus));
        if (found() && rows_[*best_].gpus <= gpus) return;
      }
      return;
    }
    std::vector<FitPoint> layouts;
    for (const std::int64_t gpus : gpu_counts())
      for (FitPoint& point : fit_layouts(subject_, points_, gpus)) layouts.push_back(std::move(point));
    look_at(std::move(layouts));
  }

  void look_at(std::vector<FitPoint> layouts) {
    if (!goes_on("layouts estimated", outcome_.replayed)) throw Stopped{};
    outcome_.screened += layouts.size();
    std::vector<Candidate> candidates = estimated(std::move(layouts));
    add_lean(candidates);
    if (is_verbose())
      log_choice("search",
                 fmt::format("{} layouts that may run, {} shapes measured", candidates.size(), screen_->shapes()));
    const auto kind = [](const Candidate& one) { return kind_of(one.point); };
    for (const double margin : {0.0, memory_margin})
      replay_best("layouts replayed", candidates, {.all = most_layouts / 2, .of_kind = alike_layouts}, kind,
                  [this, margin](const Candidate& one) { return fits_perhaps(one, margin) && fits_as_learnt(one); });
    look_at_savings(candidates);
  }

  // Where a layout doesn't fit, the same with kernels that hold less at no cost: they may be what opens it.
  void add_lean(std::vector<Candidate>& candidates) {
    std::vector<FitPoint> points;
    for (const Candidate& one : candidates)
      if (!fits_perhaps(one, 0) && one.point.setup.recompute != Recompute::selective)
        if (std::optional<FitPoint> lean = moves_.lean(one.point)) points.push_back(std::move(*lean));
    std::vector<Candidate> lean = estimated(std::move(points));
    candidates.insert(candidates.end(), std::make_move_iterator(lean.begin()), std::make_move_iterator(lean.end()));
    sort(candidates);
  }

  std::vector<Candidate> estimated(std::vector<FitPoint> points) {
    const std::vector<FitEstimate> estimates = screen_->estimate(points);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (estimates[i].invalid.empty())
        candidates.push_back({std::move(points[i]), estimates[i], figure_of_estimate(points[i], estimates[i])});
    sort(candidates);
    return candidates;
  }
  static void sort(std::vector<Candidate>& candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.figure, a.estimate.seconds) < std::pair(b.figure, b.estimate.seconds);
    });
  }

  [[nodiscard]] double figure_of_estimate(const FitPoint& point, const FitEstimate& estimate) const {
    const auto gpus = static_cast<double>(point.setup.gpus());
    switch (question_.goal) {
      case FitGoal::cost:
        return estimate.seconds * gpus;
      case FitGoal::memory:
        return static_cast<double>(estimate.peak.count());
      case FitGoal::change:
        return static_cast<double>(points_.settings(point).size());
      case FitGoal::gpus:
      case FitGoal::life:
      case FitGoal::speed:
        return estimate.seconds;
    }
    return 0;
  }

  [[nodiscard]] bool fits_perhaps(const Candidate& one, double margin) const {
    return !one.estimate.holds_too_much && static_cast<double>(one.estimate.peak.count()) * (1 - margin) <=
                                               static_cast<double>(screen_->capacity().count());
  }

  // By how far the estimates of its class were off in the replays before; a bound is as far off under one technique
  // as it is, about.
  [[nodiscard]] bool fits_as_learnt(const Candidate& one) const {
    const double rest = one.estimate.is_bound ? 0.2 : 0.05;
    const auto known = peak_ratios_.find(class_of(one));
    if (known == peak_ratios_.end()) return true;
    const double ratio = known->second.first / known->second.second;
    return static_cast<double>(one.estimate.peak.count()) * ratio * (1 - rest) <=
           static_cast<double>(screen_->capacity().count());
  }
  void learn(const Candidate& one) {
    const auto seen = seen_.find(points_.settings(one.point));
    if (seen == seen_.end() || !rows_[seen->second].ran() || one.estimate.peak <= Bytes(0)) return;
    auto& [sum, count] = peak_ratios_[class_of(one)];
    sum += static_cast<double>(rows_[seen->second].result.memory.peak_allocated.count()) /
           static_cast<double>(one.estimate.peak.count());
    count += 1;
  }
  using PeakClass = std::tuple<std::int64_t, bool, bool, bool, StateDevice, std::string>;
  [[nodiscard]] static PeakClass class_of(const Candidate& one) {
    const TrainingSetup& s = one.point.setup;
    const bool pipelined = s.pipeline_parallel > 1, keeps = s.recompute == Recompute::none;
    if (!one.estimate.is_bound) return {s.zero_stage, pipelined, s.context_parallel > 1, keeps, s.optimizer_device, ""};
    std::string technique;
    for (const auto& [key, text] : one.point.others) technique += key + text;
    return {0, pipelined, false, keeps, s.optimizer_device, technique};
  }

  // Layouts that differ in micro-batch, schedule and kernels alone are of one kind.
  [[nodiscard]] static std::string kind_of(const FitPoint& point) {
    const TrainingSetup& s = point.setup;
    std::string others;
    for (const auto& [key, text] : point.others) others += key + text;
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", s.tensor_parallel, s.context_parallel, s.pipeline_parallel,
                       s.data_parallel, s.expert_parallel, s.zero_stage, s.shard_groups, static_cast<int>(s.recompute),
                       static_cast<int>(s.optimizer_device), static_cast<int>(s.weight_device), others);
  }

  // Whether it could be better than what was found.
  [[nodiscard]] bool may_beat(const Candidate& one) const {
    if (!found()) return true;
    if (question_.goal == FitGoal::life || question_.goal == FitGoal::gpus)
      return one.estimate.seconds * (1 - time_margin) < to_seconds(rows_[*best_].result.step_time);
    const double scale = question_.goal == FitGoal::cost ? estimate_scale() : 1;
    return one.figure * scale * (1 - time_margin) < best_figure();
  }
  // From GPU seconds to USD per million tokens.
  [[nodiscard]] double estimate_scale() const {
    const double tokens = static_cast<double>(rows_[*best_].tokens_per_step);
    return usd_per_hour_ > 0 && tokens > 0 ? usd_per_hour_ / 3600 / tokens * 1e6 : 1;
  }

  struct ReplayLimits {
    std::size_t all, of_kind;
    bool counts_failures = false;  // among those of a kind
  };
  // In turn, so many of each kind that work, what fails teaching which of the rest need not be tried; again, until
  // none is left.
  template <class Kind, class May>
  void replay_best(const std::string& what, const std::vector<Candidate>& candidates, const ReplayLimits& limits,
                   const Kind& kind, const May& may) {
    std::map<std::string, std::size_t> taken;
    std::vector<const Candidate*> next;
    std::size_t all = 0;
    const auto replay_next = [&] {
      std::vector<FitPoint> points;
      for (const Candidate* one : next) points.push_back(one->point);
      const bool more = replay(what, points);
      for (const Candidate* one : std::exchange(next, {})) {
        learn(*one);
        if (!limits.counts_failures && !works(one->point)) --taken[kind(*one)];
      }
      return more;
    };
    for (std::size_t before = all + 1; before != all;) {
      before = all;
      for (const Candidate& one : candidates) {
        if (all == limits.all) break;
        if (seen_.contains(points_.settings(one.point)) || !may(one) || (next.empty() && !may_beat(one))) continue;
        std::size_t& alike = taken[kind(one)];
        if (alike == limits.of_kind || is_pending(next, one)) continue;
        ++alike;
        ++all;
        next.push_back(&one);
        if (next.size() == wave && !replay_next()) return;
      }
      if (!replay_next()) return;
    }
  }
  static bool is_pending(const std::vector<const Candidate*>& next, const Candidate& one) {
    return std::find(next.begin(), next.end(), &one) != next.end();
  }
  [[nodiscard]] bool works(const FitPoint& point) const {
    const auto seen = seen_.find(points_.settings(point));
    return seen != seen_.end() && rows_[seen->second].works();
  }

  // ---- what holds less ----

  // Each way to hold less, on the layouts that it makes fit, the fastest first by their estimates; where nothing fits,
  // on those that then hold least, too.
  void look_at_savings(const std::vector<Candidate>& layouts) {
    constexpr std::size_t most_bases = 500, most_each = 2;
    std::vector<FitPoint> points;
    std::map<Settings, std::string> names;
    std::size_t bases = 0;
    for (const Candidate& one : layouts) {
      const TrainingSetup& setup = one.point.setup;
      if (setup.recompute == Recompute::full || setup.pipeline_chunks > 1 || setup.micro_batch > 2) continue;
      if (!fits_perhaps(one, 0) && moves_.lean(one.point)) continue;  // the lean one stands for it
      if (bases == most_bases || !may_beat(one)) continue;
      ++bases;
      for (FitMove& move : moves_.savings(one.point))
        if (names.emplace(points_.settings(move.point), move.name).second) points.push_back(std::move(move.point));
    }
    std::vector<Candidate> candidates = estimated(std::move(points));
    const auto kind = [&](const Candidate& one) { return names.at(points_.settings(one.point)); };
    for (const double margin : {0.0, memory_margin})
      replay_best("ways to hold less replayed", candidates, {.all = most_savings / 2, .of_kind = most_each}, kind,
                  [&](const Candidate& one) {
                    return fits_perhaps(one, one.estimate.is_bound ? bound_margin : margin) && fits_as_learnt(one);
                  });
    if (found()) return;
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.estimate.peak < b.estimate.peak; });
    replay_best("ways that hold least replayed", candidates,
                {.all = most_savings, .of_kind = most_each, .counts_failures = true}, kind,
                [](const Candidate& /*one*/) { return true; });
  }

  // ---- one move at a time ----

  void single_moves() {
    std::vector<FitMove> moves = moves_.from(points_.as_given(), rows_.front().works());
    if (question_.goal != FitGoal::change) drop_hopeless(moves);
    std::vector<FitPoint> points;
    for (FitMove& move : moves) points.push_back(std::move(move.point));
    replay("single edits replayed", points);
  }

  // Ways that would be better than the best, had they a little more room: what packs them better may give it.
  void pack_near_misses() {
    constexpr std::size_t most_misses = 4;
    constexpr double by_packing = 0.1;  // of the capacity
    std::vector<std::size_t> misses;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Class is = static_cast<Class>(std::get<0>(rank(i)));
      const MemoryResult& memory = rows_[i].result.memory;
      const bool is_near = is == tight || (is == too_large && rows_[i].result.drives_refuse.empty() &&
                                           rows_[i].result.host_memory.verdict() != Verdict::does_not_fit);
      const double room = (1 + by_packing) * static_cast<double>(memory.limit.count());
      if (!is_near || static_cast<double>(memory.peak_allocated.count()) > room) continue;
      if (!found() || figure_of(question_.goal, rows_[i]) < best_figure()) misses.push_back(i);
    }
    std::sort(misses.begin(), misses.end(), [this](std::size_t a, std::size_t b) {
      return figure_of(question_.goal, rows_[a]) < figure_of(question_.goal, rows_[b]);
    });
    if (misses.size() > most_misses) misses.resize(most_misses);
    for (const std::size_t row : misses) {
      pack(row, PlanPart::memory, 1);
      pack(row, PlanPart::order, 1 - trifle);  // which take longest to plan
    }
  }
  // Unless the best is that good without.
  void pack(std::size_t row, PlanPart part, double share) {
    if (found() && figure_of(question_.goal, rows_[row]) >= share * best_figure()) return;
    std::vector<FitPoint> points;
    for (FitMove& move : moves_.packings(of_row_[row], part)) points.push_back(std::move(move.point));
    replay("what lacks little memory packed better", points);
  }

  // As given, and on the way to the best.
  void search_fates() {
    std::vector<FitPoint> points;
    for (FitMove& move : moves_.searched(points_.as_given()))
      if (is_worth_searching(move.point)) points.push_back(std::move(move.point));
    replay("fates of single tensors searched", points);
    if (found()) climb([this](const FitPoint& point) { return moves_.searched(point); });
  }

  // The scenario as given with its tensors' fates searched: not where its state alone is too much, nor where it would
  // be no better if everything stayed and had the room.
  [[nodiscard]] bool is_worth_searching(const FitPoint& point) {
    if (!screen_) return true;
    const FitEstimate estimate = screen_->estimate(std::span(&point, 1)).front();
    if (!estimate.invalid.empty() || estimate.holds_too_much) return false;
    const bool keeps = points_.as_given().setup.recompute == Recompute::none && !subject_.parsed.offload.moves();
    const bool is_about_time = question_.goal == FitGoal::speed || question_.goal == FitGoal::cost;
    return !found() || !keeps || !is_about_time || !rows_.front().ran() ||
           rows_.front().result.step_time < rows_[*best_].result.step_time;
  }

  // While the last round was worth another.
  template <class Moves>
  void climb(const Moves& moves_from) {
    std::set<std::string> lost;
    for (std::size_t round = 0; round < most_rounds && best_; ++round) {
      const std::size_t from = *best_;
      std::vector<FitMove> moves = moves_from(of_row_[from]);
      std::erase_if(moves, [&](const FitMove& move) { return lost.contains(move.name); });
      drop_hopeless(moves);
      std::vector<FitPoint> points;
      for (const FitMove& move : moves) points.push_back(move.point);
      const bool more = replay(fmt::format("moves from the best way, round {}", round + 1), points);
      for (const FitMove& move : moves)
        if (!move.is_layout && lost_to(move.point, from)) lost.insert(move.name);
      if (!more || !is_worth_another(from)) return;
    }
  }

  // Whether the best way now is better than this one by more than a trifle.
  [[nodiscard]] bool is_worth_another(std::size_t from) const {
    if (*best_ == from || rank(*best_) >= rank(from)) return false;
    const Rank now = rank(*best_), before = rank(from);
    if (std::get<0>(now) != std::get<0>(before)) return true;
    const double a = std::get<1>(now), b = std::get<1>(before);
    return !(std::abs(a - b) <= trifle * std::abs(b)) || std::get<2>(now) < (1 - trifle) * std::get<2>(before);
  }

  // By their estimates.
  void drop_hopeless(std::vector<FitMove>& moves) {
    if (!screen_) return;
    std::vector<FitPoint> points;
    for (const FitMove& move : moves) points.push_back(move.point);
    const std::vector<FitEstimate> estimates = screen_->estimate(points);
    std::size_t at = 0;
    std::erase_if(moves, [&](const FitMove& move) {
      const FitEstimate& estimate = estimates[at++];
      const Candidate one{move.point, estimate, figure_of_estimate(move.point, estimate)};
      const double margin = estimate.is_bound ? bound_margin : 2 * memory_margin;
      return !estimate.invalid.empty() || !fits_perhaps(one, margin) || (move.is_layout && !may_beat(one)) ||
             (!estimate.is_bound && !may_beat(one));
    });
  }

  [[nodiscard]] bool lost_to(const FitPoint& point, std::size_t from) const {
    const auto seen = seen_.find(points_.settings(point));
    if (seen == seen_.end()) return false;
    const Rank a = rank(seen->second), b = rank(from);
    if (std::get<0>(a) != std::get<0>(b)) return std::get<0>(a) > std::get<0>(b);
    return std::get<1>(a) > 0 ? std::get<1>(a) > lost_clearly * std::get<1>(b) : std::get<1>(a) > std::get<1>(b);
  }

  // ---- the end ----

  void ablate() {
    if (!found()) return;
    const std::size_t winner = *best_;
    const std::vector<FitMove> removals = moves_.removals(of_row_[winner]);
    std::vector<FitPoint> points;
    for (const FitMove& move : removals) points.push_back(move.point);
    replay("the best way without each technique", points, true);
    if (*best_ != winner) return ablate();  // it was better without one
    for (const FitMove& move : removals)
      if (const auto at = seen_.find(points_.settings(move.point)); at != seen_.end())
        worth_.emplace_back(move.name, at->second);
  }

  FitOutcome finish() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].is_done) order.push_back(i);
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    std::map<std::size_t, std::size_t> place;
    for (const std::size_t row : order) {
      place[row] = outcome_.ways.size();
      outcome_.fitting += rows_[row].is_yes() ? 1 : 0;
      FitWay& way = outcome_.ways.emplace_back();
      way.row = rows_[row];
      way.family = kind_of(of_row_[row]);
      way.changes_maths = points_.changes_maths(of_row_[row]);
      if (way.row.ran()) way.binding_provenance = binding_provenance(way.row.result, subject_.hardware);
    }
    for (const auto& [name, row] : worth_)
      if (place.contains(row)) outcome_.worth.push_back({name, place[row]});
    require_some();
    tell_what_is_missing();
    return std::move(outcome_);
  }

  // Of what is shown and doesn't fit: the nearest ways, and those without a technique. The search asks no replay for
  // it.
  void tell_what_is_missing() {
    constexpr std::size_t most_nearest = 3;
    if (outcome_.stopped) return;
    std::vector<std::size_t> shown;
    if (outcome_.fitting == 0)
      for (std::size_t i = 0; i < std::min(most_nearest, outcome_.ways.size()); ++i) shown.push_back(i);
    for (const FitAblation& worth : outcome_.worth) shown.push_back(worth.way);
    std::erase_if(shown, [this](std::size_t i) {
      const WayRow& row = outcome_.ways[i].row;
      return !row.ran() || row.result.may_fit();
    });
    std::vector<Way> ways;
    for (const std::size_t i : shown) ways.push_back(outcome_.ways[i].row.way);
    const std::vector<WayRow> rows =
        evaluate_ways(subject_.scenario, ways, {.detail = Detail::figures, .store = options_.store});
    for (std::size_t i = 0; i < shown.size(); ++i)
      if (rows[i].ran()) outcome_.ways[shown[i]].row.result.memory.short_of = rows[i].result.memory.short_of;
  }

  void require_some() const {
    if (outcome_.ways.empty() || outcome_.ways.front().row.ran() || outcome_.stopped) return;
    throw InputError(subject_.scenario.path, "", "no way can be run; as given: " + rows_.front().error,
                     "change the question: sequences, their number, machines");
  }

  const FitQuestion& question_;
  const FitSubject& subject_;
  const FitOptions& options_;
  FitPoints points_;
  FitMoves moves_;
  std::optional<FitScreen> screen_;
  double usd_per_hour_ = 0;
  FitOutcome outcome_;
  std::vector<WayRow> rows_;
  std::vector<FitPoint> of_row_;
  std::map<Settings, std::size_t> seen_;  // rows by their edits
  std::optional<std::size_t> best_;
  std::map<PeakClass, std::pair<double, double>> peak_ratios_;  // replayed over estimated: sum, count
  std::vector<std::pair<std::string, std::size_t>> worth_;
  bool stopped_ = false;
};

}  // namespace

const Result* FitOutcome::unknown() const {
  const auto may_fit = [](const FitWay& way) {
    return way.row.ran() && way.row.result.verdict() == Verdict::unknown && way.row.result.drives_refuse.empty();
  };
  const auto found = any() ? ways.end() : std::find_if(ways.begin(), ways.end(), may_fit);
  return found == ways.end() ? nullptr : &found->row.result;
}

std::size_t FitOutcome::best_of_same_maths() const {
  for (std::size_t i = 0; i < fitting; ++i)
    if (!ways[i].changes_maths) return i;
  return ways.size();
}

FitOutcome find_fit(const FitQuestion& question, const FitSubject& subject, const FitOptions& options) {
  return Search(question, subject, options).run();
}

}  // namespace spillway::studies
