#include "studies/sweep/sweep_seeds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "studies/sweep/sweep_space.h"
#include "studies/sweep/sweep_task.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t drawn_points = 512;
constexpr std::size_t most_steps = 64;  // of one climb
constexpr double unmet = std::numeric_limits<double>::infinity();

class Seeds {
 public:
  Seeds(const SweepFile& file, SweepScreen& screen)
      : file_(file), screen_(screen), space_(file), front_(file.objectives.size()) {}

  SweepFront find() {
    const std::vector<Look> drawn = look_at(spread_out(), {});
    const std::size_t goals = file_.objectives.size() > 1 ? file_.objectives.size() + 1 : 1;
    for (std::size_t goal = 0; goal < goals; ++goal)
      if (const auto best = best_of(drawn, goal)) climb(*best, goal);
    return std::move(front_);
  }

 private:
  struct Look {
    std::int64_t number = 0;
    std::optional<SweepValues>
        worst;  // none: it does not surely do what is required, or can't be better than asked for
  };

  // What a climb makes small: an objective, or after the last of them their product's logarithm.
  [[nodiscard]] double height(const SweepValues& values, std::size_t goal) const {
    if (goal < file_.objectives.size()) return values[goal];
    double sum = 0;
    for (std::size_t i = 0; i < file_.objectives.size(); ++i) sum += std::log(std::max(values[i], 1e-300));
    return sum;
  }
  [[nodiscard]] double height(const Look& look, std::size_t goal) const {
    return look.worst ? height(*look.worst, goal) : unmet;
  }

  // The lowest, of equals the first; none where none does.
  [[nodiscard]] std::optional<Look> best_of(const std::vector<Look>& looks, std::size_t goal) const {
    const auto best = std::min_element(looks.begin(), looks.end(),
                                       [&](const Look& a, const Look& b) { return height(a, goal) < height(b, goal); });
    return best == looks.end() || !(height(*best, goal) < unmet) ? std::nullopt : std::optional(*best);
  }

  // Multiples of the golden ratio, modulo 1, are spread evenly over all axes but the last few.
  std::vector<std::int64_t> spread_out() {
    constexpr double golden = 0.6180339887498949;
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < drawn_points; ++i) {
      const double place = std::fmod(golden * static_cast<double>(i), 1.0);
      const auto from = static_cast<std::int64_t>(place * static_cast<double>(space_.size()));
      if (const SweepPoint* const point = space_.next(from, space_.size())) numbers.push_back(point->number);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  struct Wanted {
    std::size_t goal = 0;
    double height = unmet;  // to get below
  };
  // Without what is wanted no shape is probed for one point alone.
  [[nodiscard]] SweepEstimate estimate(const SweepSettings& settings, const std::optional<Wanted>& wanted) {
    SweepEstimate look = screen_.first_look(settings);
    if (!look.is_least || !wanted || !look.may_do(file_)) return look;
    return height(look.best(file_), wanted->goal) < wanted->height ? screen_.second_look(settings) : look;
  }

  std::vector<Look> look_at(const std::vector<std::int64_t>& numbers, const std::optional<Wanted>& wanted) {
    std::vector<SweepSettings> settings;
    settings.reserve(numbers.size());
    for (const std::int64_t number : numbers) settings.push_back(space_.settings(space_.at(number)));
    std::vector<Look> looks(numbers.size());
    in_parallel(numbers.size(), [&](std::size_t i) {
      looks[i].number = numbers[i];
      SweepEstimate one = estimate(settings[i], wanted);
      if (!one.invalid.empty() || !one.does(file_)) return;
      if (wanted && !(height(one.worst(file_), wanted->goal) < wanted->height)) return;
      screen_.add_cached(one, settings[i]);
      if (one.does(file_)) looks[i].worst = one.worst(file_);
    });
    for (const Look& look : looks)
      if (look.worst) front_.add(*look.worst);
    return looks;
  }

  void climb(Look at, std::size_t goal) {
    for (std::size_t step = 0; step < most_steps; ++step) {
      std::vector<std::int64_t> neighbours;
      for (std::size_t axis = 0; axis < file_.axes.size(); ++axis)
        for (std::size_t option = 0; option < file_.axes[axis].options.size(); ++option) {
          const std::int64_t number = space_.neighbour(at.number, axis, option);
          if (number != at.number && space_.allows(number)) neighbours.push_back(number);
        }
      const auto best = best_of(look_at(neighbours, Wanted{goal, height(at, goal)}), goal);
      if (!best) return;
      at = *best;
    }
  }

  const SweepFile& file_;
  SweepScreen& screen_;
  SweepSpace space_;
  SweepFront front_;
};

}  // namespace

SweepFront sweep_seeds(const SweepFile& file, SweepScreen& screen) {
  if (file.points() <= sweep_block_points) return SweepFront(file.objectives.size());
  return Seeds(file, screen).find();
}

}  // namespace spillway::studies
