#include "studies/sweep/sweep_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/read_file.h"

namespace spillway::studies {
namespace {

constexpr std::size_t prefix = 9;  // of a line: the checksum and a space

std::string checksum(std::string_view text) {
  return fmt::format("{:08x}", crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

// Of a whole record; none: the line is none.
std::optional<std::string> key_of(std::string_view line) {
  if (line.size() <= prefix || line[prefix - 1] != ' ') return std::nullopt;
  if (checksum(line.substr(prefix)) != line.substr(0, prefix - 1)) return std::nullopt;
  std::string key = document_text(line.substr(prefix), "key");
  return key.empty() ? std::nullopt : std::optional(std::move(key));
}

// The beginning of a record that was cut short, or whose end a power cut has left as zeros.
bool is_torn_record(std::string_view text) {
  const std::string_view digits = text.substr(0, prefix - 1), line = text.substr(0, text.find('\n'));
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.substr(digits.size()).starts_with(R"( {"key":")") &&
         (line.size() == text.size() || line.find('\0') != std::string_view::npos);
}

// Empty, or with a whole record, or it begins with a torn one.
bool is_store(std::string_view content) {
  if (content.empty() || is_torn_record(content)) return true;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = content.find('\n', at)) != std::string_view::npos; at = end + 1)
    if (key_of(content.substr(at, end - at))) return true;
  return false;
}

[[noreturn]] void refuse_foreign(const std::string& path) {
  throw InputError(path, "", "no sweep's store, so it is left as it is",
                   "name what `spillway sweep --output` wrote, or for a new store a file that isn't there");
}

// Pipes would never end, and what isn't text need not be read as far as it goes.
std::string read_store(const std::string& path) {
  std::array<char, 4096> head{};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw InputError(path, "", "is no regular file", "name what `spillway sweep --output` wrote");
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const std::string_view begin(head.data(), static_cast<std::size_t>(file.gcount()));
  const std::string_view text = begin.substr(0, begin.find('\0'));
  if (text.size() < begin.size() && !is_store(begin.substr(0, text.size() + 1))) refuse_foreign(path);
  return read_file_as_it_is(path);
}

}  // namespace

// Delegates, so that the file is closed whatever is thrown.
SweepStore::SweepStore(const std::string& path) : SweepStore() {
  path_ = path;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0)
    throw InputError(path, "", std::string("can't be opened: ") + std::strerror(errno),
                     "name a file in a folder that is there");
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError(path, "", "is no regular file", "name another file for the store");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0)
    throw InputError(path, "", "another sweep is writing to it", "wait for it, or give each shard its own store");
  const std::string content = read_store(path);
  const std::uint64_t whole = take(path, content);
  if (whole < content.size()) torn_at_ = whole;
}

SweepStore::~SweepStore() {
  if (file_ >= 0) ::close(file_);
}

void SweepStore::read(const std::string& path) { take(path, read_store(path)); }

std::uint64_t SweepStore::take(const std::string& path, const std::string& content) {
  if (!is_store(content)) refuse_foreign(path);
  std::size_t at = 0, whole = 0, line = 0;
  while (at < content.size()) {
    const std::size_t end = content.find('\n', at);
    if (end == std::string::npos) break;
    ++line;
    const std::string_view text = std::string_view(content).substr(at, end - at);
    at = end + 1;
    const std::optional<std::string> key = key_of(text);
    if (key) records_.emplace(*key, text.substr(prefix));
    if (!key && at < content.size())
      repairs_.push_back(fmt::format("{}: line {} is broken and was left out", path, line));
    if (key || at < content.size()) whole = at;
  }
  if (whole < content.size())
    repairs_.push_back(
        fmt::format("{}: the last {} bytes are no whole record and were left out", path, content.size() - whole));
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
  if (torn_at_ && ::ftruncate(file_, static_cast<off_t>(*torn_at_)) != 0) {
    const int error = errno;
    records_.erase(key);
    throw InputError(path_, "", std::string("can't be repaired: ") + std::strerror(error),
                     "copy it to where it may be written");
  }
  torn_at_.reset();
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
