#include "studies/payoff/payoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "base/number_text.h"
#include "planners/technique/technique_table.h"
#include "scenario/brief_run.h"
#include "studies/candidates/compare_techniques.h"

namespace spillway::studies {
namespace {

constexpr int outward_up = 4, outward_down = 2;  // doublings, halvings of the own value
// What a technique's part takes to be planned, in replays of its step, about.
constexpr std::int64_t planned_fates = 6;
constexpr int narrowings = 2;  // between the last value that didn't pay and the first that did

// A value on the axis, rounded to its grain; none: there is none beyond the own value on that side.
std::optional<double> value_at(const PayoffAxis& axis, double factor) {
  double value = axis.own * factor;
  if (axis.grain > 0) {
    const auto grain = static_cast<double>(axis.grain);
    value = std::max(grain, std::round(value / grain) * grain);
  }
  if (axis.most > 0) value = std::min(value, axis.most);
  const bool is_beyond = factor > 1 ? value > axis.own : value < axis.own;
  return is_beyond ? std::optional(value) : std::nullopt;
}

PayoffTrial trial_at(const PayoffAxis& axis, double value) {
  PayoffTrial trial;
  trial.factor = value / axis.own;
  trial.value = fmt::format("{:.4g}{}", value * axis.shown / axis.own, axis.unit);
  if (axis.unit.empty() && axis.grain > 0) trial.value = fmt::format("{:.0f}", value);
  trial.edits = axis.also;
  trial.edits.push_back(axis.grain > 0 ? fmt::format("{}={:.0f}", axis.key, value)
                                       : fmt::format("{}={:.6g}", axis.key, value));
  return trial;
}

// Whether the technique is worth as much in both, to a thousandth of the plain step.
bool is_alike(const PayoffTrial& one, const PayoffTrial& other) {
  constexpr double least = 1e-3;
  const auto near = [](std::optional<double> a, std::optional<double> b) {
    return a && b && std::abs(*a - *b) < least;
  };
  return near(one.saving(), other.saving()) && near(one.slower(), other.slower());
}

// One axis, and how far it is.
class Walk {
 public:
  explicit Walk(PayoffAxis axis) { answer_.axis = std::move(axis); }

  // What it wants to try next; none: it has its end.
  std::optional<PayoffTrial> next() {
    if (is_over_) return std::nullopt;
    if (pays_) return narrower();
    while (up_ < outward_up || (answer_.axis.both_ways && down_ < outward_down)) {
      const bool goes_down = answer_.axis.both_ways && down_ < outward_down && down_ < up_;
      const double factor = std::ldexp(1.0, goes_down ? -++down_ : ++up_);
      const std::optional<double> value = value_at(answer_.axis, factor);
      if (value && !was_tried(*value / answer_.axis.own)) return trial_at(answer_.axis, *value);
    }
    const bool any_ran = std::any_of(answer_.trials.begin(), answer_.trials.end(),
                                     [](const PayoffTrial& trial) { return trial.saving().has_value(); });
    end(any_ran ? PayoffAnswer::End::no : PayoffAnswer::End::impossible);
    return std::nullopt;
  }

  void take(PayoffTrial trial, const PayoffTrial& here) {
    if (trial.pays && (!pays_ || nearer(trial.factor, *pays_))) pays_ = trial.factor;
    if (!trial.plain.error.empty()) (trial.factor > 1 ? up_ : down_) = std::max(outward_up, outward_down);
    answer_.trials.push_back(std::move(trial));
    if (pays_ || answer_.trials.size() != (answer_.axis.both_ways ? 2U : 1U)) return;
    const auto all = [this](auto&& is) { return std::all_of(answer_.trials.begin(), answer_.trials.end(), is); };
    if (answer_.axis.is_of_machine && all([&](const PayoffTrial& each) { return is_alike(each, here); }))
      end(PayoffAnswer::End::indifferent);
  }

  void end(PayoffAnswer::End end) {
    answer_.end = end;
    is_over_ = true;
  }
  void give_up() { end(pays_ ? PayoffAnswer::End::found : PayoffAnswer::End::unfinished); }

  PayoffAnswer finish() {
    give_up_unless_over();
    std::sort(answer_.trials.begin(), answer_.trials.end(),
              [](const PayoffTrial& a, const PayoffTrial& b) { return a.factor < b.factor; });
    for (const PayoffTrial& trial : answer_.trials)
      if (pays_ && trial.factor == *pays_) answer_.least = trial;
    return std::move(answer_);
  }

 private:
  void give_up_unless_over() {
    if (!is_over_) give_up();
  }
  static bool nearer(double one, double other) { return std::abs(std::log(one)) < std::abs(std::log(other)); }
  [[nodiscard]] bool was_tried(double factor) const {
    return factor == 1 || std::any_of(answer_.trials.begin(), answer_.trials.end(),
                                      [&](const PayoffTrial& trial) { return trial.factor == factor; });
  }

  // Half way to the nearest value on the own side that doesn't pay.
  std::optional<PayoffTrial> narrower() {
    if (answer_.axis.narrows && narrowed_++ < narrowings) {
      double inner = 1;
      for (const PayoffTrial& trial : answer_.trials)
        if (!trial.pays && (*pays_ > 1 ? trial.factor > inner && trial.factor < *pays_
                                       : trial.factor < inner && trial.factor > *pays_))
          inner = trial.factor;
      const std::optional<double> value = value_at(answer_.axis, (inner + *pays_) / 2);
      if (value && !was_tried(*value / answer_.axis.own)) return trial_at(answer_.axis, *value);
    }
    end(PayoffAnswer::End::found);
    return std::nullopt;
  }

  PayoffAnswer answer_;
  std::optional<double> pays_;  // the nearest factor that does
  int up_ = 0, down_ = 0, narrowed_ = 0;
  bool is_over_ = false;
};

class Search {
 public:
  Search(const BaseScenario& scenario, const PayoffQuestion& question, const EvaluateOptions& options)
      : scenario_(scenario), question_(question), options_(options) {
    const std::vector<std::string> named = {question.technique};
    ways_ = technique_candidates(scenario, named);
    if (ways_.size() != 2)
      throw InputError(scenario.path, "--technique", "the plain step is what a technique is compared with",
                       "name a technique: ssdtrain");
    if (question.together && question.axes.size() != 2)
      throw InputError("", "--together", "not two axes", "name two: --axis micro-batch --axis sequence");
    for (const std::string& setting : ways_.back().edits) {
      if (setting.ends_with("=null")) continue;
      orders_ = orders_ || setting.starts_with(order_key);
      if (setting.starts_with(allocator_key)) ++planning_;
      if (!setting.starts_with(offload_key)) continue;
      planning_ += planned_fates;
      moves_ = true;
    }
    if (options.progress)
      options_.progress = [this, told = options.progress](const Row& row, std::size_t, std::size_t) {
        if (!told(row, ++rows_, 0)) outcome_.stopped = true;
        return !outcome_.stopped;
      };
  }

  PayoffOutcome run() {
    std::vector<Walk> walks;
    for (PayoffAxis& axis : payoff_axes(scenario_, question_.axes)) {
      const bool is_idle = axis.is_of_transfers && !moves_;
      walks.emplace_back(std::move(axis));
      if (is_idle) walks.back().end(PayoffAnswer::End::indifferent);
    }
    outcome_.times_work =
        static_cast<double>(work_of({})) / static_cast<double>(std::max<std::int64_t>(1, question_.work));
    if (outcome_.times_work > 1) {
      for (Walk& walk : walks) outcome_.answers.push_back(walk.finish());
      return std::move(outcome_);
    }
    std::vector<PayoffTrial*> first = {&outcome_.here};
    evaluate_pairs(first);
    const Row& plain = outcome_.here.plain;
    if (plain.is_done && !plain.error.empty())
      throw InputError(scenario_.path, "", plain.error, "see that `spillway run` takes it");
    for (bool goes_on = !outcome_.here.pays; goes_on && !outcome_.stopped;) goes_on = round(walks);
    if (outcome_.here.pays) return std::move(outcome_);
    for (Walk& walk : walks) outcome_.answers.push_back(walk.finish());
    if (question_.together) outcome_.answers.push_back(both(outcome_.answers[0].axis, outcome_.answers[1].axis));
    return std::move(outcome_);
  }

 private:
  // Both axes upwards, in one change.
  PayoffAnswer both(const PayoffAxis& one, const PayoffAxis& other) {
    PayoffAnswer answer;
    answer.axis = one;
    answer.axis.name = one.name + " x " + other.name;
    answer.axis.key = one.key + ", " + other.key;
    answer.axis.unit = fmt::format("{} x {:.4g}{}", one.unit, other.shown, other.unit);
    for (int doublings = 2; doublings <= 2 * outward_up && !outcome_.stopped; ++doublings) {
      std::vector<PayoffTrial> trials;
      for (int first = std::max(1, doublings - outward_up); first <= std::min(outward_up, doublings - 1); ++first) {
        const std::optional<double> a = value_at(one, std::ldexp(1.0, first));
        const std::optional<double> b = value_at(other, std::ldexp(1.0, doublings - first));
        if (!a || !b) continue;
        PayoffTrial trial = trial_at(one, *a);
        const PayoffTrial second = trial_at(other, *b);
        trial.factor *= second.factor;
        trial.value += " x " + second.value;
        trial.edits.insert(trial.edits.end(), second.edits.begin(), second.edits.end());
        const std::int64_t work = work_of(trial.edits);
        if (outcome_.work + work > question_.work) return answer;
        outcome_.work += work;
        trials.push_back(std::move(trial));
      }
      std::vector<PayoffTrial*> all;
      for (PayoffTrial& trial : trials) all.push_back(&trial);
      evaluate_pairs(all);
      if (outcome_.stopped) return answer;
      for (PayoffTrial& trial : trials) {
        if (trial.pays && (!answer.least || trial.saving() > answer.least->saving())) answer.least = trial;
        answer.trials.push_back(std::move(trial));
      }
      answer.end = answer.least ? PayoffAnswer::End::found : PayoffAnswer::End::unfinished;
      if (answer.least) return answer;
    }
    answer.end = PayoffAnswer::End::no;
    return answer;
  }

  // One value of every axis that has no end yet. False: all have.
  bool round(std::vector<Walk>& walks) {
    std::vector<PayoffTrial> trials;
    std::vector<Walk*> of;
    for (Walk& walk : walks) {
      std::optional<PayoffTrial> trial = walk.next();
      if (!trial) continue;
      const std::int64_t work = work_of(trial->edits);
      if (outcome_.work + work > question_.work) {
        walk.give_up();
        continue;
      }
      outcome_.work += work;
      trials.push_back(std::move(*trial));
      of.push_back(&walk);
    }
    std::vector<PayoffTrial*> all;
    for (PayoffTrial& trial : trials) all.push_back(&trial);
    evaluate_pairs(all);
    for (std::size_t i = 0; i < trials.size() && !outcome_.stopped; ++i)
      of[i]->take(std::move(trials[i]), outcome_.here);
    return !trials.empty();
  }

  void evaluate_pairs(const std::vector<PayoffTrial*>& trials) {
    std::vector<Candidate> candidates;
    for (const PayoffTrial* trial : trials)
      for (const Candidate& way : ways_) {
        Candidate& made = candidates.emplace_back(Candidate{way.name, trial->edits});
        made.edits.insert(made.edits.end(), way.edits.begin(), way.edits.end());
      }
    std::vector<Row> rows = evaluate(scenario_, candidates, options_);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      PayoffTrial& trial = *trials[i];
      trial.plain = std::move(rows[2 * i]);
      trial.with = std::move(rows[2 * i + 1]);
      if (!trial.plain.is_done || !trial.with.is_done) {
        outcome_.stopped = true;
        continue;
      }
      ++outcome_.pairs;
      const std::optional<double> saving = trial.saving(), slower = trial.slower();
      trial.pays = saving && *saving >= question_.saves && *slower <= question_.slower &&
                   (!must_fit() || trial.with.result.answer() != Verdict::does_not_fit);
    }
  }

  // Where the plain step itself doesn't fit, what would fit is another question (`spillway fit`).
  [[nodiscard]] bool must_fit() const { return outcome_.here.plain.result.answer() != Verdict::does_not_fit; }

  // Layers run forward and backward by the pair; 1 of a capture, and of what can't be run.
  [[nodiscard]] std::int64_t work_of(const std::vector<std::string>& edits) const {
    const std::int64_t layers = layers_of(edits);
    return (1 + planning_ + (orders_ ? layers : 0)) * layers;
  }
  [[nodiscard]] std::int64_t layers_of(const std::vector<std::string>& edits) const {
    try {
      const Scenario scenario = scenario_of(scenario_, edits);
      if (scenario.model.empty()) return 1;
      const ModelSpec model = with_layers(scenario, find_model(scenario.model));
      const TrainingSetup setup = resolve(scenario.training, model);
      // An estimate of what a folded step costs, found on the bundled scenarios; not what folding replays.
      const std::int64_t replayed = setup.pipeline_parallel + 1;
      return model.layers *
             (may_fold(scenario) ? std::min(setup.gradient_accumulation, replayed) : setup.gradient_accumulation);
    } catch (const InputError&) {
      return 1;
    }
  }

  const BaseScenario& scenario_;
  const PayoffQuestion& question_;
  EvaluateOptions options_;
  std::vector<Candidate> ways_;  // the plain step, the technique
  std::int64_t planning_ = 1;    // the technique's replay and plan, in replays
  bool moves_ = false;           // tensors leave the GPU
  bool orders_ = false;          // an order is planned, whose search grows faster than the step
  PayoffOutcome outcome_;
  std::size_t rows_ = 0;
};

}  // namespace

std::optional<double> PayoffTrial::saving() const {
  if (!plain.ran() || !with.ran() || !plain.result.memory.known || !with.result.memory.known) return std::nullopt;
  const auto before = static_cast<double>(plain.result.memory.peak_reserved.count());
  if (before <= 0) return std::nullopt;
  return 1 - static_cast<double>(with.result.memory.peak_reserved.count()) / before;
}

std::optional<double> PayoffTrial::slower() const {
  if (!saving() || plain.result.step_time <= Picos(0)) return std::nullopt;
  return to_seconds(with.result.step_time) / to_seconds(plain.result.step_time) - 1;
}

bool PayoffOutcome::found() const {
  return here.pays || std::any_of(answers.begin(), answers.end(),
                                  [](const PayoffAnswer& answer) { return answer.least.has_value(); });
}

bool PayoffOutcome::finished() const {
  return here.pays ||
         (!stopped && times_work <= 1 && std::none_of(answers.begin(), answers.end(), [](const PayoffAnswer& answer) {
           return answer.end == PayoffAnswer::End::unfinished;
         }));
}

PayoffOutcome find_payoff(const BaseScenario& scenario, const PayoffQuestion& question,
                          const EvaluateOptions& options) {
  return Search(scenario, question, options).run();
}

}  // namespace spillway::studies
