#include "base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/input_error.h"
#include "base/number_text.h"

namespace spillway {
namespace {

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

std::uint64_t default_limit() {
  constexpr std::uint64_t most = std::uint64_t{8} << 30;
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages <= 0 ? most : std::min(most, static_cast<std::uint64_t>(pages) * page_bytes() / 4 * 3);
}

// 0 where the system doesn't tell.
std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long all = 0, resident = 0;
  const int read = std::fscanf(file, "%llu %llu", &all, &resident);
  std::fclose(file);
  return read == 2 ? resident * page_bytes() : 0;
}

constexpr std::uint64_t check_interval = std::uint64_t{4} << 20;

}  // namespace

std::uint64_t& memory_limit() {
  static std::uint64_t bytes = default_limit();
  return bytes;
}

void check_memory_limit(const std::string& file, const std::string& place) {
  const std::uint64_t bytes = memory_limit();
  if (resident_bytes() > bytes)
    throw InputError(
        file, place,
        "what it holds takes more than " + bytes_text(Bytes(static_cast<std::int64_t>(bytes))) + " of memory",
        "allow more with --memory-limit, or record a shorter window");
}

FileMemory::FileMemory(const std::string& path, std::uint64_t of_a_byte) : file_(path), next_check_(check_interval) {
  constexpr std::uint64_t of_any_file = std::uint64_t{64} << 20;
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  most_ = of_any_file + of_a_byte * (error ? std::uint64_t{64} << 10 : std::min(size, std::uint64_t{1} << 48));
}

void FileMemory::check() {
  next_check_ = made_ + check_interval;
  if (made_ > most_)
    throw InputError(file_, "",
                     "what it holds takes more than " + bytes_text(Bytes(static_cast<std::int64_t>(most_))) +
                         " of memory, out of all proportion to its size",
                     "check where it comes from; if it is sound, decompress it and open the result");
  check_memory_limit(file_, "");
}

}  // namespace spillway
