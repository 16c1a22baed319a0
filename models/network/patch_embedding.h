// The class token of ViT (Dosovitskiy et al. 2021, arXiv:2010.11929, equation 1).
#pragma once

#include <string>

#include "models/session/autograd.h"
#include "models/session/eager_session.h"

namespace spillway::models {

// rows [images n, h] with `token` [h] before each image's: [images (n + 1), h]. Keeps nothing.
Tensor prepend_token(const std::string& name, const Tensor& rows, TrainedParameter& token, std::int64_t images,
                     EagerSession& session, Autograd& autograd);

}  // namespace spillway::models
