#include "hwprofiles/calibrate/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

#ifdef SPILLWAY_CUDA_MODULE_BUILT
constexpr const char* built = SPILLWAY_CUDA_MODULE_BUILT;
constexpr const char* installed = SPILLWAY_CUDA_MODULE_INSTALLED;
#else
constexpr const char* built = "";
constexpr const char* installed = "";
#endif

}  // namespace

bool has_cuda_module() { return *built != '\0'; }

void* cuda_module_function(const char* name) {
  const char* named = std::getenv("SPILLWAY_CUDA_MODULE");
  std::vector<std::string> places;
  if (named != nullptr) places.emplace_back(named);
  for (const char* place : {built, installed})
    if (*place != '\0') places.emplace_back(place);
  if (places.empty())
    throw InputError("CUDA", "", "this spillway was built without it",
                     "install the CUDA toolkit, then `meson setup --reconfigure` and build again");
  std::string why;
  for (const std::string& place : places) {
    // Stays loaded: what it makes has its code in it.
    void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      if (const char* error = dlerror(); error != nullptr) why = error;
      continue;
    }
    if (void* function = dlsym(module, name); function != nullptr) return function;
    why = place + " is no module of this spillway";
  }
  throw InputError("CUDA", "", "its module can't be loaded: " + why,
                   "install cuBLAS of the CUDA toolkit, or name the module in SPILLWAY_CUDA_MODULE");
}

}  // namespace spillway::hwprofiles
