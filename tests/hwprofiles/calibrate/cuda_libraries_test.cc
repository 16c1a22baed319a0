#include "hwprofiles/calibrate/cuda_libraries.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr const char* library_name = "libspillway-stand-in.so.13";

class CudaLibraries : public testing::Test {
 protected:
  CudaLibraries() {
    std::string pattern = (fs::temp_directory_path() / "cuda-libraries-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (const char* variable : {"SPILLWAY_CUDA_LIBRARIES", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"})
      unsetenv(variable);
  }
  ~CudaLibraries() override { fs::remove_all(folder_); }

  std::string put(const std::string& below) const {
    const fs::path file = folder_ / below / library_name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "no library";
    return file;
  }

  fs::path folder_;
};

TEST_F(CudaLibraries, TheToolkitAndPipPackagesAreLookedIn) {
  const std::string listed = put("listed"), toolkit = put("cuda/extras/CUPTI/lib64"),
                    arm = put("cuda/targets/sbsa-linux/lib"),
                    pip = put("venv/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    conda = put("conda/lib/python3.11/site-packages/nvidia/cuda_cupti/lib");
  EXPECT_THAT(cuda_library_files(library_name), ElementsAre());
  setenv("SPILLWAY_CUDA_LIBRARIES", (":" + (folder_ / "none").string() + ":" + (folder_ / "listed").string()).c_str(),
         1);
  EXPECT_THAT(cuda_library_files(library_name), ElementsAre(listed));
  setenv("CONDA_PREFIX", (folder_ / "conda").c_str(), 1);
  setenv("VIRTUAL_ENV", (folder_ / "venv").c_str(), 1);
  setenv("CUDA_HOME", (folder_ / "cuda").c_str(), 1);
  EXPECT_THAT(cuda_library_files(library_name), ElementsAre(listed, toolkit, arm, pip, conda));
}

TEST_F(CudaLibraries, WhatIsNoLibraryIsNotLoaded) {
  put("listed");
  setenv("SPILLWAY_CUDA_LIBRARIES", (folder_ / "listed").c_str(), 1);
  EXPECT_FALSE(load_cuda_library(library_name));
  EXPECT_TRUE(load_cuda_library("libc.so.6"));
}

}  // namespace
}  // namespace spillway::hwprofiles
