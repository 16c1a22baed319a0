#include "sim/devices/memory/memory_plan.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "sim/devices/memory/memory_plan_fields.h"
#include "sim/devices/memory/stalloc_plan_text.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t most_requests = 100'000'000;
constexpr std::string_view before_prefix = "before-";
constexpr const char* remedy = "write it with `spillway plan`, or see docs/internals/memory-allocators.md for the form";

constexpr double most_bytes = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4);

const Words& kind_words() {
  static const Words words = {{stalloc_word, "requests above 512 bytes, by their ordinal and size"},
                              {layout_word, "all requests, by their ordinal"}};
  return words;
}

void describe_ordinals(FieldVisitor& visitor, const FieldInfo& info, std::vector<std::uint64_t>& ordinals) {
  std::vector<std::int64_t> numbers(ordinals.begin(), ordinals.end());
  visitor.integers(info, numbers);
  ordinals.assign(numbers.begin(), numbers.end());
}

void describe_places(FieldVisitor& visitor, const FieldInfo& info, std::vector<PlannedPlace>& places) {
  fields::list(visitor, info, places, [&](PlannedPlace& place) {
    fields::bytes(visitor, {.key = "offset", .min = -1, .max = most_bytes}, place.offset);
    fields::bytes(visitor, {.key = "size", .max = most_bytes}, place.size);
  });
}

void describe(PlannedSpace& request, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "request", .max = most_bytes}, request.request);
  constexpr std::int64_t largest_space = std::numeric_limits<std::int32_t>::max();
  auto space = static_cast<std::int64_t>(request.space);
  fields::integer(visitor, {.key = "space", .min = static_cast<double>(RequestSpace::cached), .max = most_bytes},
                  space);
  request.space = static_cast<RequestSpace>(std::min(space, largest_space));
}

// id,lower,upper,size,offset in any order of columns.
class LayoutReader {
 public:
  LayoutReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  MemoryPlan read() {
    read_heading();
    MemoryPlan plan;
    plan.kind = PlanKind::layout;
    while (!text_.empty()) {
      std::vector<std::string_view> cells = next_line();
      if (cells.size() == 1 && cells[0].empty()) continue;
      if (cells.size() != columns_)
        fail("has " + std::to_string(cells.size()) + " cells, the heading " + std::to_string(columns_));
      const bool is_before = cells[id_].starts_with(before_prefix);
      if (is_before) cells[id_].remove_prefix(before_prefix.size());
      const std::int64_t id = number(cells[id_]), size = number(cells[size_]), offset = number(cells[offset_]);
      if (id > most_requests) fail("has an id that is no ordinal of a request");
      const auto place = static_cast<std::size_t>(id);
      std::vector<PlannedPlace>& places = is_before ? plan.before : plan.places;
      if (places.size() <= place) places.resize(place + 1);
      places[place] = {Bytes(offset), Bytes(size)};
      plan.pool = std::max(plan.pool, Bytes(offset + size));
    }
    check_plan(plan, file_);
    return plan;
  }

 private:
  void read_heading() {
    const std::vector<std::string_view> names = next_line();
    const auto column = [&](std::string_view name) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw InputError(file_, "line 1",
                         "is neither a memory plan nor a layout: no column '" + std::string(name) + "'",
                         "a layout is CSV with the columns id, lower, upper, size and offset");
      return static_cast<std::size_t>(found - names.begin());
    };
    columns_ = names.size();
    id_ = column("id");
    size_ = column("size");
    offset_ = column("offset");
  }
  std::vector<std::string_view> next_line() {
    ++line_;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    std::vector<std::string_view> cells;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      cells.push_back(line.substr(at, comma - at));
      at = comma + 1;
    }
    return cells;
  }
  std::int64_t number(std::string_view text) const {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
      fail("'" + std::string(text) + "' is not a whole number from 0");
    return value;
  }
  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(file_, "line " + std::to_string(line_), cause,
                     "see docs/internals/memory-allocators.md for the form");
  }

  std::string_view text_;
  std::string file_;
  std::size_t line_ = 0;
  std::size_t columns_ = 0, id_ = 0, size_ = 0, offset_ = 0;
};

}  // namespace

void check_plan(const MemoryPlan& plan, const std::string& file) {
  const auto fail = [&](const std::string& place, const std::string& cause) {
    throw InputError(file, place, cause, remedy);
  };
  const auto check_places = [&](const char* key, const std::vector<PlannedPlace>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const PlannedPlace& place = places[i];
      const std::string name = key + ("[" + std::to_string(i)) + "]";
      if (place.size < Bytes::zero()) fail(name, "has a negative size");
      if (place.offset < Bytes::zero() && place.offset != Bytes(-1)) fail(name, "has a negative offset");
      if (place.offset >= Bytes::zero() && (place.size > plan.pool || place.offset > plan.pool - place.size))
        fail(name, "ends behind the pool");
    }
  };
  check_places("places", plan.places);
  check_places("dynamic_places", plan.dynamic_places);
  check_places("before", plan.before);
  if (!plan.dynamic_places.empty() && plan.dynamic_places.size() != plan.dynamic.size())
    fail("dynamic_places", "are not as many as dynamic");
  if (plan.pool < Bytes::zero() || plan.small_peak < Bytes::zero()) fail("pool_bytes", "a size is negative");
  constexpr Bytes most_small{std::int64_t{1} << 32};
  if (plan.small_peak > most_small) fail("small_peak_bytes", "is more than 4 GiB of requests of 512 bytes");
  if (plan.period_begin > 0 && plan.period_begin >= plan.places.size())
    fail("period_begin", "is behind the last place");
  for (std::size_t i = 0; i < plan.dynamic.size(); ++i) {
    const PlannedSpace& request = plan.dynamic[i];
    const std::string name = "dynamic[" + std::to_string(i) + "]";
    if (i > 0 && request.request <= plan.dynamic[i - 1].request) fail(name, "is out of order");
    if (request.request > most_requests) fail(name, "has an ordinal no request has");
    if (static_cast<std::int32_t>(request.space) >= static_cast<std::int32_t>(plan.spaces.size()))
      fail(name, "names a space that is not there");
  }
  for (const DynamicSpace& space : plan.spaces) {
    Bytes reached{};
    for (const PlanRange& range : space.ranges) {
      if (range.begin < reached || range.end < range.begin || range.end > plan.pool)
        fail("space " + space.name, "its ranges are not ascending within the pool");
      reached = range.end;
    }
  }
}

MemoryPlan read_memory_plan(ByteSource& source) {
  const std::string text = read_text(source, std::uint64_t{1} << 30);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] >= '0' && text[begin] <= '9')
    return parse_stalloc_plan(text, source.name());
  if (begin != std::string::npos && text[begin] != '{' && text[begin] != '[')
    return LayoutReader(text, source.name()).read();
  MemoryPlan plan;
  read_document(
      text, source.name(), [&](FieldVisitor& visitor) { describe(plan, visitor); }, remedy);
  check_plan(plan, source.name());
  return plan;
}

std::string memory_plan_json(const MemoryPlan& plan) {
  MemoryPlan written = plan;
  FieldWriter writer;
  describe(written, writer);
  return writer.line() + "\n";
}

void describe(MemoryPlan& plan, FieldVisitor& visitor) {
  using fields::bytes;
  visitor.head({.schema = "spillway-memory-plan", .noun = "a memory plan", .is_version_required = false});
  fields::text(visitor, {.key = "technique", .about = "Who made it."}, plan.technique);
  fields::word(visitor, {.key = "kind", .about = "What has places.", .required = true}, plan.kind, kind_words());
  bytes(visitor, {.key = "pool_bytes", .max = most_bytes, .about = "Size of the pool.", .required = true}, plan.pool);
  fields::integer(visitor, {.key = "period_begin", .max = most_bytes, .about = "After the last place comes this one."},
                  plan.period_begin);
  bytes(visitor,
        {.key = "small_peak_bytes", .max = most_bytes, .about = "Peak of requests of at most 512 bytes, in slots."},
        plan.small_peak);
  describe_places(visitor,
                  {.key = "places",
                   .about = "[offset, size] in bytes by ordinal; offset -1: left to the caching allocator.",
                   .required = true,
                   .as_tuple = true,
                   .even_empty = true},
                  plan.places);
  describe_ordinals(visitor,
                    {.key = "cached",
                     .max = most_bytes,
                     .about = "Ordinals left to the caching allocator, ascending.",
                     .even_empty = true},
                    plan.cached);
  fields::list(visitor, {.key = "spaces", .about = "Parts of the pool free between two layers.", .even_empty = true},
               plan.spaces, [&](DynamicSpace& space) {
                 fields::text(visitor, {.key = "name", .required = true, .even_empty = true}, space.name);
                 fields::list(visitor,
                              {.key = "ranges",
                               .about = "[begin, end) in bytes from the pool's beginning.",
                               .required = true,
                               .as_tuple = true,
                               .even_empty = true},
                              space.ranges, [&](PlanRange& range) {
                                bytes(visitor, {.key = "begin", .max = most_bytes}, range.begin);
                                bytes(visitor, {.key = "end", .max = most_bytes}, range.end);
                              });
               });
  fields::list(visitor,
               {.key = "dynamic",
                .about = "[request, space]: where requests go that have no place; -1 planned, -2 anywhere, -3 cached.",
                .as_tuple = true,
                .even_empty = true},
               plan.dynamic, [&](PlannedSpace& request) { describe(request, visitor); });
  describe_places(
      visitor, {.key = "dynamic_places", .about = "[offset, size] that each of dynamic tries first.", .as_tuple = true},
      plan.dynamic_places);
  describe_places(visitor,
                  {.key = "before",
                   .about = "[offset, size] of blocks from before the first request, by address.",
                   .as_tuple = true},
                  plan.before);
}

std::string_view policy_of(const MemoryPlan& plan) {
  return plan.kind == PlanKind::layout ? arena_policy : planned_policy;
}

std::vector<RequestSpace> request_spaces(const MemoryPlan& plan) {
  std::vector<RequestSpace> spaces;
  for (const PlannedSpace& request : plan.dynamic) {
    spaces.resize(request.request + 1, RequestSpace::planned);
    spaces.back() = request.space;
  }
  return spaces;
}

}  // namespace spillway::sim
