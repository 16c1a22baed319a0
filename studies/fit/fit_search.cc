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
#include "models/spec/training_setup_fields.h"
#include "planners/offload/drive_life.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique/technique_table.h"
#include "studies/candidates/objective.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/fit_layouts.h"
#include "studies/fit/fit_prospects.h"
#include "studies/fit/fit_rank.h"
#include "studies/fit/fit_space.h"
#include "studies/fit/way_mechanisms.h"

namespace spillway::studies {
namespace {

constexpr double memory_margin = 0.15;  // of estimates, against replays
constexpr double comparable = 1.6;      // times the best: shown beside it
constexpr double bound_margin = 0.1;    // of bounds, whose closed forms are off as well
constexpr std::size_t wave = 4;         // replays between two looks at what is known
constexpr std::size_t most_layouts = 40, most_rounds = 8;
constexpr double of_layouts = 0.7;  // of the work: the rest is for what the best of them lack

struct Stopped {};

class Search {
 public:
  Search(const FitQuestion& question, const FitSubject& subject, const FitOptions& options)
      : question_(question),
        subject_(subject),
        options_(options),
        points_(subject),
        moves_(question, subject, points_) {
    if (subject.model) prospects_.emplace(question, subject, points_);
    usd_per_hour_ = rates_of(subject.hardware).usd_per_hour;
  }

  FitOutcome run() {
    try {
      replay("as given", {points_.as_given()});
      if (question_.goal == FitGoal::change) single_moves();
      if (subject_.model) look_at_layouts();
      if (!does_work(rows_.front())) single_moves();
      climb("changes of the best set-up",
            [this](const FitPoint& point) { return moves_.from(point, found(), Carrier::frameworks); });
      improve_on_gpus_alone();
      pack_near_misses();
      move_activations();
      search_fates();
      if (question_.research)
        climb("edits that nobody runs",
              [this](const FitPoint& point) { return moves_.from(point, found(), Carrier::nobody); });
      change_numerics();
      ablate();
    } catch (const Stopped&) {
      outcome_.stopped = true;
    } catch (const Cancelled&) {
      outcome_.stopped = true;
    }
    return finish();
  }

 private:
  using Settings = std::vector<std::string>;

  // ---- replays ----

  // Those that are new; false: what the question allows is used up. on_top: half of it may be used once more.
  bool replay(const std::string& what, const std::vector<FitPoint>& points, bool on_top = false) {
    std::vector<Candidate> fresh;
    std::vector<FitPoint> of;
    for (const FitPoint& asked : points) {
      const std::size_t next = rows_.size() + fresh.size();
      const auto [place, is_new] = seen_.try_emplace(points_.settings(asked), next);
      if (!is_new) continue;
      const std::optional<FitPoint> point = next == 0 || question_.launcher.empty()
                                                ? asked
                                                : launched_point(subject_, points_, asked, question_.launcher);
      if (point) place->second = seen_.try_emplace(points_.settings(*point), next).first->second;
      if (!point) place->second = no_row;
      if (place->second != next) continue;
      if (next > 0 && !has_room_for(*point, next, on_top)) {
        seen_.erase(points_.settings(*point));
        seen_.erase(points_.settings(asked));
        outcome_.exhausted |= !on_top && share_ == 1;
        is_share_used_ |= share_ < 1;
        break;
      }
      outcome_.work += points_.work(*point);
      fresh.push_back(points_.candidate(*point));
      of.push_back(*point);
    }
    const auto progress = [&](const Row& /*row*/, std::size_t /*done*/, std::size_t /*all*/) {
      return goes_on(what, ++outcome_.replayed);
    };
    std::vector<Row> rows = evaluate(subject_.scenario, fresh, {.store = options_.store, .progress = progress});
    bool whole = true;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      whole &= rows[i].is_done;
      take(std::move(rows[i]), of[i]);
    }
    if (!whole || stopped_) throw Stopped{};
    return !outcome_.exhausted && !(is_share_used_ && share_ < 1);
  }

  // None: it was not replayed.
  [[nodiscard]] std::optional<std::size_t> row_of(const FitPoint& point) const {
    const auto seen = seen_.find(points_.settings(point));
    return seen == seen_.end() || seen->second == no_row ? std::nullopt : std::optional(seen->second);
  }

  [[nodiscard]] bool has_room_for(const FitPoint& point, std::size_t replays, bool on_top) const {
    const auto work = static_cast<std::int64_t>(static_cast<double>(question_.work) * (on_top ? 1.5 : share_));
    return (on_top || static_cast<std::int64_t>(replays) <= question_.replays) &&
           outcome_.work + points_.work(point) <= work;
  }

  void take(Row row, const FitPoint& point) {
    rows_.push_back(std::move(row));
    of_row_.push_back(point);
    const std::size_t index = rows_.size() - 1;
    if (rows_[index].is_done && (!best_ || rank(index) < rank(*best_))) best_ = index;
  }

  [[nodiscard]] bool goes_on(const std::string& what, std::size_t replays) {
    const std::string best =
        found() ? fmt::format("; best so far {:.3g} s a step", to_seconds(rows_[*best_].result.step_time)) : "";
    if (options_.progress && !options_.progress(what + best, replays)) stopped_ = true;
    return !stopped_;
  }

  // Where they are asked for, other numerics are ranked among the same training.
  [[nodiscard]] FitGroup group_of(const FitPoint& point) const {
    return studies::group_of(carrier_of(points_, point), points_.changes_maths(point) && !question_.any_numerics);
  }
  [[nodiscard]] FitRank rank(std::size_t row) const {
    return rank_of(question_.goal, rows_[row], group_of(of_row_[row]));
  }
  [[nodiscard]] bool found() const { return best_ && does_work(rows_[*best_]); }
  [[nodiscard]] std::optional<std::size_t> found_best() const { return found() ? best_ : std::nullopt; }
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
    if (question_.few_layouts)
      std::erase_if(layouts, [](const FitPoint& point) { return ways_split(point.setup) > 1; });
    outcome_.screened += layouts.size();
    FitSpace space(subject_, points_, moves_, *prospects_, &bounds_);
    try_recipes(layouts, space);
    const std::vector<Prospect> candidates = space.over(std::move(layouts));
    for (const Prospect& one : space.too_large()) faster_with_room_.push_back(one.point);
    if (is_verbose())
      log_choice("search", fmt::format("{} set-ups that may run, {} shapes measured", candidates.size(),
                                       prospects_->screen().shapes()));
    share_ = of_layouts;
    replay_best("layouts replayed", candidates, most_layouts);
    share_ = 1;
    if (!found()) replay_best("what lacks little replayed", candidates, most_layouts, memory_margin);
    relieve(near_misses(found_best()));
    if (found()) return;
    std::vector<Prospect> least = on_drives(candidates);
    replay_best("states on drives replayed", least, most_layouts / 4);
    if (found()) return;
    least.insert(least.end(), candidates.begin(), candidates.end());
    std::stable_sort(least.begin(), least.end(),
                     [](const Prospect& a, const Prospect& b) { return a.estimate.peak < b.estimate.peak; });
    if (least.size() > wave) least.resize(wave);
    replay_best("set-ups that hold least simulated", least, wave, 1);
  }

  // What somebody with experience tries first, so that there soon is a way that people can run: layouts of is_recipe()
  // as they are, with all layers computed again and lean kernels, and with the optimizer on the CPU besides. What is
  // soon replayed goes first, until one fits.
  void try_recipes(const std::vector<FitPoint>& layouts, FitSpace& space) {
    constexpr std::size_t most = 6;
    std::vector<FitPoint> points;
    for (const FitPoint& layout : layouts) {
      if (!is_recipe(subject_, layout.setup)) continue;
      const FitPoint least = points_.with(moves_.lean(layout), {setting(recompute_key, to_string(Recompute::full))});
      points.push_back(layout);
      points.push_back(least);
      if (layout.setup.shared_stage() > 0)
        points.push_back(points_.with(least, {setting(optimizer_device_key, to_string(StateDevice::cpu))}));
    }
    std::vector<Prospect> recipes = space.estimated(std::move(points));
    std::erase_if(recipes, [this](const Prospect& one) { return !prospects_->fits_perhaps(one, 0); });
    std::stable_partition(recipes.begin(), recipes.end(),
                          [this](const Prospect& one) { return points_.work(one.point) <= question_.work / 20; });
    for (std::size_t i = 0; i < std::min(most, recipes.size()) && !found(); ++i)
      if (!replay_all("recipes replayed", {&recipes[i]})) return;
  }
  // The last resort.
  std::vector<Prospect> on_drives(const std::vector<Prospect>& candidates) {
    constexpr std::size_t most_bases = 100;
    std::vector<FitPoint> points;
    for (const Prospect& one : candidates) {
      if (points.size() >= most_bases) break;
      for (FitMove& move : moves_.states_on_drives(one.point)) points.push_back(std::move(move.point));
    }
    return prospects_->estimated(std::move(points));
  }

  // From its replay, if there was one.
  void learn(const Prospect& one) {
    const std::optional<std::size_t> row = row_of(one.point);
    if (row && rows_[*row].ran()) prospects_->learn(one, rows_[*row].result);
  }

  // Whether it could be better than what was found, or so many times worse at most.
  [[nodiscard]] bool may_beat(const Prospect& one, double times = 1) const {
    if (!found() || one.estimate.seconds <= 0) return true;
    const double ratio = prospects_->least_time_ratio(one) / times;
    if (question_.goal == FitGoal::life || question_.goal == FitGoal::gpus)
      return one.estimate.seconds * ratio < to_seconds(rows_[*best_].result.step_time);
    const double scale = question_.goal == FitGoal::cost ? estimate_scale() : 1;
    return one.figure * scale * ratio < best_figure();
  }
  // From GPU seconds to USD per million tokens.
  [[nodiscard]] double estimate_scale() const {
    const double tokens = static_cast<double>(rows_[*best_].tokens_per_step);
    return usd_per_hour_ > 0 && tokens > 0 ? usd_per_hour_ / 3600 / tokens * 1e6 : 1;
  }

  // So many: the best by each mechanism, for comparison, and of each kind; then the best of all, what was replayed
  // teaching which of the rest need not be. In the order of `candidates`. margin: of memory, by which estimates may be
  // too high.
  void replay_best(const std::string& what, const std::vector<Prospect>& candidates, std::size_t most,
                   double margin = 0) {
    using Mechanism = std::tuple<StateDevice, StateDevice, int, std::string>;
    std::set<Mechanism> mechanisms;
    std::set<FitProspects::Kind> kinds;
    std::vector<const Prospect*> compared, first, rest;
    for (const Prospect& one : candidates) {
      if (!prospects_->fits_perhaps(one, one.estimate.is_bound ? std::max(margin, bound_margin) : margin)) continue;
      const FitProspects::Kind kind = FitProspects::kind_of(one);
      const auto& [stage, is_pipelined, splits_sequences, recomputes, optimizer, weights, technique] = kind;
      const bool is_first = kinds.insert(kind).second;
      const bool is_compared = mechanisms.emplace(optimizer, weights, recomputes, technique).second;
      (is_compared ? compared : is_first ? first : rest).push_back(&one);
    }
    const auto is_wanted = [&](const Prospect& one, double times) {
      return !seen_.contains(points_.settings(one.point)) && prospects_->fits_as_learnt(one) && may_beat(one, times);
    };
    std::size_t done = 0;
    for (const std::vector<const Prospect*>* list : {&compared, &first, &rest})
      for (auto at = list->begin(); at != list->end();) {
        std::vector<const Prospect*> next;
        for (; at != list->end() && next.size() < wave; ++at)
          if (is_wanted(**at, list == &compared ? comparable : 1)) next.push_back(*at);
        is_cut_ |= !found() && margin < 1 && done + next.size() > most;
        if (next.size() > most - done) next.resize(most - done);
        if (next.empty()) break;
        done += next.size();
        if (!replay_all(what, next)) return;
      }
  }
  bool replay_all(const std::string& what, const std::vector<const Prospect*>& candidates) {
    std::vector<FitPoint> points;
    for (const Prospect* one : candidates) points.push_back(one->point);
    const bool more = replay(what, points);
    for (const Prospect* one : candidates) learn(*one);
    return more;
  }

  // ---- one move at a time ----

  void single_moves() {
    std::vector<FitMove> moves = moves_.from(points_.as_given(), does_work(rows_.front()), Carrier::frameworks);
    if (question_.goal != FitGoal::change) drop_hopeless(moves);
    std::vector<FitPoint> points;
    for (FitMove& move : moves) points.push_back(std::move(move.point));
    replay("single edits replayed", points);
  }

  // Ways that would be better than this one, had they a little more room, the best of them. alone: on the GPUs alone.
  [[nodiscard]] std::vector<std::size_t> near_misses(std::optional<std::size_t> best, bool alone = false) const {
    constexpr std::size_t most_misses = 4;
    constexpr double by_packing = 0.1;  // of the capacity
    std::vector<std::size_t> misses;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const FitClass is = class_of(rows_[i]);
      const MemoryResult& memory = rows_[i].result.memory;
      const bool is_near =
          is == FitClass::tight || (is == FitClass::too_large && rows_[i].result.drives_refuse.empty() &&
                                    rows_[i].result.host_memory.verdict() != Verdict::does_not_fit);
      const double room = (1 + by_packing) * static_cast<double>(memory.limit.count());
      if (!is_near || static_cast<double>(memory.peak_allocated.count()) > room) continue;
      if (alone && tier_of(rows_[i].result) > 0) continue;
      if (!best || figure_of(question_.goal, rows_[i]) < figure_of(question_.goal, rows_[*best])) misses.push_back(i);
    }
    std::sort(misses.begin(), misses.end(), [this](std::size_t a, std::size_t b) {
      return figure_of(question_.goal, rows_[a]) < figure_of(question_.goal, rows_[b]);
    });
    if (misses.size() > most_misses) misses.resize(most_misses);
    return misses;
  }

  // With a little less on the GPU, for a little time: what estimates called a fit, and its replay did not.
  void relieve(const std::vector<std::size_t>& misses) {
    std::vector<FitPoint> points;
    for (const std::size_t row : misses)
      for (FitMove& move : moves_.relieved(of_row_[row])) points.push_back(std::move(move.point));
    replay("what lacks little, with less on the GPU", points);
  }

  // What packs them better may give the room.
  void pack_near_misses() {
    for (const std::size_t row : near_misses(found_best())) {
      pack(row, PlanPart::memory, 1);
      pack(row, PlanPart::order, 1 - fit_trifle);  // which take longest to plan
    }
  }
  // Unless the best is that good without.
  void pack(std::size_t row, PlanPart part, double share) {
    if (found() && figure_of(question_.goal, rows_[row]) >= share * best_figure()) return;
    std::vector<FitPoint> points;
    for (FitMove& move : moves_.packings(of_row_[row], part)) points.push_back(std::move(move.point));
    replay("what lacks little memory packed better", points);
  }

  // Activations that leave, where the step would be faster if it had the room: as given, as the best, as what was
  // estimated to be faster than it.
  void move_activations() {
    constexpr std::size_t most = 8, most_bases = 12;
    std::vector<FitPoint> bases = {points_.as_given()}, points;
    if (best_) bases.push_back(of_row_[*best_]);
    for (const FitPoint& base : faster_with_room_)
      if (bases.size() < most_bases) bases.push_back(base);
    for (FitPoint& base : bases) {
      if (subject_.model) base = points_.with(base, {setting(recompute_key, to_string(Recompute::none))});
      for (FitMove& move : moves_.activations_moved(base)) points.push_back(std::move(move.point));
    }
    if (!prospects_) {
      replay("activations moved", points);
      return;
    }
    replay_best("activations moved", prospects_->estimated(std::move(points)), most);
  }

  // As given, and on the way to the best.
  void search_fates() {
    std::vector<FitPoint> points;
    for (FitMove& move : moves_.searched(points_.as_given()))
      if (is_worth_searching(move.point)) points.push_back(std::move(move.point));
    replay("decisions for single tensors searched", points);
    if (found())
      climb("decisions for each tensor searched", [this](const FitPoint& point) { return moves_.searched(point); });
  }

  // What trains otherwise, on the layout of the best way and its neighbours: with everything on the GPUs, which less
  // state may have room for, and as the best way is.
  void change_numerics() {
    constexpr std::size_t most_each = 3;
    if (question_.same_maths || !subject_.model || !best_) return;
    FitPoint base = points_.with(of_row_[*best_],
                                 {setting(optimizer_device_key, to_string(StateDevice::gpu)),
                                  setting("model.weight_device", to_string(StateDevice::gpu)),
                                  setting(recompute_key, to_string(Recompute::none)), setting(offload_key, no_offload),
                                  "model.micro_batch=1", "model.delayed_update=false"});
    std::vector<FitPoint> layouts = neighbouring_layouts(subject_, points_, base);
    layouts.push_back(base);
    std::map<std::string, std::vector<FitPoint>> by_move;
    for (const FitPoint& layout : layouts)
      for (FitMove& move : moves_.other_maths(layout)) by_move[move.name].push_back(std::move(move.point));
    for (auto& [name, points] : by_move)
      replay_best("other numerics: " + name, FitSpace(subject_, points_, moves_, *prospects_).over(std::move(points)),
                  most_each);
    if (found()) climb("other numerics", [this](const FitPoint& point) { return moves_.other_maths(point); });
  }

  // The scenario as given with its tensors' decisions for each tensor searched: not where its state alone is too much,
  // nor where it would be no better if everything stayed and had the room.
  [[nodiscard]] bool is_worth_searching(const FitPoint& point) {
    if (!prospects_) return true;
    const FitEstimate estimate = prospects_->screen().estimate(std::span(&point, 1)).front();
    if (!estimate.invalid.empty() || estimate.holds_too_much) return false;
    const bool keeps = points_.as_given().setup.recompute == Recompute::none && !subject_.parsed.offload.moves();
    const bool is_about_time = question_.goal == FitGoal::speed || question_.goal == FitGoal::cost;
    return !found() || !keeps || !is_about_time || !rows_.front().ran() ||
           rows_.front().result.step_time < rows_[*best_].result.step_time;
  }

  // While the last round was worth another: all changes of the best set-up, then those again that made it better
  // before, and at last all that were not tried on what came of it.
  template <class Moves>
  void climb(const std::string& what, const Moves& moves_from) {
    climb(what, moves_from, [this] { return best_; });
  }
  // The same of another kind of best.
  template <class Moves, class Best>
  void climb(const std::string& what, const Moves& moves_from, const Best& best) {
    std::set<std::string> lost;
    for (std::size_t round = 0; round < most_rounds && best(); ++round) {
      const std::size_t from = *best();
      std::vector<FitMove> moves = moves_from(of_row_[from]);
      const bool is_whole = lost.empty();
      std::erase_if(moves,
                    [&](const FitMove& move) { return lost.contains(move.name) || is_idle(move, of_row_[from]); });
      const std::vector<Prospect> fresh = drop_hopeless(moves);
      std::vector<FitPoint> points;
      for (const FitMove& move : moves) points.push_back(move.point);
      const bool more = replay(fmt::format("{}, round {}", what, round + 1), points);
      for (const Prospect& one : fresh) learn(one);
      for (const FitMove& move : moves)
        if (!move.is_layout && lost_to(move.point, from)) lost.insert(move.name);
      if (!more) return;
      const std::optional<std::size_t> now = best();
      if (now && is_worth_another(*now, from)) continue;
      if (is_whole) return;
      lost.clear();  // what lost elsewhere may gain here
    }
  }

  // Makes the same step: keys that have no effect there.
  [[nodiscard]] bool is_idle(const FitMove& move, const FitPoint& from) const {
    if (!subject_.model || move.point.others != from.others) return false;
    try {
      const TrainingSetup a = step_setup(*subject_.model, resolve(move.point.setup, *subject_.model));
      const TrainingSetup b = step_setup(*subject_.model, resolve(from.setup, *subject_.model));
      const std::vector<std::string>& keys = training_setup_keys();
      return std::all_of(keys.begin(), keys.end(),
                         [&](const std::string& key) { return field_text(a, key) == field_text(b, key); });
    } catch (const InputError&) {
      return true;  // no set-up
    }
  }

  // Whether the way now is better than this one by more than a fit_trifle.
  [[nodiscard]] bool is_worth_another(std::size_t now, std::size_t from) const {
    if (now == from || rank(now) >= rank(from)) return false;
    if (!does_work(rows_[from])) return true;
    const double a = figure_of(question_.goal, rows_[now]), b = figure_of(question_.goal, rows_[from]);
    return !(std::abs(a - b) <= fit_trifle * std::abs(b)) ||
           to_seconds(rows_[now].result.step_time) < (1 - fit_trifle) * to_seconds(rows_[from].result.step_time);
  }

  // A change may make it the first.
  void improve_on_gpus_alone() {
    const bool is_about_time = question_.goal == FitGoal::speed || question_.goal == FitGoal::cost;
    if (!is_about_time || !found() || tier_of(rows_[*best_].result) == 0) return;
    const auto best = [this] { return on_gpus_alone(); };
    const auto changes = [this](const FitPoint& point) {
      std::vector<FitMove> moves = moves_.from(point, true, Carrier::frameworks);
      std::erase_if(moves, [](const FitMove& move) {
        const TrainingSetup& setup = move.point.setup;
        return setup.optimizer_device != StateDevice::gpu || setup.weight_device != StateDevice::gpu;
      });
      return moves;
    };
    climb("changes of the best on the GPUs alone", changes, best);
    if (best()) relieve(near_misses(best(), true));
  }

  // The best without host and drives, where the best of all is hardly better: a change may make it the first that
  // people are shown (shown_order()). None: there is none such.
  [[nodiscard]] std::optional<std::size_t> on_gpus_alone() const {
    constexpr double hardly = 1.05;
    std::optional<std::size_t> least;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (does_work(rows_[i]) && tier_of(rows_[i].result) == 0 && group_of(of_row_[i]) == FitGroup::same &&
          figure_of(question_.goal, rows_[i]) < hardly * best_figure() && (!least || rank(i) < rank(*least)))
        least = i;
    return least;
  }

  // By their estimates: those of what is left and was not replayed yet.
  std::vector<Prospect> drop_hopeless(std::vector<FitMove>& moves) {
    std::vector<Prospect> fresh;
    if (!prospects_) return fresh;
    std::vector<FitPoint> points;
    for (const FitMove& move : moves) points.push_back(move.point);
    const std::vector<FitEstimate> estimates = prospects_->screen().estimate(points);
    std::size_t at = 0;
    std::erase_if(moves, [&](const FitMove& move) {
      const FitEstimate& estimate = estimates[at++];
      const Prospect one{move.point, estimate, prospects_->figure_of(move.point, estimate)};
      const double margin = estimate.is_bound ? bound_margin : 2 * memory_margin;
      const bool is_hopeless = !estimate.invalid.empty() || !prospects_->fits_perhaps(one, margin) ||
                               ((move.is_layout || !estimate.is_bound) && !may_beat(one));
      if (!is_hopeless && !seen_.contains(points_.settings(move.point))) fresh.push_back(one);
      return is_hopeless;
    });
    return fresh;
  }

  [[nodiscard]] bool lost_to(const FitPoint& point, std::size_t from) const {
    const std::optional<std::size_t> row = row_of(point);
    return row ? rank(*row) >= rank(from) : seen_.contains(points_.settings(point));
  }

  // ---- the end ----

  // Of all rows that were replayed, as people are shown them.
  [[nodiscard]] std::vector<std::size_t> done_in_order() const {
    std::vector<std::size_t> done;
    std::vector<RankedRow> ranked;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].is_done) continue;
      done.push_back(i);
      ranked.push_back({&rows_[i], group_of(of_row_[i]), mechanisms_of(points_, of_row_[i])});
    }
    std::vector<std::size_t> order = shown_order(question_.goal, ranked);
    for (std::size_t& at : order) at = done[at];
    return order;
  }

  void ablate() {
    if (!found()) return;
    const std::size_t winner = done_in_order().front();
    const std::vector<FitMove> removals = moves_.removals(of_row_[winner]);
    std::vector<FitPoint> points;
    for (const FitMove& move : removals) points.push_back(move.point);
    replay("the best set-up without each technique", points, true);
    if (done_in_order().front() != winner) return ablate();  // it was better without one
    for (const FitMove& move : removals)
      if (const std::optional<std::size_t> row = row_of(move.point)) worth_.emplace_back(move.name, *row);
  }

  FitOutcome finish() {
    std::map<std::size_t, std::size_t> place;
    for (const std::size_t row : done_in_order()) {
      place[row] = outcome_.ways.size();
      outcome_.fitting += does_fit(rows_[row]) ? 1 : 0;
      FitWay& way = outcome_.ways.emplace_back();
      way.row = rows_[row];
      way.layout = layout_of(of_row_[row].setup);
      way.carrier = carrier_of(points_, of_row_[row]);
      way.changes_maths = points_.changes_maths(of_row_[row]);
      way.mechanisms = mechanisms_of(points_, of_row_[row]);
      if (way.row.ran()) way.binding_provenance = binding_provenance(way.row.result, subject_.hardware);
    }
    for (const auto& [name, row] : worth_)
      if (place.contains(row)) outcome_.worth.push_back({name, place[row]});
    outcome_.exhausted |= is_share_used_ || (is_cut_ && !outcome_.any());
    require_some();
    tell_what_is_proven();
    if (!outcome_.stopped) find_shortages(subject_, options_.store, outcome_);
    return std::move(outcome_);
  }

  void tell_what_is_proven() {
    const bool by_cost = question_.goal == FitGoal::cost;
    if (!found() || bounds_.empty() || (question_.goal != FitGoal::speed && !by_cost)) return;
    const Row& best = rows_[*best_];
    outcome_.proof =
        bounds_.against(to_seconds(best.result.step_time), best.gpus, by_cost, prospects_->screen().whole_capacity(),
                        [this](const Settings& settings) { return seen_.contains(settings); });
  }

  void require_some() const {
    if (outcome_.ways.empty() || outcome_.ways.front().row.ran() || outcome_.stopped) return;
    throw InputError(subject_.scenario.path, "", "no set-up can be run; as given: " + rows_.front().error,
                     "change the question: sequences, their number, machines");
  }

  const FitQuestion& question_;
  const FitSubject& subject_;
  const FitOptions& options_;
  FitPoints points_;
  FitMoves moves_;
  std::optional<FitProspects> prospects_;  // of a model
  double usd_per_hour_ = 0, share_ = 1;    // share_: of the work, that may be taken now
  FitOutcome outcome_;
  std::vector<Row> rows_;
  std::vector<FitPoint> of_row_;
  static constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();
  std::map<Settings, std::size_t> seen_;  // rows by their edits; no_row: the question's launcher has no such set-up
  std::optional<std::size_t> best_;
  FitBounds bounds_;
  std::vector<FitPoint> faster_with_room_;  // too large with everything kept, the fastest first
  std::vector<std::pair<std::string, std::size_t>> worth_;
  bool stopped_ = false, is_share_used_ = false,
       is_cut_ = false;  // more seemed to fit than a list replays, while none was found to
};

}  // namespace

FitOutcome find_fit(const FitQuestion& question, const FitSubject& subject, const FitOptions& options) {
  return Search(question, subject, options).run();
}

}  // namespace spillway::studies
