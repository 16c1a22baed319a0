#include "studies/offload/best_offload.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/parallel.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluator.h"
#include "scenario/reserve.h"
#include "sim/replay/order_plan.h"

namespace spillway::studies {
namespace {

ReplayVariation limit_of(Bytes capacity) {
  ReplayVariation variation;
  if (capacity > Bytes(0)) variation.capacity = capacity;
  return variation;
}

// Whether `a` is the better answer: fitting, else short of less; then faster.
bool is_better(const Result& a, const Result& b) {
  const bool fits_a = a.answer() != Verdict::does_not_fit, fits_b = b.answer() != Verdict::does_not_fit;
  if (fits_a != fits_b) return fits_a;
  if (!fits_a) return a.memory.excess() < b.memory.excess();
  return a.step_time < b.step_time;
}

void add(std::vector<StepVariant>& variants, std::string name, const std::vector<const TechniqueWay*>& ways) {
  StepVariant variant{std::move(name), {}};
  for (const TechniqueWay* way : ways)
    variant.settings.insert(variant.settings.end(), way->settings.begin(), way->settings.end());
  variants.push_back(std::move(variant));
}

void replay_kept(VariantCase& one, const LoadVariant& load, Bytes capacity) {
  try {
    auto loaded = std::make_shared<LoadedScenario>(load(one.variant.settings));
    const Evaluator evaluator(*loaded);
    one.keep = evaluator.replay(loaded->trace, limit_of(capacity));
    one.least = evaluator.replay(loaded->trace, {.detail = Detail::times, .ideal_memory = true}).step_time;
    one.loaded = std::move(loaded);
  } catch (const InputError& error) {
    one.refused = error.cause();
  }
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

std::vector<StepVariant> step_variants(const LoadedScenario& loaded, const VariantLimits& limits) {
  std::vector<StepVariant> variants;
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
  for (const TechniqueWay* way : recomputes) add(variants, way->name, {way});
  for (const TechniqueWay* place : places) {
    add(variants, place->name, {place});
    for (const TechniqueWay* way : recomputes) add(variants, way->name + "+" + place->name, {way, place});
  }
  return variants;
}

std::vector<VariantCase> replay_variants(const LoadedScenario& loaded, const LoadVariant& load, Bytes capacity,
                                         const VariantLimits& limits) {
  std::vector<VariantCase> cases;
  for (StepVariant& variant : step_variants(loaded, limits)) cases.push_back({.variant = std::move(variant)});
  in_parallel(cases.size(), [&](std::size_t c) { replay_kept(cases[c], load, capacity); });
  std::set<std::uint64_t> known = {digest_of_works(loaded.trace)};
  for (VariantCase& one : cases)
    one.is_same = one.loaded != nullptr && !known.insert(digest_of_works(one.loaded->trace)).second;
  std::stable_sort(cases.begin(), cases.end(), [](const VariantCase& a, const VariantCase& b) {
    if ((a.loaded == nullptr) != (b.loaded == nullptr)) return a.loaded != nullptr;
    return a.least < b.least;
  });
  return cases;
}

std::vector<std::string> settings_of(const HybridCase& found) {
  if (found.technique.empty()) return {};
  if (found.technique == no_offload) return {setting(offload_key, no_offload)};
  const std::vector<TechniqueWay>& ways = technique_named(found.technique).ways;
  return found.tier == Tier::host ? ways.back().settings : ways.front().settings;
}

namespace {

BestOffload best_within(const LoadedScenario& loaded, const LoadVariant& load, const HybridSettings& settings,
                        const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  BestOffload best;
  best.outcome = plan_hybrid(loaded.trace, Evaluator(loaded), settings, progress);
  best.variants = replay_variants(loaded, load, settings.budget, {settings.recompute, settings.host});
  for (VariantCase& one : best.variants) {
    const HybridCase& now = best.outcome.best;
    if (one.loaded == nullptr || one.is_same || (now.may_fit() && one.least >= now.result.step_time)) continue;
    HybridOutcome outcome;
    if (one.keep.may_fit() && one.keep.step_time <= one.least) {
      outcome.best = {.name = "keep",
                      .plan = {},
                      .result = one.keep,
                      .life_years = std::numeric_limits<double>::infinity(),
                      .technique = no_offload};
    } else {
      one.planned = true;
      outcome = plan_hybrid(one.loaded->trace, Evaluator(*one.loaded), settings, progress);
    }
    if (!is_better(outcome.best.result, now.result)) continue;
    outcome.replays += best.outcome.replays;
    outcome.baselines = std::move(best.outcome.baselines);
    best.outcome = std::move(outcome);
    best.settings = one.variant.settings;
    best.loaded = one.loaded;
  }
  compose_best(best.loaded ? *best.loaded : loaded, best.outcome.best);
  return best;
}

BestRecompute best_within(const LoadedScenario& loaded, const LoadVariant& load, const RecomputeSettings& settings,
                          const std::function<bool(std::int64_t)>& progress) {
  BestRecompute best;
  best.outcome = plan_recompute(loaded.trace, Evaluator(loaded), settings, progress);
  if (settings.choice.method != RecomputeMethod::best) return best;
  best.variants = replay_variants(loaded, load, settings.budget, {.recompute = true, .host = false});
  for (VariantCase& one : best.variants) {
    const Result& now = best.outcome.best.result;
    if (one.loaded == nullptr || one.is_same || (now.may_fit() && one.least >= now.step_time)) continue;
    RecomputeOutcome outcome;
    if (one.keep.may_fit() || one.loaded->setup.recompute != Recompute::none) {
      outcome.best.name = one.variant.name;
      outcome.best.result = one.keep;
    } else {
      one.planned = true;
      outcome = plan_recompute(one.loaded->trace, Evaluator(*one.loaded), settings, progress);
    }
    const Result& then = outcome.best.result;
    if (!is_better(then, now)) continue;
    best.outcome.others.push_back(std::move(best.outcome.best));
    best.outcome.best = std::move(outcome.best);
    best.outcome.replays += outcome.replays;
    best.settings = one.variant.settings;
    best.loaded = one.loaded;
  }
  return best;
}

// A budget of the caller's own has no margin. `find(loaded, load)`: as best_within().
template <class Find>
auto within_reserve(const LoadedScenario& loaded, const LoadVariant& load, Bytes budget, const Find& find) {
  auto best = find(loaded, load);
  const Result& kept = best.outcome.best.result;
  if (budget > Bytes(0) || !runs_out(kept) || loaded.reserve.margin <= Bytes(0)) return best;
  LoadedScenario wider = loaded;
  give_up_margin(wider);
  auto found = find(wider, [&load](std::span<const std::string> settings) {
    LoadedScenario variant = load(settings);
    give_up_margin(variant);
    return variant;
  });
  Result& result = found.outcome.best.result;
  if (!found.outcome.best.may_fit()) return best;
  mark_tight(result, kept);
  result.reserve = loaded.reserve;
  return found;
}

}  // namespace

BestOffload best_offload(const LoadedScenario& loaded, const LoadVariant& load, const HybridSettings& settings,
                         const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  return within_reserve(loaded, load, settings.budget, [&](const LoadedScenario& step, const LoadVariant& variant) {
    return best_within(step, variant, settings, progress);
  });
}

BestRecompute best_recompute(const LoadedScenario& loaded, const LoadVariant& load, const RecomputeSettings& settings,
                             const std::function<bool(std::int64_t)>& progress) {
  return within_reserve(loaded, load, settings.budget, [&](const LoadedScenario& step, const LoadVariant& variant) {
    return best_within(step, variant, settings, progress);
  });
}

}  // namespace spillway::studies
