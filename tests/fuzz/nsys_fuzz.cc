// Nsight Systems exports: SQLite wants a file, so the bytes go through one in memory.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/nsys_reader.h"

SPILLWAY_FUZZ_TARGET(nsys) {
  const std::string folder =
      std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  const std::string path = folder + "/spillway_nsys_fuzz_" + std::to_string(::getpid());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return 0;
  const bool written = std::fwrite(data, 1, size, file) == size;
  std::fclose(file);
  try {
    if (written) spillway::traces::import_trace(spillway::traces::read_nsys(path, {}), true);
  } catch (const spillway::InputError&) {
  }
  std::filesystem::remove(path);
  return 0;
}
