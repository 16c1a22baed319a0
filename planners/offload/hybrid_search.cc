#include "planners/offload/hybrid_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/drive_life.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/tensor_fates.h"
#include "planners/recompute/closure.h"
#include "planners/recompute/layer_plans.h"
#include "planners/recompute/recompute_run.h"

namespace spillway::planners {
namespace {

constexpr int shares = 6;      // of tensors made again that are tried
constexpr int bisections = 7;  // of the share that leaves
// Of the budget, as unfinished stores may hold; the first while shares are tried.
constexpr std::array<int, 4> in_flight_shares = {20, 40, 80, 10};
constexpr std::size_t most_moves = 64;  // choices up to which single tensors are moved

const ReplayVariation without_limit{.detail = Detail::times, .ideal_memory = true};

// What makes one case better than another: fitting, else coming nearer; then time; then fewer bytes written.
struct Rank {
  bool may_fit = false;
  Bytes excess{};
  Picos time{};
  Bytes moved{};
  friend bool operator<(const Rank& a, const Rank& b) {
    if (a.may_fit != b.may_fit) return a.may_fit;
    if (!a.may_fit && a.excess != b.excess) return a.excess < b.excess;
    return std::tie(a.time, a.moved) < std::tie(b.time, b.moved);
  }
};

// Evenly over the list: every beginning of the result is spread over all of it (van der Corput's order).
std::vector<std::size_t> spread(const std::vector<std::size_t>& list) {
  std::vector<std::pair<std::uint32_t, std::size_t>> keyed;
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    std::uint32_t reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= ((i >> bit) & 1U) << (31 - bit);
    keyed.emplace_back(reversed, list[i]);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::size_t> order;
  for (const auto& [key, item] : keyed) order.push_back(item);
  return order;
}

ReplayVariation limit_of(const HybridSettings& settings, std::optional<Detail> detail) {
  ReplayVariation variation{.detail = detail};
  if (settings.budget > Bytes(0)) variation.capacity = settings.budget;
  return variation;
}

class HybridSearch {
 public:
  HybridSearch(const Trace& trace, const Replayer& replayer, const HybridSettings& settings,
               const std::function<bool(std::int64_t, std::int64_t)>& progress)
      : trace_(trace),
        replayer_(replayer),
        limited_(replayer, limit_of(settings, Detail::times)),
        detailed_(replayer, limit_of(settings, std::nullopt)),
        hardware_(replayer.hardware()),
        settings_(settings),
        progress_(progress),
        saved_(saved_tensors(trace)),
        index_(trace, saved_) {
    in_flight_ = in_flight_of(in_flight_shares.front());
    most_ = settings.replays > 0
                ? settings.replays
                : std::clamp<std::int64_t>(800'000 / static_cast<std::int64_t>(trace.ops.size() + 1), 40, 400);
  }

  HybridOutcome run() {
    run_baselines();
    rank_tensors();
    if (!choice_.empty() && !is_settled()) {
      if (!is_near(best_)) most_ /= 2;
      search_from_seed(most_ / 2);
      limit_ = most_ - (most_ - replays_) / 3;
      search_shares();
      limit_ = most_;
      if (is_near(best_hybrid_)) {
        choose_in_flight();
        refine();
      }
    }
    return finish();
  }

  // As repeat_hybrid().
  std::optional<HybridOutcome> repeat(const Trace& few, const HybridCase& found) {
    const std::vector<SavedTensor> shown = saved_tensors(few);
    const std::optional<Fates> fates = repeated_fates(shown, fates_in(shown, few, found.plan), saved_);
    if (!fates) return std::nullopt;
    add_keep();
    for (const Runner& runner : named_runners)
      if (runner.word == found.technique) {
        add_technique(runner, found.tier);
        return finish();
      }
    if (found.technique == no_offload) return finish();
    rank_tensors();
    in_flight_ = found.plan.in_flight;
    limit_ = most_;
    try_fates(*fates);
    return finish();
  }

 private:
  struct Candidate {
    Fates fates;
    HybridCase found;
    PlannedTrace planned;
    Rank rank;
  };

  // ---- baselines ----

  void run_baselines() {
    add_keep();
    add_techniques({named(ssdtrain_word)});
    const bool has_layers = std::any_of(saved_.begin(), saved_.end(),
                                        [this](const SavedTensor& saved) { return is_of_one_layer(trace_, saved); });
    const bool recomputes = this->recomputes() && has_layers;
    if (recomputes) add_recompute();
    if (is_settled()) return;
    if (recomputes) add_searched_recompute();
    std::vector<Runner> others = {named(lifetimes_word), named(streaming_word)};
    // What leaves besides takes no time off a full recomputation without a limit.
    if (recomputes && !(best_->rank.may_fit && best_->rank.time <= full_recompute_time_))
      others.insert(others.begin(), named(checkpoints_word));
    add_techniques(others);
  }
  void add_keep() {
    add_baseline("keep", OffloadPlan{});
    const HybridCase& keep = outcome_.baselines.front();
    keep_start_ = keep.result.op_start;
    keep_end_ = keep.result.op_end;
  }

  // ---- techniques with a name ----

  struct Runner {
    std::string_view word;
    OffloadOutcome (*run)(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings);
  };
  static constexpr std::array<Runner, 4> named_runners = {{{ssdtrain_word, run_ssdtrain},
                                                           {checkpoints_word, run_checkpoints},
                                                           {lifetimes_word, run_lifetimes},
                                                           {streaming_word, run_streaming}}};
  static const Runner& named(std::string_view word) {
    return *std::find_if(named_runners.begin(), named_runners.end(),
                         [word](const Runner& runner) { return runner.word == word; });
  }
  struct Job {
    const Runner* runner = nullptr;
    Tier tier = Tier::drive;
    OffloadOutcome outcome;
  };
  // To the tiers allowed, in parallel. lifetimes to drives takes the way to host memory as well.
  void add_techniques(const std::vector<Runner>& runners) {
    std::vector<Job> jobs;
    if (hardware_.host.pcie.empty()) return;
    for (const Runner& runner : runners)
      for (const Tier tier : {Tier::drive, Tier::host}) {
        const bool takes_host = tier == Tier::host || runner.word == lifetimes_word;
        if (tier == Tier::drive && (!settings_.drives || hardware_.drives.empty())) continue;
        if (!takes_host || settings_.host) jobs.push_back({&runner, tier, {}});
      }
    in_parallel(jobs.size(), [&](std::size_t j) { run_job(jobs[j]); });
    for (Job& job : jobs) accept_job(std::move(job));
  }
  void add_technique(const Runner& runner, Tier tier) {
    Job job{&runner, tier, {}};
    run_job(job);
    accept_job(std::move(job));
  }
  void run_job(Job& job) const {
    OffloadSettings runtime = settings_.runtime;
    runtime.tier = job.tier;
    job.outcome = job.runner->run(trace_, detailed_, runtime);
  }
  void accept_job(Job job) {
    Candidate candidate;
    candidate.found.name = std::string(job.runner->word) + (job.tier == Tier::drive ? "" : " to host memory");
    candidate.found.technique = job.runner->word;
    candidate.found.tier = job.tier;
    candidate.found.plan = std::move(job.outcome.plan);
    candidate.found.result = std::move(job.outcome.result);
    candidate.planned = std::move(job.outcome.planned);
    judge(candidate);
    accept_baseline(std::move(candidate));
  }

  void add_baseline(const std::string& name, const OffloadPlan& plan) {
    Candidate candidate;
    candidate.found.name = name;
    candidate.found.plan = plan;
    if (plan.empty()) candidate.found.technique = no_offload;
    replay_case(candidate);
    accept_baseline(std::move(candidate));
  }
  // Every layer's activations but its input, made again before the layer's backward; where a layer can be alone.
  void add_recompute() {
    Fates fates(saved_.size(), Fate::keep);
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      const SavedTensor& saved = saved_[i];
      if (is_own(saved)) fates[i] = Fate::again;
    }
    const OffloadPlan plan = plan_of(fates);
    if (!repeats_layers_before(trace_, plan)) add_baseline("full recomputation", plan);
  }
  // The fastest recomputation that fits (recompute_run.h); the search begins from it as well.
  void add_searched_recompute() {
    RecomputeSettings settings;
    settings.budget = limited_.memory_limit();
    const RecomputeOutcome outcome = plan_recompute(
        trace_, limited_, settings, [this](std::int64_t) { return !progress_ || progress_(replays_, most_); });
    add_baseline("recomputation, " + outcome.best.name, outcome.best.plan);
    note_full_recomputation(outcome.best);
    for (const RecomputeCase& other : outcome.others) note_full_recomputation(other);
    seed_ = fates_in(saved_, trace_, outcome.best.plan);
  }
  void note_full_recomputation(const RecomputeCase& one) {
    if (one.name != to_string(RecomputeMethod::full) || !best_->rank.may_fit) return;
    full_recompute_time_ = replayer_.replay(planned_trace(trace_, one.plan), without_limit).step_time;
  }
  void accept_baseline(Candidate candidate) {
    outcome_.baselines.push_back(candidate.found);
    if (!best_ || candidate.rank < best_->rank) best_ = std::move(candidate);
  }
  // What an op needs to run again, inferred uses don't say.
  [[nodiscard]] bool recomputes() const { return settings_.recompute && !trace_.is_inferred(Capability::uses); }
  // Nothing is faster than keeping all where that fits, unless the allocator gives memory back and takes it again.
  bool is_settled() {
    const HybridCase& keep = outcome_.baselines.front();
    if (!keep.fits()) return false;
    if (!is_settled_) is_settled_ = replayer_.replay(trace_, without_limit).step_time >= keep.result.step_time;
    return *is_settled_;
  }

  // ---- replays ----

  void replay_case(Candidate& candidate) {
    OffloadOutcome outcome;
    outcome.plan = candidate.found.plan;
    // Of a baseline, all that the forward saves.
    if (choice_.empty())
      for (const SavedTensor& saved : saved_) outcome.moved.candidates += saved.bytes;
    for (const std::size_t i : choice_) outcome.moved.candidates += saved_[i].bytes;
    replay_with_forwarding(trace_, limited_, outcome);
    OffloadResult& moved = outcome.moved;
    // Recomputed are also tensors that had no choice.
    moved.kept = std::max(Bytes(0), moved.candidates - (moved.stored - moved.forwarded) - moved.recomputed);
    outcome.result.offload = moved;
    candidate.found.plan = std::move(outcome.plan);
    candidate.found.result = std::move(outcome.result);
    candidate.planned = std::move(outcome.planned);
    judge(candidate);
  }

  void judge(Candidate& candidate) {
    HybridCase& found = candidate.found;
    rate_drives(hardware_, settings_.runtime.demands, found.plan, candidate.planned, found.result);
    found.life_years = shortest_life_years(found.result);
    const bool lives = found.result.drives_refuse.empty();
    const MemoryResult& memory = found.result.memory;
    Rank& rank = candidate.rank;
    rank.may_fit = found.may_fit();
    rank.excess = std::max(memory.excess(), lives ? Bytes(0) : Bytes(1));
    rank.time = found.result.step_time;
    rank.moved = Bytes(0);
    for (const DriveTraffic& drive : found.result.drives) rank.moved += drive.written;
  }

  // False when the replays are used up.
  bool try_fates(const Fates& fates) {
    if (tried_.contains(fates)) return true;
    if (replays_ >= limit_ || (progress_ && !progress_(replays_, most_))) return false;
    ++replays_;
    Candidate candidate;
    candidate.fates = fates;
    candidate.found.name = hybrid_word;
    candidate.found.plan = plan_of(fates);
    replay_case(candidate);
    last_ = candidate.rank;
    tried_.emplace(fates, last_.may_fit);
    if (!best_hybrid_ || candidate.rank < best_hybrid_->rank) best_hybrid_ = std::move(candidate);
    return true;
  }

  OffloadPlan plan_of(const Fates& fates) {
    OffloadPlan plan = empty_plan(hybrid_word, settings_.runtime);
    if (!settings_.runtime.in_flight) plan.in_flight = in_flight_;
    plan.paced_by_device = true;
    add_fates(fates, {trace_, saved_, keep_start_, index_, hardware_, limited_.options().gpus_alike}, plan);
    return plan;
  }

  // ---- the search ----

  // Written in the layer that saved it. What layers hand on to each other stays or leaves: made again it would have to
  // be made from the layer before, and that from the one before it.
  [[nodiscard]] bool is_own(const SavedTensor& saved) const {
    return saved.layer != no_index16 && trace_.ops.layer[index_of(saved.written_by)] == saved.layer;
  }

  void rank_tensors() {
    const AwayUntil all_there(saved_.size(), OpId::none);
    cost_.assign(saved_.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      const SavedTensor& saved = saved_[i];
      if (saved.bytes < settings_.least_bytes || saved.last_forward == saved.first_backward) continue;
      choice_.push_back(i);
      if (!recomputes() || !is_own(saved)) continue;
      if (const auto group = index_.group(std::array{i}, all_there))
        cost_[i] = to_seconds(group->time) / static_cast<double>(saved.bytes.count());
    }
    by_idle_ = by_cost_ = choice_;
    const auto idle = [&](std::size_t i) {
      return keep_start_[index_of(saved_[i].first_backward)] - keep_end_[index_of(saved_[i].last_forward)];
    };
    std::stable_sort(by_idle_.begin(), by_idle_.end(), [&](std::size_t a, std::size_t b) { return idle(a) > idle(b); });
    by_spread_ = spread(choice_);  // saved tensors are in the order in which they are written
    std::erase_if(by_cost_, [&](std::size_t i) { return !std::isfinite(cost_[i]); });
    std::stable_sort(by_cost_.begin(), by_cost_.end(),
                     [&](std::size_t a, std::size_t b) { return cost_[a] < cost_[b]; });
  }

  // Where tensors go, and which of them first.
  struct Way {
    std::vector<Fate> tiers;  // in turn
    const std::vector<std::size_t>* order = nullptr;
  };
  [[nodiscard]] std::vector<Way> ways() const {
    std::vector<Way> ways;
    const bool tree = !hardware_.host.pcie.empty();
    const bool drives = tree && settings_.drives && !hardware_.drives.empty(), host = tree && settings_.host;
    for (const auto* order : {&by_spread_, &by_idle_}) {
      if (host) ways.push_back({{Fate::host}, order});
      if (drives) ways.push_back({{Fate::drive}, order});
      if (host && drives) ways.push_back({{Fate::drive, Fate::host}, order});
    }
    return ways;
  }

  // The cheapest `again` of by_cost_ are made again, the longest idle `away` of the rest leave, tiers in turn.
  [[nodiscard]] Fates fates_of(std::size_t again, std::size_t away, const Way& way) const {
    Fates fates(saved_.size(), Fate::keep);
    for (std::size_t k = 0; k < again; ++k) fates[by_cost_[k]] = Fate::again;
    std::size_t left = away;
    if (left == 0) return fates;
    for (const std::size_t i : *way.order) {
      if (fates[i] != Fate::keep) continue;
      fates[i] = way.tiers[left % way.tiers.size()];
      if (--left == 0) break;
    }
    return fates;
  }

  // From the best recomputation alone, in at most `replays`.
  void search_from_seed(std::int64_t replays) {
    if (seed_.empty()) return;
    limit_ = replays;
    if (try_fates(seed_) && is_near(best_hybrid_)) refine();
  }
  // Whether it may come to beat what is to be beaten.
  [[nodiscard]] bool is_near(const std::optional<Candidate>& one) const {
    return settings_.to_beat == Picos(0) || !one || one->rank.time * 4 <= settings_.to_beat * 5;
  }

  void search_shares() {
    const std::vector<Way> ways = this->ways();
    for (int share = 0; share <= shares; ++share) {
      const std::size_t again = by_cost_.size() * static_cast<std::size_t>(share) / shares;
      if (share > 0 && again == 0) continue;
      if (ways.empty()) {
        if (!try_fates(fates_of(again, 0, Way()))) return;
        continue;
      }
      for (const Way& way : ways)
        if (!bisect_away(again, way)) return;
    }
    if (ways.empty()) bisect_again();
  }
  bool bisect_away(std::size_t again, const Way& way) {
    std::size_t low = 0, high = by_idle_.size() - std::min(by_idle_.size(), again);
    for (int i = 0; i < bisections && low <= high; ++i) {
      const std::size_t middle = i == 0 ? high : (low + high) / 2;
      const Fates fates = fates_of(again, middle, way);
      const bool is_new = !tried_.contains(fates);
      if (!try_fates(fates)) return false;
      if (!is_new) break;
      if (last_.may_fit) {
        if (middle == 0) break;
        high = middle - 1;
      } else {
        if (i == 0) return true;  // not even with everything away
        low = middle + 1;
      }
    }
    return true;
  }
  void bisect_again() {
    std::size_t low = 0, high = by_cost_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      const Fates fates = fates_of(middle, 0, Way());
      if (tried_.contains(fates) || !try_fates(fates)) return;
      if (last_.may_fit)
        high = middle;
      else
        low = middle + 1;
    }
  }

  // ---- how long the host waits for stores ----

  [[nodiscard]] Bytes in_flight_of(int share) const { return memory_of(limited_) / share; }
  // A small limit gives memory back early, a large one keeps the host ahead.
  void choose_in_flight() {
    if (!best_hybrid_ || settings_.runtime.in_flight) return;
    const Fates fates = best_hybrid_->fates;
    Bytes chosen = in_flight_;
    for (const int share : in_flight_shares) {
      if (in_flight_of(share) == chosen) continue;
      const Rank before = best_hybrid_->rank;
      in_flight_ = in_flight_of(share);
      tried_.clear();  // under another limit
      if (!try_fates(fates)) break;
      if (best_hybrid_->rank < before) chosen = in_flight_;
    }
    in_flight_ = chosen;
    tried_.clear();
  }

  // ---- refining the best ----

  // Whole kinds of tensors first (gelu outputs of all layers), then, where there are few, single ones.
  void refine() {
    if (!best_hybrid_) return;
    const std::vector<std::vector<std::size_t>> kinds = kinds_of();
    for (bool better = true; better;) {
      better = false;
      for (const Fate fate : {Fate::host, Fate::drive})
        if (!send_first(fate, better)) return;
      for (const auto& kind : kinds) {
        if (!keep_more(kind, better)) return;
        for (const Fate fate : {Fate::again, Fate::host, Fate::drive})
          if (!convert(kind, fate, better)) return;
      }
      if (better || choice_.size() > most_moves) continue;
      for (const std::size_t i : choice_)
        if (!move(i, better)) return;
      if (!better && !swap_pairs(better)) return;
    }
  }

  // Choices by the names of their tensors without numbers, each kind spread over the forward.
  [[nodiscard]] std::vector<std::vector<std::size_t>> kinds_of() const {
    std::map<std::string, std::vector<std::size_t>> kinds;
    for (const std::size_t i : choice_) {
      std::string name;
      for (const char c : trace_.strings.text(trace_.tensors.name[index_of(saved_[i].tensor)]))
        if (c < '0' || c > '9') name += c;
      kinds[name].push_back(i);
    }
    std::vector<std::vector<std::size_t>> found;
    for (const auto& [name, tensors] : kinds) found.push_back(spread(tensors));
    return found;
  }

  // As many of a kind as still fit stay.
  bool keep_more(const std::vector<std::size_t>& kind, bool& better) {
    std::vector<std::size_t> gone;
    for (auto i = kind.rbegin(); i != kind.rend(); ++i)
      if (best_hybrid_->fates[*i] != Fate::keep) gone.push_back(*i);
    const Fates start = best_hybrid_->fates;
    std::size_t low = 0, high = gone.size();
    while (low < high) {
      const std::size_t count = (low + high + 1) / 2;
      Fates fates = start;
      for (std::size_t k = 0; k < count; ++k) fates[gone[k]] = Fate::keep;
      const auto fits = improves(fates, better);
      if (!fits) return false;
      if (*fits)
        low = count;
      else
        high = count - 1;
    }
    return true;
  }
  // Of the tensors made again those idle longest leave instead, as many as fit and make the step faster: the first
  // layers' stores end before the forward does.
  bool send_first(Fate fate, bool& better) {
    std::vector<std::size_t> again;
    for (const std::size_t i : by_idle_)
      if (best_hybrid_->fates[i] == Fate::again && allowed(i, fate)) again.push_back(i);
    const Fates start = best_hybrid_->fates;
    std::size_t low = 0, high = again.size();
    for (std::size_t count = std::min<std::size_t>(high, 1 + high / 8); low < high; count = (low + high + 1) / 2) {
      Fates fates = start;
      for (std::size_t k = 0; k < count; ++k) fates[again[k]] = fate;
      bool faster = false;
      if (!improves(fates, faster)) return false;
      better |= faster;
      if (faster)
        low = count;
      else
        high = count - 1;
    }
    return true;
  }
  // Of what leaves, a kind's first layers go: their stores end before the forward does.
  bool convert(const std::vector<std::size_t>& kind, Fate fate, bool& better) {
    std::vector<std::size_t> order = kind;
    if (fate != Fate::again) std::sort(order.begin(), order.end());
    for (std::size_t share = 1; share <= 16; share *= 2) {
      Fates fates = best_hybrid_->fates;
      std::size_t left = (kind.size() + share - 1) / share;
      for (const std::size_t i : order) {
        if (left == 0) break;
        if (fates[i] == fate || !allowed(i, fate)) continue;
        fates[i] = fate;
        --left;
      }
      if (fates != best_hybrid_->fates && !improves(fates, better)) return false;
      if (kind.size() / share <= 1) break;
    }
    return true;
  }
  bool move(std::size_t i, bool& better) {
    for (const Fate fate : {Fate::keep, Fate::again, Fate::drive, Fate::host}) {
      Fates fates = best_hybrid_->fates;
      if (fates[i] == fate || !allowed(i, fate)) continue;
      fates[i] = fate;
      if (!improves(fates, better)) return false;
    }
    return true;
  }
  // One tensor stays, another goes in its place.
  bool swap_pairs(bool& better) {
    for (const std::size_t i : choice_)
      for (const std::size_t j : choice_) {
        Fates fates = best_hybrid_->fates;
        if (fates[i] == fates[j] || !allowed(j, fates[i]) || !allowed(i, fates[j])) continue;
        std::swap(fates[i], fates[j]);
        if (!improves(fates, better)) return false;
      }
    return true;
  }
  // Whether these fates fit; nothing when the replays are used up. What was tried before isn't replayed.
  std::optional<bool> improves(const Fates& fates, bool& better) {
    const Rank before = best_hybrid_->rank;
    const auto known = tried_.find(fates);
    if (known != tried_.end()) return known->second;
    if (!try_fates(fates)) return std::nullopt;
    better |= best_hybrid_->rank < before;
    return last_.may_fit;
  }
  [[nodiscard]] bool allowed(std::size_t i, Fate fate) const {
    const bool tree = !hardware_.host.pcie.empty();
    switch (fate) {
      case Fate::keep:
        return true;
      case Fate::host:
        return settings_.host && tree;
      case Fate::drive:
        return settings_.drives && tree && !hardware_.drives.empty();
      case Fate::again:
        return std::isfinite(cost_[i]);
    }
    return false;
  }

  HybridOutcome finish() {
    if (best_hybrid_ && best_hybrid_->rank < best_->rank) best_ = std::move(best_hybrid_);
    outcome_.best = std::move(best_->found);
    outcome_.planned = std::move(best_->planned);
    outcome_.best.result.memory = replayer_.replay(outcome_.planned, limit_of(settings_, std::nullopt)).memory;
    outcome_.replays = replays_;
    std::map<std::uint32_t, Tier> gone;
    for (const Absence& absence : outcome_.best.plan.absences)
      if (!absence.forwarded) gone.emplace(trace_.tensors.storage[index_of(absence.tensor)], absence.tier);
    for (const std::size_t i : choice_) {
      const auto found = gone.find(saved_[i].storage);
      Bytes& sum = found == gone.end()            ? outcome_.kept
                   : found->second == Tier::host  ? outcome_.to_host
                   : found->second == Tier::drive ? outcome_.to_drives
                                                  : outcome_.recomputed;
      sum += saved_[i].bytes;
    }
    return std::move(outcome_);
  }

  const Trace& trace_;
  const Replayer& replayer_;
  VariedReplayer limited_;   // to the budget; details of the best alone, once it is found
  VariedReplayer detailed_;  // to the budget; lifetimes are planned on the details
  const HardwareProfile& hardware_;
  const HybridSettings& settings_;
  const std::function<bool(std::int64_t, std::int64_t)>& progress_;
  std::vector<SavedTensor> saved_;
  RecomputeIndex index_;
  std::vector<Picos> keep_start_, keep_end_;                         // by op, everything kept
  std::vector<std::size_t> choice_, by_idle_, by_spread_, by_cost_;  // into saved_
  Fates seed_;                                                       // of the best recomputation alone; empty: none
  std::vector<double> cost_;                                         // seconds of recomputation a byte, by saved tensor
  HybridOutcome outcome_;
  std::optional<Candidate> best_, best_hybrid_;
  std::optional<bool> is_settled_;
  Picos full_recompute_time_{};  // of every layer, nothing else moved, without a limit; 0: no bound
  Rank last_;
  std::map<Fates, bool> tried_;                      // and whether they fit
  Bytes in_flight_{};                                // of the plans tried, unless the settings say one
  std::int64_t replays_ = 0, most_ = 0, limit_ = 0;  // limit_: of what is being searched
};

}  // namespace

HybridOutcome plan_hybrid(const Trace& trace, const Replayer& replayer, const HybridSettings& settings,
                          const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  return HybridSearch(trace, replayer, settings, progress).run();
}

std::optional<HybridOutcome> repeat_hybrid(const Trace& few, const HybridCase& found, const Trace& trace,
                                           const Replayer& replayer, const HybridSettings& settings) {
  const std::function<bool(std::int64_t, std::int64_t)> none;
  return HybridSearch(trace, replayer, settings, none).repeat(few, found);
}

}  // namespace spillway::planners
