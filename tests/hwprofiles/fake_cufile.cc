// A library with the names and the manners of cuFile, for gds_queue_test.cc and trainer_test.cc: "device" memory is
// host memory. FAKE_CUFILE: "no driver", "no file system" or "unplugged" (every transfer fails with EIO).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace {
struct Error {
  int operation = 0, driver = 0;
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
bool told(std::string_view manner) {
  const char* words = std::getenv("FAKE_CUFILE");
  return words != nullptr && words == manner;
}
ssize_t unplugged() {
  errno = EIO;
  return -1;
}
}  // namespace

extern "C" {
Error cuFileDriverOpen() { return {told("no driver") ? 5001 : 0, 0}; }
Error cuFileDriverClose_v2() { return {}; }
Error cuFileHandleRegister(void** handle, Description* description) {
  if (told("no file system")) return {5027, 0};
  descriptor_of_file = description->of.descriptor;
  // Its own memory need not be aligned.
  fcntl(descriptor_of_file, F_SETFL, fcntl(descriptor_of_file, F_GETFL) & ~O_DIRECT);
  *handle = &descriptor_of_file;
  return {};
}
void cuFileHandleDeregister(void*) { descriptor_of_file = -1; }
ssize_t cuFileRead(void* handle, void* memory, std::size_t bytes, off_t place, off_t) {
  return told("unplugged") ? unplugged() : pread(*static_cast<int*>(handle), memory, bytes, place);
}
ssize_t cuFileWrite(void* handle, const void* memory, std::size_t bytes, off_t place, off_t) {
  return told("unplugged") ? unplugged() : pwrite(*static_cast<int*>(handle), memory, bytes, place);
}
}
