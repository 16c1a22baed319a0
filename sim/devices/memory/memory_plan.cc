#include "sim/devices/memory/memory_plan.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "sim/devices/memory/stalloc_plan_text.h"

namespace spillway::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_requests = 100'000'000;
constexpr const char* remedy = "write it with `spillway plan`, or see docs/memory-allocators.md for the form";

std::string_view word_of(PlanKind kind) { return kind == PlanKind::stalloc ? stalloc_word : layout_word; }

class PlanReader {
 public:
  PlanReader(const Json& document, std::string file) : document_(document), file_(std::move(file)) {}

  MemoryPlan read() {
    if (!document_.is_object() || document_.value("schema", "") != "spillway-memory-plan")
      fail("schema", "is not a memory plan");
    MemoryPlan plan;
    if (const auto made_by = document_.find("technique"); made_by != document_.end() && made_by->is_string())
      plan.technique = made_by->get<std::string>();
    const std::string kind = document_.value("kind", "");
    if (kind != word_of(PlanKind::stalloc) && kind != word_of(PlanKind::layout))
      fail("kind", "is neither stalloc nor layout");
    plan.kind = kind == word_of(PlanKind::stalloc) ? PlanKind::stalloc : PlanKind::layout;
    plan.pool = Bytes(number(document_, "pool_bytes", 0));
    plan.small_peak = Bytes(optional_number("small_peak_bytes"));
    plan.period_begin = static_cast<std::size_t>(optional_number("period_begin"));
    for (const Json& place : list(document_, "places")) {
      const auto [offset, size] = pair(place, "places", -1);
      plan.places.push_back({Bytes(offset), Bytes(size)});
    }
    if (document_.contains("cached"))
      for (const Json& ordinal : list(document_, "cached"))
        plan.cached.push_back(static_cast<std::uint64_t>(integer(ordinal, "cached", 0)));
    if (document_.contains("spaces"))
      for (const Json& space : list(document_, "spaces")) plan.spaces.push_back(read_space(space));
    if (document_.contains("dynamic"))
      for (const Json& request : list(document_, "dynamic")) {
        const auto [ordinal, space] = pair(request, "dynamic", 0, static_cast<std::int64_t>(RequestSpace::cached));
        plan.dynamic.push_back({static_cast<std::uint64_t>(ordinal),
                                static_cast<RequestSpace>(std::min(space, std::int64_t{largest_space}))});
      }
    check_plan(plan, file_);
    return plan;
  }

 private:
  static constexpr std::int32_t largest_space = std::numeric_limits<std::int32_t>::max();

  DynamicSpace read_space(const Json& space) {
    if (!space.is_object() || !space.contains("name") || !space["name"].is_string())
      fail("spaces", "a space without a name");
    DynamicSpace found;
    found.name = space["name"].get<std::string>();
    for (const Json& range : list(space, "ranges")) {
      const auto [begin, end] = pair(range, "ranges", 0);
      found.ranges.push_back({Bytes(begin), Bytes(end)});
    }
    return found;
  }
  const Json& list(const Json& from, const char* key) {
    if (!from.contains(key) || !from[key].is_array()) fail(key, "is not a list");
    return from[key];
  }
  std::pair<std::int64_t, std::int64_t> pair(const Json& value, const char* key, std::int64_t least,
                                             std::int64_t least_second = 0) {
    if (!value.is_array() || value.size() != 2) fail(key, "an entry is not a pair of numbers");
    return {integer(value[0], key, least), integer(value[1], key, least_second)};
  }
  std::int64_t number(const Json& from, const char* key, std::int64_t least) {
    if (!from.contains(key)) fail(key, "is missing");
    return integer(from[key], key, least);
  }
  std::int64_t optional_number(const char* key) {
    return document_.contains(key) ? integer(document_[key], key, 0) : 0;
  }
  std::int64_t integer(const Json& value, const char* key, std::int64_t least) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 4);
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= most);
    if (!fits || value.get<std::int64_t>() < least)
      fail(key, "holds '" + value.dump() + "', not a whole number of at least " + std::to_string(least));
    return value.get<std::int64_t>();
  }
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause, remedy);
  }

  const Json& document_;
  std::string file_;
};

// id,lower,upper,size,offset in any order of columns.
class LayoutReader {
 public:
  LayoutReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  MemoryPlan read() {
    read_heading();
    MemoryPlan plan;
    plan.kind = PlanKind::layout;
    while (!text_.empty()) {
      const std::vector<std::string_view> cells = next_line();
      if (cells.size() == 1 && cells[0].empty()) continue;
      if (cells.size() != columns_)
        fail("has " + std::to_string(cells.size()) + " cells, the heading " + std::to_string(columns_));
      const std::int64_t id = number(cells[id_]), size = number(cells[size_]), offset = number(cells[offset_]);
      if (id > most_requests) fail("has an id that is no ordinal of a request");
      const auto place = static_cast<std::size_t>(id);
      if (plan.places.size() <= place) plan.places.resize(place + 1);
      plan.places[place] = {Bytes(offset), Bytes(size)};
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
    throw InputError(file_, "line " + std::to_string(line_), cause, "see docs/memory-allocators.md for the form");
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
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    const PlannedPlace& place = plan.places[i];
    const std::string name = "places[" + std::to_string(i) + "]";
    if (place.size < Bytes::zero()) fail(name, "has a negative size");
    if (place.offset < Bytes::zero() && place.offset != Bytes(-1)) fail(name, "has a negative offset");
    if (place.offset >= Bytes::zero() && (place.size > plan.pool || place.offset > plan.pool - place.size))
      fail(name, "ends behind the pool");
  }
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
  const std::string text = source.read_all(std::uint64_t{1} << 30);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] >= '0' && text[begin] <= '9')
    return parse_stalloc_plan(text, source.name());
  if (begin != std::string::npos && text[begin] != '{' && text[begin] != '[')
    return LayoutReader(text, source.name()).read();
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw InputError(source.name(), "", "is not JSON", remedy);
  return PlanReader(document, source.name()).read();
}

std::string memory_plan_json(const MemoryPlan& plan) {
  Json document;
  document["schema"] = "spillway-memory-plan";
  document["version"] = 1;
  if (!plan.technique.empty()) document["technique"] = plan.technique;
  document["kind"] = word_of(plan.kind);
  document["pool_bytes"] = plan.pool.count();
  document["period_begin"] = plan.period_begin;
  document["small_peak_bytes"] = plan.small_peak.count();
  document["places"] = Json::array();
  for (const PlannedPlace& place : plan.places)
    document["places"].push_back({place.offset.count(), place.size.count()});
  document["cached"] = plan.cached;
  document["spaces"] = Json::array();
  for (const DynamicSpace& space : plan.spaces) {
    Json ranges = Json::array();
    for (const PlanRange& range : space.ranges) ranges.push_back({range.begin.count(), range.end.count()});
    document["spaces"].push_back({{"name", space.name}, {"ranges", ranges}});
  }
  Json dynamic = Json::array();
  for (const PlannedSpace& request : plan.dynamic)
    dynamic.push_back({request.request, static_cast<std::int32_t>(request.space)});
  document["dynamic"] = std::move(dynamic);
  return document.dump() + "\n";
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
