#include "hwprofiles/calibrate/gds_queue.h"

#include <dlfcn.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// Of the cuFile API; spelled out here because its header is no part of every toolkit.
struct CuFileError {
  int operation = 0;  // 0: success
  int driver = 0;
};
constexpr int opaque_descriptor = 1;
struct CuFileDescription {
  int type = opaque_descriptor;
  union {
    int descriptor;
    void* handle;
  } of{};
  const void* operations = nullptr;
};
using CuFileHandle = void*;
struct CuFileProperties {
  struct {
    unsigned major_version, minor_version;
    std::size_t poll_threshold, most_direct;
    unsigned status_flags, control_flags;
  } driver{};
  unsigned feature_flags = 0;
  unsigned sizes[5]{};
  unsigned later[64]{};  // for libraries with more of them
};
constexpr unsigned peer_to_peer_status = 1U << 11U, peer_to_peer_feature = 1U << 4U;  // of old and of new libraries
constexpr int first_operation_error = 5000;  // CUfileOpError begins there; below it are errors of the system

[[noreturn]] void refuse(const std::string& cause, const std::string& remedy) {
  throw InputError("cuFile", "", cause, remedy);
}

}  // namespace

struct GdsQueue::Library {
  Library() {
    const char* named = std::getenv("SPILLWAY_CUFILE");
    const std::string path = named != nullptr ? named : "libcufile.so.0";
    module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) refuse("GPUDirect Storage is not here: no " + path, "install it, or go through host memory");
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) find<void(CuFileHandle)>("cuFileHandleDeregister")(handle);
    if (is_open) find<CuFileError()>("cuFileDriverClose_v2", "cuFileDriverClose")();
    dlclose(module);
  }

  template <class Function>
  Function* find(const char* name, const char* older = nullptr) const {
    void* found = dlsym(module, name);
    if (found == nullptr && older != nullptr) found = dlsym(module, older);
    if (found == nullptr) refuse(std::string("its library has no ") + name, "update GPUDirect Storage");
    return reinterpret_cast<Function*>(found);
  }

  void open(int file) {
    read = find<ssize_t(CuFileHandle, void*, std::size_t, off_t, off_t)>("cuFileRead");
    write = find<ssize_t(CuFileHandle, const void*, std::size_t, off_t, off_t)>("cuFileWrite");
    find<void(CuFileHandle)>("cuFileHandleDeregister");
    find<CuFileError()>("cuFileDriverClose_v2", "cuFileDriverClose");
    if (const CuFileError error = find<CuFileError()>("cuFileDriverOpen")(); error.operation != 0)
      refuse("its driver does not start (error " + std::to_string(error.operation) + ")",
             "load nvidia-fs, or allow its compatibility mode in cufile.json");
    is_open = true;
    CuFileDescription description;
    description.of.descriptor = file;
    const auto add = find<CuFileError(CuFileHandle*, CuFileDescription*)>("cuFileHandleRegister");
    if (const CuFileError error = add(&handle, &description); error.operation != 0) {
      handle = nullptr;
      refuse("it does not take files of this file system (error " + std::to_string(error.operation) + ")",
             "use ext4 or XFS on a local drive");
    }
  }

  // Between NVMe drives and GPUs, without nvidia-fs.
  [[nodiscard]] bool has_peer_to_peer() const {
    const auto ask = reinterpret_cast<CuFileError (*)(CuFileProperties*)>(dlsym(module, "cuFileDriverGetProperties"));
    CuFileProperties properties;
    if (ask == nullptr || ask(&properties).operation != 0) return false;
    return (properties.driver.status_flags & peer_to_peer_status) != 0 ||
           (properties.feature_flags & peer_to_peer_feature) != 0;
  }

  void* module = nullptr;
  bool is_open = false;
  CuFileHandle handle = nullptr;
  ssize_t (*read)(CuFileHandle, void*, std::size_t, off_t, off_t) = nullptr;
  ssize_t (*write)(CuFileHandle, const void*, std::size_t, off_t, off_t) = nullptr;
};

GdsQueue::GdsQueue(int file, unsigned workers, std::function<void()> begin_thread)
    : library_(std::make_unique<Library>()), file_(file), begin_thread_(std::move(begin_thread)) {
  library_->open(file);
  before_ = cufile_evidence(library_->has_peer_to_peer());
  for (unsigned w = 0; w < workers; ++w) workers_.emplace_back([this] { work(); });
}

GdsQueue::~GdsQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

CufileVerdict GdsQueue::way() const { return cufile_verdict(before_, cufile_evidence(before_.has_peer_to_peer)); }

// Bytes moved, or -errno.
std::int64_t GdsQueue::move(const Request& request) const {
  errno = 0;
  const off_t place = request.offset.count();
  const ssize_t moved = request.direction == Direction::read
                            ? library_->read(library_->handle, request.memory.data(), request.memory.size(), place, 0)
                            : library_->write(library_->handle, request.memory.data(), request.memory.size(), place, 0);
  if (moved >= 0) return moved;
  // -1: see errno; other negative numbers are cuFile's own errors.
  return -moved >= first_operation_error || errno == 0 ? -EIO : -static_cast<std::int64_t>(errno);
}

void GdsQueue::work() {
  bool has_device = true;
  try {
    if (begin_thread_) begin_thread_();
  } catch (const InputError&) {  // a device that is lost fails every request
    has_device = false;
  }
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return ending_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const Request request = requests_.front();
    requests_.pop_front();
    lock.unlock();
    const std::int64_t result = has_device ? move(request) : -ENODEV;
    lock.lock();
    completions_.push_back({request.tag, result});
    completed_.notify_one();
  }
}

void GdsQueue::submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) {
  SPILLWAY_ASSERT(file == file_);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back({direction, memory, offset, tag});
  }
  ++in_flight_;
  asked_.notify_one();
}

IoQueue::Completion GdsQueue::wait() {
  SPILLWAY_ASSERT(in_flight_ > 0);
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [this] { return !completions_.empty(); });
  const Completion completion = completions_.front();
  completions_.pop_front();
  --in_flight_;
  return completion;
}

std::optional<IoQueue::Completion> GdsQueue::poll() {
  const std::lock_guard lock(mutex_);
  if (completions_.empty()) return std::nullopt;
  const Completion completion = completions_.front();
  completions_.pop_front();
  --in_flight_;
  return completion;
}

}  // namespace spillway::hwprofiles
