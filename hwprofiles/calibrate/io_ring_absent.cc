// In place of io_ring.cc where the build found no liburing.
#include "base/input_error.h"
#include "hwprofiles/calibrate/io_ring.h"

namespace spillway::hwprofiles {

struct IoRing::Ring {};

bool IoRing::built_in() { return false; }

IoRing::IoRing(unsigned) {
  throw InputError("io_uring", "", "this spillway was built without it",
                   "install liburing-dev, then `meson setup --reconfigure` and build again");
}

IoRing::~IoRing() = default;
bool IoRing::register_buffer(std::span<std::byte>) { return false; }
void IoRing::submit(Direction, int, std::span<std::byte>, Bytes, std::uint64_t) { SPILLWAY_ASSERT(ring_ != nullptr); }
IoRing::Completion IoRing::wait() {
  SPILLWAY_ASSERT(ring_ != nullptr);
  return {};
}
std::optional<IoRing::Completion> IoRing::poll() { return std::nullopt; }

}  // namespace spillway::hwprofiles
