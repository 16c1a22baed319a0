#include "sim/replay/plan.h"

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "sim/replay/plan_fields.h"

namespace spillway::sim {
namespace {

constexpr const char* remedy = "write it with `spillway plan`, or see docs/reference/plan-files.md for the form";

}  // namespace

Plan read_plan(ByteSource& source) {
  PlanDocument document;
  read_document(
      read_text(source, std::uint64_t{1} << 30), source.name(),
      [&](FieldVisitor& visitor) { describe(document, visitor); }, remedy);
  Plan plan{.fates = std::move(document.fates), .order = std::move(document.order)};
  if (document.memory) plan.memory[0] = std::move(*document.memory);
  for (std::size_t i = 0; i < document.memory_by_device.size(); ++i) {
    DevicePlaces& places = document.memory_by_device[i];
    const std::string place = "/memory_by_device/" + std::to_string(i);
    if (!places.plan) throw InputError(source.name(), place + "/plan", "there are no places", remedy);
    if (!plan.memory.emplace(places.device, std::move(*places.plan)).second)
      throw InputError(source.name(), place + "/device", "this GPU has its places already", remedy);
  }
  if (document.schedule) plan.schedule = plan_of(*document.schedule, source.name(), "/schedule");
  for (const auto& [device, places] : plan.memory) check_plan(places, source.name());
  return plan;
}

std::string plan_json(const Plan& plan) {
  PlanDocument document{.fates = plan.fates, .order = plan.order};
  if (plan.memory.size() == 1 && plan.memory.begin()->first == 0)
    document.memory = plan.memory.begin()->second;
  else
    for (const auto& [device, places] : plan.memory) document.memory_by_device.push_back({device, places});
  if (plan.schedule) {
    document.schedule = document_of(*plan.schedule);
    document.schedule->name = plan.schedule->name;
  }
  FieldWriter writer;
  describe(document, writer);
  return writer.line() + "\n";
}

}  // namespace spillway::sim
