#include "studies/candidates/request_parts.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"

namespace spillway::studies {

void describe(LayoutSizes& sizes, FieldVisitor& visitor) {
  const auto list = [&](std::string_view key, std::string_view about, std::vector<std::int64_t>& values) {
    visitor.integers({.key = key, .min = 1, .max = most_request_gpus, .about = about, .least_items = 1}, values);
  };
  list("tensor_parallel", "Default: powers of two up to a machine's GPUs.", sizes.tensor_parallel);
  list("pipeline_parallel", "Default: 1, 2, 4, 8, 16.", sizes.pipeline_parallel);
  list("micro_batch", "Default: 1, 2, 4, 8.", sizes.micro_batch);
}

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= most; value *= 2) values.push_back(value);
  return values;
}

LayoutSizes or_usual(LayoutSizes said, std::int64_t gpus_in_machine) {
  if (said.tensor_parallel.empty()) said.tensor_parallel = powers_of_two(gpus_in_machine);
  if (said.pipeline_parallel.empty()) said.pipeline_parallel = powers_of_two(16);
  if (said.micro_batch.empty()) said.micro_batch = powers_of_two(8);
  return said;
}

void describe_limit(double& limit, const FieldInfo& info, FieldVisitor& visitor) {
  std::optional<double> given;
  if (limit != 0) given = limit;
  fields::number(visitor, info, given);
  limit = given.value_or(0);
}

void describe_prices(std::string& file, FieldVisitor& visitor) {
  fields::text(visitor,
               {.key = "prices",
                .about = "File with entries that go over those of the bundled price list.",
                .path = FieldPath::file},
               file);
}

AskedSection::AskedSection(std::string file, const std::string& name, const std::string& text, const Describe& said,
                           const Describe& unsaid, const Describe& section)
    : file_(std::move(file)), place_("/" + name + "/") {
  FieldWriter over, none;
  said(over);
  unsaid(none);
  FieldWriter::Json root = FieldWriter::Json::parse(text.empty() ? "{}" : text), patch;
  for (const auto& [key, value] : over.json().items()) {
    if (none.json().contains(key) && none.json()[key] == value) continue;
    said_.push_back(key);
    patch[key] = value;
  }
  if (!patch.is_null()) root.merge_patch(patch);
  for (const auto& [key, value] : root.items()) given_.push_back(key);
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems, "/" + name);
  section(reader);
  reader.finish();
  for (const FieldProblem& problem : problems)
    for (const std::string& key : said_)
      if ((problem.place + "/").starts_with(place_ + key + "/")) fail(key, problem.cause, problem.remedy);
  throw_first(problems, file_);
}

void AskedSection::fail(const std::string& key, const std::string& cause, const std::string& remedy) const {
  if (!is_said(key)) throw InputError(file_, place_ + key, cause, remedy);
  std::string option = "--" + key.substr(0, key.find("_percent"));
  std::replace(option.begin(), option.end(), '_', '-');
  throw InputError("", option, cause, remedy);
}

bool AskedSection::is_said(const std::string& key) const {
  return std::find(said_.begin(), said_.end(), key) != said_.end();
}

bool AskedSection::is_given(const std::string& key) const {
  return std::find(given_.begin(), given_.end(), key) != given_.end();
}

std::string AskedSection::path_of(const std::string& key, const std::string& path) const {
  if (path.empty() || is_said(key)) return path;
  return (std::filesystem::path(file_).parent_path() / path).lexically_normal().string();
}

}  // namespace spillway::studies
