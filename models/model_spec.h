// ModelSpec: a transformer's shape, enough to count its parameters exactly and to generate its training step.
//
// Covered: decoder-only models of the GPT-2/3 kind (learned positions, LayerNorm, GELU, biases), of the Llama kind
// (RMSNorm, rotary positions, gated feed-forward, grouped-query attention, tied or untied embeddings; Mistral and
// Qwen2 are members), OPT, and encoders of the BERT kind (post-norm, token types, pre-training heads).
//
// Files are JSON, docs/schemas/model.schema.json. `parameters.count` is the count of the published checkpoint; loading
// refuses a file whose shape does not give exactly that count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

enum class AttentionMask : std::uint8_t { causal, bidirectional };
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class NormPlacement : std::uint8_t {
  pre,
  post
};  // before each sub-layer (GPT-2, Llama) or after the residual (BERT)
enum class Activation : std::uint8_t { gelu, relu, silu_gated };  // silu_gated = SwiGLU: silu(gate) * up
enum class Positions : std::uint8_t { learned, rotary };

struct ModelSpec {
  std::string name;    // "llama-3-8b"; the file's name without .json
  std::string title;   // for people
  std::string source;  // where the shape comes from

  std::int64_t layers = 0;
  std::int64_t hidden = 0;           // width of the residual stream, h
  std::int64_t heads = 0;            // query heads, a
  std::int64_t kv_heads = 0;         // = heads without grouped-query attention; divides heads
  std::int64_t head_dim = 0;         // hidden / heads unless the file says otherwise
  std::int64_t feed_forward = 0;     // width inside the feed-forward block
  std::int64_t vocabulary = 0;       // rows of the embedding, padding included where the checkpoint has it
  std::int64_t max_positions = 0;    // longest sequence; rows of the table when positions are learned
  std::int64_t position_offset = 0;  // unused leading rows of the learned table (OPT: 2)
  std::int64_t token_types = 0;      // BERT: 2

  AttentionMask mask = AttentionMask::causal;
  NormKind norm = NormKind::layer_norm;
  NormPlacement norm_placement = NormPlacement::pre;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;

  bool fused_qkv = false;  // one projection for queries, keys and values (GPT-2) or three
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention output projection
  bool feed_forward_bias = false;
  bool query_key_norm = false;     // RMSNorm over each head of queries and keys (Qwen3)
  bool tied_embeddings = false;    // the LM head shares the embedding matrix
  bool pretraining_heads = false;  // BERT: pooler, masked-LM transform, next-sentence classifier
  double dropout = 0;              // one probability for embeddings, residuals and attention, [0, 1)

  std::int64_t published_parameters = 0;
  std::string published_source;  // of the count

  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
  [[nodiscard]] bool gated() const { return activation == Activation::silu_gated; }
};

// One parameter tensor. Matrices are [rows = outputs, columns = inputs]; vectors have columns = 1.
struct Parameter {
  std::string name;         // "layers.12.mlp.up.weight"
  std::int64_t layer = -1;  // -1: outside the layers
  std::int64_t rows = 0;
  std::int64_t columns = 1;

  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

// In the order of the forward pass. A tied head is not listed twice. O(layers).
std::vector<Parameter> parameters(const ModelSpec& spec);
std::int64_t parameter_count(const ModelSpec& spec);
// Elements of the matrices that multiply every token in the forward pass, head included even when tied; not the
// pooler and next-sentence classifier, which see one token of a sequence.
std::int64_t matmul_parameter_count(const ModelSpec& spec);

// Throws InputError: file and JSON place, cause and remedy, for unknown keys, wrong types, values out of range and
// a parameter count that differs from the published one.
ModelSpec load_model(const std::string& path);
ModelSpec parse_model(std::string_view json_text, const std::string& file);
// `name_or_path`: a file if it ends in .json or contains a slash, else NAME.json in the model directories.
ModelSpec find_model(const std::string& name_or_path);

// Names of the bundled models, sorted.
std::vector<std::string> bundled_models();
// Where bundled models are looked for, first match wins: $SPILLWAY_DATA/models, the build's source tree, the
// installed share directory.
std::vector<std::string> model_directories();

}  // namespace spillway
