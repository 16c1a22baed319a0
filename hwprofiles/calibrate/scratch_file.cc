#include "hwprofiles/calibrate/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/input_error.h"
#include "base/number_text.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

void check_space(const std::string& path, Bytes bytes, Bytes reserve) {
  struct statvfs status {};
  if (statvfs(folder_of(path).c_str(), &status) != 0)
    throw InputError(path, "", std::string("its folder can't be read: ") + std::strerror(errno),
                     "name a new file in a folder that exists");
  const Bytes free(static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize));
  if (free < bytes + reserve)
    throw InputError(
        path, "",
        fmt::format("{} asked, {} to be left free, {} there", gib_text(bytes), gib_text(reserve), gib_text(free)),
        "ask for fewer bytes, or name a file on a drive with more room");
}

[[noreturn]] void refuse_open(const std::string& path, int error) {
  if (error == EEXIST)
    throw InputError(path, "", "exists already, and nothing of yours is touched", "name a file that does not exist");
  if (error == ENOENT || error == ENOTDIR)
    throw InputError(path, "", "its folder does not exist", "name a new file in a folder that exists");
  if (error == EACCES || error == EPERM || error == EROFS)
    throw InputError(path, "", std::string("can't be made: ") + std::strerror(error),
                     "name a file in a folder where you may write");
  if (error == EINVAL || error == EOPNOTSUPP)
    throw InputError(path, "", "its file system is one in memory, or has no unbuffered I/O (O_DIRECT)",
                     "name a file on the drive to measure, not in a tmpfs such as /dev/shm");
  throw InputError(path, "", std::string("can't be made: ") + std::strerror(error), "check the place");
}

// Newer kernels allow O_DIRECT there, but no drive lies below.
bool is_in_memory(const std::string& path) {
  struct statfs status {};
  if (::statfs(folder_of(path).c_str(), &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

int open_new(const std::string& path, ScratchFile::Access access) {
  const int direct = access == ScratchFile::Access::direct ? O_DIRECT : 0;
  constexpr mode_t owner_only = S_IRUSR | S_IWUSR;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | direct, owner_only);
  const int error = errno;
  // Where O_DIRECT is refused the name may have been made before that was found out; it is ours then, and empty.
  if (descriptor < 0 && (error == EINVAL || error == EOPNOTSUPP)) ::unlink(path.c_str());
  if (descriptor < 0) refuse_open(path, error);
  ::unlink(path.c_str());
  return descriptor;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& path, Bytes bytes, Bytes reserve, Access access)
    : path_(path), bytes_(bytes) {
  SPILLWAY_ASSERT(bytes > Bytes(0) && bytes.count() % direct_alignment.count() == 0);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) refuse_open(path, EEXIST);
  if (access == Access::direct && is_in_memory(path)) refuse_open(path, EINVAL);
  check_space(path, bytes, reserve);
  descriptor_ = open_new(path, access);
  int error = posix_fallocate(descriptor_, 0, bytes.count());
  if (error == EOPNOTSUPP || error == EINVAL) error = ::ftruncate(descriptor_, bytes.count()) == 0 ? 0 : errno;
  if (error == 0) return;
  ::close(descriptor_);
  throw InputError(path, "", fmt::format("{} can't be reserved: {}", gib_text(bytes), std::strerror(error)),
                   "ask for fewer bytes, or name a file on a drive with more room");
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

}  // namespace spillway::hwprofiles
