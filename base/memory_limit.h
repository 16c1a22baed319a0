// How much memory the process may hold while it reads files: what is kept counts, not what a file unfolds to.
#pragma once

#include <cstdint>
#include <string>

namespace spillway {

// Resident bytes, of the whole process. Default: 8 GiB, or three quarters of the machine's memory where that is less.
// To be set before other threads read.
std::uint64_t& memory_limit();

// Throws InputError (file, place) when more is resident than the limit. Some microseconds.
void check_memory_limit(const std::string& file, const std::string& place);

// Counts what reading makes of one file: rows, items of lists, letters. A few bytes of a file that was made to harm can
// ask for any amount (shared lists, long runs, nested compression). So the file's size on the disk bounds the count
// too: 64 MiB and `of_a_byte` times the size, by far more than any recorded file needs.
class FileMemory {
 public:
  // Anything but a file on the disk counts as one of 64 KiB.
  explicit FileMemory(const std::string& path, std::uint64_t of_a_byte = 512);

  // Before the memory is taken. Throws InputError (file, no place) when that is more than the file may ask for, or more
  // than memory_limit() is resident; looks at the latter every few MiB.
  void add(std::uint64_t bytes) {
    made_ += bytes;
    if (made_ >= next_check_) check();
  }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  void check();

  std::string file_;
  std::uint64_t most_, made_ = 0, next_check_;
};

}  // namespace spillway
