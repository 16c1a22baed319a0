#include "validation/trainer/cuda_backend.h"

#include "hwprofiles/calibrate/cuda_module.h"

namespace spillway::validation {

std::unique_ptr<Backend> load_cuda_backend() {
  return std::unique_ptr<Backend>(
      reinterpret_cast<Backend* (*)()>(cuda_module_function("spillway_make_cuda_backend"))());
}

}  // namespace spillway::validation
