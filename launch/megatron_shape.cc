#include "launch/megatron_shape.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/input_error.h"
#include "launch/launch_facts.h"
#include "launch/launch_model.h"

namespace spillway::launch {
namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return multiple <= 0 || count <= 0 ? count : times((count - 1) / multiple + 1, multiple);
}

std::int64_t needed(const LaunchLedger& ledger, std::string_view fact, std::string_view flag) {
  if (const auto value = ledger.number(fact)) return *value;
  const LaunchSetting& near = ledger.setting_of(ledger.says(facts::layers) ? facts::layers : facts::hidden);
  throw InputError(near.file, near.place, fmt::format("the launch has sizes of a model, but no {}", flag),
                   "add it, or give --model");
}

// "([0]*3+[1]*58)": lists, sums and products of them.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  std::vector<bool> take() {
    std::vector<bool> all = sum();
    return at_ == text_.size() && !failed_ ? all : std::vector<bool>();
  }

 private:
  bool takes(char letter) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\'' || text_[at_] == '"')) ++at_;
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\'' || text_[at_] == '"')) ++at_;
    return true;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    failed_ = failed_ || error != std::errc() || value < 0 || value > 4096;
    at_ = static_cast<std::size_t>(end - text_.data());
    return failed_ ? 0 : value;
  }
  std::vector<bool> sum() {
    std::vector<bool> all = product();
    while (!failed_ && takes('+')) {
      const std::vector<bool> more = product();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
  std::vector<bool> product() {
    std::vector<bool> once = list();
    if (failed_ || !takes('*')) return once;
    const std::int64_t times = number();
    std::vector<bool> all;
    if (times * static_cast<std::int64_t>(once.size()) > 4096) failed_ = true;
    for (std::int64_t i = 0; i < times && !failed_; ++i) all.insert(all.end(), once.begin(), once.end());
    return all;
  }
  std::vector<bool> list() {
    std::vector<bool> all;
    if (++depth_ > 16) failed_ = true;
    if (!failed_ && takes('(')) {
      all = sum();
      failed_ = failed_ || !takes(')');
    } else if (!failed_ && takes('[')) {
      while (!failed_ && !takes(']')) {
        all.push_back(number() != 0);
        takes(',');
      }
    } else {
      failed_ = true;
    }
    --depth_;
    return all;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

void read_experts(ModelSpec& spec, LaunchLedger& ledger) {
  Experts& experts = spec.experts;
  experts.count = ledger.number_or(facts::experts, 0);
  if (experts.count == 0) return;
  experts.active = ledger.number_or(facts::active_experts, 2);
  experts.width = ledger.number_or(facts::expert_width, spec.feed_forward);
  experts.shared_width = ledger.number_or(facts::shared_width, 0);
  experts.shared_gate = ledger.is_on(facts::shared_gate);
  experts.selection_bias = ledger.is_on(facts::selection_bias);
  const auto frequency = ledger.text(facts::expert_layers);
  if (!frequency) return;
  if (const auto every = whole_number(*frequency)) {
    experts.every = *every;
    return;
  }
  const std::vector<bool> layers = expert_layers(*frequency, spec.layers);
  const auto first = std::find(layers.begin(), layers.end(), true);
  experts.first_dense_layers = first - layers.begin();
  if (layers.empty() || std::find(first, layers.end(), false) != layers.end()) {
    experts.first_dense_layers = 0;
    ledger.leave_out(facts::expert_layers, IgnoreReason::not_said,
                     "dense layers come first, or experts are in every so many layers");
  }
}

Block hybrid_block(char letter, const LaunchLedger& ledger) {
  switch (letter) {
    case 'M':
      return {.mixer = Mixer::mamba, .feed_forward = FeedForward::none};
    case '*':
      return {.mixer = Mixer::attention, .feed_forward = FeedForward::none};
    case '-':
      return {.mixer = Mixer::none, .feed_forward = FeedForward::dense};
    case 'E':
      return {.mixer = Mixer::none, .feed_forward = FeedForward::experts};
    default:
      break;
  }
  const LaunchSetting& setting = ledger.setting_of(facts::hybrid_layers);
  throw InputError(setting.file, setting.place, fmt::format("no kind of layer is '{}'", letter),
                   "use M, *, - and E, a letter for each layer; or give --model");
}

// Layers of one part each (megatron/core/ssm/mamba_hybrid_layer_allocation.py), with the sizes that its Mamba-2 has
// where none are given.
void read_hybrid(ModelSpec& spec, const LaunchLedger& ledger) {
  const auto pattern = ledger.text(facts::hybrid_layers);
  if (!pattern) return;
  for (const char letter : *pattern) spec.blocks.push_back(hybrid_block(letter, ledger));
  const std::int64_t width = ledger.number_or(facts::state_head_dim, 64);
  spec.mamba = {.heads = ledger.number_or(facts::state_heads, 2 * spec.hidden / std::max<std::int64_t>(1, width)),
                .head_dim = width,
                .state = ledger.number_or(facts::state_width, 128),
                .groups = ledger.number_or(facts::state_groups, 8),
                .chunk = 128};
  if (static_cast<std::int64_t>(pattern->size()) == spec.layers) return;
  const LaunchSetting& setting = ledger.setting_of(facts::hybrid_layers);
  throw InputError(setting.file, setting.place, fmt::format("{} letters for {} layers", pattern->size(), spec.layers),
                   "give a letter for each");
}

void read_latent(ModelSpec& spec, const LaunchLedger& ledger) {
  if (!ledger.is_on(facts::latent)) return;
  spec.latent = {.query_rank = ledger.number_or(facts::query_rank, 0),
                 .kv_rank = ledger.number_or(facts::kv_rank, 32),
                 .rope_dim = ledger.number_or(facts::rope_dim, 64),
                 .nope_dim = ledger.number_or(facts::nope_dim, 128),
                 .value_dim = ledger.number_or(facts::value_dim, 128)};
  spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
  spec.kv_heads = spec.heads;
}

Activation activation_of(const LaunchLedger& ledger) {
  const std::string word = ledger.text(facts::activation).value_or("gelu");
  if (word == "silu_gated") return Activation::silu_gated;
  if (word == "gelu_gated") return Activation::gelu_gated;
  if (ledger.is_on(facts::gated)) return Activation::gelu_gated;
  if (word == "relu_squared") return Activation::relu_squared;
  return word == "relu" ? Activation::relu : Activation::gelu;
}

void read_biases(ModelSpec& spec, const LaunchLedger& ledger) {
  const bool all = !ledger.is_on(facts::no_bias);
  spec.output_bias = spec.feed_forward_bias = all;
  spec.qkv_bias = all || ledger.is_on(facts::qkv_bias);
  spec.norm_bias = true;  // of LayerNorms
}

double probability(LaunchLedger& ledger, std::string_view fact) {
  const std::string text = ledger.text(fact).value_or("0.1");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value < 1) return value;
  const LaunchSetting& setting = ledger.setting_of(fact);
  throw InputError(setting.file, setting.place, fmt::format("{} is no probability", text), "give a number in [0, 1)");
}

std::int64_t key_value_heads(const ModelSpec& spec, LaunchLedger& ledger) {
  // On the command line the number counts with --group-query-attention only, in a document it stands alone.
  const bool counts = ledger.is_on(facts::grouped) ||
                      (ledger.says(facts::kv_heads) && !ledger.setting_of(facts::kv_heads).shown.starts_with("--"));
  if (!counts) ledger.leave_out(facts::kv_heads, IgnoreReason::no_effect, "of --group-query-attention");
  return counts ? ledger.number_or(facts::kv_heads, 1) : spec.heads;
}

}  // namespace

bool MegatronVocabulary::is_of(std::int64_t rows) const {
  return !is_said() || rows == given || rows == padded || rounded_up(rows, multiple) == padded;
}

MegatronVocabulary megatron_vocabulary(const LaunchLedger& ledger, std::int64_t tensor_parallel) {
  MegatronVocabulary made;
  made.multiple = times(ledger.number_or(facts::vocabulary_multiple, 128), tensor_parallel);
  made.given = ledger.number_or(facts::vocabulary, 0);
  const std::string tokenizer = ledger.text(facts::tokenizer).value_or("");
  if (made.given == 0 && tokenizer.find("GPT2BPE") != std::string::npos) made.given = 50257;
  if (made.given == 0 && tokenizer.find("Llama2") != std::string::npos) made.given = 32000;
  made.padded = ledger.number_or(facts::padded_vocabulary, made.given == 0 ? 0 : rounded_up(made.given, made.multiple));
  return made;
}

std::vector<bool> expert_layers(std::string_view text, std::int64_t layers) {
  std::vector<bool> all = ListReader(text).take();
  if (static_cast<std::int64_t>(all.size()) != layers) all.clear();
  return all;
}

ModelSpec megatron_spec(LaunchLedger& ledger, const MegatronVocabulary& vocabulary) {
  constexpr std::int64_t usual_vocabulary = 50304;  // GPT-2's, padded
  ModelSpec spec;
  spec.layers = needed(ledger, facts::layers, "--num-layers");
  spec.hidden = needed(ledger, facts::hidden, "--hidden-size");
  spec.heads = needed(ledger, facts::heads, "--num-attention-heads");
  if (spec.heads < 1) {
    const LaunchSetting& setting = ledger.setting_of(facts::heads);
    throw InputError(setting.file, setting.place, "a model without attention heads", "give 1 or more, or --model");
  }
  spec.kv_heads = key_value_heads(spec, ledger);
  spec.head_dim = ledger.number_or(facts::head_dim, std::max<std::int64_t>(spec.hidden / spec.heads, 1));
  spec.activation = activation_of(ledger);
  const std::int64_t usual = spec.gated() ? (4 * spec.hidden * 2 / 3) / 64 * 64 : 4 * spec.hidden;
  spec.feed_forward = ledger.number_or(facts::feed_forward, usual);
  spec.vocabulary = vocabulary.is_said() ? vocabulary.padded : usual_vocabulary;
  spec.max_positions = ledger.number_or(facts::max_positions, ledger.number_or("model.sequence", 1024));
  const std::string positions = ledger.text(facts::positions).value_or("learned");
  spec.positions = positions == "rotary"  ? Positions::rotary
                   : positions == "alibi" ? Positions::alibi
                   : positions == "none"  ? Positions::none
                                          : Positions::learned;
  if (ledger.is_on(facts::parallel_blocks)) spec.block_layout = BlockLayout::parallel;
  spec.fused_qkv = !ledger.is_on(facts::latent) && spec.kv_heads == spec.heads && spec.positions == Positions::learned;
  spec.norm = ledger.text(facts::norm) == "rms_norm" ? NormKind::rms_norm : NormKind::layer_norm;
  spec.tied_embeddings = !ledger.is_on(facts::untied);
  // Latent attention has norms of its compressed queries and keys anyway.
  spec.query_key_norm = ledger.is_on(facts::query_key_norm) && !ledger.is_on(facts::latent);

  if (const auto window = ledger.text(facts::window)) {
    const std::size_t digits = window->find_first_of("0123456789");
    if (digits != std::string::npos)
      spec.attention_window = whole_number(std::string_view(*window).substr(
                                               digits, window->find_first_not_of("0123456789", digits) - digits))
                                  .value_or(0);
  }
  read_biases(spec, ledger);
  read_experts(spec, ledger);
  read_latent(spec, ledger);
  read_hybrid(spec, ledger);
  spec.dropout = probability(ledger, facts::hidden_dropout);
  spec.attention_dropout = probability(ledger, facts::attention_dropout);
  spec.title = fmt::format("{} layers of width {}", spec.layers, spec.hidden);
  spec.source = "sizes in " + ledger.setting_of(facts::layers).file;
  return spec;
}

namespace {

std::string flag_text(bool flag) { return flag ? "true" : "false"; }

void say_kinds(const ModelSpec& spec, ShapeFacts& said) {
  auto& all = said.facts;
  const auto lacks = [&](bool has, std::string_view what) {
    if (has) said.unsaid.emplace_back(what);
  };
  all[std::string(facts::positions)] = spec.positions == Positions::learned ? "learned" : "rotary";
  lacks(!spec.blocks.empty(), "what each of its layers is made of");
  lacks(spec.positions == Positions::none, "its lack of positions");
  lacks(spec.activation == Activation::relu_squared || spec.activation == Activation::xielu, "its activation");
  lacks(spec.head_gate, "its gates of heads");
  lacks(spec.experts.latent_width > 0, "its experts' latent width");
  all[std::string(facts::norm)] = spec.norm == NormKind::layer_norm ? "layer_norm" : "rms_norm";
  if (spec.activation == Activation::silu_gated) all[std::string(facts::activation)] = "silu_gated";
  if (spec.activation == Activation::gelu_gated) all[std::string(facts::activation)] = "gelu_gated";
  all[std::string(facts::untied)] = flag_text(!spec.tied_embeddings);
  const bool no_bias = !spec.output_bias && !spec.feed_forward_bias;
  all[std::string(facts::no_bias)] = flag_text(no_bias);
  all[std::string(facts::qkv_bias)] = flag_text(no_bias && spec.qkv_bias);
  all[std::string(facts::query_key_norm)] = flag_text(spec.query_key_norm);
  lacks(spec.output_bias != spec.feed_forward_bias || (!no_bias && !spec.qkv_bias) || spec.head_bias, "its biases");
  lacks(!spec.norm_bias && spec.norm == NormKind::layer_norm, "its norms without biases");
  lacks(spec.positions == Positions::alibi || spec.positions == Positions::relative_bias, "its positions");
  lacks(spec.activation == Activation::relu, "its activation");
  lacks(spec.norm_placement != NormPlacement::pre || spec.wide_query_key_norm, "where its norms stand");
  lacks(spec.block_layout != BlockLayout::sequential, "its parallel blocks");
  lacks(spec.mask != AttentionMask::causal, "its attention to both sides");
  lacks(spec.has_encoder(), "its encoder");
  lacks(spec.reads_images(), "its patches");
  lacks(spec.attention_window > 0 || spec.global_every > 0, "its attention windows");
  lacks(spec.attention_sinks, "its attention sinks");
  lacks(spec.has_indexer(), "its indexer");
  lacks(spec.streams > 1 || spec.residual_group > 0, "its residual streams");
  lacks(!spec.norm_weights || spec.embedding_norm, "its norms without weights, or of the embedding");
  lacks(spec.has_linear() || spec.attention_gate, "its linear attention and gates");
  lacks(spec.experts.bias, "its experts' biases");
  lacks(spec.attention_softcap > 0 || spec.logit_softcap > 0, "its soft caps");
  lacks(spec.position_offset > 0 || spec.token_types > 0 || spec.pretraining_heads || spec.masked_lm_head,
        "its other embeddings and heads");
}

void say_experts(const ModelSpec& spec, ShapeFacts& said) {
  const Experts& experts = spec.experts;
  if (experts.count == 0) return;
  auto& all = said.facts;
  all[std::string(facts::experts)] = std::to_string(experts.count);
  all[std::string(facts::active_experts)] = std::to_string(experts.active);
  all[std::string(facts::expert_width)] = std::to_string(experts.width);
  if (experts.shared_width > 0) all[std::string(facts::shared_width)] = std::to_string(experts.shared_width);
  all[std::string(facts::shared_gate)] = flag_text(experts.shared_gate);
  all[std::string(facts::selection_bias)] = flag_text(experts.selection_bias);
  if (experts.first_dense_layers > 0)
    all[std::string(facts::expert_layers)] =
        fmt::format("([0]*{}+[1]*{})", experts.first_dense_layers, spec.layers - experts.first_dense_layers);
  else if (experts.every > 1)
    all[std::string(facts::expert_layers)] = std::to_string(experts.every);
  if (experts.first_dense_layers > 0 && experts.every > 1) said.unsaid.emplace_back("which layers have experts");
}

}  // namespace

ShapeFacts shape_facts(const ModelSpec& spec) {
  ShapeFacts said;
  auto& all = said.facts;
  const auto number = [&](std::string_view fact, std::int64_t value) {
    all[std::string(fact)] = std::to_string(value);
  };
  number(facts::layers, spec.layers);
  number(facts::hidden, spec.hidden);
  number(facts::feed_forward, spec.feed_forward);
  number(facts::heads, spec.heads);
  if (!spec.has_latent()) number(facts::head_dim, spec.head_dim);
  if (spec.kv_heads != spec.heads && !spec.has_latent()) {
    all[std::string(facts::grouped)] = "true";
    number(facts::kv_heads, spec.kv_heads);
  }
  number(facts::vocabulary, spec.vocabulary);
  number(facts::vocabulary_multiple, 1);
  number(facts::max_positions, spec.max_positions);
  say_kinds(spec, said);
  say_experts(spec, said);
  if (spec.has_latent()) {
    all[std::string(facts::latent)] = "true";
    if (spec.latent.query_rank > 0) number(facts::query_rank, spec.latent.query_rank);
    number(facts::kv_rank, spec.latent.kv_rank);
    number(facts::nope_dim, spec.latent.nope_dim);
    number(facts::rope_dim, spec.latent.rope_dim);
    number(facts::value_dim, spec.latent.value_dim);
  }
  return said;
}

}  // namespace spillway::launch
