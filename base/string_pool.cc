#include "base/string_pool.h"

#include <cstring>

#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway {
namespace {

constexpr std::size_t block_bytes = 32 << 10;
constexpr std::size_t least_slots = 64;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * golden_gamma;
  return hash ^ (hash >> 32);
}

std::uint32_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size(), word = 0;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    hash = mixed(hash, word);
  }
  word = 0;
  if (left > 0) std::memcpy(&word, at, left);
  return static_cast<std::uint32_t>(mixed(hash, word));
}

}  // namespace

StringPool::StringPool() : texts_(1), hashes_(1) {}

StringPool::StringPool(const StringPool& other) : hashes_(other.hashes_), slots_(other.slots_) {
  texts_.reserve(other.texts_.size());
  for (const std::string_view text : other.texts_) texts_.push_back(text.empty() ? text : store(text));
}

StringPool& StringPool::operator=(const StringPool& other) {
  if (this != &other) *this = StringPool(other);
  return *this;
}

StringId StringPool::intern(std::string_view text) {
  if (text.empty()) return StringId::empty;
  if (slots_.size() < 2 * (texts_.size() + 1)) grow();
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t id = slots_[slot];
    if (hashes_[id] == hash && texts_[id] == text) return StringId(id);
  }
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(store(text));
  hashes_.push_back(hash);
  slots_[slot] = id;
  return StringId(id);
}

std::string_view StringPool::text(StringId id) const {
  const auto index = static_cast<std::size_t>(id);
  SPILLWAY_ASSERT(index < texts_.size());
  return texts_[index];
}

std::string_view StringPool::store(std::string_view text) {
  if (text.size() > block_bytes / 8) {
    large_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    std::memcpy(large_.back().get(), text.data(), text.size());
    return {large_.back().get(), text.size()};
  }
  if (blocks_.empty() || used_ + text.size() > block_bytes) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_bytes));
    used_ = 0;
  }
  char* const place = blocks_.back().get() + used_;
  std::memcpy(place, text.data(), text.size());
  used_ += text.size();
  return {place, text.size()};
}

void StringPool::grow() {
  if (texts_.empty()) *this = StringPool();  // it was moved from
  slots_.assign(slots_.empty() ? least_slots : 2 * slots_.size(), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t id = 1; id < texts_.size(); ++id) {
    std::size_t slot = hashes_[id] & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = id;
  }
}

}  // namespace spillway
