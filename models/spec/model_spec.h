// ModelSpec: a transformer's shape, enough to count its parameters exactly and to generate its training step.
//
// Covered:
//
//   decoders           GPT-2/3, OPT, MPT (ALiBi), GPT-NeoX (parallel blocks), Llama 1-3, Mistral, Qwen2/2.5/3, OLMo 2,
//                      Gemma 1-3 (norms around each sub-layer, wide heads, soft caps, local layers)
//
//   with experts       Mixtral, Qwen2/3-MoE, OLMoE, DeepSeek-V2/V3 (latent attention, shared experts, dense layers
//                      first), GPT-OSS (biases, attention sinks), GLM-4.5, MiniMax-M2, Llama 4 (its text model; the
//                      norm of queries and keys, which has no weights, is left out, and its chunks of attention are
//                      windows of the same length), DeepSeek-V3.2 (an indexer chooses the tokens attended to),
//                      Qwen3-Next (a gated delta rule in place of softmax attention in three layers of four)
//
//   of several kinds   Nemotron-H, Granite 4, Falcon-H1, Bamba, Mamba-2, Jamba and the first Mamba (state space
//                      layers), LFM2 (short convolutions),
//                      Kimi Linear and K3 (a gate for each channel; residuals from earlier layers), Gemma 4, MiMo-V2,
//                      Step-3.5 (layers whose heads differ), DeepSeek-V4 (compressed keys, several residual streams),
//                      MiniMax-M3 (attention to chosen blocks), LongCat-Flash (experts beside dense blocks, some of
//                      which do nothing): a list of blocks says what each layer has
//
//   encoders           BERT, RoBERTa, ModernBERT (gated, with windows); ViT (patches, class token, classifier), and as
//                      a decoder's vision tower (models/spec/tower.h)
//
//   encoder-decoders   T5 1.0 and 1.1, mT5 (relative position bias, cross attention), the same with learned positions
//
// Files are JSON, docs/schemas/model.schema.json, or a Hugging Face config.json (models/spec/hf_config.h).
// `parameters.count` is the count of the published checkpoint; loading refuses a file with a shape that does not give
// exactly that count.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::models {

enum class AttentionMask : std::uint8_t { causal, bidirectional };
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
// The place where a layer normalises, x the residual stream and f a sub-layer:
enum class NormPlacement : std::uint8_t {
  pre,       // x + f(norm(x)): GPT-2, Llama
  post,      // norm(x + f(x)): BERT
  sandwich,  // x + norm(f(norm(x))): Gemma 2 and 3
  branch     // x + norm(f(x)): OLMo 2
};
enum class BlockLayout : std::uint8_t {
  sequential,        // attention, then feed-forward
  parallel,          // x + attention(norm1(x)) + feed_forward(norm2(x)): GPT-NeoX
  parallel_one_norm  // both read the same norm: GPT-J, Phi-2
};
// gated: function(gate) * up, three matrices (SwiGLU, GeGLU). gelu stands for its tanh approximation too.
// xielu: its two slopes are learned, layer by layer (Apertus, arXiv:2411.13010).
enum class Activation : std::uint8_t { gelu, relu, silu_gated, gelu_gated, relu_squared, xielu };
enum class Positions : std::uint8_t { learned, rotary, alibi, relative_bias, none };

// The mixer of a layer's tokens; beside: Mamba-2 and attention read the same norm, and their results are added.
enum class Mixer : std::uint8_t { attention, delta_rule, mamba, beside, convolution, none };
// The block that works on tokens one by one; both: a dense block and experts, each between its norms (Gemma 4).
enum class FeedForward : std::uint8_t { dense, experts, none, both };

// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): queries, and keys with values, pass
// through low-rank bottlenecks; a rotary part of the key is shared by all heads.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_rank = 0;     // 0: the model has none of this
  std::int64_t rope_dim = 0;    // per head; the shared key part has this width once
  std::int64_t nope_dim = 0;    // per head, without positions
  std::int64_t value_dim = 0;   // per head
};

// Sparse attention (DeepSeek-V3.2-Exp, section 2): light heads score all tokens before a token, and its attention sees
// the `keys` that score highest.
struct Indexer {
  std::int64_t heads = 0;     // 0: the model has none; with latent attention and its query_rank alone
  std::int64_t head_dim = 0;  // of their queries, and of the one key that they share
  std::int64_t keys = 0;      // tokens; of compressed keys so many of these
  // Keys are chosen in blocks of so many neighbours, by the best score in a block, queries and the key normed and no
  // head weighed (MiniMax-M3); 0: one by one.
  std::int64_t block = 0;
};

// Attention over a window, and over keys that stand for several tokens each (DeepSeek-V4). Queries go through a
// bottleneck. One key for all heads is the value too. Results go through a product in each group of heads, then through
// a common one. Block::compression says how many tokens a key stands for. The indexer chooses among keys that overlap:
// each reads the tokens of the key before it as well.
struct CompressedAttention {
  std::int64_t query_rank = 0;  // 0: the model has none of this
  std::int64_t rope_dim = 0;    // of a head
  std::int64_t output_groups = 1, output_rank = 0;
};

// Linear attention by the gated delta rule (Yang et al., arXiv:2412.06464), as Qwen3-Next has it. A short convolution
// goes over queries, keys and values, and a gate over its normed results.
struct LinearAttention {
  std::int64_t key_heads = 0;               // 0: the model has none
  std::int64_t value_heads = 0;             // a multiple of key_heads; each has a state [key_dim, value_dim]
  std::int64_t key_dim = 0, value_dim = 0;  // per head
  std::int64_t convolution = 0;             // tokens it sees
  std::int64_t full_every = 0;              // layer i has softmax attention if (i + 1) % full_every == 0; 0: none has
  // Kimi Delta Attention (arXiv:2510.26692): each channel has a decay, and the result a gate, made through so narrow a
  // bottleneck; 0: a head has one decay.
  std::int64_t gate_rank = 0;
  bool whole_gate = false;  // the result's gate is one product, without the bottleneck (Kimi K3)
  // Lightning attention (arXiv:2401.04658, MiniMax-01): decays that are fixed by head and layer, without weights; no
  // convolution, and one norm over all heads' results.
  bool fixed_decay = false;

  [[nodiscard]] std::int64_t key_width() const { return key_heads * key_dim; }
  [[nodiscard]] std::int64_t value_width() const { return value_heads * value_dim; }
  [[nodiscard]] std::int64_t convolved() const { return 2 * key_width() + value_width(); }
};

// Mamba-2's mixer (Dao and Gu, arXiv:2405.21060): heads with a state [head_dim, state] each. Groups of heads share
// inputs and outputs. A short convolution stands before it and a gated norm behind it.
struct Mamba {
  std::int64_t heads = 0;  // 0: the model has none
  std::int64_t head_dim = 0, state = 0, groups = 1;
  std::int64_t convolution = 4;                // tokens it sees
  std::int64_t chunk = 256;                    // tokens that are worked on at once
  bool convolution_bias = true, bias = false;  // bias: of both products
  bool norm = true;                            // false: the gate alone
  // The first Mamba (arXiv:2312.00752): each channel of its one head has `state` numbers. Steps of time come through so
  // narrow a bottleneck, which has the states' inputs and outputs too. 0: Mamba-2.
  std::int64_t step_rank = 0;
  bool inner_norms = false;  // of the bottleneck's three parts (Jamba)

  [[nodiscard]] bool is_first() const { return step_rank > 0; }
  [[nodiscard]] std::int64_t width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t convolved() const { return is_first() ? width() : width() + 2 * groups * state; }
  [[nodiscard]] std::int64_t projected() const { return width() + convolved() + (is_first() ? 0 : heads); }
};

// A gated short convolution in place of attention (LFM2): three gates' width of the model, one convolved.
struct ShortConvolution {
  std::int64_t tokens = 0;  // it sees; 0: the model has none
  bool bias = false;        // of both products and the convolution
};

// Mixture of experts: in the layers that have it, `active` of `count` routed experts see a token.
struct Experts {
  std::int64_t count = 0;  // 0: the model has none
  std::int64_t active = 0;
  std::int64_t width = 0;               // feed-forward width of one routed expert
  std::int64_t shared_width = 0;        // of all shared experts together, which see every token; 0: none
  std::int64_t first_dense_layers = 0;  // these have a plain feed-forward block instead
  std::int64_t every = 1;               // layer i has experts if (i + 1) % every == 0
  bool shared_gate = false;             // a sigmoid of the token weighs the shared experts (Qwen2-MoE)
  bool selection_bias = false;          // one number per expert added to the scores it is selected by (DeepSeek-V3)
  bool bias = false;                    // of the router and of each routed expert's matrices (GPT-OSS)
  // The experts are in so many groups of neighbours, and a token chooses from so many of these (DeepSeek-V2 and V3: to
  // keep it on few machines); 0: from all.
  std::int64_t groups = 0, chosen_groups = 0;
  // Routed experts work in so wide a space, into which one matrix leads and out of which another (Nemotron 3 Ultra); 0:
  // in the model's own.
  std::int64_t latent_width = 0;
  bool latent_norm = false;  // a norm of what they read there (Kimi K3)
  // So many more give a token back as it came (LongCat-Flash). The router scores them too. `active` is a mean that
  // counts none of them.
  std::int64_t idle = 0;

  [[nodiscard]] std::int64_t scored() const { return count + idle; }
};

// The parts of a layer, where it differs from the model; sizes that are 0 are the model's.
struct Block {
  bool operator==(const Block&) const = default;

  std::int64_t count = 1;  // so many layers, one behind the other
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::dense;
  std::int64_t window = 0;  // tokens that one attends to at most; 0: all
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t width = 0;       // of the dense feed-forward block
  bool keys_as_values = false;  // one projection is both
  bool shares_keys = false;     // keys and values are those of the last layer before with a window, or without, as well
  bool sinks = false;           // a learned number per head beside the scores of a row
  std::int64_t compression = 0;  // tokens that a compressed key stands for; 0: there are none
  bool chooses = false;          // it sees what the indexer chooses; with latent attention every layer does

  // Of the concatenated heads.
  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t key_width() const { return kv_heads * head_dim; }
  [[nodiscard]] std::int64_t value_width() const { return kv_heads * value_dim; }
  [[nodiscard]] std::int64_t context_width() const { return heads * value_dim; }
  [[nodiscard]] bool attends() const { return mixer == Mixer::attention || mixer == Mixer::beside; }
  [[nodiscard]] bool has_mamba() const { return mixer == Mixer::mamba || mixer == Mixer::beside; }
  [[nodiscard]] bool has_experts() const {
    return feed_forward == FeedForward::experts || feed_forward == FeedForward::both;
  }
};

// A separate input for each layer (Gemma 4's small models), `width` values a layer, from a token's row in a second
// table and from a product of its embedding. They gate a small branch behind the feed-forward block.
struct LayerInputs {
  std::int64_t width = 0;       // 0: the model has none
  std::int64_t vocabulary = 0;  // rows of the table
};

// Images cut into squares (ViT, arXiv:2010.11929). The sequence is the patches and, where there is one, a class token.
struct Patches {
  std::int64_t image = 0;     // pixels per side; 0: of any size
  std::int64_t patch = 0;     // pixels per side, divides image; 0: the model reads tokens
  std::int64_t channels = 0;  // of all frames that a patch joins
  bool class_token = true, bias = true;
  std::int64_t table = 0;  // rows of a learned table beside rotary positions, fitted to the image (Qwen3-VL); 0: none

  [[nodiscard]] std::int64_t count() const { return image == 0 ? 0 : (image / patch) * (image / patch); }
  [[nodiscard]] std::int64_t values() const { return channels * patch * patch; }  // of one patch
};

// A projector leads from a tower's patches into the text (LLaVA, arXiv:2304.08485). Squares of merge x merge patches
// become one row each, side by side or as their mean. One product or two make a token of it.
struct Projector {
  std::int64_t width = 0;  // of the text; 0: the model is no tower
  std::int64_t merge = 1;
  bool pools = false;                 // their mean (Gemma 3), else side by side
  bool norm = false, is_rms = false;  // of a patch's width, behind the final norm
  bool reduces = false;               // a product without bias makes the row a patch's width again (Mistral 3)
  std::int64_t inner = 0;             // width between the two products; 0: there is one
  bool bias = true;
  std::vector<std::int64_t> taps;  // layers with one more projector each, into the results of the text's first ones

  [[nodiscard]] std::int64_t merged() const { return merge * merge; }
};

// The source of a model file's count: the published checkpoint's own metadata, a paper or documentation that
// prints it in full, or the published configuration by arithmetic.
enum class CountBasis : std::uint8_t { checkpoint, publication, config };

struct ModelSpec {
  std::string name;    // "llama-3-8b"; the file's name without .json
  std::string title;   // for people
  std::string source;  // where the shape comes from

  std::int64_t layers = 0;            // of the decoder when there is an encoder too
  std::int64_t encoder_layers = 0;    // 0: one stack
  std::int64_t hidden = 0;            // width of the residual stream, h
  std::int64_t heads = 0;             // query heads, a
  std::int64_t kv_heads = 0;          // = heads without grouped-query attention; divides heads
  std::int64_t head_dim = 0;          // of queries and keys; hidden / heads if the file has none
  std::int64_t feed_forward = 0;      // width inside the (dense) feed-forward block
  std::int64_t vocabulary = 0;        // rows of the embedding, padding included where the checkpoint has it; 0: images
  std::int64_t embedding_width = 0;   // with a matrix into the layers and one out of them (OPT-350m); 0: hidden
  std::int64_t max_positions = 0;     // longest sequence; rows of the table when positions are learned
  std::int64_t position_offset = 0;   // unused leading rows of the learned table (OPT: 2)
  std::int64_t position_buckets = 0;  // rows of the relative bias (T5: 32)
  std::int64_t token_types = 0;       // BERT: 2
  std::int64_t classes = 0;           // of the classifier on the class token; 0: none
  std::int64_t attention_window = 0;  // a token attends to this many at most; 0: to all
  std::int64_t global_every =
      0;  // layer i attends to all if (i + 1) % global_every == 0; 0: the window holds everywhere
  // Residual streams beside each other, each `hidden` wide, which every sub-layer reads and writes as a learned mixture
  // of them (hyper-connections, arXiv:2409.19606; DeepSeek-V4); 1: the plain one.
  std::int64_t streams = 1;
  // Every sub-layer reads a learned mixture of what all earlier groups of so many layers gave and of the sum within its
  // own (Kimi K3); 0: the plain sum.
  std::int64_t residual_group = 0;

  // Depths of multi-token prediction that are trained (arXiv:2412.19437, section 2.2), behind the last layer. Each
  // norms what the depth before gave and the embedding of the next token, and joins them by a product [h, 2 h]. A layer
  // like the last one and a norm follow; the head reads the result.
  std::int64_t mtp_layers = 0;

  LatentAttention latent;
  CompressedAttention compressed;
  Indexer indexer;
  LinearAttention linear;
  Mamba mamba;
  ShortConvolution convolution;
  Experts experts;
  LayerInputs layer_inputs;
  // Kinds of the decoder's layers, one behind the other, over and over where there are more layers than they count;
  // empty: what full_every, experts.every, first_dense_layers and global_every say.
  std::vector<Block> blocks;
  Patches patches;
  Projector projector;

  AttentionMask mask = AttentionMask::causal;  // of the decoder when there is an encoder, which is bidirectional
  NormKind norm = NormKind::layer_norm;
  NormPlacement norm_placement = NormPlacement::pre;
  BlockLayout block_layout = BlockLayout::sequential;
  Activation activation = Activation::gelu;
  bool gelu_new = false;  // gelu's tanh form, which transformers computes operator by operator (NewGELUActivation)
  Positions positions = Positions::learned;

  bool fused_qkv = false;  // one projection for queries, keys and values (GPT-2) or three
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention output projection
  bool feed_forward_bias = false;
  bool norm_bias = true;        // of LayerNorms (MPT: false)
  bool norm_weights = true;     // of norms outside attention (OLMo: false, and no bias)
  bool embedding_norm = false;  // behind the embedding (BLOOM, ModernBERT); with norm_placement post there always is
  bool head_bias = false;
  bool query_key_norm = false;       // a norm over each head of queries and keys (Qwen3), or
  bool wide_query_key_norm = false;  // over their whole width (OLMoE); at most one of the two
  bool attention_sinks = false;      // a learned number per head beside the scores of a row (GPT-OSS)
  bool attention_gate = false;       // a sigmoid of the token weighs each value of softmax attention's result
  bool head_gate = false;            // or each head's (Step-3.5)
  bool tied_embeddings = false;      // the LM head shares the embedding matrix
  bool pretraining_heads = false;    // BERT: pooler, masked-LM transform, next-sentence classifier
  bool masked_lm_head = false;       // the masked-LM transform alone; without norm_bias the transform has none either
  bool value_head = false;           // a number for each token in place of the vocabulary's head (a PPO value model)
  double dropout = 0;                // one probability for embeddings and residuals, [0, 1)
  double attention_dropout = 0;      // of attention weights; `dropout` if the file has none
  double attention_softcap = 0;      // scores are c tanh(score / c) (Gemma 2); 0: none
  double logit_softcap = 0;          // the same of the logits

  std::int64_t published_parameters = 0;
  CountBasis published_basis = CountBasis::checkpoint;
  std::string published_source;  // of the count, in words

  std::int64_t held_parameters = 0;  // of other parts (a vision tower), which are held frozen where they are not run
  std::string tower_name;            // one that models/spec/tower.h knows; "": none, or read from a configuration
  // The vision tower among them, a ViT with a projector; null: there is none, or its sizes are not known.
  std::shared_ptr<const ModelSpec> tower;
  bool stored_nf4 = false;         // published in bitsandbytes' 4 bits (nf4_double): adapters alone can be trained
  std::vector<std::string> notes;  // for people: what isn't taken as it was published

  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
  // The width of the concatenated heads that enter the output projection.
  [[nodiscard]] std::int64_t context_width() const { return heads * (has_latent() ? latent.value_dim : head_dim); }
  [[nodiscard]] bool gated() const {
    return activation == Activation::silu_gated || activation == Activation::gelu_gated;
  }
  // Whether sub-layers' inputs, and whether their results, are normalised before the sum.
  [[nodiscard]] bool norms_inputs() const {
    return norm_placement == NormPlacement::pre || norm_placement == NormPlacement::sandwich;
  }
  [[nodiscard]] bool norms_results() const {
    return norm_placement == NormPlacement::sandwich || norm_placement == NormPlacement::branch;
  }
  [[nodiscard]] bool has_encoder() const { return encoder_layers > 0; }
  // Whether a layer's branches are normed; the first behind a norm of the embedding in an encoder reads that.
  [[nodiscard]] bool norms_attention(std::int64_t layer) const {
    return norms_inputs() && !(layer == 0 && embedding_norm && mask == AttentionMask::bidirectional && !reads_images());
  }
  [[nodiscard]] bool norms_embedding() const {
    return embedding_norm || (norm_placement == NormPlacement::post && embedding_width == 0);
  }
  [[nodiscard]] std::int64_t embedding_columns() const { return embedding_width > 0 ? embedding_width : hidden; }
  [[nodiscard]] bool has_layer_inputs() const { return layer_inputs.width > 0; }
  [[nodiscard]] bool shares_keys() const {
    return any_block([](const Block& block) { return block.shares_keys; });
  }
  // The layers of both stacks, the encoder's first; Parameter::layer counts them so.
  [[nodiscard]] std::int64_t all_layers() const { return encoder_layers + layers; }
  [[nodiscard]] bool is_encoder_layer(std::int64_t index) const { return index < encoder_layers; }
  [[nodiscard]] std::string layer_prefix(std::int64_t index) const {
    if (index >= all_layers()) return "mtp.layers." + std::to_string(index - all_layers()) + ".";
    return is_encoder_layer(index) ? "encoder.layers." + std::to_string(index) + "."
                                   : "layers." + std::to_string(index - encoder_layers) + ".";
  }
  [[nodiscard]] bool has_latent() const { return latent.kv_rank > 0; }
  [[nodiscard]] bool has_compressed() const { return compressed.query_rank > 0; }
  [[nodiscard]] bool has_indexer() const { return indexer.heads > 0; }
  [[nodiscard]] bool has_linear() const { return linear.key_heads > 0; }
  [[nodiscard]] bool has_mamba() const { return mamba.heads > 0; }
  [[nodiscard]] bool has_convolutions() const { return convolution.tokens > 0; }
  [[nodiscard]] bool has_experts() const { return experts.count > 0; }
  [[nodiscard]] bool reads_images() const { return patches.patch > 0; }
  [[nodiscard]] bool is_tower() const { return projector.width > 0; }
  // The parts of a layer of the decoder, counted within it, with their sizes.
  [[nodiscard]] Block block(std::int64_t layer) const;
  // The same of all layers and encoder layers, as Parameter::layer counts, and behind them mtp_blocks() of each depth.
  [[nodiscard]] Block block_of_all(std::int64_t layer) const;
  // The layers of a depth of multi-token prediction: the last layer; the last attention and the last feed-forward block
  // where layers hold one of the two. Their parameters belong to no layer.
  [[nodiscard]] std::vector<Block> mtp_blocks() const;
  // Whether the part with the head has the embedding too.
  [[nodiscard]] bool embeds_at_head() const { return tied_embeddings || mtp_layers > 0; }
  [[nodiscard]] bool has_experts(std::int64_t layer) const { return block(layer).has_experts(); }
  // Tokens that the layer's attention sees at most; 0: all.
  [[nodiscard]] std::int64_t window_of(std::int64_t layer) const { return block(layer).window; }
  // Whether some layer is so; each kind of block is checked once.
  [[nodiscard]] bool any_block(bool (*is)(const Block&)) const;
};

// The owner of a parameter. mlp: feed-forward blocks of dense layers and shared experts. embedding: positions,
// token types, patches and the class token too. head: LM heads that aren't tied, poolers, classifiers.
enum class Component : std::uint8_t { embedding, attention, mlp, router, experts, norm, head };

// One parameter tensor. Matrices are [rows = outputs, columns = inputs]; vectors have columns = 1. The matrices of a
// layer's routed experts are one tensor, the experts' rows one below the other.
struct Parameter {
  std::string name;         // "layers.12.mlp.up.weight"
  std::int64_t layer = -1;  // -1: outside the layers; with an encoder its layers come first, then the decoder's
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  Component component = Component::embedding;
  std::int64_t experts = 0;  // stacked in it; 0: not a routed expert's

  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  [[nodiscard]] bool is_of_mtp() const { return name.starts_with("mtp."); }  // ModelSpec::mtp_layers
};

// In the order of the forward pass. A tied head is not listed twice. O(layers).
std::vector<Parameter> parameters(const ModelSpec& spec);
std::int64_t parameter_count(const ModelSpec& spec);
// Elements of the matrices that multiply a token in the forward pass: the head even when tied, experts as many as are
// active. Poolers and classifiers are left out: they see one token of a sequence. With an encoder the sum over both
// stacks: a pair of one source and one target token.
std::int64_t matmul_parameter_count(const ModelSpec& spec);
// The part that one parameter adds to that; a tied head adds the embedding's once more.
std::int64_t matmul_elements(const ModelSpec& spec, const Parameter& parameter);

// Halves of a square of scores [sequence, sequence] that a sequence attends over, times the width of its queries.
// Causal attention counts one, bidirectional and cross attention two, linear attention none; all layers are added up.
// Windows are left out.
std::int64_t half_squares_of_scores(const ModelSpec& spec);

struct ParameterCounts {
  std::int64_t embedding = 0, attention = 0, mlp = 0, router = 0, experts = 0, norm = 0, head = 0;
  std::int64_t active_experts = 0;  // of `experts`, those that see one token

  [[nodiscard]] std::int64_t total() const { return embedding + attention + mlp + router + experts + norm + head; }
  // Embedding tables count in full, as in the papers of Mixtral and DeepSeek.
  [[nodiscard]] std::int64_t active() const { return total() - experts + active_experts; }
};
ParameterCounts parameter_counts(const ModelSpec& spec);

// Throws InputError: file and JSON place, cause and remedy, for unknown keys, wrong types, values out of range and
// a parameter count that differs from the published one. A JSON object with "model_type" or "architectures" and no
// "schema" is read as a Hugging Face config.json.
ModelSpec load_model(const std::string& path);
ModelSpec parse_model(std::string_view json_text, const std::string& file);
// How a model is named everywhere: an existing file, or a folder with a config.json; a bundled model, however its
// letters and separators are written; a published id, "OWNER/NAME" or "hf:OWNER/NAME" (models/spec/model_alias.h).
// Nothing is fetched for an id. A bundled model's exact name goes before a path without a slash.
ModelSpec find_model(const std::string& name);
// Whether it is one by its name alone: bundled, published, a folder with a config.json. Files are looked into by
// others.
bool names_model(const std::string& name);
// As a scenario in any folder can have it: of a file or folder the whole path.
std::string whole_model_name(const std::string& name);

// Names of the bundled models, sorted.
std::vector<std::string> bundled_models();
// The folders of bundled models, first match wins: $SPILLWAY_DATA/models, the build's source tree, the
// installed share directory.
std::vector<std::string> model_directories();

}  // namespace spillway::models
