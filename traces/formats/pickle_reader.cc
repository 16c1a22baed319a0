#include "traces/formats/pickle_reader.h"

#include <bit>
#include <cstdio>
#include <utility>

#include "base/input_error.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

// Instruction codes, as the pickle protocol numbers them.
enum Code : std::uint8_t {
  op_mark = '(',
  op_stop = '.',
  op_none = 'N',
  op_binfloat = 'G',
  op_binint = 'J',
  op_binint1 = 'K',
  op_binint2 = 'M',
  op_binunicode = 'X',
  op_append = 'a',
  op_appends = 'e',
  op_empty_dict = '}',
  op_setitem = 's',
  op_setitems = 'u',
  op_binget = 'h',
  op_long_binget = 'j',
  op_binput = 'q',
  op_long_binput = 'r',
  op_tuple = 't',
  op_empty_tuple = ')',
  op_empty_list = ']',
  op_proto = 0x80,
  op_tuple1 = 0x85,
  op_tuple2 = 0x86,
  op_tuple3 = 0x87,
  op_newtrue = 0x88,
  op_newfalse = 0x89,
  op_long1 = 0x8a,
  op_long4 = 0x8b,
  op_short_binunicode = 0x8c,
  op_binunicode8 = 0x8d,
  op_memoize = 0x94,
  op_frame = 0x95
};

std::string describe_code(std::uint8_t code) {
  const std::pair<std::uint8_t, const char*> known[] = {
      {'c', "GLOBAL"},        {'R', "REDUCE"},         {'b', "BUILD"},        {'i', "INST"},
      {'o', "OBJ"},           {'P', "PERSID"},         {'Q', "BINPERSID"},    {0x81, "NEWOBJ"},
      {0x82, "EXT1"},         {0x83, "EXT2"},          {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
      {0x93, "STACK_GLOBAL"}, {0x96, "BYTEARRAY8"},    {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
      {'B', "BINBYTES"},      {'C', "SHORT_BINBYTES"}, {0x8e, "BINBYTES8"},   {0x8f, "EMPTY_SET"},
      {'I', "INT"},           {'L', "LONG"},           {'S', "STRING"},       {'V', "UNICODE"},
      {'F', "FLOAT"},         {'l', "LIST"},           {'d', "DICT"}};
  char text[32];
  std::snprintf(text, sizeof text, "0x%02x", code);
  for (const auto& [number, name] : known)
    if (number == code) return std::string(name) + " (" + text + ")";
  return text;
}

}  // namespace

// The stack machine; builds the arena of one Pickle.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, FileMemory& memory, const PickleLimits& limits)
      : pickle_(pickle), memory_(memory), limits_(limits) {}

  void run() {
    while (!stopped_) {
      start_ = at_;
      step(static_cast<std::uint8_t>(take(1)[0]));
    }
  }

 private:
  using Ref = Pickle::Ref;
  using Kind = Pickle::Kind;

  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "the file is damaged; record it again") {
    throw InputError(memory_.file(), "byte " + std::to_string(start_), cause, remedy);
  }

  std::string_view take(std::uint64_t count) {
    if (count > pickle_.bytes_.size() - at_) fail("the pickle ends in the middle of an instruction");
    const std::string_view bytes(pickle_.bytes_.data() + at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return bytes;
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(width);
    for (std::size_t i = width; i-- > 0;) value = value << 8U | static_cast<std::uint8_t>(bytes[i]);
    return value;
  }

  void push(Kind kind, std::uint64_t payload = 0, std::uint32_t length = 0) {
    if (pickle_.values_.size() >= Pickle::no_value) fail("more than 4 billion values", "record a shorter window");
    memory_.add(sizeof(Pickle::Value));
    pickle_.values_.push_back({kind, length, payload});
    push_ref(static_cast<Ref>(pickle_.values_.size() - 1));
  }

  void push_ref(Ref value) {
    memory_.add(sizeof(Ref));
    stack_.push_back(value);
  }

  void push_list(Kind kind, std::vector<Ref> items = {}) {
    add_items(items.size());
    memory_.add(sizeof items);
    pickle_.lists_.push_back(std::move(items));
    push(kind, pickle_.lists_.size() - 1);
  }

  void add_items(std::size_t count) {
    memory_.add(count * sizeof(Ref));
    pickle_.items_ += count;
  }

  void push_text(std::uint64_t length) {
    const std::size_t offset = at_;
    const std::string_view text = take(length);
    if (length > 0xffffffffU) fail("a text of more than 4 GiB");
    if (!is_utf8(text)) fail("a text that is not UTF-8");
    push(Kind::text, offset, static_cast<std::uint32_t>(length));
  }

  // Little-endian two's complement of any width; values that need more than 64 bits are refused.
  void push_long(std::uint64_t width) {
    const std::string_view bytes = take(width);
    if (width == 0) return push(Kind::integer, 0);
    const bool negative = (static_cast<std::uint8_t>(bytes.back()) & 0x80U) != 0;
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      if (i >= 8 && byte != (negative ? 0xffU : 0U)) fail("an integer of more than 64 bits");
      if (i < 8) value = value << 8U | byte;
    }
    if (negative && width > 8 && value >> 63U == 0) fail("an integer of more than 64 bits");
    push(!negative && value >> 63U != 0 ? Kind::unsigned_integer : Kind::integer, value);
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Ref pop() {
    if (stack_.size() <= floor()) fail("an instruction finds too few values");
    const Ref value = stack_.back();
    stack_.pop_back();
    return value;
  }

  std::vector<Ref> pop_to_mark() {
    if (marks_.empty()) fail("an instruction finds no mark");
    std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void make_tuple(std::size_t count) {
    std::vector<Ref> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_list(Kind::tuple, std::move(items));
  }

  void append(std::span<const Ref> items, Kind wanted) {
    if (stack_.size() <= floor()) fail("an instruction finds too few values");
    const Pickle::Value& target = pickle_.values_[stack_.back()];
    if (target.kind != wanted) fail("items are put into something that can't hold them");
    if (wanted == Kind::dictionary && items.size() % 2 != 0) fail("a key without a value");
    if (target.length == skipped_list) return;
    add_items(items.size());
    auto& list = pickle_.lists_[static_cast<std::size_t>(target.payload)];
    list.insert(list.end(), items.begin(), items.end());
  }

  void append_one(std::size_t count, Kind wanted) {
    Ref items[2] = {};
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    append(std::span(items, count), wanted);
  }

  void empty_list() {
    const bool skip =
        !limits_.skipped_key.empty() && stack_.size() > floor() && pickle_.text(stack_.back()) == limits_.skipped_key;
    push_list(Kind::list);
    if (skip) pickle_.values_.back().length = skipped_list;
  }

  void put(std::uint64_t index) {
    if (stack_.size() <= floor()) fail("an instruction finds too few values");
    // A memo slot costs memory, so an index may run ahead of how much was remembered only by a little.
    if (index > remembered_ + 1024) fail("a memo index out of all proportion");
    if (index >= memo_.size()) {
      memory_.add((index + 1 - memo_.size()) * sizeof(Ref));
      memo_.resize(static_cast<std::size_t>(index) + 1, Pickle::no_value);
    }
    memo_[static_cast<std::size_t>(index)] = stack_.back();
    ++remembered_;
  }

  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == Pickle::no_value)
      fail("a value is asked for that was never remembered");
    push_ref(memo_[static_cast<std::size_t>(index)]);
  }

  void mark() {
    if (marks_.size() >= limits_.max_depth) fail("containers nested deeper than is allowed");
    marks_.push_back(stack_.size());
  }

  void protocol() {
    const auto version = number(1);
    if (version < 2 || version > 5)
      fail("pickle protocol " + std::to_string(version) + " is not known", "save with protocol 2, 3, 4 or 5");
  }

  void stop() {
    if (!marks_.empty() || stack_.size() != 1) fail("the pickle ends with values left over");
    pickle_.root_ = stack_.back();
    stopped_ = true;
  }

  void step(std::uint8_t code) {
    switch (code) {
      case op_proto:
        return protocol();
      case op_frame:
        return static_cast<void>(take(8));  // a hint for buffering; its length is not believed
      case op_mark:
        return mark();
      case op_stop:
        return stop();
      case op_append:
        return append_one(1, Kind::list);
      case op_setitem:
        return append_one(2, Kind::dictionary);
      case op_appends:
        return append(pop_to_mark(), Kind::list);
      case op_setitems:
        return append(pop_to_mark(), Kind::dictionary);
      case op_memoize:
        return put(remembered_);
      case op_binput:
        return put(number(1));
      case op_long_binput:
        return put(number(4));
      case op_binget:
        return get(number(1));
      case op_long_binget:
        return get(number(4));
      default:
        return push_value(code);
    }
  }

  void push_value(std::uint8_t code) {
    switch (code) {
      case op_none:
        return push(Kind::none);
      case op_newtrue:
        return push(Kind::boolean, 1);
      case op_newfalse:
        return push(Kind::boolean, 0);
      case op_binint1:
        return push(Kind::integer, number(1));
      case op_binint2:
        return push(Kind::integer, number(2));
      case op_binint:
        return push(Kind::integer, static_cast<std::uint64_t>(static_cast<std::int32_t>(number(4))));
      case op_long1:
        return push_long(number(1));
      case op_long4:
        return push_long(number(4));
      case op_binfloat:
        return push(Kind::floating, __builtin_bswap64(number(8)));
      case op_short_binunicode:
        return push_text(number(1));
      case op_binunicode:
        return push_text(number(4));
      case op_binunicode8:
        return push_text(number(8));
      case op_empty_list:
        return empty_list();
      case op_empty_dict:
        return push_list(Kind::dictionary);
      case op_empty_tuple:
        return push_list(Kind::tuple);
      case op_tuple:
        return push_list(Kind::tuple, pop_to_mark());
      case op_tuple1:
        return make_tuple(1);
      case op_tuple2:
        return make_tuple(2);
      case op_tuple3:
        return make_tuple(3);
      default:
        fail("the pickle instruction " + describe_code(code) + " is refused: it is not part of plain data",
             "only data made of dictionaries, lists, numbers and text is read, because unpickling anything else can "
             "run code; don't open this file with Python either unless you trust its author");
    }
  }

  static constexpr std::uint32_t skipped_list = 1;  // Value::length of a list whose items are dropped

  Pickle& pickle_;
  FileMemory& memory_;
  const PickleLimits& limits_;
  std::size_t at_ = 0, start_ = 0;
  std::uint64_t remembered_ = 0;
  std::vector<Ref> stack_, memo_;
  std::vector<std::size_t> marks_;
  bool stopped_ = false;
};

Pickle::Pickle(std::string bytes, FileMemory& memory, const PickleLimits& limits) : bytes_(std::move(bytes)) {
  PickleMachine(*this, memory, limits).run();
}

std::optional<std::int64_t> Pickle::integer(Ref value) const {
  if (value == no_value) return {};
  const Value& v = values_[value];
  if (v.kind != Kind::integer && v.kind != Kind::boolean) return {};
  return static_cast<std::int64_t>(v.payload);
}

std::optional<std::uint64_t> Pickle::unsigned_integer(Ref value) const {
  if (value == no_value) return {};
  const Value& v = values_[value];
  const bool positive = v.kind == Kind::integer && static_cast<std::int64_t>(v.payload) >= 0;
  if (!positive && v.kind != Kind::unsigned_integer) return {};
  return v.payload;
}

std::optional<double> Pickle::floating(Ref value) const {
  if (value == no_value || values_[value].kind != Kind::floating) return {};
  return std::bit_cast<double>(values_[value].payload);
}

std::string_view Pickle::text(Ref value) const {
  if (value == no_value || values_[value].kind != Kind::text) return {};
  return {bytes_.data() + values_[value].payload, values_[value].length};
}

std::span<const Pickle::Ref> Pickle::items(Ref value) const {
  if (value == no_value) return {};
  const Kind kind = values_[value].kind;
  if (kind != Kind::list && kind != Kind::tuple && kind != Kind::dictionary) return {};
  return lists_[static_cast<std::size_t>(values_[value].payload)];
}

Pickle::Ref Pickle::find(Ref dictionary, std::string_view key) const {
  if (dictionary == no_value || values_[dictionary].kind != Kind::dictionary) return no_value;
  const auto entries = items(dictionary);
  for (std::size_t i = entries.size(); i >= 2; i -= 2) {
    const Value& name = values_[entries[i - 2]];
    if (name.kind == Kind::text && text(entries[i - 2]) == key) return entries[i - 1];
  }
  return no_value;
}

}  // namespace spillway::traces
