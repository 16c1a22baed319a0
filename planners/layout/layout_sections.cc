#include "planners/layout/layout_sections.h"

#include <algorithm>
#include <numeric>

namespace spillway::planners {
namespace {

// Indices of the buffers in the order of one of their ends.
std::vector<std::int32_t> order_by(std::span<const LayoutBuffer> buffers, std::int64_t LayoutBuffer::*end) {
  std::vector<std::pair<std::int64_t, std::int32_t>> keyed;
  keyed.reserve(buffers.size());
  for (const LayoutBuffer& buffer : buffers) keyed.emplace_back(buffer.*end, static_cast<std::int32_t>(keyed.size()));
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int32_t> order;
  order.reserve(keyed.size());
  for (const auto& [time, index] : keyed) order.push_back(index);
  return order;
}

// Sums over the sections and where nothing crosses.
void measure(std::span<const LayoutBuffer> buffers, LayoutSections& sections) {
  const auto count = static_cast<std::size_t>(sections.count);
  sections.live.assign(count + 1, 0);
  std::vector<std::int32_t> crossing(count + 1, 0);  // buffers alive both before and in a section
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const SectionSpan span = sections.spans[i];
    sections.live[static_cast<std::size_t>(span.lower)] += buffers[i].size;
    sections.live[static_cast<std::size_t>(span.upper)] -= buffers[i].size;
    ++crossing[static_cast<std::size_t>(span.lower) + 1];
    --crossing[static_cast<std::size_t>(span.upper)];
  }
  std::partial_sum(sections.live.begin(), sections.live.end(), sections.live.begin());
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
  sections.live.pop_back();
  for (std::size_t s = 0; s <= count; ++s)
    if (s == 0 || s == count || crossing[s] == 0) sections.partings.push_back(static_cast<std::int32_t>(s));
}

}  // namespace

std::int64_t LayoutSections::max_live() const { return live.empty() ? 0 : *std::max_element(live.begin(), live.end()); }

LayoutSections sections_of(std::span<const LayoutBuffer> buffers) {
  LayoutSections sections;
  sections.spans.resize(buffers.size());
  const std::vector<std::int32_t> births = order_by(buffers, &LayoutBuffer::lower);
  const std::vector<std::int32_t> deaths = order_by(buffers, &LayoutBuffer::upper);
  bool grown = false;  // something was born since the last section was closed
  std::size_t born = 0;
  for (const std::int32_t dead : deaths) {
    const auto d = static_cast<std::size_t>(dead);
    for (; born < births.size() && buffers[static_cast<std::size_t>(births[born])].lower < buffers[d].upper; ++born) {
      sections.spans[static_cast<std::size_t>(births[born])].lower = sections.count;
      grown = true;
    }
    if (grown) ++sections.count;
    grown = false;
    sections.spans[d].upper = sections.count;
  }
  measure(buffers, sections);
  return sections;
}

std::int64_t max_live(std::span<const LayoutBuffer> buffers) { return sections_of(buffers).max_live(); }

}  // namespace spillway::planners
