// Layers whose sub-layers read mixtures in place of one residual stream.
//
// Hyper-connections (Zhu et al., arXiv:2409.19606) as DeepSeek-V4 has them, m streams of width h, n = m (m + 2):
//
//   logits    the streams of a token times a matrix                             [t, n] in fp32
//   shares    of each stream in what is read (m), of the result in each (m), of streams in each other (m m), the
//             latter made doubly stochastic                                     [t, n] in fp32
//   read      the mixture                                                       [t, h]
//   written   streams mixed, and the result's share in each                     [t, m h]
//
// Kept with 2-byte activations in each sub-layer besides the branch's own: 2 t m h (streams), 8 t n, 2 t h (the
// mixture, which its norm reads) and 2 t h (the branch's result). Behind the last layer a mixture of n = m shares is
// read.
//
// Residuals from earlier groups of layers (Kimi K3): what is read is a mixture of the results of all groups before and
// of the sum within this one, by a softmax over a product of each, normed, with one vector. Kept in each sub-layer
// besides the branch's own: 2 t h (the mixture) and 8 t g of g sources (shares, statistics); a group's result stays.
//
// Deviations: each kernel reads and writes whole streams once, and their gradients are added up one by one; kernels
// that do more at once move less. Groups' results are not copied into one tensor.
#include <utility>

#include "models/network/eager_lora.h"
#include "models/network/eager_ops.h"
#include "models/network/transformer.h"

namespace spillway::models {

// The embedding is the first of each.
Tensor Transformer::spread_streams(const Tensor& x) {
  Tensor out = session_.empty("streams", x.type(), x.elements() * model_.streams, TensorRole::activation);
  session_.kernel({.name = "copy", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, elements = x.elements()](const Tensor& gradient) {
    Tensor sum = session_.empty("streams.in.grad", gradient.type(), elements, TensorRole::temporary);
    session_.kernel({.name = "sum_streams", .reads = {gradient}, .writes = {sum}});
    return std::vector<Tensor>{std::move(sum)};
  });
}

Transformer::Mixture Transformer::read_streams(const std::string& name, const Tensor& x, std::int64_t shares) {
  TrainedParameter &matrix = weight(name + ".mixture"), &base = weight(name + ".mixture.base"),
                   &scales = weight(name + ".mixture.scale");
  const std::int64_t width = model_.streams * model_.hidden, tokens = x.elements() / width;
  const Tensor logits =
      session_.empty(name + ".mixture.logits", DataType::fp32, tokens * shares, TensorRole::activation);
  eager::gemm(rec_, "stream_logits", {.m = tokens, .n = shares, .k = width}, {x, matrix.value}, logits);
  Tensor made = session_.empty(name + ".mixture.shares", DataType::fp32, tokens * shares, TensorRole::activation);
  session_.kernel({.name = "stream_shares", .reads = {logits, base.value, scales.value}, .writes = {made}});
  made = autograd_.record(
      std::move(made), {x}, matrix.trains,
      [this, name, x, logits, shares, width, tokens, &matrix, &base, &scales](const Tensor& gradient) {
        const Tensor back =
            session_.empty(name + ".mixture.logits.grad", DataType::fp32, logits.elements(), TensorRole::temporary);
        std::vector<Tensor> writes = {back};
        std::vector<std::pair<TrainedParameter*, Tensor>> sums;
        for (TrainedParameter* each : {&base, &scales}) {
          if (!each->trains) continue;
          sums.emplace_back(each, eager::gradient_of(rec_, *each));
          writes.push_back(sums.back().second);
        }
        session_.kernel({.name = "stream_shares_backward",
                         .reads = {gradient, logits, base.value, scales.value},
                         .writes = std::move(writes)});
        for (auto& [parameter, sum] : sums) eager::accumulate(rec_, *parameter, std::move(sum));
        Tensor x_back = session_.empty(name + ".mixture.in.grad", x.type(), x.elements(), TensorRole::temporary);
        eager::gemm(rec_, "stream_logits_backward", {.m = tokens, .n = width, .k = shares}, {back, matrix.value},
                    x_back);
        if (matrix.trains) {
          Tensor sum = eager::gradient_of(rec_, matrix);
          eager::gemm(rec_, "stream_logits_backward", {.m = shares, .n = width, .k = tokens}, {back, x}, sum);
          eager::accumulate(rec_, matrix, std::move(sum));
        }
        return std::vector<Tensor>{std::move(x_back)};
      });
  Tensor read = session_.empty(name + ".mixture.read", x.type(), tokens * model_.hidden, TensorRole::activation);
  session_.kernel({.name = "read_streams", .reads = {x, made}, .writes = {read}});
  read = autograd_.record(std::move(read), {x, made}, false, [this, name, x, made](const Tensor& gradient) {
    Tensor x_back = session_.empty(name + ".streams.grad", x.type(), x.elements(), TensorRole::temporary);
    Tensor back = session_.empty(name + ".shares.grad", made.type(), made.elements(), TensorRole::temporary);
    session_.kernel({.name = "read_streams_backward", .reads = {gradient, x, made}, .writes = {x_back, back}});
    return std::vector<Tensor>{std::move(x_back), std::move(back)};
  });
  return {.read = std::move(read), .shares = made};
}

Tensor Transformer::write_streams(const std::string& name, const Tensor& x, const Tensor& result,
                                  const Tensor& shares) {
  Tensor out = session_.empty(name + ".written", x.type(), x.elements(), TensorRole::activation);
  session_.kernel({.name = "write_streams", .reads = {x, result, shares}, .writes = {out}});
  return autograd_.record(
      std::move(out), {x, result, shares}, false, [this, name, x, result, shares](const Tensor& gradient) {
        std::vector<Tensor> gradients;
        for (const Tensor* each : {&x, &result, &shares})
          gradients.push_back(
              session_.empty(name + ".written.grad", each->type(), each->elements(), TensorRole::temporary));
        session_.kernel(
            {.name = "write_streams_backward", .reads = {gradient, x, result, shares}, .writes = gradients});
        return gradients;
      });
}

Tensor Transformer::read_groups(const std::string& name, const std::vector<Tensor>& groups, const Tensor& x) {
  std::vector<Tensor> sources = groups;
  if (x) sources.push_back(x);
  TrainedParameter &vector = weight(name + ".mixture"), &scale = weight(name + ".mixture_norm");
  const std::int64_t elements = sources.front().elements(),
                     rows = elements / model_.hidden * static_cast<std::int64_t>(sources.size());
  Tensor read = session_.empty(name + ".mixture.read", type_, elements, TensorRole::activation);
  const Tensor shares = session_.empty(name + ".mixture.shares", DataType::fp32, rows, TensorRole::activation),
               statistics = session_.empty(name + ".mixture.statistics", DataType::fp32, rows, TensorRole::activation);
  std::vector<Tensor> reads = sources;
  reads.insert(reads.end(), {vector.value, scale.value});
  session_.kernel({.name = "read_groups", .reads = std::move(reads), .writes = {read, shares, statistics}});
  return autograd_.record(
      std::move(read), sources, vector.trains,
      [this, name, sources, shares, statistics, &vector, &scale](const Tensor& gradient) {
        std::vector<Tensor> gradients;
        for (const Tensor& each : sources)
          gradients.push_back(
              session_.empty(name + ".mixture.in.grad", each.type(), each.elements(), TensorRole::temporary));
        std::vector<Tensor> reads = sources, writes = gradients;
        reads.insert(reads.end(), {gradient, shares, statistics, vector.value, scale.value});
        std::vector<std::pair<TrainedParameter*, Tensor>> sums;
        for (TrainedParameter* each : {&vector, &scale}) {
          if (!each->trains) continue;
          sums.emplace_back(each, eager::gradient_of(rec_, *each));
          writes.push_back(sums.back().second);
        }
        session_.kernel({.name = "read_groups_backward", .reads = std::move(reads), .writes = std::move(writes)});
        for (auto& [parameter, sum] : sums) eager::accumulate(rec_, *parameter, std::move(sum));
        return gradients;
      });
}

// Of groups, the first layer of each begins a sum of its own; the first of all reads the embedding alone.
Tensor Transformer::mixture_layer(std::int64_t index, const LayerInput& input) {
  const std::string prefix = model_.layer_prefix(index);
  const Block block = model_.block_of_all(index);
  std::vector<Tensor> groups = input.groups;
  Tensor x = input.x;
  const auto sub_layer = [&](const std::string& name, auto&& branch) {
    if (model_.streams > 1) {
      Mixture mixture = read_streams(name, x, (2 + model_.streams) * model_.streams);
      const Tensor result = branch(std::exchange(mixture.read, {}));
      x = write_streams(name, x, result, mixture.shares);
      return;
    }
    const bool begins = name.ends_with("attention") && index % model_.residual_group == 0;
    const Tensor read = read_groups(name, groups, x);
    if (begins) groups.push_back(std::exchange(x, {}));
    const Tensor result = branch(read);
    x = x ? eager::add(rec_, name + ".residual", x, result) : result;
  };
  if (block.mixer != Mixer::none)
    sub_layer(prefix + "attention",
              [&](const Tensor& read) { return mixed(index, norm(prefix + "attention.norm", read), {}); });
  if (block.feed_forward == FeedForward::none) return x;
  sub_layer(prefix + "mlp", [&](const Tensor& read) {
    return feed_forward_result(prefix, block, norm(prefix + "mlp.norm", read), {});
  });
  return x;
}

}  // namespace spillway::models
