// The GPU backend, in the GPU module: matrix products by cuBLASLt, everything else by the trainer's own kernels.
#pragma once

#include <memory>

#include "validation/trainer/backend.h"

namespace spillway::validation {

// Throws InputError as cuda_module_function(), and for no GPU, a driver that is too old, a GPU the module has no code
// for.
std::unique_ptr<Backend> load_cuda_backend();

}  // namespace spillway::validation
