#include "planners/layout/skyline_wheel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/splitmix64.h"
#include "planners/layout/parallel_tasks.h"
#include "planners/layout/skyline.h"

namespace spillway::planners {
namespace {

constexpr int patience = 60;                   // passes without success before a fresh start
constexpr std::size_t many_buffers = 200'000;  // from here on fewer wheels, for the memory they take

class Wheel {
 public:
  Wheel(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::uint64_t seed, int number)
      : buffers_(buffers),
        sections_(sections),
        skyline_(buffers, sections),
        random_(seed + 1000003U * static_cast<std::uint64_t>(number)),
        push_(number % 2 == 0 ? 0.1F : 0.4F) {
    if (number == 0)
      begin(1, 1);
    else
      begin_afresh();
  }

  // One pass for a height below the bound, and the lesson from it.
  void pass(std::int64_t bound) {
    if (failed_ >= patience) begin_afresh();
    better_ = skyline_.pack(keys_, bound);
    failed_ = better_ ? 0 : failed_ + 1;
    const std::int32_t section = skyline_.worst_section();
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const SectionSpan span = sections_.spans[i];
      if (span.lower > section || span.upper <= section) continue;
      if (better_ || skyline_.offsets()[i] == layout_free) keys_[i] += push_ * random_.uniform();
    }
  }

  [[nodiscard]] bool better() const { return better_; }
  [[nodiscard]] const Skyline& skyline() const { return skyline_; }

 private:
  void begin(float by_life, float by_size) {
    failed_ = 0;
    keys_.clear();
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto life = static_cast<float>(sections_.spans[i].upper - sections_.spans[i].lower);
      keys_.push_back(by_life * std::log(life) + by_size * std::log(static_cast<float>(buffers_[i].size)));
    }
  }
  void begin_afresh() {
    const float by_life = 0.2F + 2.3F * random_.uniform();
    begin(by_life, 1.5F * random_.uniform());
  }

  std::span<const LayoutBuffer> buffers_;
  const LayoutSections& sections_;
  Skyline skyline_;
  SplitMix64 random_;
  float push_;
  std::vector<float> keys_;
  int failed_ = 0;
  bool better_ = false;
};

}  // namespace

SkylineLayout pack_repeatedly(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::int64_t goal,
                              std::int64_t effort, const LayoutOptions& options, LayoutBudget& budget) {
  SkylineLayout best;
  std::vector<Wheel> wheels;
  wheels.emplace_back(buffers, sections, options.seed, 0);
  wheels[0].pass(std::numeric_limits<std::int64_t>::max());
  best = {wheels[0].skyline().offsets(), wheels[0].skyline().height()};
  std::int64_t spent = wheels[0].skyline().effort();
  budget.spend(spent);
  const int count = buffers.size() < many_buffers ? 4 : 2;
  while (best.height > goal && spent < effort && budget.goes_on(best.height, goal)) {
    for (int number = static_cast<int>(wheels.size()); number < count; ++number)
      wheels.emplace_back(buffers, sections, options.seed, number);
    run_in_parallel(count, options.threads,
                    [&](int wheel) { wheels[static_cast<std::size_t>(wheel)].pass(best.height); });
    for (const Wheel& wheel : wheels) {
      spent += wheel.skyline().effort() + 1;
      budget.spend(wheel.skyline().effort() + 1);
      if (wheel.better() && wheel.skyline().height() < best.height)
        best = {wheel.skyline().offsets(), wheel.skyline().height()};
    }
  }
  return best;
}

}  // namespace spillway::planners
