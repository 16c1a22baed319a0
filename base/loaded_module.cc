#include "base/loaded_module.h"

#include <dlfcn.h>

#include "base/data_folder.h"
#include "base/input_error.h"

namespace spillway {

void* function_in_module(const std::vector<std::string>& places, const char* name, std::string& why) {
  for (const std::string& place : places) {
    void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      if (const char* error = dlerror(); error != nullptr && why.empty()) why = error;
      continue;
    }
    if (void* function = dlsym(module, name); function != nullptr) return function;
    if (why.empty()) why = place + " is no module of this spillway";
  }
  return nullptr;
}

void* module_function(std::string_view file, std::string_view in_build, const char* name, const std::string& remedy) {
  std::string why;
  if (void* function = function_in_module(module_places(file, in_build), name, why); function != nullptr)
    return function;
  throw InputError(std::string(file), "", "it can't be loaded: " + why, remedy);
}

}  // namespace spillway
