// The class token of ViT (Dosovitskiy et al. 2021, arXiv:2010.11929, equation 1), and how patches' rows become tokens
// among a text's.
#pragma once

#include <string>
#include <string_view>

#include "models/session/autograd.h"
#include "models/session/eager_session.h"

namespace spillway::models {

// rows [images n, h] with `token` [h] before each image's: [images (n + 1), h]. Keeps nothing.
Tensor prepend_token(const std::string& name, const Tensor& rows, TrainedParameter& token, std::int64_t images,
                     EagerSession& session, Autograd& autograd);
// Some of x's elements, moved or averaged by one kernel. Keeps nothing.
Tensor regrouped(const std::string& name, std::string_view kernel, const Tensor& x, std::int64_t elements,
                 EagerSession& session, Autograd& autograd);
// x with `rows` in the places of images (masked_scatter), or added there. Keep nothing but the places.
Tensor put_rows(const std::string& name, const Tensor& x, const Tensor& rows, EagerSession& session,
                Autograd& autograd);
Tensor add_rows(const std::string& name, const Tensor& x, const Tensor& rows, EagerSession& session,
                Autograd& autograd);

}  // namespace spillway::models
