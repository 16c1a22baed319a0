#include "sim/replay/plan.h"

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "sim/replay/plan_fields.h"

namespace spillway::sim {
namespace {

constexpr const char* remedy = "write it with `spillway plan`, or see docs/plans.md for the form";

}  // namespace

Plan read_plan(ByteSource& source) {
  PlanDocument document;
  read_document(
      source.read_all(std::uint64_t{1} << 30), source.name(),
      [&](FieldVisitor& visitor) { describe(document, visitor); }, remedy);
  Plan plan{
      .fates = std::move(document.fates), .order = std::move(document.order), .memory = std::move(document.memory)};
  if (document.schedule) plan.schedule = plan_of(*document.schedule, source.name(), "/schedule");
  if (plan.memory) check_plan(*plan.memory, source.name());
  return plan;
}

std::string plan_json(const Plan& plan) {
  PlanDocument document{.fates = plan.fates, .order = plan.order, .memory = plan.memory};
  if (plan.schedule) {
    document.schedule = document_of(*plan.schedule);
    document.schedule->name = plan.schedule->name;
  }
  FieldWriter writer;
  describe(document, writer);
  return writer.line() + "\n";
}

}  // namespace spillway::sim
