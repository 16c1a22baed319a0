#include "sim/replay/plan.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

#include "base/input_error.h"
#include "models/pipeline/pipeline_json.h"
#include "sim/replay/offload_plan_json.h"

namespace spillway::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* remedy = "write it with `spillway plan`, or see docs/plans.md for the form";

std::string text_or_empty(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

class PlanReader {
 public:
  PlanReader(const Json& document, std::string file) : document_(document), file_(std::move(file)) {}

  Plan read() {
    if (!document_.is_object() || document_.value("schema", Json()) != "spillway-plan") fail("/schema", "not a plan");
    if (document_.value("version", Json()) != plan_version)
      fail("/version", "not version " + std::to_string(plan_version));
    Plan plan;
    for (const auto& [key, value] : document_.items()) {
      if (key == "schedule")
        plan.schedule = read_plan_json(value.dump(), file_);
      else if (key == "fates" || key == "offload")
        plan.fates = read_offload_plan(value, file_, key);
      else if (key == "order")
        plan.order = read_order(value);
      else if (key == "memory")
        read_memory(value, plan);
      else if (key != "schema" && key != "version")
        fail("/" + key, "unknown key");
    }
    return plan;
  }

 private:
  OrderPlan read_order(const Json& order) {
    OrderPlan plan;
    plan.technique = order.is_object() ? text_or_empty(order, "technique") : "";
    const std::string digest =
        order.is_object() && order.contains("digest") && order["digest"].is_string() ? order["digest"] : Json("");
    const char* end = digest.data() + digest.size();
    const auto parsed = std::from_chars(digest.data(), end, plan.digest, 16);
    if (digest.empty() || parsed.ec != std::errc() || parsed.ptr != end)
      fail("/order/digest", "not a hexadecimal number");
    if (!order.contains("ops") || !order["ops"].is_array()) fail("/order/ops", "not a list");
    for (const Json& op : order["ops"]) {
      const bool fits = op.is_number_unsigned() && op.get<std::uint64_t>() < index_of(OpId::none);
      if (!fits) fail("/order/ops/" + std::to_string(plan.order.size()), "not the number of an op");
      plan.order.push_back(OpId(op.get<std::uint32_t>()));
    }
    return plan;
  }
  void read_memory(const Json& memory, Plan& plan) {
    if (!memory.is_array()) {
      plan.memory[0] = read_places(memory);
      return;
    }
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::string place = "/memory/" + std::to_string(i);
      const Json* device = memory[i].is_object() && memory[i].contains("device") ? &memory[i]["device"] : nullptr;
      if (device == nullptr || !device->is_number_unsigned() || device->get<std::uint64_t>() > 0x7fff)
        fail(place + "/device", "not the number of a GPU");
      Json places = memory[i];
      places.erase("device");
      if (!plan.memory.emplace(device->get<std::int16_t>(), read_places(places)).second)
        fail(place + "/device", "there are places for this GPU already");
    }
  }
  MemoryPlan read_places(const Json& memory) {
    const std::string text = memory.dump();
    ByteSource source = ByteSource::from_memory(file_, std::as_bytes(std::span(text.data(), text.size())), text.size());
    return read_memory_plan(source);
  }
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause, remedy);
  }

  const Json& document_;
  std::string file_;
};

}  // namespace

Plan read_plan(ByteSource& source) {
  const std::string text = source.read_all(std::uint64_t{1} << 30);
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw InputError(source.name(), "/", "not JSON", remedy);
  return PlanReader(document, source.name()).read();
}

std::string plan_json(const Plan& plan) {
  Json document = {{"schema", "spillway-plan"}, {"version", plan_version}};
  if (plan.schedule) {
    Json& schedule = document["schedule"] = {{"name", plan.schedule->name}};
    add_plan_json(schedule, *plan.schedule);
  }
  if (plan.fates) document["fates"] = offload_plan_json(*plan.fates);
  if (plan.order) {
    Json ops = Json::array();
    for (const OpId op : plan.order->order) ops.push_back(index_of(op));
    document["order"] = {{"technique", plan.order->technique},
                         {"digest", fmt::format("{:016x}", plan.order->digest)},
                         {"ops", std::move(ops)}};
  }
  if (plan.memory.size() == 1 && plan.memory.begin()->first == 0) {
    document["memory"] = Json::parse(memory_plan_json(plan.memory.begin()->second));
  } else if (!plan.memory.empty()) {
    Json devices = Json::array();
    for (const auto& [device, places] : plan.memory) {
      Json one = {{"device", device}};
      one.update(Json::parse(memory_plan_json(places)));
      devices.push_back(std::move(one));
    }
    document["memory"] = std::move(devices);
  }
  return document.dump() + "\n";
}

}  // namespace spillway::sim
