#include "base/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/input_error.h"

namespace spillway {

std::string read_file(const std::string& path, std::uint64_t limit, ByteSource::Progress progress) {
  return ByteSource::open(path, limit, std::move(progress)).read_all(limit);
}

std::string read_file_as_it_is(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "", std::string("can't be read: ") + std::strerror(errno), "check the path");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace spillway
