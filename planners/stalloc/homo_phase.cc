#include "planners/stalloc/homo_phase.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "planners/stalloc/homo_size.h"

namespace spillway::planners {
namespace {

constexpr double least_fullness = 0.7;
constexpr double small_share = 0.1;  // of the largest group
constexpr std::size_t few_members = 5;

class Fusion {
 public:
  explicit Fusion(std::span<const PhasedRequest> requests) : requests_(requests) {}

  std::vector<PhaseBox> run() {
    std::vector<PhaseBox> groups = initial_groups();
    std::sort(groups.begin(), groups.end(), [](const PhaseBox& a, const PhaseBox& b) {
      return std::pair(a.lower, a.upper) < std::pair(b.lower, b.upper);
    });
    fuse_all(groups);
    std::vector<PhaseBox> boxes;
    for (PhaseBox& group : groups) {
      if (group.members.empty()) continue;
      if (group.members.size() > 1 && group.fullness < least_fullness)
        for (const PhaseBox::Member& member : group.members) loose_.push_back(member.request);
      else
        boxes.push_back(std::move(group));
    }
    std::sort(loose_.begin(), loose_.end());
    for (const std::size_t i : loose_) boxes.push_back(stack({i}));
    return boxes;
  }

 private:
  // One on top of the other, the longest lives at the bottom.
  [[nodiscard]] PhaseBox stack(std::vector<std::size_t> members) const {
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return requests_[a].life.upper > requests_[b].life.upper; });
    PhaseBox box;
    for (const std::size_t i : members) {
      box.members.push_back({i, box.size});
      box.size += requests_[i].life.size;
    }
    measure(box);
    return box;
  }
  void measure(PhaseBox& box) const {
    box.lower = std::numeric_limits<std::int64_t>::max();
    box.upper = std::numeric_limits<std::int64_t>::min();
    box.size = 0;
    double filled = 0;
    for (const PhaseBox::Member& member : box.members) {
      const LayoutBuffer& life = requests_[member.request].life;
      box.lower = std::min(box.lower, life.lower);
      box.upper = std::max(box.upper, life.upper);
      box.size = std::max(box.size, member.offset + life.size);
      filled += static_cast<double>(life.size) * static_cast<double>(life.upper - life.lower);
    }
    const double whole = static_cast<double>(box.size) * static_cast<double>(box.upper - box.lower);
    box.fullness = whole > 0 ? filled / whole : 1;
  }

  std::vector<PhaseBox> initial_groups() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> scoped;
    std::vector<std::size_t> single;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const PhasedRequest& request = requests_[i];
      if (request.allocated != request.freed)
        scoped[{request.allocated, request.freed}].push_back(i);
      else
        single.push_back(i);
    }
    std::vector<PhaseBox> groups;
    std::int64_t largest = 0, smallest = std::numeric_limits<std::int64_t>::max();
    for (const auto& [phases, members] : scoped) {
      groups.push_back(stack(members));
      largest = std::max(largest, groups.back().size);
    }
    std::vector<PhaseBox> kept;
    for (PhaseBox& group : groups) {
      const bool is_thin = static_cast<double>(group.size) < small_share * static_cast<double>(largest);
      if ((is_thin && group.members.size() < few_members) || group.fullness < least_fullness) {
        for (const PhaseBox::Member& member : group.members) single.push_back(member.request);
      } else {
        smallest = std::min(smallest, group.size);
        kept.push_back(std::move(group));
      }
    }
    for (const std::size_t i : single) {
      if (requests_[i].life.size >= smallest)
        kept.push_back(stack({i}));
      else
        loose_.push_back(i);
    }
    return kept;
  }

  void fuse_all(std::vector<PhaseBox>& groups) const {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t j = i + 1; j < groups.size() && groups[j].lower < groups[i].upper; ++j) {
        const bool is_partial = groups[j].lower > groups[i].lower && groups[j].upper > groups[i].upper;
        if (is_partial && !groups[j].members.empty()) try_fusion(groups[i], groups[j]);
      }
    }
  }
  void try_fusion(PhaseBox& a, PhaseBox& b) const {
    const double before = a.fullness * b.fullness;
    const PhaseBox& large = a.size >= b.size ? a : b;
    const PhaseBox& small = a.size >= b.size ? b : a;
    PhaseBox all = fused(large, small);
    if (all.fullness * all.fullness > before) {
      a = std::move(all);
      b = PhaseBox{};
      return;
    }
    PhaseBox part;
    std::vector<std::size_t> rest;
    for (const PhaseBox::Member& member : all.members) {
      if (member.offset + requests_[member.request].life.size <= large.size)
        part.members.push_back(member);
      else
        rest.push_back(member.request);
    }
    if (rest.empty() || part.members.size() <= large.members.size()) return;
    measure(part);
    PhaseBox residual = stack(std::move(rest));
    if (part.fullness * residual.fullness <= before) return;
    a = std::move(part);
    b = std::move(residual);
  }

  // The small one's members, the earliest first, over the large one's where nothing is in the way.
  [[nodiscard]] PhaseBox fused(const PhaseBox& large, const PhaseBox& small) const {
    std::vector<std::size_t> waiting;
    for (const PhaseBox::Member& member : small.members) waiting.push_back(member.request);
    std::stable_sort(waiting.begin(), waiting.end(),
                     [&](std::size_t a, std::size_t b) { return requests_[a].life.lower < requests_[b].life.lower; });
    const Obstacles obstacles(requests_, large);
    PhaseBox box = large;
    std::size_t next = 0;  // of the large one's members
    std::int64_t at = large.members.front().offset;
    while (!waiting.empty()) {
      const auto fitting = std::find_if(waiting.begin(), waiting.end(),
                                        [&](std::size_t i) { return !obstacles.meet(requests_[i].life, at); });
      if (fitting != waiting.end()) {
        box.members.push_back({*fitting, at});
        at += requests_[*fitting].life.size;
        waiting.erase(fitting);
        continue;
      }
      while (next < large.members.size() && large.members[next].offset <= at) ++next;
      at = next < large.members.size() ? large.members[next].offset : std::max(at, large.size);
    }
    std::stable_sort(box.members.begin(), box.members.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    measure(box);
    return box;
  }

  // What a box holds, to ask whether a request may lie at an offset.
  class Obstacles {
   public:
    Obstacles(std::span<const PhasedRequest> requests, const PhaseBox& box) : requests_(requests), box_(box) {
      std::int64_t reach = 0;
      for (const PhaseBox::Member& member : box.members) {
        reach = std::max(reach, member.offset + requests[member.request].life.size);
        reach_.push_back(reach);
      }
    }
    [[nodiscard]] bool meet(const LayoutBuffer& life, std::int64_t offset) const {
      auto m = static_cast<std::size_t>(std::upper_bound(reach_.begin(), reach_.end(), offset) - reach_.begin());
      for (; m < box_.members.size() && box_.members[m].offset < offset + life.size; ++m) {
        const LayoutBuffer& other = requests_[box_.members[m].request].life;
        const bool is_beside = box_.members[m].offset + other.size > offset;
        if (is_beside && other.lower < life.upper && life.lower < other.upper) return true;
      }
      return false;
    }

   private:
    std::span<const PhasedRequest> requests_;
    const PhaseBox& box_;
    std::vector<std::int64_t> reach_;  // highest end of the members up to this one
  };

  std::span<const PhasedRequest> requests_;
  std::vector<std::size_t> loose_;
};

}  // namespace

std::vector<PhaseBox> fuse_phases(std::span<const PhasedRequest> requests) { return Fusion(requests).run(); }

std::vector<std::int64_t> group_by_phase(std::span<const PhasedRequest> requests, std::int64_t most_looks) {
  const std::vector<PhaseBox> boxes = fuse_phases(requests);
  std::vector<LayoutBuffer> lives;
  for (const PhaseBox& box : boxes) lives.push_back({.lower = box.lower, .upper = box.upper, .size = box.size});
  const std::vector<std::int64_t> places = layer_by_size(lives, most_looks);
  if (places.size() < lives.size()) return {};
  std::vector<std::int64_t> offsets(requests.size());
  for (std::size_t b = 0; b < boxes.size(); ++b)
    for (const PhaseBox::Member& member : boxes[b].members) offsets[member.request] = places[b] + member.offset;
  return offsets;
}

}  // namespace spillway::planners
