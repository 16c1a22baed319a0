#include "models/pipeline/pipeline_document.h"

#include <charconv>
#include <limits>
#include <string_view>

#include "base/input_error.h"
#include "models/pipeline/pipeline_check.h"

namespace spillway::models {
namespace {

using Kind = PipelineOpKind;
using Placement = PipelineDocument::Placement;

constexpr const char* remedy =
    "a schedule is an object of stages, micro_batches, chunks, placement or routes, and orders [[\"F0\", ...], ...]";
constexpr std::int64_t most_stages = 1024, most_micro_batches = 65'534, most_chunks = 64, most_slices = 1024;
constexpr double last = std::numeric_limits<std::int32_t>::max();

const Words& placement_words() {
  static const Words words = {{"looped", "chunk c of stage s is position c p + s"},
                              {"zigzag", "odd chunks run backwards over the stages"},
                              {"bidirectional", "two routes, opposite to each other"}};
  return words;
}

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

class PlanMaker {
 public:
  PlanMaker(const PipelineDocument& document, const std::string& file, const std::string& place)
      : document_(document), file_(file), place_(place) {}

  PipelinePlan make() {
    set_place();
    plan_.slices = document_.slices;
    set_route_of();
    set_orders();
    if (!document_.copies.empty()) set_copies();
    if (!document_.waits.empty()) set_waits();
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place_ + place, cause, remedy);
  }
  [[nodiscard]] static std::string at(const char* key, std::size_t device) {
    return std::string("/") + key + "/" + std::to_string(device);
  }
  void check_within(std::int64_t value, const std::string& place, std::int64_t most) const {
    if (value < 0 || value > most) fail(place, std::to_string(value) + " is not within 0 and " + std::to_string(most));
  }
  void check_lists(const char* key, std::size_t count) const {
    if (count != static_cast<std::size_t>(plan_.devices))
      fail(std::string("/") + key,
           "it has " + std::to_string(count) + " lists for " + std::to_string(plan_.devices) + " stages");
  }

  void set_place() {
    const std::string name = document_.name.empty() ? "file" : document_.name;
    const std::int64_t stages = document_.stages, micro_batches = document_.micro_batches;
    const Placement placement = document_.placement.value_or(Placement::looped);
    if (!document_.routes.empty() || placement == Placement::looped)
      plan_ = looped_plan(name, stages, micro_batches, document_.chunks);
    else if (placement == Placement::zigzag)
      plan_ = zigzag_plan(name, stages, micro_batches, document_.chunks);
    else if (document_.chunks == 1)
      plan_ = bidirectional_plan(name, stages, micro_batches);
    else
      fail("/placement", "bidirectional with more than one chunk");
    if (!document_.routes.empty()) set_routes();
  }
  void set_routes() {
    if (document_.routes.size() > 2) fail("/routes", "there are one or two");
    for (std::size_t r = 0; r < document_.routes.size(); ++r)
      for (const PipelinePlan::Place& place : document_.routes[r])
        check_within(place.device, at("routes", r), plan_.devices - 1);
    plan_.routes = document_.routes;
  }
  void set_route_of() {
    if (document_.route_of.empty()) return;
    if (document_.route_of.size() != static_cast<std::size_t>(plan_.micro_batches))
      fail("/route_of", "one per micro-batch");
    for (const std::int64_t route : document_.route_of) {
      check_within(route, "/route_of", static_cast<std::int64_t>(plan_.routes.size()) - 1);
      plan_.route_of.push_back(static_cast<std::uint8_t>(route));
    }
  }

  [[nodiscard]] PipelineOp op(const std::string& text, const std::string& list, std::size_t index) const {
    PipelineOp made;
    if (!OpText(text).read(made)) fail(list + "/" + std::to_string(index), "\"" + text + "\" is no operation");
    return made;
  }
  void set_orders() {
    check_lists("orders", document_.orders.size());
    for (std::size_t d = 0; d < document_.orders.size(); ++d) {
      const std::string list = at("orders", d);
      for (const std::string& text : document_.orders[d])
        plan_.compute[d].push_back(op(text, list, plan_.compute[d].size()));
    }
  }
  void set_copies() {
    check_lists("copies", document_.copies.size());
    for (std::size_t d = 0; d < document_.copies.size(); ++d) {
      const std::string list = at("copies", d);
      for (const PipelineDocument::Copy& each : document_.copies[d]) {
        const std::size_t index = plan_.copies[d].size();
        PipelineOp& copy = plan_.copies[d].emplace_back(op(each.op, list, index));
        if (each.after) copy.after = static_cast<std::int32_t>(*each.after);
        if (!each.peer) continue;
        check_within(*each.peer, list + "/" + std::to_string(index), plan_.devices - 1);
        copy.peer = static_cast<std::int16_t>(*each.peer);
      }
    }
  }
  void set_waits() {
    check_lists("waits", document_.waits.size());
    for (std::size_t d = 0; d < document_.waits.size(); ++d) {
      const std::string list = at("waits", d);
      for (const auto& [operation, copy] : document_.waits[d]) {
        check_within(operation, list, static_cast<std::int64_t>(plan_.compute[d].size()) - 1);
        check_within(copy, list, static_cast<std::int64_t>(plan_.copies[d].size()) - 1);
        plan_.compute[d][static_cast<std::size_t>(operation)].after = static_cast<std::int32_t>(copy);
      }
    }
  }

  const PipelineDocument& document_;
  const std::string& file_;
  const std::string& place_;
  PipelinePlan plan_;
};

// A list by device of lists.
template <class Item, class Describe>
void lists(FieldVisitor& visitor, const FieldInfo& outer, const FieldInfo& inner, std::vector<std::vector<Item>>& items,
           Describe describe_item) {
  fields::list(visitor, outer, items,
               [&](std::vector<Item>& list) { fields::list(visitor, inner, list, describe_item); });
}

}  // namespace

void describe(PipelineDocument& document, FieldVisitor& visitor) {
  using fields::integer;
  visitor.others();
  fields::text(visitor, {.key = "name", .about = "Of the schedule."}, document.name);
  integer(visitor, {.key = "stages", .min = 1, .max = most_stages, .about = "Pipeline stages.", .required = true},
          document.stages);
  integer(visitor,
          {.key = "micro_batches",
           .min = 1,
           .max = most_micro_batches,
           .about = "Micro-batches of one step.",
           .required = true},
          document.micro_batches);
  integer(visitor, {.key = "chunks", .min = 1, .max = most_chunks, .about = "Positions of a route per stage."},
          document.chunks);
  integer(visitor,
          {.key = "slices", .min = 1, .max = most_slices, .about = "Parts of a sequence that go through one by one."},
          document.slices);
  fields::word(visitor, {.key = "placement", .about = "Where positions lie, unless routes say so."}, document.placement,
               placement_words());
  lists(visitor,
        {.key = "routes",
         .about = "[stage, chunk] of each position, route by route.",
         .least_items = 1,
         .as_value = true},
        {.key = "", .as_tuple = true}, document.routes, [&](PipelinePlan::Place& place) {
          integer(visitor, {.key = "device", .max = most_stages - 1}, place.device);
          integer(visitor, {.key = "chunk", .max = 127}, place.chunk);
        });
  visitor.integers({.key = "route_of", .max = 1, .about = "By micro-batch; left out: all on route 0."},
                   document.route_of);
  fields::list(visitor,
               {.key = "orders",
                .about = "By stage: its operations, F, BW, B, W or R with micro-batch, /slice and .chunk: \"F12.1\".",
                .required = true,
                .as_value = true},
               document.orders, [&](std::vector<std::string>& order) { visitor.texts({.key = ""}, order); });
  lists(visitor, {.key = "copies", .about = "By stage: what its copy lane does, O or L.", .as_value = true},
        {.key = ""}, document.copies, [&](PipelineDocument::Copy& copy) {
          fields::text(visitor, {.key = "op", .required = true}, copy.op);
          integer(visitor, {.key = "after", .max = last, .about = "Operation that must have ended."}, copy.after);
          integer(visitor, {.key = "peer", .max = most_stages - 1, .about = "Stage that holds it; left out: the host."},
                  copy.peer);
        });
  lists(visitor, {.key = "waits", .about = "By stage: [operation, copy it waits for].", .as_value = true},
        {.key = "", .as_tuple = true}, document.waits, [&](PipelineDocument::Wait& wait) {
          integer(visitor, {.key = "operation", .max = last}, wait.operation);
          integer(visitor, {.key = "copy", .max = last}, wait.copy);
        });
}

PipelineDocument document_of(const PipelinePlan& plan) {
  PipelineDocument document;
  document.stages = plan.devices;
  document.micro_batches = plan.micro_batches;
  document.chunks = plan.chunks;
  document.slices = plan.slices;
  document.routes = plan.routes;
  document.route_of.assign(plan.route_of.begin(), plan.route_of.end());
  bool has_copies = false;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    auto& order = document.orders.emplace_back();
    auto& copies = document.copies.emplace_back();
    auto& waits = document.waits.emplace_back();
    for (const PipelineOp& op : plan.compute[d]) {
      if (op.after >= 0) waits.push_back({static_cast<std::int64_t>(order.size()), op.after});
      order.push_back(text_of(plan, op));
    }
    for (const PipelineOp& op : plan.copies[d]) {
      auto& copy = copies.emplace_back(PipelineDocument::Copy{text_of(plan, op), {}, {}});
      if (op.after >= 0) copy.after = op.after;
      if (op.peer >= 0) copy.peer = op.peer;
    }
    has_copies = has_copies || !copies.empty();
  }
  if (!has_copies) {
    document.copies.clear();
    document.waits.clear();
  }
  return document;
}

PipelinePlan plan_of(const PipelineDocument& document, const std::string& file, const std::string& place) {
  PipelinePlan plan = PlanMaker(document, file, place).make();
  check_plan(plan, file);
  return plan;
}

}  // namespace spillway::models
