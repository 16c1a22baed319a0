#include "studies/candidates/request_parts.h"

#include <filesystem>

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

void describe_prices(std::string& said, FieldVisitor& visitor) {
  fields::text(visitor,
               {.key = "prices",
                .about = "File with entries that go over those of the bundled price list.",
                .path = FieldPath::file},
               said);
}

std::string price_file(const std::string& flag, const std::string& said, const std::string& folder) {
  if (!flag.empty() || said.empty()) return flag;
  return (std::filesystem::path(folder) / said).lexically_normal().string();
}

}  // namespace spillway::studies
