// io_uring with registered buffers, as much of it as measuring and moving tensors needs.
//
// A spillway built without liburing has io_ring_absent.cc in its place: the constructor says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"
#include "hwprofiles/calibrate/io_queue.h"

namespace spillway::hwprofiles {

// Memory aligned for unbuffered I/O, all zero at first.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t bytes);  // rounded up to a page
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

class IoRing final : public IoQueue {
 public:
  // `entries`: most requests in flight, 1 to 4096. Throws InputError: built without liburing, a kernel without
  // io_uring, or one that a sandbox or the administrator has closed.
  explicit IoRing(unsigned entries);
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;
  // Waits for what is in flight.
  ~IoRing() override;

  // Pins the buffer, so that its pages are not looked up at every request; requests within it use that from now on.
  // False when the limit of locked memory forbids (RLIMIT_MEMLOCK): requests work all the same. One buffer a ring.
  bool register_buffer(std::span<std::byte> buffer);

  void submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) override;
  Completion wait() override;
  std::optional<Completion> poll() override;
  [[nodiscard]] unsigned in_flight() const override { return in_flight_; }

  static bool built_in();

 private:
  struct Ring;
  std::unique_ptr<Ring> ring_;
  std::span<std::byte> registered_;
  unsigned in_flight_ = 0;
};

}  // namespace spillway::hwprofiles
