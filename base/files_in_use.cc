#include "base/files_in_use.h"

#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <set>

#include "base/input_error.h"

namespace spillway {
namespace {

std::atomic<bool> is_guarded = false;
std::mutex mutex;
std::set<FileIdentity>& noted() {
  static std::set<FileIdentity> files;
  return files;
}

}  // namespace

std::optional<FileIdentity> file_identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return std::nullopt;
    return FileIdentity{info.st_dev, info.st_ino, ""};
  }
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::string name = path.substr(slash + 1);
  if (name.empty() || ::lstat(path.c_str(), &info) == 0 || ::stat(folder.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino, std::move(name)};
}

void guard_files_in_use() { is_guarded = true; }

void note_file_in_use(const std::string& path) {
  if (!is_guarded) return;
  if (auto file = file_identity(path)) {
    const std::lock_guard lock(mutex);
    noted().insert(std::move(*file));
  }
}

void forget_file_in_use(const std::string& path) {
  const auto file = file_identity(path);
  const std::lock_guard lock(mutex);
  if (file) noted().erase(*file);
}

void check_not_in_use(const std::string& path) {
  if (!is_guarded) return;
  const auto file = file_identity(path);
  const std::lock_guard lock(mutex);
  if (file && noted().contains(*file))
    throw InputError(path, "", "is read by this command, or written already, and would be overwritten",
                     "write to another file");
}

}  // namespace spillway
