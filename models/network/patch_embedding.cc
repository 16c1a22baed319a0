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

Tensor regrouped(const std::string& name, std::string_view kernel, const Tensor& x, std::int64_t elements,
                 EagerSession& session, Autograd& autograd) {
  Tensor out = session.empty(name + ".out", x.type(), elements, TensorRole::activation);
  session.kernel({.name = kernel, .reads = {x}, .writes = {out}});
  const std::int64_t inner = x.elements();
  return autograd.record(std::move(out), {x}, false, [&session, name, inner](const Tensor& gradient) {
    Tensor back = session.empty(name + ".in.grad", gradient.type(), inner, TensorRole::temporary);
    session.kernel({.name = "regroup_backward", .reads = {gradient}, .writes = {back}});
    return std::vector<Tensor>{std::move(back)};
  });
}

// `hides`: what x had there gets no gradient.
static Tensor with_rows(const std::string& name, std::string_view kernel, const Tensor& x, const Tensor& rows,
                        bool hides, EagerSession& session, Autograd& autograd) {
  Tensor out = session.empty(name + ".out", x.type(), x.elements(), TensorRole::activation);
  session.kernel({.name = kernel, .reads = {x, rows}, .writes = {out}});
  const bool wants_x = x.node() != 0, wants_rows = rows.node() != 0;
  const std::int64_t taken = rows.elements();
  return autograd.record(
      std::move(out), {x, rows}, false, [&session, name, hides, wants_x, wants_rows, taken](const Tensor& gradient) {
        Tensor of_rows, of_x = gradient;
        if (wants_rows) {
          of_rows = session.empty(name + ".rows.grad", gradient.type(), taken, TensorRole::temporary);
          session.kernel({.name = "gather_rows",
                          .reads = {gradient},
                          .writes = {of_rows},
                          .bytes = of_rows.bytes() + of_rows.bytes()});
        }
        if (wants_x && hides) {
          of_x = session.empty(name + ".in.grad", gradient.type(), gradient.elements(), TensorRole::temporary);
          session.kernel({.name = "masked_fill", .reads = {gradient}, .writes = {of_x}});
        }
        return std::vector<Tensor>{wants_x ? std::move(of_x) : Tensor(), std::move(of_rows)};
      });
}

Tensor put_rows(const std::string& name, const Tensor& x, const Tensor& rows, EagerSession& session,
                Autograd& autograd) {
  return with_rows(name, "masked_scatter", x, rows, true, session, autograd);
}

Tensor add_rows(const std::string& name, const Tensor& x, const Tensor& rows, EagerSession& session,
                Autograd& autograd) {
  return with_rows(name, "add_rows", x, rows, false, session, autograd);
}

}  // namespace spillway::models
