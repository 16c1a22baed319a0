// Memory by owner, stacked: folded so that of every pixel column the instant is shown at which most was held, and no
// peak is lost however many allocations there are. Owners are in a fixed order, from the bottom: owner_rank().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/canvas/time_axis.h"
#include "gui/canvas/tokens.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::gui {

inline constexpr std::size_t most_owners = 8;  // of owner_rank()

class OwnerStack {
 public:
  using Held = std::array<std::int64_t, most_owners>;  // bytes, by owner
  OwnerStack() = default;
  // tokens: by kind of a picture by lines of a program, in order, those of one token are one owner; none: by
  // owner_token().
  explicit OwnerStack(const MemoryPicture& picture, const std::vector<Token>& tokens = {});

  // By owner; empty words: nobody is that.
  struct Owner {
    Token token = Token::unknown;
    std::string words;
  };
  [[nodiscard]] const std::array<Owner, most_owners>& owners() const { return owners_; }
  [[nodiscard]] bool empty() const { return at_.empty(); }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] std::int64_t time_of_peak() const { return peak_at_; }
  // The first instant at which more than that is held; none: never.
  [[nodiscard]] std::int64_t first_above(std::int64_t bytes, std::int64_t none) const;
  [[nodiscard]] Held at(std::int64_t time) const;
  // The most each ever holds.
  [[nodiscard]] const Held& most_held() const { return most_held_; }
  [[nodiscard]] static std::int64_t sum(const Held& held);

  // One entry per whole pixel of the axis. O(columns x (log changes + changes of one block)).
  [[nodiscard]] std::vector<Held> fold(const TimeAxis& axis) const;

 private:
  static constexpr std::size_t block = 64;
  [[nodiscard]] Held after(std::size_t changes) const;  // held after so many changes
  // The index in changes [first, last) after which most is held. first < last.
  [[nodiscard]] std::size_t most(std::size_t first, std::size_t last) const;

  std::array<Owner, most_owners> owners_;
  std::vector<std::int64_t> at_, bytes_, total_;  // by change; total_: held after it
  std::vector<std::uint8_t> owner_;
  std::vector<Held> before_;               // the changes of each block
  std::vector<std::uint32_t> block_most_;  // most() of each block
  Held most_held_{};
  std::int64_t peak_ = 0, peak_at_ = 0;
};

}  // namespace spillway::gui
