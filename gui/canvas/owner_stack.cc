#include "gui/canvas/owner_stack.h"

#include <algorithm>
#include <numeric>

#include "base/stop.h"

namespace spillway::gui {

namespace {

constexpr std::string_view other_lines = "other lines";

// "train.py:64 build" of "/root/src/train.py:64 build".
std::string without_folder(const std::string& line) {
  const std::size_t slash = line.rfind('/', line.find(' '));
  return slash == std::string::npos || line.find(':') == std::string::npos ? line : line.substr(slash + 1);
}

}  // namespace

OwnerStack::OwnerStack(const MemoryPicture& picture, const std::vector<Token>& tokens) {
  std::vector<std::uint8_t> slot;
  for (std::size_t line = 0; line < tokens.size(); ++line) {
    const std::size_t place = std::min(line, most_owners - 1);
    slot.push_back(static_cast<std::uint8_t>(place));
    owners_[place] = {tokens[line], place < line ? std::string(other_lines) : without_folder(picture.kinds[line])};
  }
  for (const std::string& kind : tokens.empty() ? picture.kinds : std::vector<std::string>()) {
    const Token token = owner_token(kind);
    const auto rank = static_cast<std::size_t>(owner_rank(token));
    slot.push_back(static_cast<std::uint8_t>(rank));
    Owner& owner = owners_[rank];
    owner.token = token;
    std::string words = kind;
    std::replace(words.begin(), words.end(), '_', ' ');
    owner.words += (owner.words.empty() ? "" : ", ") + words;
  }
  Held held{};
  std::int64_t total = 0;
  for (const MemoryPicture::Change& change : picture.changes) {
    check_stop();
    if (at_.size() % block == 0) {
      before_.push_back(held);
      block_most_.push_back(static_cast<std::uint32_t>(at_.size()));
    }
    const std::uint8_t owner = slot[change.kind];
    held[owner] += change.bytes;
    most_held_[owner] = std::max(most_held_[owner], held[owner]);
    total += change.bytes;
    at_.push_back(change.at);
    bytes_.push_back(change.bytes);
    owner_.push_back(owner);
    total_.push_back(total);
    if (total > total_[block_most_.back()]) block_most_.back() = static_cast<std::uint32_t>(at_.size() - 1);
    if (total <= peak_) continue;
    peak_ = total;
    peak_at_ = change.at;
  }
}

std::int64_t OwnerStack::sum(const Held& held) { return std::accumulate(held.begin(), held.end(), std::int64_t{0}); }

OwnerStack::Held OwnerStack::after(std::size_t changes) const {
  if (changes == 0) return {};
  const std::size_t first = (changes - 1) / block;
  Held held = before_[first];
  for (std::size_t i = first * block; i < changes; ++i) held[owner_[i]] += bytes_[i];
  return held;
}

std::size_t OwnerStack::most(std::size_t first, std::size_t last) const {
  std::size_t found = first, i = first;
  const auto take = [&](std::size_t at) {
    if (total_[at] > total_[found]) found = at;
  };
  for (; i < last && i % block != 0; ++i) take(i);
  for (; i + block <= last; i += block) take(block_most_[i / block]);
  for (; i < last; ++i) take(i);
  return found;
}

std::int64_t OwnerStack::first_above(std::int64_t bytes, std::int64_t none) const {
  const auto found = std::find_if(total_.begin(), total_.end(), [bytes](std::int64_t total) { return total > bytes; });
  return found == total_.end() ? none : at_[static_cast<std::size_t>(found - total_.begin())];
}

OwnerStack::Held OwnerStack::at(std::int64_t time) const {
  return after(static_cast<std::size_t>(std::upper_bound(at_.begin(), at_.end(), time) - at_.begin()));
}

std::vector<OwnerStack::Held> OwnerStack::fold(const TimeAxis& axis) const {
  std::vector<Held> columns(static_cast<std::size_t>(axis.width()));
  auto from = std::upper_bound(at_.begin(), at_.end(), axis.view().begin);
  Held held = after(static_cast<std::size_t>(from - at_.begin()));
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const bool is_last = column + 1 == columns.size();
    const std::int64_t end = is_last ? axis.view().end : axis.time(static_cast<double>(column + 1));
    const auto until = std::lower_bound(from, at_.end(), end);
    columns[column] = held;
    if (until == from) continue;
    const auto first = static_cast<std::size_t>(from - at_.begin()),
               last = static_cast<std::size_t>(until - at_.begin());
    const std::size_t top = most(first, last);
    if (total_[top] > sum(held)) columns[column] = after(top + 1);
    held = after(last);
    from = until;
  }
  return columns;
}

}  // namespace spillway::gui
