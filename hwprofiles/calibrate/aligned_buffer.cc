#include <cstdlib>
#include <cstring>
#include <new>

#include "hwprofiles/calibrate/io_ring.h"

namespace spillway::hwprofiles {
namespace {
constexpr std::size_t page = 4096;
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_((bytes + page - 1) / page * page) {
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, size_)));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_.get(), 0, size_);
}

void AlignedBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

}  // namespace spillway::hwprofiles
