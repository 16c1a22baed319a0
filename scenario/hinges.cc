#include "scenario/hinges.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/number_text.h"
#include "scenario/brief_run.h"

namespace spillway::scenario {
namespace {

constexpr std::size_t most_clauses = 3;
constexpr std::int64_t shortest = 512, usual = 2048, longest = std::int64_t{1} << 20U, most_at_once = 512;

class Hinges {
 public:
  Hinges(const LoadedScenario& loaded, const Result& result)
      : loaded_(loaded), imported_(loaded.scenario.imported), result_(result), fits_(result.may_fit()) {}

  std::vector<std::string> take() {
    open_sizes();
    if (is_open("model.precision")) open_precision();
    if (is_open("model.name"))
      say(fits_ ? "unless the vocabulary, which the launch doesn't state, is larger"
                : "unless the vocabulary, which the launch doesn't state, is smaller");
    if (is_open("model.images") && fits_) say("unless sequences have images (model.images is not stated)");
    if (is_open("recipe")) say("unless the launch's recipe, which is not read, sets other memory");
    fits_ ? adders() : savers();
    if (clauses_.size() > most_clauses) {
      const std::size_t more = clauses_.size() - most_clauses;
      clauses_.resize(most_clauses);
      clauses_.back() += fmt::format(" (and {} more: `import` lists them)", more);
    }
    return std::move(clauses_);
  }

 private:
  [[nodiscard]] bool is_open(std::string_view key) const {
    return std::find(imported_.open.begin(), imported_.open.end(), key) != imported_.open.end();
  }
  void say(std::string clause) { clauses_.push_back(std::move(clause)); }

  // Whether the step fits with other training settings; no where it can't be one.
  [[nodiscard]] bool fits(const TrainingSetup& training) const {
    Scenario other = loaded_.scenario;
    other.imported = {};
    other.training = training;
    try {
      return run_briefly(other, Detail::clock).run.result.may_fit();
    } catch (const InputError&) {
      return false;
    }
  }

  // The largest of ascending values with which it fits; 0: none. Each may fit where all before it do.
  template <class Set>
  [[nodiscard]] std::int64_t largest(const std::vector<std::int64_t>& values, Set set) const {
    const auto end = std::partition_point(values.begin(), values.end(), [&](std::int64_t value) {
      TrainingSetup training = loaded_.scenario.training;
      set(training, value);
      return fits(training);
    });
    return end == values.begin() ? 0 : *std::prev(end);
  }

  [[nodiscard]] std::int64_t largest_batch(std::int64_t sequence) const {
    std::vector<std::int64_t> values;
    const std::int64_t together = loaded_.setup.micro_batch * loaded_.setup.gradient_accumulation;
    const bool has_global = loaded_.scenario.training.global_batch > 0;
    for (std::int64_t at_once = 1; at_once <= most_at_once; ++at_once)
      if (!has_global || together % at_once == 0) values.push_back(at_once);
    return largest(values, [&](TrainingSetup& training, std::int64_t value) {
      training.micro_batch = value;
      training.sequence = sequence;
    });
  }

  void open_sizes() {
    const bool batch = is_open("model.micro_batch"), sequence = is_open("model.sequence");
    const std::int64_t tokens = loaded_.setup.sequence;
    if (!batch && !sequence) return;
    const bool tells_amounts = imported_.tells_amounts && loaded_.options.memory.detail == Detail::figures;
    if (!tells_amounts) return open_sizes_shortly(batch, sequence);
    if (!batch) {
      std::vector<std::int64_t> lengths;
      for (std::int64_t length = shortest; length <= longest; length *= 2) lengths.push_back(length);
      const std::int64_t most =
          largest(lengths, [](TrainingSetup& training, std::int64_t value) { training.sequence = value; });
      if (most > 0 && most < longest) say(fmt::format("if sequence <= {} (not stated)", grouped_text(most)));
      return;
    }
    std::vector<std::int64_t> lengths = {tokens};
    if (sequence && tokens != usual) lengths.push_back(usual);
    if (sequence && tokens != shortest) lengths.push_back(shortest);
    std::string clause;
    int shown = 0;
    for (const std::int64_t length : lengths) {
      const std::int64_t most = shown == 2 || (shown == 1 && length == shortest) ? 0 : largest_batch(length);
      if (most == 0) continue;
      clause += fmt::format("{} <= {} at {}", clause.empty() ? "if micro_batch" : ",", most, grouped_text(length));
      if (++shown == 1) clause += " tokens";
    }
    if (shown > 0) say(clause + (sequence ? " (the launch states neither)" : " (not stated)"));
  }

  void open_sizes_shortly(bool batch, bool sequence) {
    TrainingSetup least = loaded_.scenario.training;
    if (sequence) least.sequence = shortest;
    if (!fits_ && (!sequence || !fits(least))) return;
    say(fmt::format("if {} is small enough (not stated)", batch ? "micro_batch" : "sequence"));
  }

  void open_precision() {
    TrainingSetup training = loaded_.scenario.training;
    const bool is_wide = training.precision == TrainingPrecision::fp32;
    training.precision = is_wide ? TrainingPrecision::bf16_mixed : TrainingPrecision::fp32;
    if (fits(training) == fits_) return;
    const std::string_view fitting = fits_ == is_wide ? "fp32" : "bf16_mixed";
    say(fmt::format("if precision is {} (not stated)", fitting));
  }

  static std::string shown(const UnsayableFlag& flag) { return fmt::format("{} ({})", flag.flag, flag.place); }

  void adders() {
    const auto counts = [](const UnsayableFlag& flag) {
      return flag.effect == LaunchEffect::adds || flag.effect == LaunchEffect::either ||
             flag.effect == LaunchEffect::unknown;
    };
    const Bytes room = std::max(result_.memory.limit - result_.memory.peak_reserved, Bytes(0));
    Bytes bounded{};
    for (const UnsayableFlag& flag : imported_.unsayable)
      if (counts(flag) && flag.at_most) bounded += std::min(*flag.at_most, Bytes(std::int64_t{1} << 50U));
    for (const UnsayableFlag& flag : imported_.unsayable) {
      if (!counts(flag) || (flag.at_most && bounded <= room)) continue;
      say(fmt::format("unless {} {} {}", shown(flag),
                      flag.effect == LaunchEffect::unknown ? "is not known and" : "which a scenario can't say",
                      flag.at_most ? "needs up to " + gib_text(*flag.at_most) + " more" : "needs more"));
    }
  }

  // Whether the step fits with as little as such a flag can leave: a paged optimizer's states leave the GPU, those of
  // one on the CPU may be of few bytes there; other flags keep the least of a step's activations and logits.
  [[nodiscard]] bool could_save(bool is_of_states) {
    if (is_of_states && loaded_.scenario.training.optimizer_device != StateDevice::gpu)
      return is_yes(result_.memory.verdict()) && result_.host_memory.verdict() == Verdict::does_not_fit;
    std::optional<bool>& could = could_save_[is_of_states ? 1 : 0];
    if (could) return *could;
    TrainingSetup training = loaded_.scenario.training;
    if (is_of_states) {
      training.optimizer = OptimizerKind::sgd;
    } else {
      training.recompute = Recompute::full;
      if (!training.compares_answers()) training.loss = LossForm::chunked;
    }
    could = fits(training);
    return *could;
  }

  void savers() {
    for (const UnsayableFlag& flag : imported_.unsayable) {
      if (flag.effect == LaunchEffect::time || flag.effect == LaunchEffect::adds) continue;
      const bool is_of_states = flag.value.starts_with("paged_") || flag.flag.find("optim") != std::string::npos;
      if (flag.effect == LaunchEffect::saves && !could_save(is_of_states)) continue;
      say(fmt::format("unless {} {} saves it", shown(flag),
                      flag.effect == LaunchEffect::unknown ? "is not known and" : "which a scenario can't say"));
    }
  }

  const LoadedScenario& loaded_;
  const ImportedFrom& imported_;
  const Result& result_;
  bool fits_;
  std::array<std::optional<bool>, 2> could_save_{};
  std::vector<std::string> clauses_;
};

}  // namespace

std::vector<std::string> hinges_of(const LoadedScenario& loaded, const Result& result) {
  const ImportedFrom& imported = loaded.scenario.imported;
  if (imported.open.empty() && imported.unsayable.empty()) return {};
  if (loaded.scenario.model.empty() || result.verdict() == Verdict::unknown) return {};
  return Hinges(loaded, result).take();
}

}  // namespace spillway::scenario
