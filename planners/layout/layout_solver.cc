#include "planners/layout/layout_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "planners/layout/layout_sections.h"
#include "planners/layout/skyline.h"

namespace spillway {
namespace {

// life^p size^q, the first pass with p = q = 1, later ones drawn.
std::vector<float> keys_of(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::uint64_t pass,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed + pass);
  const auto uniform = [&] { return static_cast<float>(random() >> 40) * 0x1p-24F; };
  const float by_life = pass == 0 ? 1 : 0.2F + 2.3F * uniform();
  const float by_size = pass == 0 ? 1 : 1.5F * uniform();
  const float noise = pass % 3 == 0 ? 0 : 2 * uniform();
  std::vector<float> keys(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto life = static_cast<float>(sections.spans[i].upper - sections.spans[i].lower);
    keys[i] = by_life * std::log(life) + by_size * std::log(static_cast<float>(buffers[i].size) + 1);
    if (noise > 0) keys[i] += noise * (uniform() + uniform() - 1);
  }
  return keys;
}

}  // namespace

LayoutResult solve_layout(std::span<const LayoutBuffer> buffers, const LayoutOptions& options) {
  const LayoutSections sections = sections_of(buffers);
  LayoutResult result;
  result.lower_bound = sections.max_live();
  result.height = std::numeric_limits<std::int64_t>::max();
  Skyline skyline(buffers, sections);
  const std::int64_t goal = std::max(options.capacity, result.lower_bound);
  for (std::uint64_t pass = 0; pass == 0 || (result.height > goal && result.effort < options.effort); ++pass) {
    const bool better = skyline.pack(keys_of(buffers, sections, pass, options.seed), result.height);
    result.effort += skyline.placements() + 1;
    if (better) {
      result.height = skyline.height();
      result.offsets = skyline.offsets();
    }
    if (options.progress && !options.progress(result.height, result.lower_bound)) {
      result.stopped = true;
      break;
    }
  }
  result.proven = result.height == result.lower_bound;
  return result;
}

}  // namespace spillway
