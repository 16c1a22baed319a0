#include "validation/campaign/calibration_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/quantile.h"
#include "models/fit/gemm_rows.h"
#include "models/fit/gpu_profile_fit.h"
#include "models/fit/product_lines.h"

namespace spillway::validation {
namespace {

using models::fit::calibration_origin;
using models::fit::held_out;
using models::fit::PointTimes;
using models::fit::product_class_count;

constexpr double standard_errors = 2;
constexpr std::size_t least_points = 8;  // of a verdict
constexpr double most_error = 0.5;       // that one point counts as, in log

struct Judged {
  std::vector<double> before, after;  // |log(measured / predicted)|

  [[nodiscard]] double median(const std::vector<double>& errors) const {
    return errors.empty() ? 0 : std::expm1(quantile(errors, 0.5));
  }
  // By more than the median of so many errors tells.
  [[nodiscard]] bool is_worse() const {
    const double unsure = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(before.size(), 1)));
    return median(after) > (1 + unsure) * median(before);
  }
  [[nodiscard]] double mean_gain() const {
    double gain = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      gain += std::min(before[i], most_error) - std::min(after[i], most_error);
    return before.empty() ? 0 : gain / static_cast<double>(before.size());
  }
  // By more than chance.
  [[nodiscard]] bool helps() const {
    if (before.size() < least_points) return false;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double gain = std::min(before[i], most_error) - std::min(after[i], most_error);
      sum += gain;
      squares += gain * gain;
    }
    const auto count = static_cast<double>(before.size());
    const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
    return mean > 0 && mean > standard_errors * std::sqrt(variance / (count - 1));
  }
};

using Group = std::pair<ScaledOperator, Precision>;
struct Class {
  Group group;
  std::size_t size = 0;  // of products
  friend auto operator<=>(const Class&, const Class&) = default;
};

std::string name_of(const Group& group) {
  if (group.first != ScaledOperator::product) return std::string(hwprofiles::scaled_operator_name(group.first));
  return fmt::format("products {}", hwprofiles::precision_name(group.second));
}

// Points that are `chosen`, by class, as two profiles predict them.
template <class Chosen>
void judge(const GpuMeasurement& measured, const PointTimes& old_times, const PointTimes& new_times, Chosen chosen,
           std::map<Class, Judged>& judged) {
  for (const GpuPoint& point : measured.points) {
    const std::optional<ScaledOperator> of = models::fit::operator_of(point);
    if (!of || !chosen(point)) continue;
    const std::optional<double> old_seconds = old_times.seconds(point), new_seconds = new_times.seconds(point);
    if (!old_seconds || !new_seconds) continue;
    const bool is_product = *of == ScaledOperator::product;
    Judged& one = judged[{{*of, is_product ? point.precision : Precision::bf16},
                          is_product ? models::fit::product_class(point) : 0}];
    one.before.push_back(std::abs(std::log(point.value.median / *old_seconds)));
    one.after.push_back(std::abs(std::log(point.value.median / *new_seconds)));
  }
}

std::map<Class, Judged> judge_held_out(const GpuMeasurement& measured, const GpuProfile& before,
                                       const GpuProfile& after) {
  std::map<Class, Judged> judged;
  judge(
      measured, PointTimes(before), PointTimes(after), [](const GpuPoint& point) { return held_out(point); }, judged);
  return judged;
}

Judged of_group(const std::map<Class, Judged>& judged, const Group& group) {
  Judged all;
  for (const auto& [one, errors] : judged) {
    if (one.group != group) continue;
    all.before.insert(all.before.end(), errors.before.begin(), errors.before.end());
    all.after.insert(all.after.end(), errors.after.begin(), errors.after.end());
  }
  return all;
}

class Judgement {
 public:
  Judgement(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date)
      : measured_(measured), base_(base), date_(date) {}

  CalibrationVerdict run() {
    models::fit::GpuFit fit = models::fit::fit_gpu(measured_, base_, date_);
    verdict_.profile = std::move(fit.profile);
    verdict_.notes = std::move(fit.notes);
    if (models::measured_operator_times().empty()) {
      verdict_.notes.emplace_back("no operator times are installed, so nothing can be judged");
      return std::move(verdict_);
    }
    keep_scales();
    keep_lines();
    tell();
    return std::move(verdict_);
  }

 private:
  // A scale changes its own operators alone, so all are judged at once.
  void keep_scales() {
    const std::map<Class, Judged> judged = judge_held_out(measured_, base_, verdict_.profile);
    std::erase_if(verdict_.profile.operator_scales, [&](const OperatorScale& scale) {
      const Group group{scale.of, scale.precision};
      const bool worse = std::any_of(judged.begin(), judged.end(), [&](const auto& one) {
        return one.first.group == group && one.second.is_worse();
      });
      if (!worse && of_group(judged, group).helps()) return false;
      verdict_.notes.push_back(name_of(group) + ": the fitted factors do not help, so the tables stand");
      return true;
    });
  }

  // Each fifth of the products by the lines of the others: lines are cheap to fit, and a fifth alone says little.
  std::map<Class, Judged> judge_lines(const GpuProfile& without, const PointTimes& old_times,
                                      const std::array<bool, product_class_count>& allowed) const {
    std::map<Class, Judged> judged;
    for (std::uint64_t fold = 0; fold < models::fit::fold_count; ++fold) {
      GpuProfile profile = without;
      profile.product_lines =
          models::fit::fit_product_lines(measured_.points, old_times, allowed, fold, calibration_origin(date_));
      judge(
          measured_, old_times, PointTimes(profile),
          [&](const GpuPoint& point) {
            return point.kind == PointKind::product && models::fit::fold_of(point.m, point.n, point.k) == fold;
          },
          judged);
    }
    return judged;
  }

  void keep_lines() {
    GpuProfile& profile = verdict_.profile;
    const PointTimes old_times(profile);
    std::array<bool, product_class_count> allowed{};
    allowed.fill(true);
    // Those that help by themselves, then those that still do together.
    for (std::size_t round = 0; round <= product_class_count; ++round) {
      const std::map<Class, Judged> judged = judge_lines(profile, old_times, allowed);
      bool changed = false;
      for (std::size_t c = 0; c < allowed.size(); ++c) {
        const auto found = judged.find({{ScaledOperator::product, Precision::bf16}, c});
        if (!allowed[c] || (found != judged.end() && found->second.helps() && !found->second.is_worse())) continue;
        allowed[c] = false;
        changed = true;
      }
      if (!changed) break;
    }
    profile.product_lines =
        models::fit::fit_product_lines(measured_.points, old_times, allowed, 0, calibration_origin(date_));
    for (std::size_t c = 0; c < allowed.size(); ++c)
      if (!allowed[c])
        verdict_.notes.push_back(fmt::format("products bf16, {}: corrections by shape do not help, so the tables stand",
                                             models::fit::product_class_name(c)));
  }

  void tell() {
    bool worse = false, better = false;
    for (const auto& [one, errors] : judge_held_out(measured_, base_, verdict_.profile)) {
      const bool is_product = one.group.first == ScaledOperator::product;
      verdict_.rows.push_back(
          {name_of(one.group) + (is_product ? fmt::format(", {}", models::fit::product_class_name(one.size)) : ""),
           errors.before.size(), errors.median(errors.before), errors.median(errors.after)});
      worse = worse || errors.is_worse();
      better = better || (errors.after != errors.before && errors.mean_gain() > 0);
    }
    verdict_.helps = better && !worse;
  }
  const GpuMeasurement& measured_;
  const GpuProfile& base_;
  const std::string& date_;
  CalibrationVerdict verdict_;
};

}  // namespace

CalibrationVerdict calibrated_profile(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date) {
  GpuMeasurement counting = measured;
  std::vector<GpuPoint> others;
  counting.points = models::fit::points_that_count(measured.points, others);
  CalibrationVerdict verdict = Judgement(counting, base, date).run();
  std::map<std::string, int> counts;
  for (const GpuPoint& point : others) ++counts[point.what + " of " + point.source];
  for (const auto& [whose, count] : counts)
    verdict.notes.push_back(fmt::format("{} points of {} are not used: those of cuDNN in PyTorch count", count, whose));
  return verdict;
}

}  // namespace spillway::validation
