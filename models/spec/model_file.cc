// Model files: JSON to ModelSpec with every check, and where the bundled ones lie.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_check.h"
#include "models/spec/model_fields.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

constexpr std::uint64_t largest_file = 16U << 20U;

[[noreturn]] void fail(const std::string& file, const std::string& key, const std::string& cause,
                       const std::string& remedy) {
  throw InputError(file, "/" + key, cause, remedy);
}

// What the file left to its shape.
void complete(ModelSpec& spec, const FieldReader& reader, const std::string& file) {
  if (!reader.gave("/kv_heads")) spec.kv_heads = spec.heads;
  if (!reader.gave("/attention_dropout")) spec.attention_dropout = spec.dropout;
  const bool has_head_dim = reader.gave("/head_dim");
  if (spec.has_latent()) {
    if (has_head_dim)
      fail(file, "head_dim", "given along with latent_attention", "remove it: it is nope_dim + rope_dim");
    spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
  } else if (!has_head_dim) {
    if (spec.hidden % spec.heads != 0)
      fail(file, "head_dim", "missing, and hidden is not a multiple of heads", "add head_dim");
    spec.head_dim = spec.hidden / spec.heads;
  }
}

ModelSpec read_model(const nlohmann::ordered_json& root, const std::string& file) {
  ModelSpec spec;
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems);
  describe(spec, reader);
  reader.finish();
  throw_first(problems, file);
  spec.name = std::filesystem::path(file).stem().string();
  complete(spec, reader, file);
  if (const auto fault = shape_fault(spec)) fail(file, fault->key, fault->cause, fault->remedy);
  if (!reader.gave("/parameters")) return spec;
  if (const std::int64_t computed = parameter_count(spec); computed != spec.published_parameters)
    fail(file, "parameters/count",
         fmt::format("the shape gives {} parameters, not {}", computed, spec.published_parameters),
         "correct the shape or the count");
  return spec;
}

}  // namespace

ModelSpec parse_model(std::string_view json_text, const std::string& file) {
  const nlohmann::ordered_json root = parse_document(json_text, file);
  return is_hf_config(root) ? read_hf_config(nlohmann::json(root), file) : read_model(root, file);
}

ModelSpec load_model(const std::string& path) { return parse_model(read_file(path, largest_file), path); }

std::vector<std::string> model_directories() { return data_places("models", "models/data"); }

std::vector<std::string> bundled_models() {
  std::vector<std::string> names;
  for (const std::string& directory : model_directories()) {
    for (const std::string& file : json_files_in(directory))
      names.push_back(std::filesystem::path(file).stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ModelSpec find_model(const std::string& name_or_path) {
  if (names_file(name_or_path)) return load_model(name_or_path);
  for (const std::string& directory : model_directories()) {
    const std::string path = directory + "/" + name_or_path + ".json";
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    if (is_there || (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory &&
                     error != std::errc::filename_too_long))
      return load_model(path);  // or says why it can't be read
  }
  const std::vector<std::string> known = bundled_models();
  throw InputError(name_or_path, "", "no model of this name",
                   suggest(name_or_path, known, fmt::format("name a .json file or one of {}", fmt::join(known, ", "))));
}

}  // namespace spillway::models
