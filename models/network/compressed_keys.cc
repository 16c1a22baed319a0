#include "models/network/compressed_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models {

Tensor compressed_keys(const BlockContext& context, const std::string& name, const Tensor& x, const Block& block,
                       std::int64_t width) {
  EagerSession& session = context.session;
  const auto linear = [&context, &name, &x](const char* part) {
    return eager::linear(context.rec, {name + part, &context.weight(name + part)}, x);
  };
  const Tensor values = linear("_kv"), weights = linear("_gate");
  TrainedParameter& places = context.weight(name + "_positions");
  const std::int64_t tokens = values.elements() / (width * (block.chooses ? 2 : 1));
  Tensor sums = session.empty(name + ".sums", values.type(),
                              std::max<std::int64_t>(1, tokens / block.compression) * width, TensorRole::activation);
  session.kernel({.name = "compress_keys", .reads = {values, weights, places.value}, .writes = {sums}});
  sums = context.autograd.record(
      std::move(sums), {values, weights}, places.trains,
      [context, &session, name, values, weights, &places](const Tensor& gradient) {
        const auto of = [&session, &name](const char* part, const Tensor& like) {
          return session.empty(name + part, like.type(), like.elements(), TensorRole::temporary);
        };
        Tensor values_back = of("_kv.out.grad", values), weights_back = of("_gate.out.grad", weights);
        std::vector<Tensor> made = {values_back, weights_back};
        Tensor places_back;
        if (places.trains)
          made.push_back(places_back = session.empty(places.shape.name + ".grad", values.type(),
                                                     places.shape.elements(), TensorRole::gradient));
        session.kernel({.name = "compress_keys_backward",
                        .reads = {gradient, values, weights, places.value},
                        .writes = std::move(made)});
        if (places_back) context.give(places, std::move(places_back));
        return std::vector<Tensor>{std::move(values_back), std::move(weights_back)};
      });
  return eager::norm(context.rec, name + "_norm", sums, context.weight(name + "_norm"), nullptr);
}

}  // namespace spillway::models
