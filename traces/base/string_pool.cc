#include "traces/base/string_pool.h"

#include "traces/base/input_error.h"

namespace spillway {

StringPool::StringPool() { intern(""); }

StringPool::StringPool(const StringPool& other) : texts_(other.texts_) {
  index_.reserve(texts_.size());
  std::uint32_t id = 0;
  for (const std::string& text : texts_) index_.emplace(text, id++);
}

StringPool& StringPool::operator=(const StringPool& other) {
  if (this != &other) *this = StringPool(other);
  return *this;
}

StringId StringPool::intern(std::string_view text) {
  if (const auto found = index_.find(text); found != index_.end()) return StringId(found->second);
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  index_.emplace(texts_.back(), id);
  return StringId(id);
}

std::string_view StringPool::text(StringId id) const {
  const auto index = static_cast<std::size_t>(id);
  SPILLWAY_ASSERT(index < texts_.size());
  return texts_[index];
}

}  // namespace spillway
