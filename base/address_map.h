// A value for each address: a hash table without removal marks, so that millions of blocks may come and go.
//
// Linear probing; removing moves later entries of the run back (Knuth, The Art of Computer Programming, volume 3,
// section 6.4, algorithm R). Find, insert, erase: O(1) on average. Order is asked for, never met by chance: sorted().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace spillway {

template <class Value>
class AddressMap {
 public:
  using Entry = std::pair<std::uint64_t, Value>;

  // Null when it is not there. Good until the next insertion or erasure.
  [[nodiscard]] Value* find(std::uint64_t address) {
    if (slots_.empty()) return nullptr;
    const std::size_t at = place_of(address);
    return slots_[at].is_used ? &slots_[at].entry.second : nullptr;
  }
  // Made if it is not there; says whether it was made.
  std::pair<Value*, bool> try_emplace(std::uint64_t address) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(address)];
    const bool is_new = !slot.is_used;
    if (is_new) {
      slot = {{address, Value{}}, true};
      ++size_;
    }
    return {&slot.entry.second, is_new};
  }
  Value& operator[](std::uint64_t address) { return *try_emplace(address).first; }
  // What was there.
  std::optional<Value> take(std::uint64_t address) {
    if (slots_.empty()) return std::nullopt;
    std::size_t hole = place_of(address);
    if (!slots_[hole].is_used) return std::nullopt;
    std::optional<Value> taken(std::move(slots_[hole].entry.second));
    for (std::size_t at = next(hole); slots_[at].is_used; at = next(at)) {
      const std::size_t from_home = (at - home(slots_[at].entry.first)) & mask();
      if (from_home < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].is_used = false;
    --size_;
    return taken;
  }
  // Says whether it was there.
  bool erase(std::uint64_t address) { return take(address).has_value(); }
  void clear() {
    slots_.clear();
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  // By address. O(n log n).
  [[nodiscard]] std::vector<Entry> sorted() const {
    std::vector<Entry> entries;
    entries.reserve(size_);
    for (const Slot& slot : slots_)
      if (slot.is_used) entries.push_back(slot.entry);
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
    return entries;
  }

 private:
  struct Slot {
    Entry entry{};
    bool is_used = false;
  };

  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
  // Multiplicative: addresses are multiples of 512.
  [[nodiscard]] std::size_t home(std::uint64_t address) const {
    return static_cast<std::size_t>((address * 0x9e37'79b9'7f4a'7c15) >> 32) & mask();
  }
  [[nodiscard]] std::size_t place_of(std::uint64_t address) const {
    std::size_t at = home(address);
    while (slots_[at].is_used && slots_[at].entry.first != address) at = next(at);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.is_used) slots_[place_of(slot.entry.first)] = slot;
  }

  std::vector<Slot> slots_;  // none, or a power of two
  std::size_t size_ = 0;
};

}  // namespace spillway
