#include "models/pipeline/pipeline_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "models/pipeline/pipeline_document.h"

namespace spillway::models {

PipelinePlan read_plan_json(const std::string& text, const std::string& file) {
  PipelineDocument document;
  read_document(text, file, [&](FieldVisitor& visitor) { describe(document, visitor); });
  return plan_of(document, file, "");
}

void add_plan_json(nlohmann::ordered_json& object, const PipelinePlan& plan) {
  PipelineDocument document = document_of(plan);
  FieldWriter writer(std::move(object));
  describe(document, writer);
  object = writer.json();
}

}  // namespace spillway::models
