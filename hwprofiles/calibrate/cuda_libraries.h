// Places of CUDA's libraries on a machine: the toolkit's folders, and those of pip packages beside PyTorch.
#pragma once

#include <string>
#include <vector>

namespace spillway::hwprofiles {

// Files that are there and may be the library of this name ("libcupti.so.13"), best first. Folders are those that
// SPILLWAY_CUDA_LIBRARIES lists (colons between), those of CUDA_HOME, CUDA_PATH and /usr/local/cuda, and NVIDIA's pip
// packages in VIRTUAL_ENV, CONDA_PREFIX and Python's usual places. The dynamic loader's own finds (LD_LIBRARY_PATH, its
// cache) are not among them.
std::vector<std::string> cuda_library_files(const std::string& name);

// Loads it for good, so that a library that needs it by name finds it; the dynamic loader's own choice first. False: it
// is nowhere.
bool load_cuda_library(const std::string& name);

}  // namespace spillway::hwprofiles
