#include "sim/replay/offload_plan_json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

using Json = nlohmann::ordered_json;

template <class Id>
Json id_json(Id id) {
  return id == Id::none ? Json(-1) : Json(index_of(id));
}

class Reader {
 public:
  Reader(const Json& json, std::string file, std::string part)
      : json_(json), file_(std::move(file)), place_("/" + std::move(part)) {}

  OffloadPlan read() const {
    if (!json_.is_object()) fail("", "not an object");
    OffloadPlan plan;
    plan.technique = text("technique");
    plan.drives = text("drives");
    plan.route = text("route") == "bounce" ? DriveRoute::bounce : DriveRoute::gpudirect;
    plan.digest = digest(text("digest"));
    plan.store_workers = number("store_workers", 1, 4096);
    plan.load_workers = number("load_workers", 1, 4096);
    plan.in_flight = Bytes(number("in_flight_bytes", 0, std::int64_t{1} << 50));
    plan.paced_by_device = json_.value("paced_by_device", Json(false)) == Json(true);
    for (const Json& row : list(json_, "absences", "/absences")) {
      const std::string place = "/absences/" + std::to_string(plan.absences.size());
      plan.absences.push_back(absence(row, place));
    }
    for (const Json& row : list(json_, "recomputations", "/recomputations")) {
      const std::string place = "/recomputations/" + std::to_string(plan.recomputations.size());
      plan.recomputations.push_back(recomputation(row, place));
    }
    return plan;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place_ + place, cause, "write it with `spillway plan offload --output`");
  }
  [[nodiscard]] std::string text(const char* key) const {
    const Json value = json_.value(key, Json(""));
    if (!value.is_string()) fail(std::string("/") + key, "not a text");
    return value.get<std::string>();
  }
  [[nodiscard]] std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    const Json value = json_.value(key, Json());
    if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      fail(std::string("/") + key, "not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<std::int64_t>();
  }
  [[nodiscard]] std::uint64_t digest(const std::string& digits) const {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, 16);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end) fail("/digest", "not a hexadecimal number");
    return value;
  }
  [[nodiscard]] Json list(const Json& object, const char* key, const std::string& place) const {
    const Json value = object.value(key, Json::array());
    if (!value.is_array()) fail(place, "not a list");
    return value;
  }
  template <class Id>
  [[nodiscard]] Id id(const Json& value, const std::string& place) const {
    const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= -1 &&
                      value.get<std::int64_t>() < static_cast<std::int64_t>(index_of(Id::none));
    if (!fits) fail(place, "not an id of the trace, nor -1");
    return value.get<std::int64_t>() < 0 ? Id::none : Id(value.get<std::uint32_t>());
  }
  [[nodiscard]] Absence absence(const Json& row, const std::string& place) const {
    if (!row.is_array() || row.size() != 7 || !row[1].is_string() || !row[6].is_boolean())
      fail(place, "not [tensor, tier, store_after, leave_after, fetch_at, back_before, forwarded]");
    Absence absence;
    absence.tensor = id<TensorId>(row[0], place);
    const std::string tier = row[1].get<std::string>();
    if (tier != "host" && tier != "drive" && tier != "recompute") fail(place, "no tier '" + tier + "'");
    absence.tier = tier == "host" ? Tier::host : tier == "drive" ? Tier::drive : Tier::recompute;
    absence.store_after = id<OpId>(row[2], place);
    absence.leave_after = id<OpId>(row[3], place);
    absence.fetch_at = id<OpId>(row[4], place);
    absence.back_before = id<OpId>(row[5], place);
    absence.forwarded = row[6].get<bool>();
    return absence;
  }
  [[nodiscard]] Recomputation recomputation(const Json& row, const std::string& place) const {
    if (!row.is_array() || row.size() != 2 || !row[1].is_array()) fail(place, "not [before, [op, ...]]");
    Recomputation group{id<OpId>(row[0], place), {}};
    for (const Json& op : row[1]) group.ops.push_back(id<OpId>(op, place));
    return group;
  }

  const Json& json_;
  std::string file_, place_;
};

}  // namespace

Json offload_plan_json(const OffloadPlan& plan) {
  Json absences = Json::array(), recomputations = Json::array();
  for (const Absence& a : plan.absences)
    absences.push_back(Json::array({id_json(a.tensor), std::string(to_string(a.tier)), id_json(a.store_after),
                                    id_json(a.leave_after), id_json(a.fetch_at), id_json(a.back_before), a.forwarded}));
  for (const Recomputation& group : plan.recomputations) {
    Json ops = Json::array();
    for (const OpId op : group.ops) ops.push_back(id_json(op));
    recomputations.push_back(Json::array({id_json(group.before), ops}));
  }
  return {{"technique", plan.technique},
          {"digest", fmt::format("{:016x}", plan.digest)},
          {"store_workers", plan.store_workers},
          {"load_workers", plan.load_workers},
          {"in_flight_bytes", plan.in_flight.count()},
          {"paced_by_device", plan.paced_by_device},
          {"route", plan.route == DriveRoute::bounce ? "bounce" : "gpudirect"},
          {"drives", plan.drives},
          {"absences", absences},
          {"recomputations", recomputations}};
}

OffloadPlan read_offload_plan(const Json& json, const std::string& file, const std::string& part) {
  return Reader(json, file, part).read();
}

}  // namespace spillway::sim
