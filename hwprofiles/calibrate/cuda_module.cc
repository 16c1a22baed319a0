#include "hwprofiles/calibrate/cuda_module.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/loaded_module.h"
#include "hwprofiles/calibrate/cuda_libraries.h"

namespace spillway::hwprofiles {
namespace {

#ifdef SPILLWAY_HAS_CUDA_MODULE
constexpr bool is_built = true;
#else
constexpr bool is_built = false;
#endif

// What the module needs by name, where the dynamic loader may not look by itself.
void load_what_the_module_needs() {
#ifdef SPILLWAY_HAS_CUDA_MODULE
  for (const char* library : {SPILLWAY_CUBLASLT, SPILLWAY_CUPTI}) load_cuda_library(library);
#endif
}

}  // namespace

bool has_cuda_module() { return is_built || std::getenv("SPILLWAY_CUDA_MODULE") != nullptr; }

void* cuda_module_function(const char* name) {
  const char* named = std::getenv("SPILLWAY_CUDA_MODULE");
  std::vector<std::string> places;
  if (named != nullptr) places.emplace_back(named);
  if (is_built)
    for (std::string& place : module_places("libspillway_cuda.so", "validation")) places.push_back(std::move(place));
  if (places.empty())
    throw InputError("CUDA", "", "this spillway was built without it",
                     "install the CUDA toolkit, then `meson setup --reconfigure` and build again");
  std::string why;
  if (void* function = function_in_module(places, name, why); function != nullptr) return function;
  load_what_the_module_needs();
  why.clear();
  if (void* function = function_in_module(places, name, why); function != nullptr) return function;
  throw InputError(
      "CUDA", "", "its module can't be loaded: " + why,
      "install cuBLAS and CUPTI of CUDA 13 (the toolkit, or pip's nvidia-cublas and nvidia-cuda-cupti), or name "
      "their folders in SPILLWAY_CUDA_LIBRARIES");
}

}  // namespace spillway::hwprofiles
