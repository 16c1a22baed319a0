// Model files: JSON to ModelSpec with every check, and where the bundled ones lie.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/model_spec.h"
#include "traces/base/input_error.h"
#include "traces/base/nearest_name.h"

namespace spillway {
namespace {

using Json = nlohmann::json;
constexpr const char* schema_name = "spillway.model";
constexpr std::int64_t schema_version = 1;
constexpr std::int64_t most_parameters = 10'000'000'000'000'000;  // their bytes still fit 64 bits

// One JSON object whose keys must all be taken.
class Object {
 public:
  Object(const Json& json, std::string file, std::string place)
      : json_(json), file_(std::move(file)), place_(std::move(place)) {
    if (!json_.is_object()) fail("", "not an object", "write {...} with the keys of docs/schemas/model.schema.json");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, place_ + "/" + key, cause, remedy);
  }
  const Json* take(const char* key) {
    taken_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& need(const char* key) {
    const Json* value = take(key);
    if (value == nullptr) fail(key, "missing", "add it; docs/schemas/model.schema.json describes it");
    return *value;
  }
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) {
    return integer_in(key, need(key), low, high);
  }
  std::int64_t integer_or(const char* key, std::int64_t low, std::int64_t high, std::int64_t fallback) {
    const Json* value = take(key);
    return value == nullptr ? fallback : integer_in(key, *value, low, high);
  }
  std::string text(const char* key) {
    const Json& value = need(key);
    if (!value.is_string()) fail(key, "not a text", "write it in quotes");
    return value.get<std::string>();
  }
  bool flag(const char* key) {
    const Json* value = take(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(key, "neither true nor false", "write true or false");
    return value->get<bool>();
  }
  double fraction(const char* key) {
    const Json* value = take(key);
    if (value == nullptr) return 0;
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() < 1))
      fail(key, "not a number in [0, 1)", "write a probability such as 0.1");
    return value->get<double>();
  }
  // Index of the text in `choices`.
  template <class Enum>
  Enum choice(const char* key, std::initializer_list<const char*> choices) {
    const std::string chosen = text(key);
    std::string all;
    std::size_t index = 0;
    for (const char* name : choices) {
      if (chosen == name) return static_cast<Enum>(index);
      all += (index++ == 0 ? "" : ", ") + std::string(name);
    }
    fail(key, fmt::format("unknown value \"{}\"", chosen), "use one of " + all);
  }
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end())
        fail(key, "unknown key", "remove it or correct its spelling; docs/schemas/model.schema.json lists the keys");
    }
  }

 private:
  std::int64_t integer_in(const char* key, const Json& value, std::int64_t low, std::int64_t high) const {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high)) &&
                      value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
    if (!fits) fail(key, "not a whole number in range", fmt::format("give {} .. {}", low, high));
    return value.get<std::int64_t>();
  }

  const Json& json_;
  std::string file_, place_;
  std::vector<std::string> taken_;
};

void read_shape(Object& object, ModelSpec& spec) {
  constexpr std::int64_t widest = 1 << 20;  // keeps every product below 2^63
  spec.layers = object.integer("layers", 1, 4096);
  spec.hidden = object.integer("hidden", 1, widest);
  spec.heads = object.integer("heads", 1, 4096);
  spec.kv_heads = object.integer_or("kv_heads", 1, 4096, spec.heads);
  if (spec.heads % spec.kv_heads != 0)
    object.fail("kv_heads", fmt::format("{} query heads can't share {} key heads evenly", spec.heads, spec.kv_heads),
                "give a divisor of heads");
  const Json* head_dim = object.take("head_dim");
  if (head_dim == nullptr && spec.hidden % spec.heads != 0)
    object.fail("head_dim", "missing, and hidden is not a multiple of heads", "add head_dim");
  spec.head_dim = head_dim == nullptr ? spec.hidden / spec.heads : object.integer("head_dim", 1, 65'536);
  spec.feed_forward = object.integer("feed_forward", 1, widest);
  spec.vocabulary = object.integer("vocabulary", 1, 1 << 24);
  spec.max_positions = object.integer("max_positions", 1, 1 << 24);
  spec.position_offset = object.integer_or("position_offset", 0, 65'536, 0);
  spec.token_types = object.integer_or("token_types", 0, 65'536, 0);
}

void read_kinds(Object& object, ModelSpec& spec) {
  spec.mask = object.choice<AttentionMask>("mask", {"causal", "bidirectional"});
  spec.norm = object.choice<NormKind>("norm", {"layer_norm", "rms_norm"});
  spec.norm_placement = object.choice<NormPlacement>("norm_placement", {"pre", "post"});
  spec.activation = object.choice<Activation>("activation", {"gelu", "relu", "silu_gated"});
  spec.positions = object.choice<Positions>("positions", {"learned", "rotary"});
  spec.fused_qkv = object.flag("fused_qkv");
  spec.qkv_bias = object.flag("qkv_bias");
  spec.output_bias = object.flag("output_bias");
  spec.feed_forward_bias = object.flag("feed_forward_bias");
  spec.query_key_norm = object.flag("query_key_norm");
  spec.tied_embeddings = object.flag("tied_embeddings");
  spec.pretraining_heads = object.flag("pretraining_heads");
  spec.dropout = object.fraction("dropout");
  if (spec.fused_qkv && spec.kv_heads != spec.heads)
    object.fail("fused_qkv", "a packed projection with shared key heads is not modelled",
                "set it to false: the count of parameters is the same");
  if (spec.pretraining_heads && !spec.tied_embeddings)
    object.fail("pretraining_heads", "the masked-LM decoder shares the embedding matrix",
                "set tied_embeddings to true");
}

void read_published_count(Object& object, ModelSpec& spec, const std::string& file) {
  const Json* published = object.take("parameters");
  if (published == nullptr) return;
  Object count(*published, file, "/parameters");
  spec.published_parameters = count.integer("count", 1, std::int64_t{1} << 60);
  spec.published_source = count.text("source");
  count.finish();
  if (const std::int64_t computed = parameter_count(spec); computed != spec.published_parameters)
    count.fail("count", fmt::format("the shape gives {} parameters, not {}", computed, spec.published_parameters),
               "correct the shape or the count");
}

}  // namespace

ModelSpec parse_model(std::string_view json_text, const std::string& file) {
  Json json;
  try {
    json = Json::parse(json_text);
  } catch (const Json::parse_error& error) {
    throw InputError(file, fmt::format("byte {}", error.byte), "not valid JSON", "correct the syntax there");
  } catch (const Json::out_of_range&) {
    throw InputError(file, "", "a number beyond what JSON readers take", "correct the number");
  }
  Object object(json, file, "");
  if (object.text("schema") != schema_name)
    object.fail("schema", "not a model file", fmt::format("a model file has \"schema\": \"{}\"", schema_name));
  if (object.integer("version", 1, 1'000'000) > schema_version)
    object.fail("version", "written for a newer spillway", fmt::format("this one reads version {}", schema_version));
  ModelSpec spec;
  spec.name = std::filesystem::path(file).stem().string();
  spec.title = object.text("title");
  spec.source = object.text("source");
  read_shape(object, spec);
  read_kinds(object, spec);
  if (parameter_count(spec) > most_parameters)
    object.fail("layers", "the shape has more than 10^16 parameters", "correct the shape");
  read_published_count(object, spec, file);
  object.finish();
  return spec;
}

ModelSpec load_model(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw InputError(path, "", "no such model file", "give the path of a model JSON file");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw InputError(path, "", "can't be read", "check its permissions");
  return parse_model(text.str(), path);
}

std::vector<std::string> model_directories() {
  std::vector<std::string> directories;
  if (const char* data = std::getenv("SPILLWAY_DATA"); data != nullptr && *data != '\0')
    directories.push_back(std::string(data) + "/models");
  directories.emplace_back(SPILLWAY_SOURCE_MODELS);
  directories.emplace_back(SPILLWAY_INSTALLED_MODELS);
  return directories;
}

std::vector<std::string> bundled_models() {
  std::vector<std::string> names;
  for (const std::string& directory : model_directories()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error))
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ModelSpec find_model(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) return load_model(name_or_path);
  for (const std::string& directory : model_directories()) {
    const std::string path = directory + "/" + name_or_path + ".json";
    std::error_code error;
    if (std::filesystem::exists(path, error)) return load_model(path);
  }
  const std::vector<std::string> known = bundled_models();
  throw InputError(
      name_or_path, "", "no model of this name",
      did_you_mean(name_or_path, known, fmt::format("name a .json file or one of {}", fmt::join(known, ", "))));
}

}  // namespace spillway
