#include "studies/recorded/step_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "base/quantile.h"
#include "models/spec/model_spec.h"
#include "scenario/evaluator.h"
#include "studies/recorded/operator_kinds.h"

namespace spillway::studies {
namespace {

constexpr double least_share = 0.005;        // of the step's kernels: below it no factor
constexpr double most_different = 2.5;       // the GPU's work of the two
constexpr double most_other_kernels = 0.15;  // products and attention that one has and the other lacks
constexpr double most_kind = 2;  // times of a kind: beyond it another step, or norms and losses fused otherwise
// A factor below 1 goes at most so far beyond its ratio, in logarithms: what a GPU can't follow for its peaks or its
// power would quicken nothing but small kernels.
constexpr double beyond_ratio = 1.5, beyond_clock = 0.03;
constexpr int rounds = 6;  // factors change the clock that power allows, and with it all kernels

// The GPU's work of one step on one rank.
struct Work {
  std::array<std::vector<double>, scaled_operator_count> kinds;  // seconds of each kernel
  double others = 0, collectives = 0;

  [[nodiscard]] double sum(std::size_t kind) const {
    double all = 0;
    for (const double each : kinds[kind]) all += each;
    return all;
  }
  [[nodiscard]] double kernels() const {
    double all = 0;
    for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) all += sum(kind);
    return all;
  }
};

// A library's kernels of one product or attention are one, as generated ones are.
using LaunchedBy = std::map<std::pair<SpanId, ScaledOperator>, std::size_t>;

void add_op(Work& work, LaunchedBy& known, const Trace& trace, std::size_t i,
            const std::optional<ScaledOperator>& kind) {
  const double seconds = to_seconds(trace.ops.duration[i]);
  if (kind) {
    std::vector<double>& of_kind = work.kinds[static_cast<std::size_t>(*kind)];
    const bool is_whole = *kind == ScaledOperator::product || *kind == ScaledOperator::attention_forward ||
                          *kind == ScaledOperator::attention_backward;
    const SpanId span = is_whole ? trace.ops.span[i] : SpanId::none;
    const auto [place, is_new] = known.try_emplace({span, *kind}, of_kind.size());
    if (is_new || span == SpanId::none)
      of_kind.push_back(seconds);
    else
      of_kind[place->second] += seconds;
  } else {
    (trace.ops.kind[i] == OpKind::collective ? work.collectives : work.others) += seconds;
  }
}

bool counts(const Trace& trace, std::size_t i) {
  return is_device_work(trace.ops.kind[i]) && trace.ops.duration[i] != unknown_time;
}

bool is_of_rank(const Trace& trace, std::size_t i, std::uint16_t rank) {
  return trace.lanes[index_of(trace.ops.lane[i])].rank == rank;
}

std::vector<Work> recorded_steps(const Trace& trace, std::uint16_t rank, bool odd_rows_are_apart) {
  std::map<std::uint16_t, Work> steps;
  LaunchedBy known;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (counts(trace, i) && is_of_rank(trace, i, rank))
      add_op(steps[trace.ops.step[i]], known, trace, i, recorded_kind(trace, static_cast<OpId>(i), odd_rows_are_apart));
  if (steps.size() > 1) steps.erase(no_index16);  // before, behind and between the steps
  std::vector<Work> found;
  for (auto& [step, work] : steps) found.push_back(std::move(work));
  // A step that the recording cuts off has less than the others.
  double most = 0;
  for (const Work& work : found) most = std::max(most, work.kernels());
  std::erase_if(found, [most](const Work& work) { return work.kernels() <= 0.8 * most; });
  return found;
}

// Products at fixed rates.
bool has_products_apart(const Trace& trace, const KernelKinds& kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel && !kinds[i] && trace.ops.flops[i] > Flops(0)) return true;
  return false;
}

Work generated_work(const Trace& trace, const KernelKinds& kinds, std::uint16_t rank) {
  Work work;
  LaunchedBy known;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (counts(trace, i) && is_of_rank(trace, i, rank)) add_op(work, known, trace, i, kinds[i]);
  return work;
}

// Durations where a kind's longest kernels have added up to 1/20, 3/20, ... of its time.
std::vector<double> along_time(std::vector<double> seconds) {
  constexpr int parts = 10;
  std::sort(seconds.begin(), seconds.end(), std::greater<>());
  double all = 0;
  for (const double each : seconds) all += each;
  std::vector<double> found;
  double sum = 0;
  for (const double each : seconds) {
    sum += each;
    while (static_cast<int>(found.size()) < parts &&
           sum >= all * (static_cast<double>(found.size()) + 0.5) / parts * (1 - 1e-9))
      found.push_back(each);
  }
  return found;
}

// What noise leaves certain of a ratio.
double certain(double ratio, double noise) {
  const double left = std::max(0.0, std::abs(ratio - 1) - noise);
  return ratio > 1 ? 1 + left : 1 - left;
}

double spread_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / quantile(values, 0.5);
}

class Joiner {
 public:
  Joiner(const Scenario& recording, const Scenario& scenario, std::string date, const ReadOptions& read)
      : recording_(load(recording, read)),
        scenario_(scenario),
        model_(find_model(scenario.model)),
        hardware_(hardware_of(scenario)),
        date_(std::move(date)) {}

  StepJoin join() {
    check_same_gpu();
    const LoadedScenario plain = generate(hardware_.gpu);
    precision_ = plain.setup.precision;
    set_rank(plain.trace);
    kinds_ = generated_kinds(
        plain.trace, [this](const GpuProfile& gpu) { return generate(gpu).trace; }, hardware_.gpu, precision_);
    generated_ = generated_work(plain.trace, kinds_, rank_);
    take_recording(has_products_apart(plain.trace, kinds_));
    check_same_step();
    const Result before = run(plain);
    joined_.generated = before.step_time;
    joined_.generated_peak = before.memory.peak_allocated;
    joined_.machine = plain.hardware.gpu.title;
    choose_targets();
    correct();
    fill_rows();
    return std::move(joined_);
  }

 private:
  void take_recording(bool odd_rows_are_apart) {
    // A file of one rank calls it the first.
    const auto last = static_cast<std::uint16_t>(recording_.trace.rank_count - 1);
    steps_ = recorded_steps(recording_.trace, std::min(rank_, last), odd_rows_are_apart);
    if (steps_.empty() || steps_.front().kernels() <= 0)
      throw InputError(recording_.scenario.path, "", "no kernels with times are recorded",
                       "record a step on the GPU: docs/how-to/record-a-trace.md");
    joined_.recorded_steps = steps_.size();
    const Result replayed = run(recording_);
    joined_.recorded_peak = replayed.memory.known ? replayed.memory.peak_allocated : Bytes(0);
    joined_.measured = replayed.step_time;
    if (replayed.fidelity && replayed.fidelity->without_profiler > Picos(0)) {
      joined_.measured = replayed.fidelity->without_profiler;
      joined_.is_estimated = true;
    }
    std::vector<double> seconds;
    for (const StepTime& step : recording_.trace.unprofiled_steps) seconds.push_back(to_seconds(step.duration));
    if (seconds.empty()) return;
    joined_.measured = from_seconds(quantile(seconds, 0.5));
    joined_.is_unprofiled = true;
    joined_.noise = spread_of(seconds);
  }

  [[nodiscard]] LoadedScenario generate(const GpuProfile& gpu) const {
    HardwareProfile hardware = hardware_;
    hardware.gpu = gpu;
    return load(scenario_, model_, ScenarioMachine(std::move(hardware)));
  }

  // A trace has a rank for each stage, in the order in which launchers number ranks.
  void set_rank(const Trace& generated) {
    const std::vector<Provenance>& files = recording_.trace.provenance;
    const auto known = std::find_if(files.begin(), files.end(),
                                    [](const Provenance& file) { return file.rank >= 0 && file.world_size > 0; });
    if (known == files.end()) return;
    rank_ = static_cast<std::uint16_t>(std::min(known->rank, known->world_size - 1) * generated.rank_count /
                                       known->world_size);
  }

  [[noreturn]] void refuse(const std::string& cause) const {
    throw InputError(scenario_.path, "", cause + ": they are not the same step",
                     "name the scenario or launch file that was recorded, with its batch, sequence, precision and GPU");
  }

  void check_same_gpu() const {
    if (recording_.trace.devices.empty() || !hardware_.gpu.sm_count) return;
    const Device& device = recording_.trace.devices.front();
    if (device.multiprocessors > 0 && device.multiprocessors != hardware_.gpu.sm_count->value)
      refuse(fmt::format("{} was recorded, and the scenario is of {}", recording_.trace.strings.text(device.name),
                         hardware_.gpu.title));
  }

  void check_same_step() const {
    const Work& recorded = steps_.back();
    const double ratio = recorded.kernels() / generated_.kernels();
    if (ratio > most_different || ratio < 1 / most_different)
      refuse(fmt::format("its kernels take {:.4g} ms and the recording's {:.4g}", 1e3 * generated_.kernels(),
                         1e3 * recorded.kernels()));
    constexpr std::array told = {ScaledOperator::product, ScaledOperator::attention_forward, ScaledOperator::optimizer};
    for (const ScaledOperator of : told) {
      const auto kind = static_cast<std::size_t>(of);
      const std::vector<double>&ours = generated_.kinds[kind], &theirs = recorded.kinds[kind];
      const double more = std::abs(static_cast<double>(theirs.size()) - static_cast<double>(ours.size()));
      if (of != ScaledOperator::optimizer && more > most_other_kernels * static_cast<double>(ours.size()))
        refuse(fmt::format("it has {} kernels of {} and the recording {}", ours.size(), scaled_operator_name(of),
                           theirs.size()));
      const double times = recorded.sum(kind) / generated_.sum(kind);
      if (recorded.sum(kind) > least_share * recorded.kernels() && (times > most_kind || times < 1 / most_kind))
        refuse(fmt::format("its {} takes {:.3g} ms and the recording's {:.3g}", scaled_operator_name(of),
                           1e3 * generated_.sum(kind), 1e3 * recorded.sum(kind)));
    }
  }

  // Norms and losses that are fused with what is around them in one of the two are told with the others.
  [[nodiscard]] bool is_pooled(ScaledOperator of) const {
    if (of != ScaledOperator::norm_forward && of != ScaledOperator::norm_backward &&
        of != ScaledOperator::cross_entropy)
      return false;
    const double recorded = recorded_sum(static_cast<std::size_t>(of));
    const double generated = generated_.sum(static_cast<std::size_t>(of));
    return recorded > most_kind * generated || generated > most_kind * recorded;
  }

  [[nodiscard]] double recorded_sum(std::size_t kind) const {
    std::vector<double> sums;
    for (const Work& step : steps_) sums.push_back(step.sum(kind));
    return quantile(sums, 0.5);
  }

  void pool(Work& work, std::size_t kind) const {
    std::vector<double>& into = work.kinds[static_cast<std::size_t>(ScaledOperator::memory_bound)];
    into.insert(into.end(), work.kinds[kind].begin(), work.kinds[kind].end());
    work.kinds[kind].clear();
  }

  void choose_targets() {
    for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) {
      if (!is_pooled(static_cast<ScaledOperator>(kind))) continue;
      pooled_[kind] = true;
      pool(generated_, kind);
      for (Work& step : steps_) pool(step, kind);
    }
    for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) {
      std::vector<double> sums;
      for (const Work& step : steps_) sums.push_back(step.sum(kind));
      noise_[kind] = spread_of(sums);
      const double recorded = recorded_sum(kind), generated = generated_.sum(kind);
      target_[kind] = generated;
      if (recorded > 0 && generated > 0 && recorded > least_share * steps_.back().kernels())
        target_[kind] = generated * certain(recorded / generated, noise_[kind]);
    }
  }

  // Times follow factors but for the clock, which follows the power that all kernels draw, and for the peaks.
  void correct() {
    const Origin origin{OriginKind::measured, "spillway check --from " + recording_.scenario.path, date_, 0};
    GpuProfile gpu = hardware_.gpu;
    Work now = generated_;
    constexpr auto all = static_cast<std::size_t>(ScaledOperator::memory_bound);
    for (int round = 0; round < rounds; ++round) {
      std::array<double, scaled_operator_count> change{};
      for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) {
        change[kind] = now.sum(kind) > 0 ? target_[kind] / now.sum(kind) : 1;
        if (generated_.sum(kind) <= 0) continue;
        const double least =
            beyond_ratio * std::min(0.0, std::log(target_[kind] / generated_.sum(kind))) - beyond_clock;
        change[kind] = std::max(change[kind], std::exp(least) / factor_[kind]);
      }
      for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) {
        const auto of = static_cast<ScaledOperator>(kind);
        const bool is_part = of == ScaledOperator::norm_forward || of == ScaledOperator::norm_backward ||
                             of == ScaledOperator::cross_entropy || of == ScaledOperator::optimizer;
        if (is_part && now.sum(kind) <= 0) continue;  // goes with the others bound by memory
        const double factor = is_part ? change[kind] / change[all] : change[kind];
        if (factor != 1) lengthen(gpu, of, factor, precision_, origin);
        factor_[kind] *= change[kind];
      }
      const LoadedScenario loaded = generate(gpu);
      now = generated_work(loaded.trace, kinds_, rank_);
      for (std::size_t kind = 0; kind < scaled_operator_count; ++kind)
        if (pooled_[kind]) pool(now, kind);
      if (round + 1 == rounds) joined_.corrected = run(loaded).step_time;
    }
    corrected_ = std::move(now);
    if (gpu.operator_times_of.empty()) gpu.operator_times_of = gpu.name;
    gpu.name = "checked-" + gpu.name;
    joined_.profile = std::move(gpu);
  }

  void fill_rows() {
    for (std::size_t kind = 0; kind < scaled_operator_count; ++kind) {
      const Work& recorded = steps_.back();
      if (recorded.kinds[kind].empty() && generated_.kinds[kind].empty()) continue;
      KindJoin row;
      row.of = static_cast<ScaledOperator>(kind);
      row.recorded_kernels = std::ssize(recorded.kinds[kind]);
      row.generated_kernels = std::ssize(generated_.kinds[kind]);
      row.recorded = from_seconds(recorded_sum(kind));
      row.generated = from_seconds(generated_.sum(kind));
      row.corrected = from_seconds(corrected_.sum(kind));
      row.noise = noise_[kind];
      row.factor = factor_[kind];
      set_spread(row, recorded.kinds[kind], corrected_.kinds[kind]);
      joined_.kinds.push_back(row);
    }
    std::stable_sort(joined_.kinds.begin(), joined_.kinds.end(),
                     [](const KindJoin& a, const KindJoin& b) { return a.recorded > b.recorded; });
    joined_.recorded_others = from_seconds(steps_.back().others);
    joined_.generated_others = from_seconds(generated_.others);
    joined_.recorded_collectives = from_seconds(steps_.back().collectives);
    joined_.generated_collectives = from_seconds(generated_.collectives);
  }

  static void set_spread(KindJoin& row, const std::vector<double>& recorded, const std::vector<double>& generated) {
    const std::vector<double> a = along_time(recorded), b = along_time(generated);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (b[i] > 0) ratios.push_back(a[i] / b[i]);
    if (ratios.empty()) return;
    row.least = quantile(ratios, 0.05);
    row.most = quantile(ratios, 0.95);
  }

  LoadedScenario recording_;
  const Scenario& scenario_;
  ModelSpec model_;
  HardwareProfile hardware_;
  std::string date_;
  TrainingPrecision precision_ = TrainingPrecision::bf16_mixed;
  std::uint16_t rank_ = 0;
  KernelKinds kinds_;
  std::vector<Work> steps_;
  Work generated_, corrected_;
  std::array<double, scaled_operator_count> target_{}, noise_{};
  std::array<double, scaled_operator_count> factor_ = {1, 1, 1, 1, 1, 1, 1, 1};
  std::array<bool, scaled_operator_count> pooled_{};
  StepJoin joined_;
};

}  // namespace

StepJoin join_step(const Scenario& recording, const Scenario& scenario, const std::string& date,
                   const ReadOptions& read) {
  if (recording.trace.empty())
    throw InputError(recording.path, "--from", "is no recording", "name a trace, or a folder of spillway.torch.record");
  if (scenario.model.empty())
    throw InputError(scenario.path, "", "has no model, so no step is generated from it",
                     "name the scenario or the launch file of the recorded step");
  return Joiner(recording, scenario, date, read).join();
}

}  // namespace spillway::studies
