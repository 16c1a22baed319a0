#include "planners/layout/layout_check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

namespace spillway::planners {
namespace {

std::string name(std::size_t index) { return "buffer " + std::to_string(index); }

// What is wrong with one buffer by itself.
std::string fault_alone(const LaidBuffer& buffer, std::int64_t capacity) {
  if (buffer.lower >= buffer.upper) return "has no life";
  if (buffer.size < 0) return "has a negative size";
  if (buffer.offset < 0) return "has no offset";
  if (buffer.alignment < 1 || buffer.offset % buffer.alignment != 0) return "is not aligned";
  if (buffer.offset > std::numeric_limits<std::int64_t>::max() - buffer.size) return "ends beyond any address";
  if (capacity >= 0 && buffer.offset + buffer.size > capacity) return "ends above the capacity";
  return "";
}

struct Moment {
  std::int64_t time;
  bool birth;  // deaths first: lives are half-open
  std::size_t index;
};

}  // namespace

LayoutVerdict check_layout(std::span<const LaidBuffer> buffers, std::int64_t capacity) {
  LayoutVerdict verdict;
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::string fault = fault_alone(buffers[i], capacity);
    if (!fault.empty()) return {name(i) + " " + fault, 0, i};
    verdict.height = std::max(verdict.height, buffers[i].offset + buffers[i].size);
    if (buffers[i].size == 0) continue;
    moments.push_back({buffers[i].lower, true, i});
    moments.push_back({buffers[i].upper, false, i});
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.birth != b.birth) return b.birth;
    return a.index < b.index;
  });
  std::map<std::int64_t, std::size_t> alive;  // by offset; disjoint, or the sweep would have ended
  for (const Moment& moment : moments) {
    const LaidBuffer& buffer = buffers[moment.index];
    if (!moment.birth) {
      alive.erase(buffer.offset);
      continue;
    }
    const auto above = alive.lower_bound(buffer.offset);
    if (above != alive.end() && above->first < buffer.offset + buffer.size)
      return {name(above->second) + " and " + name(moment.index) + " overlap", 0, moment.index};
    if (above != alive.begin()) {
      const LaidBuffer& below = buffers[std::prev(above)->second];
      if (below.offset + below.size > buffer.offset)
        return {name(std::prev(above)->second) + " and " + name(moment.index) + " overlap", 0, moment.index};
    }
    alive.emplace(buffer.offset, moment.index);
  }
  return verdict;
}

}  // namespace spillway::planners
