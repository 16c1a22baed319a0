#include "models/network/patch_embedding.h"

#include <utility>

namespace spillway::models {

Tensor prepend_token(const std::string& name, const Tensor& rows, TrainedParameter& token, std::int64_t images,
                     EagerSession& session, Autograd& autograd) {
  const std::int64_t width = token.shape.elements(), inner = rows.elements();
  Tensor out = session.empty(name + ".out", rows.type(), inner + images * width, TensorRole::activation);
  session.kernel({.name = "concatenate", .reads = {rows, token.value}, .writes = {out}});
  return autograd.record(
      std::move(out), {rows}, token.trains, [&session, &autograd, &token, name, width, inner](const Tensor& gradient) {
        Tensor sum = session.empty(token.shape.name + ".grad", gradient.type(), width, TensorRole::gradient);
        const Bytes taken(gradient.bytes().count() - inner * size_of(gradient.type()));
        session.kernel({.name = "sum", .reads = {gradient}, .writes = {sum}, .bytes = taken + sum.bytes()});
        autograd.accumulate(token, std::move(sum));
        Tensor back = session.empty(name + ".in.grad", gradient.type(), inner, TensorRole::temporary);
        session.kernel({.name = "copy", .reads = {gradient}, .writes = {back}, .bytes = back.bytes() + back.bytes()});
        return std::vector<Tensor>{std::move(back)};
      });
}

}  // namespace spillway::models
