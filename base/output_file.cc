#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/files_in_use.h"
#include "base/input_error.h"

namespace spillway {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& doing, int error) {
  std::string remedy = "check the folder and its permissions";
  if (error == ENOSPC || error == EDQUOT) remedy = "free some space or choose another place";
  if (error == EISDIR) remedy = "name a file, not a folder";
  throw InputError(path, "", doing + ": " + std::strerror(error), remedy);
}

// "-", or a link to where standard output goes: /dev/stdout.
bool is_standard_output(const std::string& path) {
  if (path == "-") return true;
  struct stat link {
  }, file{}, out{};
  return ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && ::stat(path.c_str(), &file) == 0 &&
         ::fstat(STDOUT_FILENO, &out) == 0 && file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

// A link stands for the file it leads to. Throws where that is nothing, or the link itself again.
std::string behind_links(const std::string& path) {
  struct stat link {
  }, file{};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return path;
  const bool is_there = ::stat(path.c_str(), &file) == 0;
  if (is_there && !S_ISREG(file.st_mode)) return path;
  char* const found = is_there ? ::realpath(path.c_str(), nullptr) : nullptr;
  if (found == nullptr) fail(path, "can't write through this link", errno);
  std::string target = found;
  std::free(found);
  return target;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A rename survives a power cut only when the folder itself is synced; not every file system can.
void sync_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

// Beside the file, with a name that is no longer than file systems take.
std::string temporary_beside(const std::string& path) {
  const auto slash = path.rfind('/');
  return (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + ".spillway-XXXXXX";
}

struct Unfinished {
  std::mutex mutex;
  std::set<std::string> paths;
};

// Never destroyed: a thread may end the program while it is being left.
Unfinished& unfinished() {
  static auto* const files = new Unfinished;
  return *files;
}

}  // namespace

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  std::string folder = named == nullptr || *named == '\0' ? "/tmp" : named;
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw InputError("", "", "no temporary file can be made in " + folder + ": " + std::strerror(errno),
                     "set TMPDIR to a writable folder");
  return folder;
}

void check_output(const std::string& path) {
  if (is_standard_output(path)) return;
  const std::string place = behind_links(path);
  struct stat info {};
  const bool exists = ::stat(place.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) fail(path, "can't write", errno);
  if (exists && S_ISDIR(info.st_mode)) fail(path, "can't write", EISDIR);
  const bool is_special = exists && !S_ISREG(info.st_mode);
  if (::access((is_special ? place : folder_of(place)).c_str(), is_special ? W_OK : W_OK | X_OK) != 0)
    fail(path, "can't write", errno);
}

UnfinishedFile::UnfinishedFile(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(unfinished().mutex);
  unfinished().paths.insert(path_);
}

UnfinishedFile::~UnfinishedFile() {
  if (path_.empty()) return;
  const std::lock_guard lock(unfinished().mutex);
  ::unlink(path_.c_str());
  unfinished().paths.erase(path_);
}

void UnfinishedFile::keep() {
  const std::lock_guard lock(unfinished().mutex);
  unfinished().paths.erase(path_);
  path_.clear();
}

void remove_unfinished_files() {
  unfinished().mutex.lock();
  for (const std::string& path : unfinished().paths) ::unlink(path.c_str());
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (is_standard_output(path_)) {
    file_ = stdout;
    return;
  }
  path_ = behind_links(path_);
  struct stat info {};
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(path_, "can't write", EISDIR);
  check_not_in_use(path_);
  if (exists && !S_ISREG(info.st_mode)) {  // devices and pipes have no place beside them; write straight through
    file_ = std::fopen(path_.c_str(), "we");
    if (file_ == nullptr) fail(path_, "can't write", errno);
    return;
  }
  const std::string pattern = temporary_beside(path_);
  std::vector<char> name(pattern.c_str(), pattern.c_str() + pattern.size() + 1);
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) fail(path_, "can't write", errno);
  temporary_.emplace(name.data());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  // mkostemp gives 0600; a result should be as readable as any file the user makes, or as the one it replaces.
  ::fchmod(descriptor, exists ? (info.st_mode & 07777U) : (0666U & ~mask));
  file_ = ::fdopen(descriptor, "w");
  if (file_ == nullptr) {
    const int error = errno;
    ::close(descriptor);
    fail(path_, "can't write", error);
  }
}

OutputFile::~OutputFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void OutputFile::write(std::string_view bytes) {
  SPILLWAY_ASSERT(file_ != nullptr);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(path_, "can't write", errno);
}

void OutputFile::commit() {
  SPILLWAY_ASSERT(file_ != nullptr);
  if (std::fflush(file_) != 0) fail(path_, "can't write", errno);
  if (file_ == stdout) {
    file_ = nullptr;
    return;
  }
  if (temporary_ && ::fsync(::fileno(file_)) != 0) fail(path_, "can't write", errno);
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(path_, "can't write", errno);
  if (!temporary_) return;
  if (::rename(temporary_->path().c_str(), path_.c_str()) != 0)
    fail(path_, "can't put the finished file in place", errno);
  temporary_->keep();
  temporary_.reset();
  note_file_in_use(path_);
  sync_folder(path_);
}

void write_text(const std::string& path, std::string_view text) {
  OutputFile out(path);
  out.write(text);
  out.commit();
}

}  // namespace spillway
