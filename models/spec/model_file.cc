// Model files: JSON to ModelSpec with every check, and where the bundled ones lie.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/json_object.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_check.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

constexpr std::uint64_t largest_file = 16U << 20U;

using Json = nlohmann::json;
constexpr const char* schema_name = "spillway.model";
constexpr std::int64_t schema_version = 1;
constexpr const char* schema_file = "docs/schemas/model.schema.json";

// Dimensions up to these keep every product of two below 2^63.
constexpr std::int64_t widest = 1 << 20;
constexpr std::int64_t longest = 1 << 24;

void read_shape(JsonObject& object, ModelSpec& spec) {
  spec.layers = object.integer("layers", 1, 4096);
  spec.encoder_layers = object.integer_or("encoder_layers", 0, 4096, 0);
  spec.hidden = object.integer("hidden", 1, widest);
  spec.heads = object.integer("heads", 1, 4096);
  spec.kv_heads = object.integer_or("kv_heads", 1, 4096, spec.heads);
  spec.feed_forward = object.integer("feed_forward", 1, widest);
  spec.vocabulary = object.integer_or("vocabulary", 1, longest, 0);
  spec.max_positions = object.integer("max_positions", 1, longest);
  spec.position_offset = object.integer_or("position_offset", 0, 65'536, 0);
  spec.position_buckets = object.integer_or("position_buckets", 1, 65'536, 0);
  spec.token_types = object.integer_or("token_types", 0, 65'536, 0);
  spec.classes = object.integer_or("classes", 1, longest, 0);
  spec.attention_window = object.integer_or("attention_window", 0, longest, 0);
  spec.global_every = object.integer_or("global_every", 0, 4096, 0);
}

void read_head_dim(JsonObject& object, ModelSpec& spec) {
  const bool given = object.take("head_dim") != nullptr;
  if (spec.has_latent()) {
    if (given) object.fail("head_dim", "given along with latent_attention", "remove it: it is nope_dim + rope_dim");
    spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
    return;
  }
  if (!given && spec.hidden % spec.heads != 0)
    object.fail("head_dim", "missing, and hidden is not a multiple of heads", "add head_dim");
  spec.head_dim = given ? object.integer("head_dim", 1, 65'536) : spec.hidden / spec.heads;
}

void read_kinds(JsonObject& object, ModelSpec& spec) {
  spec.mask = object.choice<AttentionMask>("mask", {"causal", "bidirectional"});
  spec.norm = object.choice<NormKind>("norm", {"layer_norm", "rms_norm"});
  spec.norm_placement = object.choice<NormPlacement>("norm_placement", {"pre", "post", "sandwich", "branch"});
  spec.block_layout =
      object.choice_or("block_layout", {"sequential", "parallel", "parallel_one_norm"}, BlockLayout::sequential);
  spec.activation = object.choice<Activation>("activation", {"gelu", "relu", "silu_gated", "gelu_gated"});
  spec.positions = object.choice<Positions>("positions", {"learned", "rotary", "alibi", "relative_bias"});
  spec.fused_qkv = object.flag("fused_qkv");
  spec.qkv_bias = object.flag("qkv_bias");
  spec.output_bias = object.flag("output_bias");
  spec.feed_forward_bias = object.flag("feed_forward_bias");
  spec.norm_bias = object.flag("norm_bias", true);
  spec.head_bias = object.flag("head_bias");
  spec.query_key_norm = object.flag("query_key_norm");
  spec.wide_query_key_norm = object.flag("wide_query_key_norm");
  spec.tied_embeddings = object.flag("tied_embeddings");
  spec.pretraining_heads = object.flag("pretraining_heads");
  spec.masked_lm_head = object.flag("masked_lm_head");
  spec.dropout = object.number_or("dropout", 0, 1, 0);
  spec.attention_dropout = object.number_or("attention_dropout", 0, 1, spec.dropout);
  spec.attention_softcap = object.number_or("attention_softcap", 0, 1e6, 0);
  spec.logit_softcap = object.number_or("logit_softcap", 0, 1e6, 0);
}

void read_latent(JsonObject& object, ModelSpec& spec, const std::string& file) {
  const Json* json = object.take("latent_attention");
  if (json == nullptr) return;
  JsonObject latent(*json, file, "/latent_attention", schema_file);
  spec.latent = {.query_rank = latent.integer_or("query_rank", 0, 65'536, 0),
                 .kv_rank = latent.integer("kv_rank", 1, 65'536),
                 .rope_dim = latent.integer("rope_dim", 1, 32'768),
                 .nope_dim = latent.integer("nope_dim", 1, 32'768),
                 .value_dim = latent.integer("value_dim", 1, 65'536)};
  latent.finish();
}

void read_experts(JsonObject& object, ModelSpec& spec, const std::string& file) {
  const Json* json = object.take("experts");
  if (json == nullptr) return;
  JsonObject experts(*json, file, "/experts", schema_file);
  spec.experts = {.count = experts.integer("count", 1, 65'536),
                  .active = experts.integer("active", 1, 65'536),
                  .width = experts.integer("width", 1, widest),
                  .shared_width = experts.integer_or("shared_width", 0, widest, 0),
                  .first_dense_layers = experts.integer_or("first_dense_layers", 0, 4096, 0),
                  .every = experts.integer_or("every", 1, 4096, 1),
                  .shared_gate = experts.flag("shared_gate"),
                  .selection_bias = experts.flag("selection_bias")};
  experts.finish();
}

void read_patches(JsonObject& object, ModelSpec& spec, const std::string& file) {
  const Json* json = object.take("patches");
  if (json == nullptr) return;
  JsonObject patches(*json, file, "/patches", schema_file);
  spec.patches = {.image = patches.integer("image", 1, 65'536),
                  .patch = patches.integer("patch", 1, 65'536),
                  .channels = patches.integer("channels", 1, 65'536)};
  patches.finish();
}

void read_published_count(JsonObject& object, ModelSpec& spec, const std::string& file) {
  const Json* published = object.take("parameters");
  if (published == nullptr) return;
  JsonObject count(*published, file, "/parameters", schema_file);
  spec.published_parameters = count.integer("count", 1, std::int64_t{1} << 60);
  spec.published_basis =
      count.choice_or("count_source", {"checkpoint", "publication", "config"}, CountBasis::checkpoint);
  spec.published_source = count.text("source");
  count.finish();
  if (const std::int64_t computed = parameter_count(spec); computed != spec.published_parameters)
    count.fail("count", fmt::format("the shape gives {} parameters, not {}", computed, spec.published_parameters),
               "correct the shape or the count");
}

ModelSpec read_model(const Json& json, const std::string& file) {
  JsonObject object(json, file, "", schema_file);
  if (object.text("schema") != schema_name)
    object.fail("schema", "not a model file", fmt::format("a model file has \"schema\": \"{}\"", schema_name));
  if (object.integer("version", 1, 1'000'000) > schema_version)
    object.fail("version", "written for a newer spillway", fmt::format("this one reads version {}", schema_version));
  ModelSpec spec;
  spec.name = std::filesystem::path(file).stem().string();
  spec.title = object.text("title");
  spec.source = object.text("source");
  read_shape(object, spec);
  read_latent(object, spec, file);
  read_head_dim(object, spec);
  read_experts(object, spec, file);
  read_patches(object, spec, file);
  read_kinds(object, spec);
  if (const auto fault = shape_fault(spec)) object.fail(fault->key, fault->cause, fault->remedy);
  read_published_count(object, spec, file);
  object.finish();
  return spec;
}

}  // namespace

ModelSpec parse_model(std::string_view json_text, const std::string& file) {
  const Json json = parse_json(json_text, file);
  return is_hf_config(json) ? read_hf_config(json, file) : read_model(json, file);
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
    if (std::filesystem::exists(path, error)) return load_model(path);
  }
  const std::vector<std::string> known = bundled_models();
  throw InputError(name_or_path, "", "no model of this name",
                   suggest(name_or_path, known, fmt::format("name a .json file or one of {}", fmt::join(known, ", "))));
}

}  // namespace spillway::models
