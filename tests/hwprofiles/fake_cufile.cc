// A library with the names and the manners of cuFile, for gds_queue_test.cc and trainer_test.cc: "device" memory is
// host memory. FAKE_CUFILE: "no driver", "no file system", "unplugged" (every transfer fails with EIO), "peer to peer"
// (its properties say so) or "compatibility" (transfers go past nvidia-fs). Where SPILLWAY_NVIDIA_FS names a folder
// with stats that are enabled, transfers are counted there as nvidia-fs does.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

namespace {
struct Error {
  int operation, driver;  // no initial values: C takes it as it is
};
struct Description {
  int type;
  union {
    int descriptor;
    void* handle;
  } of;
  const void* operations;
};
int descriptor_of_file = -1;
bool asked_for(std::string_view manner) {
  const char* words = std::getenv("FAKE_CUFILE");
  return words != nullptr && words == manner;
}
struct Properties {
  struct {
    unsigned major_version, minor_version;
    std::size_t poll_threshold, most_direct;
    unsigned status_flags, control_flags;
  } driver;
  unsigned feature_flags;
  unsigned sizes[5];
};
std::mutex mutex;
unsigned done[2];  // reads, writes
ssize_t counted(ssize_t moved, bool is_write) {
  const std::lock_guard lock(mutex);
  const char* folder = std::getenv("SPILLWAY_NVIDIA_FS");
  if (moved < 0 || folder == nullptr || asked_for("compatibility")) return moved;
  ++done[is_write ? 1 : 0];
  const std::string path = std::string(folder) + "/stats";
  std::string head;
  std::getline(std::ifstream(path) >> std::ws, head);
  if (head.find("Enabled") == std::string::npos) return moved;
  std::ofstream(path) << head << "\nReads\t\t\t\t: n=" << done[0] << " ok=" << done[0] << " err=0 readMiB=0"
                      << "\nWrites\t\t\t\t: n=" << done[1] << " ok=" << done[1] << " err=0 writeMiB=0\n";
  return moved;
}
ssize_t unplugged() {
  errno = EIO;
  return -1;
}
}  // namespace

extern "C" {
Error cuFileDriverOpen() { return {asked_for("no driver") ? 5001 : 0, 0}; }
Error cuFileDriverClose_v2() { return {}; }
Error cuFileHandleRegister(void** handle, Description* description) {
  if (asked_for("no file system")) return {5027, 0};
  descriptor_of_file = description->of.descriptor;
  // Its own memory need not be aligned.
  fcntl(descriptor_of_file, F_SETFL, fcntl(descriptor_of_file, F_GETFL) & ~O_DIRECT);
  *handle = &descriptor_of_file;
  return {};
}
Error cuFileDriverGetProperties(Properties* properties) {
  std::memset(properties, 0, sizeof *properties);
  if (asked_for("peer to peer")) properties->feature_flags = 1U << 4U;
  return {};
}
void cuFileHandleDeregister(void*) { descriptor_of_file = -1; }
ssize_t cuFileRead(void* handle, void* memory, std::size_t bytes, off_t place, off_t) {
  return asked_for("unplugged") ? unplugged() : counted(pread(*static_cast<int*>(handle), memory, bytes, place), false);
}
ssize_t cuFileWrite(void* handle, const void* memory, std::size_t bytes, off_t place, off_t) {
  return asked_for("unplugged") ? unplugged() : counted(pwrite(*static_cast<int*>(handle), memory, bytes, place), true);
}
}
