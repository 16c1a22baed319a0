// Reads the data part of Python pickles without ever running what a pickle can ask Python to run.
//
// A pickle is a program for a stack machine. Only the instructions that build plain values are known
// here: none, booleans, integers (up to 64 bits), floats, text, lists, tuples, dictionaries, and the memo
// that lets values be shared. Whatever names or calls something (GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ,
// PERSID, EXT...) is refused with the instruction and its byte offset. Protocols 2 to 5.
//
// Values live in one arena and refer to each other by index, so a list shared a thousand times is stored
// once. A pickle can make a list contain itself; nothing here follows references, so that is harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_limit.h"

namespace spillway::traces {

struct PickleLimits {
  std::uint32_t max_depth = 256;  // marks open at once
  // Lists that are the value of this dictionary key stay empty (stack frames: most of a snapshot's bytes).
  std::string skipped_key;
};

class Pickle {
 public:
  using Ref = std::uint32_t;
  static constexpr Ref no_value = 0xffffffffU;
  enum class Kind : std::uint8_t { none, boolean, integer, unsigned_integer, floating, text, list, tuple, dictionary };

  // Takes the whole file; what is made of it is counted in `memory`. Throws InputError (place: byte offset). O(bytes).
  Pickle(std::string bytes, FileMemory& memory, const PickleLimits& limits);

  [[nodiscard]] Ref root() const { return root_; }
  // Items of all lists, tuples and dictionaries together. A walk over more of them than that meets some again.
  [[nodiscard]] std::uint64_t item_count() const { return items_; }
  [[nodiscard]] Kind kind(Ref value) const { return values_[value].kind; }
  // Nothing when the value is missing, of another kind or out of range. Booleans count as integers.
  [[nodiscard]] std::optional<std::int64_t> integer(Ref value) const;
  [[nodiscard]] std::optional<std::uint64_t> unsigned_integer(Ref value) const;
  [[nodiscard]] std::optional<double> floating(Ref value) const;
  [[nodiscard]] std::string_view text(Ref value) const;  // empty when not text
  // Elements of a list or tuple; key, value, key, value... of a dictionary; else empty.
  [[nodiscard]] std::span<const Ref> items(Ref value) const;
  // Value of a text key; the last one wins, as in Python. O(keys).
  [[nodiscard]] Ref find(Ref dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Value {
    Kind kind = Kind::none;
    std::uint32_t length = 0;   // of text
    std::uint64_t payload = 0;  // integer, float bits, text offset, or index into lists_
  };
  std::string bytes_;
  std::vector<Value> values_;
  std::vector<std::vector<Ref>> lists_;
  std::uint64_t items_ = 0;
  Ref root_ = no_value;
};

}  // namespace spillway::traces
