#include "hwprofiles/calibrate/io_ring.h"

#include <liburing.h>

#include <cerrno>
#include <cstring>

#include "base/input_error.h"

namespace spillway::hwprofiles {

struct IoRing::Ring {
  io_uring uring{};
};

namespace {

[[noreturn]] void refuse_ring(int error) {
  if (error == ENOSYS) throw InputError("io_uring", "", "this kernel has none", "use Linux 5.6 or later");
  if (error == EPERM || error == EACCES)
    throw InputError("io_uring", "", "forbidden here: a sandbox (seccomp) or kernel.io_uring_disabled closes it",
                     "run outside the container, allow the io_uring system calls, or set kernel.io_uring_disabled=0");
  if (error == ENOMEM)
    throw InputError("io_uring", "", "the limit of locked memory is too low for a ring", "raise it: ulimit -l");
  throw InputError("io_uring", "", std::string("can't be set up: ") + std::strerror(error), "check the kernel's log");
}

IoRing::Completion taken(io_uring& uring, io_uring_cqe* entry) {
  const IoRing::Completion completion{entry->user_data, entry->res};
  io_uring_cqe_seen(&uring, entry);
  return completion;
}

}  // namespace

bool IoRing::built_in() { return true; }

IoRing::IoRing(unsigned entries) : ring_(std::make_unique<Ring>()) {
  SPILLWAY_ASSERT(entries >= 1 && entries <= 4096);
  if (const int status = io_uring_queue_init(entries, &ring_->uring, 0); status < 0) refuse_ring(-status);
}

IoRing::~IoRing() {
  while (in_flight_ > 0) wait();
  io_uring_queue_exit(&ring_->uring);
}

bool IoRing::register_buffer(std::span<std::byte> buffer) {
  SPILLWAY_ASSERT(registered_.empty());
  const iovec vector{buffer.data(), buffer.size()};
  if (io_uring_register_buffers(&ring_->uring, &vector, 1) < 0) return false;
  registered_ = buffer;
  return true;
}

void IoRing::submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_->uring);
  SPILLWAY_ASSERT(entry != nullptr);
  const bool fixed = !registered_.empty() && memory.data() >= registered_.data() &&
                     memory.data() + memory.size() <= registered_.data() + registered_.size();
  const auto bytes = static_cast<unsigned>(memory.size());
  const auto place = static_cast<std::uint64_t>(offset.count());
  if (direction == Direction::read && fixed)
    io_uring_prep_read_fixed(entry, file, memory.data(), bytes, place, 0);
  else if (direction == Direction::read)
    io_uring_prep_read(entry, file, memory.data(), bytes, place);
  else if (fixed)
    io_uring_prep_write_fixed(entry, file, memory.data(), bytes, place, 0);
  else
    io_uring_prep_write(entry, file, memory.data(), bytes, place);
  entry->user_data = tag;
  int status = 0;
  do status = io_uring_submit(&ring_->uring);
  while (status == -EINTR || status == -EAGAIN);
  if (status < 0) refuse_ring(-status);
  ++in_flight_;
}

IoRing::Completion IoRing::wait() {
  SPILLWAY_ASSERT(in_flight_ > 0);
  io_uring_cqe* entry = nullptr;
  int status = 0;
  do status = io_uring_wait_cqe(&ring_->uring, &entry);
  while (status == -EINTR);
  if (status < 0) refuse_ring(-status);
  --in_flight_;
  return taken(ring_->uring, entry);
}

std::optional<IoRing::Completion> IoRing::poll() {
  io_uring_cqe* entry = nullptr;
  if (io_uring_peek_cqe(&ring_->uring, &entry) != 0) return std::nullopt;
  --in_flight_;
  return taken(ring_->uring, entry);
}

}  // namespace spillway::hwprofiles
