#include "studies/offload/best_offload.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/parallel.h"
#include "planners/technique/technique_table.h"
#include "scenario/brief_run.h"
#include "scenario/evaluator.h"
#include "scenario/hinges.h"
#include "scenario/reserve.h"
#include "sim/replay/order_plan.h"

namespace spillway::studies {
namespace {

const ReplayVariation without_limit{.detail = Detail::times, .ideal_memory = true};

ReplayVariation limit_of(Bytes capacity) {
  ReplayVariation variation;
  if (capacity > Bytes(0)) variation.capacity = capacity;
  return variation;
}

// Of all searches together, and who is told of each.
class ReplayCount {
 public:
  explicit ReplayCount(const std::function<bool(std::int64_t)>& progress) : progress_(progress) {}
  void begin() {
    const std::scoped_lock lock(mutex_);
    if (progress_ && !progress_(count_)) is_stopped_ = true;
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  // For searches: false once they are to stop.
  [[nodiscard]] std::function<bool(std::int64_t, std::int64_t)> asked() const {
    return [this](std::int64_t, std::int64_t) { return !is_stopped_; };
  }

 private:
  const std::function<bool(std::int64_t)>& progress_;
  std::mutex mutex_;
  std::int64_t count_ = 0;
  std::atomic<bool> is_stopped_ = false;
};

class CountedReplayer final : public ReplayerBefore {
 public:
  CountedReplayer(const Replayer& of, ReplayCount& count) : ReplayerBefore(of), count_(count) {}

 private:
  [[nodiscard]] ReplayVariation asked(const ReplayVariation& variation) const override {
    count_.begin();
    return variation;
  }

  ReplayCount& count_;
};

// How the scenario is made other ways, and replayed.
struct Steps {
  const ScenarioWith& with;
  ReplayCount& count;
  Bytes budget{};               // of the caller's own; 0: the capacity less the reserve
  bool without_margin = false;  // of the reserve

  [[nodiscard]] LoadedScenario loaded(const Scenario& scenario) const { return limited(load(scenario)); }
  [[nodiscard]] LoadedScenario limited(LoadedScenario made) const {
    if (without_margin) give_up_margin(made);
    return made;
  }
};

// Whether `a` is the better answer: fitting, else short of less; then faster.
bool is_better(const Result& a, const Result& b) {
  const bool fits_a = a.answer() != Verdict::does_not_fit, fits_b = b.answer() != Verdict::does_not_fit;
  if (fits_a != fits_b) return fits_a;
  if (!fits_a) return a.memory.excess() < b.memory.excess();
  return a.step_time < b.step_time;
}

void add(std::vector<Candidate>& variants, std::string name, const std::vector<const TechniqueWay*>& ways) {
  Candidate variant{std::move(name), {}};
  for (const TechniqueWay* way : ways)
    variant.edits.insert(variant.edits.end(), way->settings.begin(), way->settings.end());
  variants.push_back(std::move(variant));
}

void replay_kept(VariantCase& one, const Steps& steps, bool briefly) {
  one.is_done = true;
  const auto replay = [&](LoadedScenario& made) {
    auto loaded = std::make_shared<LoadedScenario>(steps.limited(std::move(made)));
    const Evaluator evaluator(*loaded);
    const CountedReplayer replayer(evaluator, steps.count);
    one.result = replayer.replay(loaded->trace, limit_of(steps.budget));
    if (one.result.refusal) return one.result.refusal;
    one.least = one.result.memory.driver_time == Picos(0) ? one.result.step_time
                                                          : replayer.replay(loaded->trace, without_limit).step_time;
    one.loaded = std::move(loaded);
    return std::optional<FoldRefusal>();
  };
  try {
    const Scenario scenario = steps.with(one.candidate.edits);
    if (briefly) {
      use_briefly(scenario, find_model(scenario.model), ScenarioMachine(hardware_of(scenario)), replay);
    } else {
      LoadedScenario whole = load(scenario);
      replay(whole);
    }
  } catch (const InputError& error) {
    one.error = error.cause();
  }
}

bool keeps_all(const VariantCase& one) { return one.result.may_fit() && one.result.step_time <= one.least; }

HybridCase keep_of(const VariantCase& one) {
  return {.name = "keep",
          .plan = {},
          .result = one.result,
          .life_years = std::numeric_limits<double>::infinity(),
          .technique = no_offload};
}

// The plan with the order and the places that the scenario asks for besides: what a run of it gives. The search itself
// goes by the program's order, and by an allocator that fragments nothing where places are planned.
void compose_best(const LoadedScenario& loaded, HybridCase& best) {
  if (loaded.scenario.order == program_order_word && places_of(loaded) == nullptr) return;
  OffloadPlan fates = best.plan;
  fates.digest = digest_of_works(loaded.trace);
  const std::optional<OffloadResult> moved = best.result.offload;
  best.result = Evaluator(loaded).run({.fates = std::move(fates)}).result;
  if (!best.result.offload) best.result.offload = moved;
}

}  // namespace

std::vector<Candidate> step_variants(const LoadedScenario& loaded, const VariantLimits& limits) {
  std::vector<Candidate> variants;
  if (loaded.scenario.model.empty()) return variants;
  const std::string own(to_string(loaded.setup.recompute));
  std::vector<const TechniqueWay*> recomputes, places;
  std::string own_name;
  for (const Technique& row : techniques()) {
    if (row.ways.empty() || row.make != nullptr) continue;
    if (row.part == PlanPart::fates && row.word == own)
      own_name = row.name;
    else if (row.part == PlanPart::fates && (limits.recompute || row.word == to_string(Recompute::none)))
      recomputes.push_back(&row.ways.front());
    else if (row.moves_state && limits.host && loaded.setup.optimizer_device == StateDevice::gpu)
      places.push_back(&row.ways.front());
  }
  // The scenario's own step with nothing moved is the one called keep.
  const auto name_of = [](const TechniqueWay* way) {
    return way->name == recompute_way(Recompute::none) ? std::string("no recomputation") : way->name;
  };
  for (const TechniqueWay* way : recomputes) add(variants, name_of(way), {way});
  for (const TechniqueWay* place : places) {
    add(variants, place->name, {place});
    for (const TechniqueWay* way : recomputes) add(variants, name_of(way) + "+" + place->name, {way, place});
  }
  return variants;
}

std::vector<std::string> settings_of(const HybridCase& found) {
  if (found.technique.empty()) return {};
  if (found.technique == no_offload) return {setting(offload_key, no_offload)};
  const std::vector<TechniqueWay>& ways = technique_named(found.technique).ways;
  return found.tier == Tier::host ? ways.back().settings : ways.front().settings;
}

namespace {

// All replayed in parallel with nothing moved, fastest first.
std::vector<VariantCase> replay_variants(const LoadedScenario& own, const Steps& steps, const VariantLimits& limits,
                                         bool briefly) {
  std::vector<VariantCase> cases;
  for (Candidate& variant : step_variants(own, limits)) cases.emplace_back().candidate = std::move(variant);
  in_parallel(cases.size(), [&](std::size_t c) { replay_kept(cases[c], steps, briefly); });
  std::set<std::uint64_t> known = {digest_of_works(own.trace)};
  for (VariantCase& one : cases)
    one.is_same = one.loaded != nullptr && !known.insert(digest_of_works(one.loaded->trace)).second;
  std::stable_sort(cases.begin(), cases.end(), [](const VariantCase& a, const VariantCase& b) {
    if ((a.loaded == nullptr) != (b.loaded == nullptr)) return a.loaded != nullptr;
    return a.least < b.least;
  });
  return cases;
}

BestOffload best_within(const LoadedScenario& loaded, const Steps& steps, const HybridSettings& settings) {
  BestOffload best;
  best.outcome =
      plan_hybrid(loaded.trace, CountedReplayer(Evaluator(loaded), steps.count), settings, steps.count.asked());
  best.variants = replay_variants(loaded, steps, {settings.recompute, settings.host}, false);
  for (VariantCase& one : best.variants) {
    const HybridCase& now = best.outcome.best;
    if (one.loaded == nullptr || one.is_same || (now.may_fit() && one.least >= now.result.step_time)) continue;
    HybridOutcome outcome;
    if (keeps_all(one)) {
      outcome.best = keep_of(one);
    } else {
      one.planned = true;
      HybridSettings other = settings;
      if (now.may_fit()) other.to_beat = now.result.step_time;
      outcome = plan_hybrid(one.loaded->trace, CountedReplayer(Evaluator(*one.loaded), steps.count), other,
                            steps.count.asked());
    }
    if (!is_better(outcome.best.result, now.result)) continue;
    outcome.replays += best.outcome.replays;
    outcome.baselines = std::move(best.outcome.baselines);
    best.outcome = std::move(outcome);
    best.settings = one.candidate.edits;
    best.loaded = one.loaded;
  }
  compose_best(best.loaded ? *best.loaded : loaded, best.outcome.best);
  return best;
}

// Of a step of many micro-batches.
class BestOfMany {
 public:
  BestOfMany(const Steps& steps, const HybridSettings& settings) : steps_(steps), settings_(settings) {}

  BestOffload find() {
    replay_kept(own_, steps_, true);
    if (own_.loaded == nullptr) throw InputError(steps_.with({}).path, "", own_.error, "correct the scenario");
    best_.outcome.best = keep_of(own_);
    best_.outcome.baselines = {best_.outcome.best};
    best_.outcome.kept = saved_bytes(*own_.loaded);
    best_.variants = replay_variants(*own_.loaded, steps_, {settings_.recompute, settings_.host}, true);
    std::vector<VariantCase*> open;
    if (!keeps_all(own_)) open.push_back(&own_);
    for (VariantCase& one : best_.variants) {
      if (one.loaded == nullptr || one.is_same) continue;
      HybridOutcome kept;
      kept.best = keep_of(one);
      consider(std::move(kept), one, nullptr);
      if (!keeps_all(one)) open.push_back(&one);
    }
    std::stable_sort(open.begin(), open.end(),
                     [](const VariantCase* a, const VariantCase* b) { return a->least < b->least; });
    std::set<StateDevice> sought;
    for (VariantCase* one : open)
      if (sought.insert(one->loaded->setup.optimizer_device).second) seek(*one);
    for (VariantCase* one : open)
      if (!now().may_fit() && !one->planned) seek(*one);
    return std::move(best_);
  }

 private:
  // Of the tensors that have a choice.
  [[nodiscard]] Bytes saved_bytes(const LoadedScenario& loaded) const {
    Bytes of_one{};
    for (const planners::SavedTensor& saved : planners::saved_tensors(loaded.trace))
      if (saved.micro_batch == 0 && saved.bytes >= settings_.least_bytes && saved.last_forward != saved.first_backward)
        of_one += saved.bytes;
    return of_one * loaded.setup.gradient_accumulation;
  }

  void consider(HybridOutcome outcome, const VariantCase& one, std::shared_ptr<const LoadedScenario> whole) {
    if (!is_better(outcome.best.result, now().result)) return;
    outcome.replays += best_.outcome.replays;
    outcome.baselines = std::move(best_.outcome.baselines);
    best_.outcome = std::move(outcome);
    best_.settings = one.candidate.edits;
    best_.loaded = std::move(whole);
  }

  [[nodiscard]] const HybridCase& now() const { return best_.outcome.best; }
  [[nodiscard]] bool may_win(Picos time) const { return !now().may_fit() || time < now().result.step_time; }

  void seek(VariantCase& one) {
    if (!may_win(one.least)) return;
    one.planned = true;
    const Scenario scenario = steps_.with(one.candidate.edits);
    const LoadedScenario few = steps_.loaded(*brief_step(scenario));
    const Evaluator evaluator(few);
    const CountedReplayer of_few(evaluator, steps_.count);
    const Picos least = of_few.replay(few.trace, without_limit).step_time;
    const std::int64_t many = one.loaded->setup.gradient_accumulation, shown = few.setup.gradient_accumulation;
    HybridSettings settings = settings_;
    if (now().may_fit()) settings.to_beat = least + (now().result.step_time - one.least) * shown / many;
    const HybridOutcome found = plan_hybrid(few.trace, of_few, settings, steps_.count.asked());
    best_.outcome.replays += found.replays;
    if (now().may_fit() && !found.best.may_fit()) return;
    // What it loses in each micro-batch, on top of what the whole step takes at least.
    if (!may_win(one.least + (found.best.result.step_time - least) * many / shown)) return;
    auto whole = std::make_shared<const LoadedScenario>(steps_.loaded(scenario));
    std::optional<HybridOutcome> outcome =
        repeat_hybrid(few.trace, found.best, whole->trace, CountedReplayer(Evaluator(*whole), steps_.count), settings_);
    if (outcome) consider(std::move(*outcome), one, std::move(whole));
  }

  const Steps& steps_;
  const HybridSettings& settings_;
  VariantCase own_;
  BestOffload best_;
};

BestRecompute best_within(const LoadedScenario& loaded, const Steps& steps, const RecomputeSettings& settings) {
  const std::function<bool(std::int64_t)> asked = [go_on = steps.count.asked()](std::int64_t) { return go_on(0, 0); };
  BestRecompute best;
  best.outcome = plan_recompute(loaded.trace, CountedReplayer(Evaluator(loaded), steps.count), settings, asked);
  if (settings.choice.method != RecomputeMethod::best) return best;
  best.variants = replay_variants(loaded, steps, {.recompute = true, .host = false}, false);
  for (VariantCase& one : best.variants) {
    const Result& now = best.outcome.best.result;
    if (one.loaded == nullptr || one.is_same || (now.may_fit() && one.least >= now.step_time)) continue;
    RecomputeOutcome outcome;
    if (one.result.may_fit() || one.loaded->setup.recompute != Recompute::none) {
      outcome.best.name = one.candidate.name;
      outcome.best.result = one.result;
    } else {
      one.planned = true;
      outcome =
          plan_recompute(one.loaded->trace, CountedReplayer(Evaluator(*one.loaded), steps.count), settings, asked);
    }
    const Result& then = outcome.best.result;
    if (!is_better(then, now)) continue;
    best.outcome.others.push_back(std::move(best.outcome.best));
    best.outcome.best = std::move(outcome.best);
    best.outcome.replays += outcome.replays;
    best.settings = one.candidate.edits;
    best.loaded = one.loaded;
  }
  return best;
}

// A budget of the caller's own has no margin. `find(loaded, steps)`: as best_within().
template <class Find>
auto within_reserve(const LoadedScenario& loaded, Steps steps, const Find& find) {
  auto best = find(loaded, steps);
  const Result& kept = best.outcome.best.result;
  if (steps.budget > Bytes(0) || !runs_out(kept) || loaded.reserve.margin <= Bytes(0)) return best;
  LoadedScenario wider = loaded;
  give_up_margin(wider);
  steps.without_margin = true;
  auto found = find(wider, steps);
  Result& result = found.outcome.best.result;
  if (!found.outcome.best.may_fit()) return best;
  mark_tight(result, kept);
  result.reserve = loaded.reserve;
  return found;
}

// What a launch left open hangs on each: the search goes by what was replayed.
void tell_hinges(const LoadedScenario& loaded, Result& result) { result.hangs_on = hinges_of(loaded, result); }
void tell_hinges(const LoadedScenario& loaded, std::vector<VariantCase>& variants) {
  for (VariantCase& one : variants)
    if (one.loaded != nullptr) tell_hinges(loaded, one.result);
}

}  // namespace

BestOffload best_offload(const LoadedScenario& loaded, const ScenarioWith& with, const HybridSettings& settings,
                         const std::function<bool(std::int64_t)>& progress) {
  ReplayCount count(progress);
  const bool has_many = brief_step(loaded.scenario).has_value();
  BestOffload best =
      within_reserve(loaded, {.with = with, .count = count, .budget = settings.budget},
                     [&](const LoadedScenario& step, const Steps& steps) {
                       return has_many ? BestOfMany(steps, settings).find() : best_within(step, steps, settings);
                     });
  best.replays = count.count();
  tell_hinges(loaded, best.variants);
  for (HybridCase& one : best.outcome.baselines) tell_hinges(loaded, one.result);
  tell_hinges(loaded, best.outcome.best.result);
  return best;
}

BestRecompute best_recompute(const LoadedScenario& loaded, const ScenarioWith& with, const RecomputeSettings& settings,
                             const std::function<bool(std::int64_t)>& progress) {
  ReplayCount count(progress);
  BestRecompute best = within_reserve(
      loaded, {.with = with, .count = count, .budget = settings.budget},
      [&](const LoadedScenario& step, const Steps& steps) { return best_within(step, steps, settings); });
  tell_hinges(loaded, best.variants);
  for (RecomputeCase& one : best.outcome.others) tell_hinges(loaded, one.result);
  tell_hinges(loaded, best.outcome.best.result);
  return best;
}

}  // namespace spillway::studies
