#include "hwprofiles/calibrate/cudnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "hwprofiles/calibrate/cuda_libraries.h"

namespace spillway::hwprofiles::cudnn {
namespace {

constexpr const char* soname = "libcudnn.so.9";
constexpr std::size_t major_version = 9;
constexpr const char* remedy =
    "install cuDNN 9 (the toolkit's, or pip's nvidia-cudnn-cu13), name its folder in SPILLWAY_CUDA_LIBRARIES or the "
    "library in SPILLWAY_CUDNN, or take PyTorch's points (validation/campaign/pytorch_kernels.py)";

void* open_library() {
  std::vector<std::string> files{soname};
  if (const char* named = std::getenv("SPILLWAY_CUDNN"))
    files = {named};
  else
    for (std::string& file : cuda_library_files(soname)) files.push_back(std::move(file));
  std::string why;
  for (const std::string& file : files) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    const char* error = dlerror();
    if (error != nullptr) why = error;
  }
  throw Refusal("cuDNN", "", "it can't be loaded: " + why, remedy);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Refusal("cuDNN", "", fmt::format("the library has no {}", name), remedy);
}

}  // namespace

Library Library::load() {
  void* library = open_library();
  Library found;
  find(library, "cudnnGetVersion", found.get_version);
  find(library, "cudnnGetErrorString", found.status_text);
  find(library, "cudnnGetLastErrorString", found.last_error);
  find(library, "cudnnCreate", found.create);
  find(library, "cudnnDestroy", found.destroy);
  find(library, "cudnnSetStream", found.set_stream);
  find(library, "cudnnBackendCreateDescriptor", found.create_descriptor);
  find(library, "cudnnBackendDestroyDescriptor", found.destroy_descriptor);
  find(library, "cudnnBackendSetAttribute", found.set_attribute);
  find(library, "cudnnBackendGetAttribute", found.get_attribute);
  find(library, "cudnnBackendFinalize", found.finalize);
  find(library, "cudnnBackendExecute", found.execute);
  if (found.get_version() / 10000 != major_version)
    throw Refusal("cuDNN", "", fmt::format("is of version {}", found.version()), remedy);
  return found;
}

std::string Library::version() const {
  const std::size_t number = get_version();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void Library::require(Status status, const char* what) const {
  if (status == 0) return;
  std::array<char, 512> text{};
  last_error(text.data(), text.size() - 1);
  // Of its words the first line: the others say where in its code.
  const std::string_view words = text.data();
  const std::string_view first = words.substr(0, words.find('\n'));
  throw Refusal("cuDNN", what, fmt::format("{}{}{}", status_text(status), first.empty() ? "" : ": ", first), remedy);
}

}  // namespace spillway::hwprofiles::cudnn
