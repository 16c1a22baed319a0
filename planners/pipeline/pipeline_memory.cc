#include "planners/pipeline/pipeline_memory.h"

#include <algorithm>

#include "planners/pipeline/pass_table.h"

namespace spillway::planners {
namespace {

using Kind = PipelineOpKind;
constexpr std::int64_t whole_activation = 1'000'000;

struct Change {
  Ticks at = 0;
  std::int64_t amount = 0;  // millionths of a chunk's activations of a slice
};

class ActivationCount {
 public:
  ActivationCount(const PipelinePlan& plan, const PipelineTimeline& timeline, const ActivationRules& rules)
      : plan_(plan), timeline_(timeline), rules_(rules), table_(plan), changes_(plan.compute.size()) {
    for (std::size_t d = 0; d < plan.compute.size(); ++d) compute_changes(d);
    std::vector<bool> has_copies(plan.compute.size(), false);
    for (std::size_t d = 0; d < plan.copies.size(); ++d) copy_changes(d, has_copies);
    // A compute lane's changes come in order, and what ends when another begins is given back first.
    for (std::size_t d = 0; d < changes_.size(); ++d)
      if (has_copies[d])
        std::stable_sort(changes_[d].begin(), changes_[d].end(), [](const Change& a, const Change& b) {
          return a.at != b.at ? a.at < b.at : a.amount < 0 && b.amount > 0;
        });
  }

  template <class Visit>
  double peak(std::size_t device, Visit&& visit) const {
    std::int64_t now = 0, peak = 0;
    for (const Change& change : changes_[device]) {
      now += change.amount;
      peak = std::max(peak, now);
      visit(change.at, micro_batches(now));
    }
    return micro_batches(peak);
  }

 private:
  [[nodiscard]] double micro_batches(std::int64_t amount) const {
    return static_cast<double>(amount) / static_cast<double>(whole_activation * plan_.chunks * plan_.slices);
  }
  [[nodiscard]] std::size_t index(std::size_t device, const PipelinePass& pass) const {
    return table_.index(pass, table_.position(device, pass.chunk));
  }

  void compute_changes(std::size_t d) {
    const auto& ops = plan_.compute[d];
    std::vector<bool> recomputed;
    for (const PipelineOp& op : ops) {
      if (op.kind != Kind::recompute) continue;
      if (recomputed.empty()) recomputed.assign(table_.size(), false);
      recomputed[index(d, op.pass)] = true;
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const PipelineOp& op = ops[i];
      const TickSpan span = timeline_.compute[d][i];
      const auto change = [&](Ticks at, std::int64_t amount) {
        if (amount != 0) changes_[d].push_back({at, amount});
      };
      switch (op.kind) {
        case Kind::forward:
          change(span.begin,
                 !recomputed.empty() && recomputed[index(d, op.pass)] ? rules_.checkpoint : whole_activation);
          break;
        case Kind::recompute:
          change(span.begin, whole_activation - rules_.checkpoint);
          break;
        case Kind::backward:
          change(span.end, -whole_activation);
          break;
        case Kind::input_gradient:
          change(span.end, rules_.weight_part - whole_activation);
          break;
        case Kind::weight_gradient:
          change(span.end, -rules_.weight_part);
          break;
        case Kind::paired:
          change(span.begin, whole_activation);
          change(span.end, -whole_activation);
          break;
        case Kind::offload:
        case Kind::reload:
          break;
      }
    }
  }

  void copy_changes(std::size_t d, std::vector<bool>& has_copies) {
    for (std::size_t i = 0; i < plan_.copies[d].size(); ++i) {
      const PipelineOp& op = plan_.copies[d][i];
      const TickSpan span = timeline_.copies[d][i];
      const bool leaves = op.kind == Kind::offload;
      has_copies[d] = true;
      changes_[d].push_back(leaves ? Change{span.end, -whole_activation} : Change{span.begin, whole_activation});
      if (op.peer < 0) continue;
      const auto peer = static_cast<std::size_t>(op.peer);
      has_copies[peer] = true;
      changes_[peer].push_back(leaves ? Change{span.begin, whole_activation} : Change{span.end, -whole_activation});
    }
  }

  const PipelinePlan& plan_;
  const PipelineTimeline& timeline_;
  const ActivationRules& rules_;
  PassTable table_;
  std::vector<std::vector<Change>> changes_;
};

}  // namespace

std::vector<double> activation_peaks(const PipelinePlan& plan, const PipelineTimeline& timeline,
                                     const ActivationRules& rules) {
  const ActivationCount count(plan, timeline, rules);
  std::vector<double> peaks;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) peaks.push_back(count.peak(d, [](Ticks, double) {}));
  return peaks;
}

ActivationProfile activation_profile(const PipelinePlan& plan, const PipelineTimeline& timeline,
                                     const ActivationRules& rules) {
  const ActivationCount count(plan, timeline, rules);
  ActivationProfile profile;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    auto& levels = profile.levels.emplace_back();
    profile.peaks.push_back(count.peak(d, [&](Ticks at, double now) {
      if (!levels.empty() && levels.back().at == at)
        levels.back().micro_batches = now;
      else
        levels.push_back({at, now});
    }));
  }
  return profile;
}

}  // namespace spillway::planners
