// GPUDirect Storage: NVIDIA's cuFile reads a file into device memory and writes it from there. It needs no copy in host
// memory where the system can do without (nvidia-fs or peer-to-peer NVMe), else it goes through its own; way() tells.
//
// The library is loaded at run time (libcufile.so.0, or what SPILLWAY_CUFILE names), so that a program built without it
// uses it where it is. Its calls block; each of `workers` threads makes one at a time. Its functions are those of the
// cuFile API Reference.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hwprofiles/calibrate/cufile_way.h"
#include "hwprofiles/calibrate/io_queue.h"

namespace spillway::hwprofiles {

class GdsQueue final : public IoQueue {
 public:
  // `begin_thread` runs first in each worker (it makes the device's context current); where it throws InputError, that
  // worker's requests fail with ENODEV. Throws InputError with file
  // "cuFile": no library, its driver does not start, or the file's system is none that it knows.
  GdsQueue(int file, unsigned workers, std::function<void()> begin_thread);
  GdsQueue(const GdsQueue&) = delete;
  GdsQueue& operator=(const GdsQueue&) = delete;
  // Waits for what is in flight.
  ~GdsQueue() override;

  // Precondition: `file` is that of the constructor.
  void submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) override;
  Completion wait() override;
  std::optional<Completion> poll() override;
  [[nodiscard]] unsigned in_flight() const override { return in_flight_; }

  // How what was asked for so far went. For a queue that has moved something.
  [[nodiscard]] CufileVerdict way() const;

 private:
  struct Library;
  struct Request {
    Direction direction = Direction::read;
    std::span<std::byte> memory;
    Bytes offset;
    std::uint64_t tag = 0;
  };
  void work();
  [[nodiscard]] std::int64_t move(const Request& request) const;

  std::unique_ptr<Library> library_;
  CufileEvidence before_;
  int file_;
  std::function<void()> begin_thread_;
  std::mutex mutex_;
  std::condition_variable asked_, completed_;
  std::deque<Request> requests_;
  std::deque<Completion> completions_;
  bool ending_ = false;
  unsigned in_flight_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace spillway::hwprofiles
