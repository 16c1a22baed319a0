#include "planners/recompute/chain.h"

#include <algorithm>
#include <limits>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t impossible = std::numeric_limits<std::int64_t>::max() / 4;

class Chain {
 public:
  Chain(std::span<const ChainStage> stages, Bytes limit, std::int64_t slots) : stages_(stages), n_(stages.size()) {
    unit_ = std::max<std::int64_t>(1, (limit.count() + slots - 1) / slots);
    memory_ = static_cast<std::size_t>(std::max<std::int64_t>(0, limit.count() / unit_));
    best_.assign(n_ * n_ * (memory_ + 1), impossible);
    for (std::size_t length = 1; length <= n_; ++length)
      for (std::size_t s = 0; s + length <= n_; ++s) fill(s, s + length - 1);
  }

  std::optional<ChainPlan> run() {
    if (n_ == 0) return ChainPlan{};
    if (at(0, n_ - 1, memory_) >= impossible) return std::nullopt;
    plan_.time = Picos(at(0, n_ - 1, memory_));
    plan_.input_from.assign(n_, ChainPlan::kept);
    plan_.interior_from.assign(n_, ChainPlan::kept);
    plan_.option.assign(n_, 0);
    trace_back(0, n_ - 1, memory_, ChainPlan::kept);
    return std::move(plan_);
  }

 private:
  struct Choice {
    std::int64_t time = impossible;
    bool keeps = false;
    std::size_t option = 0, check = 0;
  };

  [[nodiscard]] std::int64_t& at(std::size_t s, std::size_t t, std::size_t m) {
    return best_[(s * n_ + t) * (memory_ + 1) + m];
  }
  [[nodiscard]] std::size_t parts(Bytes bytes) const {
    return static_cast<std::size_t>((std::max<std::int64_t>(0, bytes.count()) + unit_ - 1) / unit_);
  }
  [[nodiscard]] bool is_first(std::size_t t) const { return t + 1 == n_; }
  [[nodiscard]] Bytes need(std::size_t s, std::size_t t) const {
    return is_first(t) ? stages_[s].first_need : stages_[t].backward_base + stages_[s].again_need;
  }
  [[nodiscard]] Bytes pass_need(std::size_t s, std::size_t t) const {
    return is_first(t) ? stages_[s].first_pass_need : stages_[t].backward_base + stages_[s].again_pass_need;
  }
  [[nodiscard]] Bytes input(std::size_t s) const { return s < n_ ? stages_[s].input : Bytes(0); }

  // choose() for every m at once: what each choice needs is found once, and the rest is a loop over memory.
  void fill(std::size_t s, std::size_t t) {
    std::int64_t* const best = &at(s, t, 0);
    const ChainStage& stage = stages_[s];
    const Bytes next = s == t ? Bytes(0) : input(s + 1);
    for (const ChainOption& option : stage.options) {
      const std::size_t own = parts(next) + parts(option.saved);
      const std::size_t least =
          std::max({own, parts(stage.interior + stage.backward_need), parts(option.saved + next + need(s, t))});
      const std::int64_t time = stage.forward.count() + stage.backward.count() + option.again.count();
      for (std::size_t m = least; m <= memory_; ++m)
        best[m] = std::min(best[m], s < t ? time + at(s + 1, t, m - own) : time);
    }
    std::int64_t passed = 0;
    std::size_t least = 0;  // for the forwards up to the checkpoint
    Bytes held{};
    for (std::size_t c = s + 1; c <= t; ++c) {
      least = std::max(least, parts(held + input(c) + pass_need(c - 1, t)));
      if (least > memory_) break;
      passed += stages_[c - 1].forward.count();
      held = input(c);
      const std::size_t own = parts(input(c));
      const std::int64_t* const before = &at(s, c - 1, 0);
      const std::int64_t* const behind = &at(c, t, 0);
      for (std::size_t m = std::max(own, least); m <= memory_; ++m)
        best[m] = std::min(best[m], passed + behind[m - own] + before[m]);
    }
  }

  [[nodiscard]] Choice choose(std::size_t s, std::size_t t, std::size_t m) {
    Choice choice;
    keep(s, t, m, choice);
    std::int64_t passed = 0;
    Bytes held{};  // the input of the stage at hand, but for the first one
    for (std::size_t c = s + 1; c <= t; ++c) {
      if (parts(held + input(c) + pass_need(c - 1, t)) > m) break;
      passed += stages_[c - 1].forward.count();
      held = input(c);
      const std::size_t own = parts(input(c));
      if (own > m) continue;
      const std::int64_t time = passed + at(c, t, m - own) + at(s, c - 1, m);
      if (time < choice.time) choice = {time, false, 0, c};
    }
    return choice;
  }

  void keep(std::size_t s, std::size_t t, std::size_t m, Choice& choice) {
    const ChainStage& stage = stages_[s];
    if (parts(stage.interior + stage.backward_need) > m) return;
    const Bytes next = s == t ? Bytes(0) : input(s + 1);
    for (std::size_t o = 0; o < stage.options.size(); ++o) {
      const ChainOption& option = stage.options[o];
      if (parts(option.saved + next + need(s, t)) > m) continue;
      const std::size_t own = parts(next) + parts(option.saved);
      if (own > m) continue;
      std::int64_t time = stage.forward.count() + stage.backward.count() + option.again.count();
      if (s < t) time += at(s + 1, t, m - own);
      if (time < choice.time) choice = {time, true, o, 0};
    }
  }

  void trace_back(std::size_t s, std::size_t t, std::size_t m, std::size_t from) {
    const Choice choice = choose(s, t, m);
    if (!choice.keeps) {
      plan_.input_from[choice.check] = from;
      trace_back(choice.check, t, m - parts(input(choice.check)), from);
      trace_back(s, choice.check - 1, m, choice.check - 1);
      return;
    }
    plan_.interior_from[s] = from;
    plan_.option[s] = choice.option;
    if (s == t) return;
    plan_.input_from[s + 1] = from;
    trace_back(s + 1, t, m - parts(input(s + 1)) - parts(stages_[s].options[choice.option].saved), from);
  }

  std::span<const ChainStage> stages_;
  std::size_t n_, memory_ = 0;
  std::int64_t unit_ = 1;
  std::vector<std::int64_t> best_;
  ChainPlan plan_;
};

}  // namespace

std::optional<ChainPlan> solve_chain(std::span<const ChainStage> stages, Bytes limit, std::int64_t slots) {
  SPILLWAY_ASSERT(slots >= 1);
  for (const ChainStage& stage : stages) SPILLWAY_ASSERT(!stage.options.empty());
  return Chain(stages, limit, slots).run();
}

}  // namespace spillway::planners
