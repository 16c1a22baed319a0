#include "base/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "base/files_in_use.h"
#include "base/input_error.h"

namespace spillway {

std::string read_file(const std::string& path, std::uint64_t limit, ByteSource::Progress progress) {
  ByteSource source = ByteSource::open(path, limit, std::move(progress));
  return read_text(source, limit);
}

std::string read_text(ByteSource& source, std::uint64_t limit) {
  const auto head = source.peek(4096);
  if (const auto zero = std::find(head.begin(), head.end(), std::byte{}); zero != head.end())
    throw InputError(source.name(), "byte " + std::to_string(zero - head.begin()),
                     "holds a zero byte, so it is no text", "check that this is the right file");
  return source.read_all(limit);
}

std::string read_file_as_it_is(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "", std::string("can't be read: ") + std::strerror(errno), "check the path");
  note_file_in_use(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace spillway
