#include "hwprofiles/calibrate/cudnn_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/splitmix64.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::int64_t element_bytes = 2;  // of bf16
constexpr std::int64_t most_tokens = 16384;

GpuPoint operation(ScaledOperator of) {
  GpuPoint point;
  point.kind = PointKind::operation;
  point.what = scaled_operator_name(of);
  return point;
}

void add_attention(std::vector<GpuPoint>& cases, bool quick) {
  const std::vector<std::int64_t> sequences =
      quick ? std::vector<std::int64_t>{512, 1024, 2048, 4096} : std::vector<std::int64_t>{512, 1024, 2048, 4096, 8192};
  for (const ScaledOperator of : {ScaledOperator::attention_forward, ScaledOperator::attention_backward})
    for (const std::int64_t batch : {1, 2, 4, 8})
      for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{12, 12}, {16, 16}, {32, 32}, {32, 8}})
        for (const std::int64_t sequence : sequences)
          for (const std::int64_t width : {64, 128})
            for (const bool causal : {true, false}) {
              if (batch * sequence > most_tokens || (quick && !causal && batch != 2)) continue;
              GpuPoint point = operation(of);
              point.batch = batch;
              point.heads = heads;
              point.kv_heads = kv_heads;
              point.sequence = sequence;
              point.head_dim = width;
              point.causal = causal;
              cases.push_back(std::move(point));
            }
}

void add_norms(std::vector<GpuPoint>& cases, bool quick) {
  for (const std::int64_t tokens : {2048, 4096, 8192, 16384})
    for (const std::int64_t width : {768, 1024, 2048, 4096, 8192}) {
      if (quick && (tokens % 4096 != 0 || tokens == 8192 || width % 4096 != 0)) continue;
      for (const ScaledOperator of : {ScaledOperator::norm_forward, ScaledOperator::norm_backward}) {
        GpuPoint point = operation(of);
        point.m = tokens;
        point.n = width;
        // x read and y written; x and dy read and dx written.
        point.bytes = Bytes((of == ScaledOperator::norm_forward ? 2 : 3) * tokens * width * element_bytes);
        cases.push_back(std::move(point));
      }
    }
}

}  // namespace

std::vector<GpuPoint> cudnn_cases(bool quick) {
  std::vector<GpuPoint> cases;
  add_attention(cases, quick);
  add_norms(cases, quick);
  SplitMix64 random(1);
  for (std::size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random.next() % i]);
  return cases;
}

namespace cudnn {
namespace {

using Tensor = Graph::Tensor;

// Attention's tensors, b by h by s by d; keys and values also as they are read transposed, without a move.
struct Attention {
  Attention(const GpuPoint& point, Graph& to) : graph(to), causal(point.causal) {
    const std::int64_t b = point.batch, h = point.heads, s = point.sequence, d = point.head_dim;
    const std::int64_t kv = point.kv_heads > 0 ? point.kv_heads : h;
    heads = {b, h, s, d};
    kv_heads = {b, kv, s, d};
    scores = {b, h, s, s};
    rows = {b, h, s, 1};
    scale = 1 / std::sqrt(static_cast<float>(d));
  }

  Tensor like_queries(Element element = Element::bf16) const {
    return graph.operand(heads, element == Element::bf16 ? by_token(heads) : packed(heads), element);
  }
  Tensor like_keys() const { return graph.operand(kv_heads, by_token(kv_heads), Element::bf16); }
  Tensor transposed_keys() const {
    const Sides strides = by_token(kv_heads);
    return graph.operand({kv_heads[0], kv_heads[1], kv_heads[3], kv_heads[2]},
                         {strides[0], strides[1], strides[3], strides[2]}, Element::bf16);
  }
  Tensor row_numbers() const { return graph.operand(rows, packed(rows), Element::fp32); }

  // Scores that no query may see are the lowest there are.
  Tensor masked(Tensor score) const {
    if (!causal) return score;
    const Tensor row = graph.inner(scores, Element::int32), column = graph.inner(scores, Element::int32);
    graph.index(score, 2, row);
    graph.index(score, 3, column);
    const Tensor sees = graph.apply_inner(Pointwise::at_least, row, column, Element::boolean);
    const Tensor seen = graph.inner(scores);
    graph.apply(Pointwise::select, score, seen, graph.number(std::numeric_limits<float>::lowest()), sees);
    return seen;
  }
  Tensor transposed(Tensor x) const {
    const Tensor y =
        graph.inner({scores[0], scores[1], scores[3], scores[2]},
                    {scores[1] * scores[2] * scores[3], scores[2] * scores[3], 1, scores[3]}, Element::bf16);
    graph.reshape(x, y);
    return y;
  }
  // Of keys or values: where several heads of queries share one, the sum over them.
  void multiply_to_keys(Tensor a, Tensor b, Tensor result) const {
    if (heads == kv_heads) return graph.multiply(a, b, result);
    const Tensor all = graph.inner(heads, Element::bf16);
    graph.multiply(a, b, all);
    graph.reduce(Reduction::sum, all, result);
  }

  Graph& graph;
  Sides heads{}, kv_heads{}, scores{}, rows{};
  float scale = 1;
  bool causal = true;
};

void describe_forward(const Attention& of) {
  Graph& graph = of.graph;
  const Tensor q = of.like_queries(), k = of.transposed_keys(), v = of.like_keys();
  const Tensor out = of.like_queries(), statistics = of.row_numbers();
  const Tensor product = graph.inner(of.scores);
  graph.multiply(q, k, product);
  const Tensor score = of.masked(graph.apply_inner(Pointwise::multiply, product, graph.number(of.scale)));
  const Tensor highest = graph.inner(of.rows), sum = graph.inner(of.rows);
  graph.reduce(Reduction::maximum, score, highest);
  const Tensor below = graph.apply_inner(Pointwise::subtract, score, highest);
  const Tensor weight = graph.apply_inner(Pointwise::exponential, below);
  graph.reduce(Reduction::sum, weight, sum);
  const Tensor logarithm = graph.apply_inner(Pointwise::logarithm, sum);
  graph.apply(Pointwise::add, highest, statistics, logarithm);
  const Tensor share = graph.apply_inner(Pointwise::divide, weight, sum, Element::bf16);
  graph.multiply(share, v, out);
}

void describe_backward(const Attention& of) {
  Graph& graph = of.graph;
  const Tensor q = of.like_queries(), k = of.transposed_keys(), v = of.transposed_keys();
  const Tensor out = of.like_queries(), dout = of.like_queries(), statistics = of.row_numbers();
  const Tensor dq = of.like_queries(), dk = of.like_keys(), dv = of.like_keys();
  // Scratch in memory: the rows' sums of out times its gradient, and the gradient of queries before it is rounded.
  const Tensor row_sums = of.row_numbers(), dq_sum = of.like_queries(Element::fp32);

  const Tensor both = graph.inner(of.heads, by_token(of.heads), Element::fp32), sums = graph.inner(of.rows);
  graph.apply(Pointwise::multiply, dout, both, out);
  graph.reduce(Reduction::sum, both, sums);
  graph.apply(Pointwise::multiply, sums, row_sums, graph.number(1));

  const Tensor scale = graph.number(of.scale);
  const Tensor product = graph.inner(of.scores);
  graph.multiply(q, k, product);
  const Tensor score = graph.apply_inner(Pointwise::multiply, product, scale);
  const Tensor below = of.masked(graph.apply_inner(Pointwise::subtract, score, statistics));
  const Tensor share = graph.apply_inner(Pointwise::exponential, below);
  of.multiply_to_keys(of.transposed(share), dout, dv);

  const Tensor dshare = graph.inner(of.scores);
  graph.multiply(dout, v, dshare);
  const Tensor centred = graph.apply_inner(Pointwise::subtract, dshare, row_sums);
  const Tensor weighted = graph.apply_inner(Pointwise::multiply, centred, share);
  const Tensor dscore = graph.apply_inner(Pointwise::multiply, weighted, scale);
  of.multiply_to_keys(of.transposed(dscore), q, dk);

  const Tensor keys = graph.inner(of.kv_heads, by_token(of.kv_heads), Element::bf16);
  graph.reshape(k, keys);
  graph.multiply(dscore, keys, dq_sum);
  graph.apply(Pointwise::is_identity, dq_sum, dq);
}

void describe_norm(const GpuPoint& point, Graph& graph) {
  const std::int64_t m = point.m, n = point.n;
  const auto operand = [&](std::int64_t rows, std::int64_t columns, Element element) {
    return graph.operand({rows, columns, 1, 1}, {columns, 1, columns, columns}, element);
  };
  const Tensor x = operand(m, n, Element::bf16), scale = operand(1, n, Element::fp32);
  const Tensor mean = operand(m, 1, Element::fp32), inverse_deviation = operand(m, 1, Element::fp32);
  if (point.what == scaled_operator_name(ScaledOperator::norm_forward)) {
    graph.norm(Kind::norm_forward, {{Attribute::norm_forward_x, x},
                                    {Attribute::norm_forward_mean, mean},
                                    {Attribute::norm_forward_inverse_deviation, inverse_deviation},
                                    {Attribute::norm_forward_scale, scale},
                                    {Attribute::norm_forward_bias, operand(1, n, Element::fp32)},
                                    {Attribute::norm_forward_epsilon, graph.number(1e-5F)},
                                    {Attribute::norm_forward_y, operand(m, n, Element::bf16)}});
    return;
  }
  graph.norm(Kind::norm_backward, {{Attribute::norm_backward_x, x},
                                   {Attribute::norm_backward_mean, mean},
                                   {Attribute::norm_backward_inverse_deviation, inverse_deviation},
                                   {Attribute::norm_backward_dy, operand(m, n, Element::bf16)},
                                   {Attribute::norm_backward_scale, scale},
                                   {Attribute::norm_backward_dscale, operand(1, n, Element::fp32)},
                                   {Attribute::norm_backward_dbias, operand(1, n, Element::fp32)},
                                   {Attribute::norm_backward_dx, operand(m, n, Element::bf16)}});
}

}  // namespace

void describe(const GpuPoint& point, Graph& graph) {
  if (point.what == scaled_operator_name(ScaledOperator::attention_forward))
    describe_forward(Attention(point, graph));
  else if (point.what == scaled_operator_name(ScaledOperator::attention_backward))
    describe_backward(Attention(point, graph));
  else
    describe_norm(point, graph);
}

}  // namespace cudnn
}  // namespace spillway::hwprofiles
