// Model files: JSON to ModelSpec with every check, and where the bundled ones lie.
#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/field_setter.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_alias.h"
#include "models/spec/model_check.h"
#include "models/spec/model_fields.h"
#include "models/spec/model_spec.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

namespace fs = std::filesystem;

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
  spec.name = fs::path(file).stem().string();
  complete(spec, reader, file);
  settle_tower(spec);
  if (const auto fault = shape_fault(spec)) fail(file, fault->key, fault->cause, fault->remedy);
  if (!reader.gave("/parameters")) return spec;
  if (const std::int64_t computed = parameter_count(spec); computed != spec.published_parameters)
    fail(file, "parameters/count",
         fmt::format("the shape gives {} parameters, not {}", computed, spec.published_parameters),
         "correct the shape or the count");
  return spec;
}

// Python's json writes NaN, Infinity and -Infinity where numbers stand; here they become texts, which no number is.
std::string without_endless_numbers(std::string_view text) {
  std::string plain;
  bool in_text = false;
  while (!text.empty()) {
    std::size_t taken = 1;
    if (in_text && text.front() == '\\') {
      taken = std::min<std::size_t>(2, text.size());
    } else if (text.front() == '"') {
      in_text = !in_text;
    } else if (!in_text) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
        if (text.starts_with(word)) taken = word.size();
    }
    const std::string_view part = text.substr(0, taken);
    plain += taken > 2 ? fmt::format("\"{}\"", part) : std::string(part);
    text.remove_prefix(taken);
  }
  return plain;
}

std::optional<std::string> bundled_file(const std::string& name) {
  for (const std::string& directory : model_directories())
    if (std::string path = fmt::format("{}/{}.json", directory, name); lies_at(path)) return path;
  return std::nullopt;
}

// The file or folder that a name means; nothing where it means a bundled or a published model, or none.
std::optional<std::string> path_of(const std::string& name) {
  if (!names_file(name) && bundled_file(name)) return std::nullopt;
  const bool must_be_there = names_file(name) && !may_be_published(name);
  return must_be_there || lies_at(name) ? std::optional(name) : std::nullopt;
}

std::string config_in(const std::string& folder) {
  std::string config = (fs::path(folder) / "config.json").string();
  if (lies_at(config)) return config;
  const std::string adapter = (fs::path(folder) / "adapter_config.json").string();
  if (lies_at(adapter))
    throw InputError(adapter, "", "is of adapters, which have no shape of their own",
                     "name the model under its base_model_name_or_path, and set model.trainable=lora");
  throw InputError(folder, "", "holds no config.json", "give the folder of a Hugging Face model, or a model file");
}

ModelSpec aliased_model(const ModelAlias& alias) {
  ModelSpec spec = load_model(bundled_file(alias.shape).value());
  for (const std::string& text : alias.overrides) {
    const std::size_t equals = text.find('=');
    FieldSetter setter(std::string_view(text).substr(0, equals), std::string_view(text).substr(equals + 1));
    describe(spec, setter);
    SPILLWAY_ASSERT(setter.found());
  }
  settle_tower(spec);
  if (!alias.overrides.empty()) {
    spec.published_parameters = parameter_count(spec);
    spec.published_basis = CountBasis::config;
    spec.published_source = "config.json of huggingface.co/" + alias.id;
  }
  spec.stored_nf4 = alias.is_nf4;
  if (names_file(alias.id))
    spec.title = fmt::format("{} ({}'s shape{}{})", alias.id, spec.title, alias.overrides.empty() ? "" : ", ",
                             fmt::join(alias.overrides, ", "));
  if (alias.is_narrow) spec.notes.push_back(alias.id + ": training starts from weights in 16 bits, not from these");
  return spec;
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  if (is_inference_format(name))
    throw InputError(name, "", "weights for inference alone, which no training starts from",
                     "name the id they were made from");
  std::vector<std::string> known = bundled_models();
  if (!names_file(name))
    throw InputError(name, "", "no model of this name",
                     suggest(name, known, "name a .json file or a model of `spillway list models`"));
  for (const std::string& shape : bundled_models())
    for (std::string& id : published_ids(shape)) known.push_back(std::move(id));
  const std::string id = name.starts_with("hf:") ? name.substr(3) : name;
  const std::string save =
      fmt::format("save its config.json (huggingface-cli download {} config.json) and give the folder", id);
  std::string remedy = suggest(id, known, save);
  if (remedy != save) remedy += " Else " + save;
  throw InputError(name, "", "no file, and no published model with a known shape", remedy);
}

}  // namespace

ModelSpec parse_model(std::string_view json_text, const std::string& file) {
  const nlohmann::ordered_json root = parse_document(without_endless_numbers(json_text), file);
  return is_hf_config(root) ? read_hf_config(nlohmann::json(root), file) : read_model(root, file);
}

ModelSpec load_model(const std::string& path) {
  const std::string file = is_folder(path) ? config_in(path) : path;
  return parse_model(read_file(file, largest_file), file);
}

std::vector<std::string> model_directories() { return data_places("models", "models/data"); }

std::vector<std::string> bundled_models() {
  std::vector<std::string> names;
  for (const std::string& directory : model_directories()) {
    for (const std::string& file : json_files_in(directory)) names.push_back(fs::path(file).stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ModelSpec find_model(const std::string& name) {
  if (const auto path = path_of(name)) return load_model(*path);
  if (const auto file = bundled_file(name)) return load_model(*file);
  if (const auto alias = find_alias(name)) return aliased_model(*alias);
  refuse_unknown(name);
}

bool names_model(const std::string& name) {
  if (const auto path = path_of(name)) return is_folder(*path) && lies_at((fs::path(*path) / "config.json").string());
  return bundled_file(name) || find_alias(name);
}

std::string whole_model_name(const std::string& name) {
  const auto path = path_of(name);
  return path ? fs::absolute(*path).lexically_normal().string() : name;
}

}  // namespace spillway::models
