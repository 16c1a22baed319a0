#include "studies/sweep/sweep_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

constexpr std::size_t prefix = 9;  // of a line: the checksum and a space

std::string checksum(std::string_view text) {
  return fmt::format("{:08x}", crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "", std::string("can't be read: ") + std::strerror(errno), "check the path");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace

SweepStore::SweepStore(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0)
    throw InputError(path, "", std::string("can't be opened: ") + std::strerror(errno),
                     "name a file in a folder that is there");
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file_);
    throw InputError(path, "", "is no regular file", "name a file of its own for the store");
  }
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    ::close(file_);
    throw InputError(path, "", "another sweep is writing to it", "wait for it, or give each shard a store of its own");
  }
  const std::string content = content_of(path);
  const std::uint64_t whole = take(path, content);
  if (whole == content.size()) return;
  repairs_.push_back(
      fmt::format("{}: the last {} bytes were no whole record and were cut off", path, content.size() - whole));
  if (::ftruncate(file_, static_cast<off_t>(whole)) != 0)
    throw InputError(path, "", std::string("can't be mended: ") + std::strerror(errno),
                     "copy it to where it may be written");
}

SweepStore::~SweepStore() {
  if (file_ >= 0) ::close(file_);
}

void SweepStore::read(const std::string& path) {
  const std::string content = content_of(path);
  const std::uint64_t whole = take(path, content);
  if (whole < content.size())
    repairs_.push_back(
        fmt::format("{}: the last {} bytes are no whole record and were left out", path, content.size() - whole));
}

std::uint64_t SweepStore::take(const std::string& path, const std::string& content) {
  std::size_t at = 0, whole = 0, line = 0;
  while (at < content.size()) {
    const std::size_t end = content.find('\n', at);
    if (end == std::string::npos) break;
    ++line;
    const std::string_view text = std::string_view(content).substr(at, end - at);
    at = end + 1;
    bool good =
        text.size() > prefix && text[prefix - 1] == ' ' && checksum(text.substr(prefix)) == text.substr(0, prefix - 1);
    if (good) {
      const auto json = nlohmann::json::parse(text.substr(prefix), nullptr, false);
      good = json.is_object() && json.contains("key") && json["key"].is_string();
      if (good) records_.emplace(json["key"].get<std::string>(), text.substr(prefix));
    }
    if (!good && at < content.size())
      repairs_.push_back(fmt::format("{}: line {} is broken and was left out", path, line));
    if (good || at < content.size()) whole = at;
  }
  return whole;
}

std::optional<std::string> SweepStore::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(key);
  return found == records_.end() ? std::nullopt : std::optional(found->second);
}

void SweepStore::append(const std::string& key, const std::string& json) {
  const std::lock_guard lock(mutex_);
  if (!records_.emplace(key, json).second || file_ < 0) return;
  const std::string line = checksum(json) + " " + json + "\n";
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  records_.erase(key);
  if (before >= 0) static_cast<void>(::ftruncate(file_, before));
  throw InputError(path_, "", std::string("can't be written: ") + std::strerror(error),
                   "make room; what is stored stays, and --resume goes on from there");
}

void SweepStore::copy_into(SweepStore& other) const {
  for (const auto& [key, json] : records_) other.append(key, json);
}

}  // namespace spillway::studies
