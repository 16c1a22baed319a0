#include "models/step/plan_fold.h"

#include <algorithm>

namespace spillway::models {
namespace {

constexpr std::uint32_t least_folded_periods = 3;

class DeviceFold {
 public:
  DeviceFold(const PipelinePlan& whole, const PipelinePlan& shown, std::size_t device, std::int64_t period,
             std::int64_t first_usual)
      : whole_(whole.compute[device]),
        shown_(shown.compute[device]),
        period_(period),
        first_(first_usual),
        last_(shown.micro_batches - 2),
        times_((whole.micro_batches - shown.micro_batches) / period) {}

  [[nodiscard]] std::optional<PlanFold::Device> find() const {
    const std::size_t more = whole_.size() - shown_.size();
    if (whole_.size() <= shown_.size() || more % static_cast<std::size_t>(times_) != 0) return std::nullopt;
    PlanFold::Device fold{.length = more / static_cast<std::size_t>(times_)};
    std::size_t from = 0, best = 0;  // the longest stretch whose operations come again a period later
    for (std::size_t i = 0; i <= shown_.size(); ++i) {
      const bool goes_on = i + fold.length < shown_.size() && is_usual(shown_[i]) &&
                           is_usual(shown_[i + fold.length]) && is_later(shown_[i], shown_[i + fold.length], period_);
      if (goes_on) continue;
      if (i - from > best) {
        best = i - from;
        fold.first = from;
      }
      from = i + 1;
    }
    fold.periods = best == 0 ? 0 : static_cast<std::uint32_t>(best / fold.length) + 1;
    if (fold.periods < least_folded_periods || !makes_whole(fold)) return std::nullopt;
    return fold;
  }

 private:
  [[nodiscard]] bool is_usual(const PipelineOp& op) const {
    const auto usual = [this](const PipelinePass& pass) {
      return pass.micro_batch >= first_ && pass.micro_batch <= last_;
    };
    return usual(op.pass) && (op.kind != PipelineOpKind::paired || usual(op.second)) && op.after < 0 && op.peer < 0;
  }
  [[nodiscard]] static bool is_later(const PipelineOp& one, const PipelineOp& other, std::int64_t micro_batches) {
    const auto later = [micro_batches](PipelinePass pass) {
      pass.micro_batch = static_cast<std::int32_t>(pass.micro_batch + micro_batches);
      return pass;
    };
    return one.kind == other.kind && later(one.pass) == other.pass && one.after == other.after &&
           one.peer == other.peer && (one.kind != PipelineOpKind::paired || later(one.second) == other.second);
  }
  [[nodiscard]] bool makes_whole(const PlanFold::Device& fold) const {
    const std::size_t end = fold.first + fold.periods * fold.length;
    const std::size_t more = whole_.size() - shown_.size();
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const std::size_t place = i < end ? i : i < end + more ? end - fold.length + (i - end) % fold.length : i - more;
      const auto later = i < end ? 0 : i < end + more ? static_cast<std::int64_t>((i - end) / fold.length) + 1 : times_;
      if (!is_later(shown_[place], whole_[i], later * period_)) return false;
    }
    return true;
  }

  const std::vector<PipelineOp>&whole_, &shown_;
  std::int64_t period_, first_, last_, times_;
};

}  // namespace

std::optional<PlanFold> fold_of(const PipelinePlan& whole, const PipelinePlan& shown, std::int64_t period,
                                std::int64_t first_usual) {
  const std::int64_t more = whole.micro_batches - shown.micro_batches;
  if (more <= 0 || more % period != 0 || whole.routes.size() != 1) return std::nullopt;
  PlanFold fold{.times = more / period};
  for (std::size_t device = 0; device < whole.compute.size(); ++device) {
    const std::optional<PlanFold::Device> found = DeviceFold(whole, shown, device, period, first_usual).find();
    if (!found) return std::nullopt;
    fold.devices.push_back(*found);
  }
  return fold;
}

}  // namespace spillway::models
