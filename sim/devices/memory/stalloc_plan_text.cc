#include "sim/devices/memory/stalloc_plan_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

class TextReader {
 public:
  TextReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  MemoryPlan read() {
    MemoryPlan plan;
    plan.kind = PlanKind::stalloc;
    for (const std::int64_t ordinal : next_line()) plan.cached.push_back(static_cast<std::uint64_t>(ordinal));
    if (!std::is_sorted(plan.cached.begin(), plan.cached.end())) fail("its ordinals do not ascend");
    const std::vector<std::int64_t> head = next_line();
    if (head.size() != 5) fail("holds " + std::to_string(head.size()) + " numbers, not 5");
    plan.pool = Bytes(head[1]);
    plan.small_peak = Bytes(head[4]);
    while (!text_.empty()) {
      const std::vector<std::int64_t> place = next_line();
      if (place.empty()) continue;
      if (place.size() != 2) fail("is not 'OFFSET SIZE'");
      plan.places.push_back({Bytes(place[0]), Bytes(place[1])});
    }
    if (static_cast<std::int64_t>(plan.places.size()) - head[2] != head[3])
      throw InputError(file_, "line 2",
                       "announces " + std::to_string(head[2]) + " and " + std::to_string(head[3]) + " places, but " +
                           std::to_string(plan.places.size()) + " follow",
                       remedy);
    plan.period_begin = head[3] == 0 ? 0 : static_cast<std::size_t>(head[2]);
    check_plan(plan, file_);
    return plan;
  }

 private:
  static constexpr const char* remedy = "see docs/internals/stalloc.md for the form of STAlloc's plans";

  std::vector<std::int64_t> next_line() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
    ++line_;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    std::vector<std::int64_t> numbers;
    for (;;) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
      if (line.empty()) return numbers;
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), value);
      if (error != std::errc() || value < 0 || value > most) fail("holds something that is no whole number from 0");
      numbers.push_back(value);
      line.remove_prefix(static_cast<std::size_t>(stop - line.data()));
    }
  }
  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(file_, "line " + std::to_string(line_), cause, remedy);
  }

  std::string_view text_;
  std::string file_;
  std::size_t line_ = 0;
};

}  // namespace

std::string stalloc_plan_text(const MemoryPlan& plan, Bytes allocated) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text;
  for (const std::uint64_t ordinal : plan.cached) text += (text.empty() ? "" : " ") + number(ordinal);
  text += "\n" + number(allocated.count()) + " " + number(plan.pool.count()) + " " + number(plan.period_begin) + " " +
          number(plan.places.size() - plan.period_begin) + " " + number(plan.small_peak.count()) + "\n";
  for (const PlannedPlace& place : plan.places) {
    SPILLWAY_ASSERT(place.offset >= Bytes::zero());
    text += number(place.offset.count()) + " " + number(place.size.count()) + "\n";
  }
  return text;
}

MemoryPlan parse_stalloc_plan(std::string_view text, const std::string& file) { return TextReader(text, file).read(); }

}  // namespace spillway::sim
