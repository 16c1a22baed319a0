#include "models/pipeline/pipeline_json.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/input_error.h"
#include "models/pipeline/pipeline_check.h"

namespace spillway::models {
namespace {

using Json = nlohmann::json;
using Kind = PipelineOpKind;

constexpr const char* remedy =
    "a schedule is an object of stages, micro_batches, chunks, placement or routes, and orders [[\"F0\", ...], ...]";

// "12.1&B3" and the like, from the front.
class OpText {
 public:
  explicit OpText(std::string_view text) : rest_(text) {}

  bool read(PipelineOp& op) {
    if (take("BW"))
      op.kind = Kind::backward;
    else if (take("F"))
      op.kind = Kind::forward;
    else if (take("B"))
      op.kind = Kind::input_gradient;
    else if (take("W"))
      op.kind = Kind::weight_gradient;
    else if (take("R"))
      op.kind = Kind::recompute;
    else if (take("O"))
      op.kind = Kind::offload;
    else if (take("L"))
      op.kind = Kind::reload;
    else
      return false;
    if (!pass(op.pass)) return false;
    if (op.kind == Kind::forward && take("&B")) {
      op.kind = Kind::paired;
      if (!pass(op.second)) return false;
    }
    return rest_.empty();
  }

 private:
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  template <class Number>
  bool number(Number& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool pass(PipelinePass& pass) {
    if (!number(pass.micro_batch)) return false;
    if (take("/") && !number(pass.slice)) return false;
    return !take(".") || number(pass.chunk);
  }

  std::string_view rest_;
};

class PlanReader {
 public:
  PlanReader(const Json& document, const std::string& file) : document_(document), file_(file) {}

  PipelinePlan read() {
    if (!document_.is_object()) fail("/", "the document is not an object");
    const std::int64_t stages = number("stages", 1, 1024), micro_batches = number("micro_batches", 1, 65'534);
    const std::int64_t chunks = document_.contains("chunks") ? number("chunks", 1, 64) : 1;
    place(stages, micro_batches, chunks);
    plan_.slices = document_.contains("slices") ? number("slices", 1, 1024) : 1;
    if (document_.contains("route_of")) read_route_of();
    read_orders();
    if (document_.contains("copies")) read_copies();
    if (document_.contains("waits")) read_waits();
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause, remedy);
  }
  std::int64_t integer(const Json& value, const std::string& place, std::int64_t least, std::int64_t most) const {
    if (!value.is_number_integer()) fail(place, "not a whole number");
    const auto found = value.get<std::int64_t>();
    if (found < least || found > most)
      fail(place, value.dump() + " is not within " + std::to_string(least) + " and " + std::to_string(most));
    return found;
  }
  std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    if (!document_.contains(key)) fail(std::string("/") + key, "missing");
    return integer(document_[key], std::string("/") + key, least, most);
  }
  const Json& list(const Json& value, const std::string& place) const {
    if (!value.is_array()) fail(place, "not a list");
    return value;
  }
  // A list with one list per device.
  const Json& lists(const char* key) const {
    const std::string place = std::string("/") + key;
    if (!document_.contains(key)) fail(place, "missing");
    if (list(document_[key], place).size() != static_cast<std::size_t>(plan_.devices))
      fail(place, "it has " + std::to_string(document_[key].size()) + " lists for " + std::to_string(plan_.devices) +
                      " stages");
    return document_[key];
  }

  void place(std::int64_t stages, std::int64_t micro_batches, std::int64_t chunks) {
    const std::string name = document_.value("name", "file");
    if (document_.contains("routes")) {
      plan_ = looped_plan(name, stages, micro_batches, chunks);
      return read_routes();
    }
    const std::string placement = document_.value("placement", "looped");
    if (placement == "looped")
      plan_ = looped_plan(name, stages, micro_batches, chunks);
    else if (placement == "zigzag")
      plan_ = zigzag_plan(name, stages, micro_batches, chunks);
    else if (placement == "bidirectional" && chunks == 1)
      plan_ = bidirectional_plan(name, stages, micro_batches);
    else
      fail("/placement", "neither looped nor zigzag, nor bidirectional with one chunk");
  }

  void read_routes() {
    plan_.routes.clear();
    const Json& routes = list(document_["routes"], "/routes");
    if (routes.empty() || routes.size() > 2) fail("/routes", "there are one or two");
    for (std::size_t r = 0; r < routes.size(); ++r) {
      auto& route = plan_.routes.emplace_back();
      const std::string at = "/routes/" + std::to_string(r);
      for (const Json& pair : list(routes[r], at)) {
        if (!pair.is_array() || pair.size() != 2) fail(at, "a position is [device, chunk]");
        route.push_back({static_cast<std::int32_t>(integer(pair[0], at, 0, plan_.devices - 1)),
                         static_cast<std::int32_t>(integer(pair[1], at, 0, 127))});
      }
    }
  }
  void read_route_of() {
    const Json& routes = list(document_["route_of"], "/route_of");
    if (routes.size() != static_cast<std::size_t>(plan_.micro_batches)) fail("/route_of", "one per micro-batch");
    const auto most = static_cast<std::int64_t>(plan_.routes.size()) - 1;
    for (const Json& route : routes)
      plan_.route_of.push_back(static_cast<std::uint8_t>(integer(route, "/route_of", 0, most)));
  }

  PipelineOp op(const Json& value, const std::string& place) const {
    PipelineOp made;
    if (!value.is_string() || !OpText(value.get_ref<const std::string&>()).read(made))
      fail(place, value.dump() + " is no operation");
    return made;
  }
  void read_orders() {
    const Json& orders = lists("orders");
    for (std::size_t d = 0; d < orders.size(); ++d) {
      const std::string at = "/orders/" + std::to_string(d);
      for (const Json& each : list(orders[d], at))
        plan_.compute[d].push_back(op(each, at + "/" + std::to_string(plan_.compute[d].size())));
    }
  }
  void read_copies() {
    const Json& copies = lists("copies");
    for (std::size_t d = 0; d < copies.size(); ++d) {
      for (const Json& each : list(copies[d], "/copies/" + std::to_string(d))) {
        const std::string at = "/copies/" + std::to_string(d) + "/" + std::to_string(plan_.copies[d].size());
        if (!each.is_object() || !each.contains("op")) fail(at, "a copy is {op, after, peer}");
        PipelineOp& copy = plan_.copies[d].emplace_back(op(each["op"], at));
        const std::int64_t last = std::numeric_limits<std::int32_t>::max();
        if (each.contains("after")) copy.after = static_cast<std::int32_t>(integer(each["after"], at, 0, last));
        if (each.contains("peer"))
          copy.peer = static_cast<std::int16_t>(integer(each["peer"], at, 0, plan_.devices - 1));
      }
    }
  }
  void read_waits() {
    const Json& waits = lists("waits");
    for (std::size_t d = 0; d < waits.size(); ++d) {
      const std::string at = "/waits/" + std::to_string(d);
      for (const Json& pair : list(waits[d], at)) {
        if (!pair.is_array() || pair.size() != 2) fail(at, "a wait is [operation, copy]");
        const auto ops = static_cast<std::int64_t>(plan_.compute[d].size());
        const auto copies = static_cast<std::int64_t>(plan_.copies[d].size());
        plan_.compute[d][static_cast<std::size_t>(integer(pair[0], at, 0, ops - 1))].after =
            static_cast<std::int32_t>(integer(pair[1], at, 0, copies - 1));
      }
    }
  }

  const Json& document_;
  const std::string& file_;
  PipelinePlan plan_;
};

}  // namespace

PipelinePlan read_plan_json(const std::string& text, const std::string& file) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw InputError(file, "", "not JSON", remedy);
  PipelinePlan plan;
  try {
    plan = PlanReader(document, file).read();
  } catch (const Json::exception& error) {
    throw InputError(file, "", error.what(), remedy);
  }
  check_plan(plan, file);
  return plan;
}

void add_plan_json(nlohmann::ordered_json& object, const PipelinePlan& plan) {
  using Ordered = nlohmann::ordered_json;
  object["stages"] = plan.devices;
  object["micro_batches"] = plan.micro_batches;
  object["chunks"] = plan.chunks;
  object["slices"] = plan.slices;
  Ordered& routes = object["routes"] = Ordered::array();
  for (const auto& route : plan.routes) {
    Ordered places = Ordered::array();
    for (const PipelinePlan::Place& place : route) places.push_back({place.device, place.chunk});
    routes.push_back(places);
  }
  if (!plan.route_of.empty()) object["route_of"] = plan.route_of;
  Ordered orders = Ordered::array(), copies = Ordered::array(), waits = Ordered::array();
  bool has_copies = false;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    Ordered order = Ordered::array(), copy = Ordered::array(), wait = Ordered::array();
    for (std::size_t i = 0; i < plan.compute[d].size(); ++i) {
      order.push_back(text_of(plan, plan.compute[d][i]));
      if (plan.compute[d][i].after >= 0) wait.push_back({i, plan.compute[d][i].after});
    }
    for (const PipelineOp& op : plan.copies[d]) {
      Ordered& made = copy.emplace_back(Ordered{{"op", text_of(plan, op)}});
      if (op.after >= 0) made["after"] = op.after;
      if (op.peer >= 0) made["peer"] = op.peer;
      has_copies = true;
    }
    orders.push_back(order);
    copies.push_back(copy);
    waits.push_back(wait);
  }
  object["orders"] = orders;
  if (!has_copies) return;
  object["copies"] = copies;
  object["waits"] = waits;
}

}  // namespace spillway::models
