#include "sim/replay/plan_fields.h"

#include "base/field_schema.h"
#include "sim/replay/plan.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t most_workers = 4096;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

const Words& tier_words() {
  static const Words words = {{to_string(Tier::host), "to the host's memory"},
                              {to_string(Tier::drive), "to a drive"},
                              {to_string(Tier::recompute), "nowhere: it is recomputed"}};
  return words;
}
const Words& route_words() {
  static const Words words = {{"gpudirect", "directly"}, {"bounce", "through a pinned host buffer"}};
  return words;
}

template <class Id>
constexpr FieldInfo as_id(FieldInfo info, std::int64_t least) {
  info.min = static_cast<double>(least);
  info.max = static_cast<double>(index_of(Id::none)) - 1;
  return info;
}

// -1: none.
template <class Id>
void id(FieldVisitor& visitor, const FieldInfo& info, Id& value) {
  std::int64_t number = value == Id::none ? -1 : static_cast<std::int64_t>(index_of(value));
  fields::integer(visitor, as_id<Id>(info, -1), number);
  value = number < 0 ? Id::none : Id(static_cast<std::uint32_t>(number));
}

void op_list(FieldVisitor& visitor, const FieldInfo& info, std::vector<OpId>& ops) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(ops.size());
  for (const OpId op : ops) numbers.push_back(static_cast<std::int64_t>(index_of(op)));
  visitor.integers(as_id<OpId>(info, 0), numbers);
  ops.clear();
  ops.reserve(numbers.size());
  for (const std::int64_t number : numbers) ops.push_back(OpId(static_cast<std::uint32_t>(number)));
}

void bytes_list(FieldVisitor& visitor, const FieldInfo& info, std::vector<Bytes>& sizes) {
  std::vector<std::int64_t> counts;
  for (const Bytes size : sizes) counts.push_back(size.count());
  visitor.integers(info, counts);
  sizes.clear();
  for (const std::int64_t count : counts) sizes.emplace_back(count);
}

void describe(Absence& absence, FieldVisitor& visitor) {
  id(visitor, {.key = "tensor"}, absence.tensor);
  fields::word(visitor, {.key = "tier"}, absence.tier, tier_words());
  id(visitor, {.key = "store_after"}, absence.store_after);
  id(visitor, {.key = "leave_after"}, absence.leave_after);
  id(visitor, {.key = "fetch_at"}, absence.fetch_at);
  id(visitor, {.key = "back_before"}, absence.back_before);
  fields::flag(visitor, {.key = "forwarded"}, absence.forwarded);
}

}  // namespace

void describe(OffloadPlan& plan, FieldVisitor& visitor) {
  using fields::integer;
  const FieldInfo workers = {
      .min = 1, .max = most_workers, .about = "Transfers at work at once, per GPU.", .required = true};
  const auto named = [](FieldInfo info, std::string_view key) {
    info.key = key;
    return info;
  };
  fields::text(visitor, {.key = "technique", .about = "Who made it.", .even_empty = true}, plan.technique);
  fields::hex(visitor, {.key = "digest", .about = "Of the trace it is for; 0: not said.", .required = true},
              plan.digest);
  integer(visitor, named(workers, "store_workers"), plan.store_workers);
  integer(visitor, named(workers, "load_workers"), plan.load_workers);
  fields::bytes(visitor,
                {.key = "in_flight_bytes",
                 .max = most_bytes,
                 .about = "The host waits while unfinished stores hold more; 0: never.",
                 .required = true},
                plan.in_flight);
  bytes_list(visitor, {.key = "rank_in_flight_bytes", .max = most_bytes, .about = "The same by rank, instead."},
             plan.rank_in_flight);
  fields::flag(visitor,
               {.key = "paced_by_device", .about = "Loads are asked for when the device comes there, not the host."},
               plan.paced_by_device);
  fields::word(visitor, {.key = "route", .about = "How bytes get to the drives."}, plan.route, route_words());
  auto host_ps = static_cast<std::int64_t>(plan.host_time.count());
  integer(visitor, {.key = "host_ps", .max = 1e15, .about = "Of the host, for each tensor it hands over or asks for."},
          host_ps);
  plan.host_time = Picos(host_ps);
  fields::text(visitor,
               {.key = "drives", .about = "Drive set; empty: the one of its GPU's number.", .even_empty = true},
               plan.drives);
  fields::list(visitor,
               {.key = "absences",
                .about = "[tensor, tier, store_after, leave_after, fetch_at, back_before, forwarded].",
                .as_tuple = true,
                .even_empty = true},
               plan.absences, [&](Absence& absence) { describe(absence, visitor); });
  fields::list(visitor,
               {.key = "recomputations", .about = "[before, [op, ...]].", .as_tuple = true, .even_empty = true},
               plan.recomputations, [&](Recomputation& group) {
                 id(visitor, {.key = "before"}, group.before);
                 op_list(visitor, {.key = "ops"}, group.ops);
               });
}

void describe(OrderPlan& plan, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "technique", .about = "Who made it.", .even_empty = true}, plan.technique);
  fields::hex(visitor, {.key = "digest", .about = "Of the trace it is for.", .required = true}, plan.digest);
  op_list(visitor, {.key = "ops", .about = "Heads of units in their new order.", .required = true, .even_empty = true},
          plan.order);
}

void describe(PlanDocument& document, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-plan", .version = plan_version, .noun = "a plan"});
  fields::part(visitor, {.key = "schedule", .about = "What each pipeline stage runs when."}, document.schedule,
               [&](PipelineDocument& part) { describe(part, visitor); });
  fields::part(visitor, {.key = "fates", .about = "What leaves, and what is recomputed.", .alias = "offload"},
               document.fates, [&](OffloadPlan& part) { describe(part, visitor); });
  fields::part(visitor, {.key = "order", .about = "The order of works."}, document.order,
               [&](OrderPlan& part) { describe(part, visitor); });
  fields::part(visitor, {.key = "memory", .about = "Where each request goes."}, document.memory,
               [&](MemoryPlan& part) { describe(part, visitor); });
  fields::list(visitor, {.key = "memory_by_device", .about = "The same of a step on several GPUs."},
               document.memory_by_device, [&](DevicePlaces& places) {
                 fields::integer(visitor, {.key = "device", .max = 0x7fff, .about = "Of the trace.", .required = true},
                                 places.device);
                 fields::part(visitor, {.key = "plan", .about = "Where each of its requests goes.", .required = true},
                              places.plan, [&](MemoryPlan& part) { describe(part, visitor); });
               });
}

std::string plan_schema() {
  PlanDocument document;
  FieldSchema schema;
  describe(document, schema);
  return schema.document(
      "spillway-plan.v1", "spillway plan",
      "What a replay is to do differently from the plain trace (docs/reference/plan-files.md). Numbers of ops and "
      "tensors are those of the trace; -1 is none.");
}

}  // namespace spillway::sim
