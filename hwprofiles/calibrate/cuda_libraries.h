// Where CUDA's libraries may lie on a machine: the toolkit's folders, and those of pip packages beside PyTorch.
#pragma once

#include <string>
#include <vector>

namespace spillway::hwprofiles {

// Files that are there and may be the library of this name ("libcupti.so.13"), best first: in the folders that
// SPILLWAY_CUDA_LIBRARIES lists (colons between), of CUDA_HOME, CUDA_PATH and /usr/local/cuda, and of NVIDIA's pip
// packages in Python's usual places, VIRTUAL_ENV and CONDA_PREFIX. What the dynamic loader finds by itself
// (LD_LIBRARY_PATH, its cache) is not among them.
std::vector<std::string> cuda_library_files(const std::string& name);

// Loads it for good, so that a library that needs it by name finds it; the dynamic loader's own choice first. False: it
// is nowhere.
bool load_cuda_library(const std::string& name);

}  // namespace spillway::hwprofiles
