#include "traces/formats/spillway_binary.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/memory_limit.h"
#include "traces/acyclic.h"
#include "traces/trace_columns.h"

namespace spillway::traces {
namespace {

constexpr std::uint64_t format_version = 1;
constexpr std::uint64_t longest_varint = 10;
// Steps are made of layers that are alike, so columns of a long one may take next to nothing in the file: bytes that
// the tables may unfold to for each of it.
constexpr std::uint64_t regular_tables = 2048;

std::uint64_t zigzag(std::uint64_t value) { return value << 1U ^ (0 - (value >> 63U)); }
std::uint64_t unzigzag(std::uint64_t value) { return value >> 1U ^ (0 - (value & 1U)); }

void write_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 70 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xffU);
  return text;
}

// Differences wrap around like unsigned numbers, so every int64 comes back.
class NumberPacker {
 public:
  void add(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    write_varint(bytes_, zigzag(bits - before_));
    before_ = bits;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t before_ = 0;
};

class Writer {
 public:
  explicit Writer(OutputFile& out) : out_(out), context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  void section(const std::string& name, std::uint64_t rows, const std::string& raw) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    const std::size_t size = ZSTD_compress2(context_.get(), packed.data(), packed.size(), raw.data(), raw.size());
    SPILLWAY_ASSERT(ZSTD_isError(size) == 0);
    out_.write(static_cast<char>(name.size()) + name + little_endian(rows, 8) + little_endian(size, 8));
    out_.write(std::string_view(packed).substr(0, size));
  }

  template <class Texts>
  void texts(const std::string& name, const Texts& list, std::size_t count) {
    std::string raw;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view text = list(i);
      write_varint(raw, text.size());
      raw += text;
    }
    section(name, count, raw);
  }

  void table(const char* name, std::size_t rows) {
    table_ = name;
    rows_ = rows;
  }
  bool optional_table(const char* name, std::size_t rows) {
    table(name, rows);
    return rows > 0;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType&, const Resize&, const Get& get, const Set&) {
    NumberPacker packer;
    for (std::size_t i = 0; i < rows_; ++i) packer.add(get(i));
    section(std::string(table_) + "." + name, rows_, packer.bytes());
  }

 private:
  OutputFile& out_;
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context_;
  const char* table_ = "";
  std::size_t rows_ = 0;
};

class Reader {
 public:
  Reader(ByteSource& source, const ReadOptions& options)
      : source_(source),
        left_(options.max_decompressed_bytes),
        memory_(source.name()),
        of_tables_(source.name(), regular_tables),
        context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {}

  void header() {
    if (take(spillway_binary_magic.size()) != spillway_binary_magic) fail("not a spillway trace");
    const std::uint64_t version = number(4);
    if (version != format_version)
      throw InputError(source_.name(), "byte 8",
                       "version " + std::to_string(version) + " of the trace format is not known",
                       "use the spillway that wrote it, or a later one");
  }

  std::vector<std::string> texts(const std::string& name) {
    const std::uint64_t rows = begin_section(name);
    std::string raw;
    decompress([&](std::string_view bytes) {
      if (rows == 0) fail("section \"" + name + "\" has bytes left over");
      memory_.add(bytes.size());
      raw += bytes;
    });
    if (rows > raw.size()) fail("section \"" + name + "\" claims more rows than it has bytes");
    memory_.add(rows * sizeof(std::string));
    std::string_view rest = raw;
    std::vector<std::string> list;
    for (std::uint64_t i = 0; i < rows; ++i) {
      std::uint64_t length = 0;
      if (!take_varint(rest, length) || length > rest.size()) fail("section \"" + name + "\" is damaged");
      list.emplace_back(rest.substr(0, static_cast<std::size_t>(length)));
      rest.remove_prefix(static_cast<std::size_t>(length));
    }
    if (!rest.empty()) fail("section \"" + name + "\" has bytes left over");
    return list;
  }

  // Numbers are made as their bytes come, so what a section unfolds to is never there as a whole.
  std::vector<std::int64_t> numbers(const std::string& name, FileMemory& memory) {
    const std::uint64_t rows = begin_section(name);
    std::vector<std::int64_t> values;
    std::uint64_t before = 0;
    std::string cut_off;  // the first bytes of a number whose others come with the next chunk
    decompress([&](std::string_view bytes) {
      if (!cut_off.empty()) bytes = cut_off += bytes;
      while (!bytes.empty()) {
        std::string_view rest = bytes;
        std::uint64_t difference = 0;
        if (!take_varint(rest, difference)) {
          if (!rest.empty() || bytes.size() >= longest_varint) fail("section \"" + name + "\" is damaged");
          break;
        }
        bytes = rest;
        if (values.size() == rows) fail("section \"" + name + "\" has bytes left over");
        before += unzigzag(difference);
        if (values.size() == values.capacity()) grow(values, rows, memory);
        values.push_back(static_cast<std::int64_t>(before));
      }
      cut_off = std::string(bytes);
    });
    if (!cut_off.empty() || values.size() != rows) fail("section \"" + name + "\" is damaged");
    return values;
  }

  std::vector<std::int64_t> numbers(const std::string& name) { return numbers(name, memory_); }

  void end() {
    if (begin_section("end") != 0) fail("rows at the end");
    decompress([&](std::string_view) { fail("bytes at the end"); });
    if (!source_.peek(1).empty()) fail("bytes after the end");
  }

  void table(const char* name, std::size_t) {
    table_ = name;
    known_rows_ = false;
  }
  bool optional_table(const char* name, std::size_t) {
    table(name, 0);
    const std::string start = std::string(name) + ".";
    const auto next = source_.peek(start.size() + 1);
    return next.size() == start.size() + 1 && std::memcmp(next.data() + 1, start.data(), start.size()) == 0;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType&, const Resize& resize, const Get&, const Set& set) {
    const std::string section = std::string(table_) + "." + name;
    const std::vector<std::int64_t> values = numbers(section, of_tables_);
    if (known_rows_ && values.size() != rows_)
      fail("the columns of table \"" + std::string(table_) + "\" differ in length");
    known_rows_ = true;
    rows_ = values.size();
    resize(rows_);
    for (std::size_t i = 0; i < rows_; ++i)
      if (!set(i, values[i])) fail("a value of \"" + section + "\" is out of range");
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(source_.name(), "byte " + std::to_string(start_), cause,
                     "the file is damaged or cut off; convert the trace again");
  }

 private:
  std::string take(std::size_t count) {
    std::string bytes(count, '\0');
    if (source_.read(std::as_writable_bytes(std::span(bytes.data(), count))) != count) fail("the file ends too early");
    return bytes;
  }
  std::uint64_t number(int bytes) {
    const std::string text = take(static_cast<std::size_t>(bytes));
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8U | static_cast<std::uint8_t>(text[static_cast<std::size_t>(i)]);
    return value;
  }

  // The next section, which must have this name: its rows. decompress() has its content.
  std::uint64_t begin_section(const std::string& name) {
    start_ = source_.position();
    const std::string found = take(static_cast<std::size_t>(number(1)));
    if (found != name) fail("section \"" + name + "\" is missing");
    return number(8);
  }

  static void grow(std::vector<std::int64_t>& values, std::uint64_t rows, FileMemory& memory) {
    constexpr std::uint64_t first = 4096;
    const std::uint64_t more =
        std::min<std::uint64_t>(std::max<std::uint64_t>(values.capacity(), first), rows - values.size());
    memory.add(more * sizeof(std::int64_t));
    values.reserve(static_cast<std::size_t>(values.size() + more));
  }

  // Both sides go through buffers, so a claimed size allocates nothing.
  template <class Visit>
  void decompress(const Visit& visit) {
    std::uint64_t packed = number(8);
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    std::string in, out(std::size_t{1} << 17, '\0');
    std::size_t hint = 1;
    while (packed > 0) {
      in = take(static_cast<std::size_t>(std::min<std::uint64_t>(packed, std::uint64_t{1} << 16)));
      packed -= in.size();
      ZSTD_inBuffer input{in.data(), in.size(), 0};
      for (bool full = true; input.pos < input.size || (full && hint != 0);) {
        ZSTD_outBuffer output{out.data(), out.size(), 0};
        hint = ZSTD_decompressStream(context_.get(), &output, &input);
        if (ZSTD_isError(hint) != 0) fail(std::string("compressed data is damaged: ") + ZSTD_getErrorName(hint));
        if (output.pos > left_) fail("more decompressed bytes than are allowed");
        left_ -= output.pos;
        if (output.pos > 0) visit(std::string_view(out.data(), output.pos));
        full = output.pos == output.size;
        if (hint == 0 && input.pos < input.size) fail("bytes after the compressed data of a section");
      }
    }
    if (hint != 0) fail("the compressed data of a section is cut off");
  }

  ByteSource& source_;
  std::uint64_t left_;
  FileMemory memory_, of_tables_;
  std::uint64_t start_ = 0;
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
  const char* table_ = "";
  std::size_t rows_ = 0;
  bool known_rows_ = false;
};

}  // namespace

void write_spillway_binary(const Trace& trace, OutputFile& out) {
  out.write(std::string(spillway_binary_magic) + little_endian(format_version, 4));
  Writer writer(out);
  writer.texts(
      "strings", [&](std::size_t i) { return trace.strings.text(static_cast<StringId>(i)); }, trace.strings.size());
  const TraceRemainder remainder = remainder_of(trace);
  writer.texts(
      "about.texts", [&](std::size_t i) { return std::string_view(remainder.texts[i]); }, remainder.texts.size());
  NumberPacker numbers;
  for (const std::int64_t number : remainder.numbers) numbers.add(number);
  writer.section("about.numbers", remainder.numbers.size(), numbers.bytes());
  visit_trace(const_cast<Trace&>(trace), writer);  // only reads: set is never called
  writer.section("end", 0, "");
}

Trace read_spillway_binary(ByteSource& source, const ReadOptions& options) {
  Reader reader(source, options);
  reader.header();
  Trace trace;
  for (const std::string& text : reader.texts("strings")) trace.strings.intern(text);
  TraceRemainder remainder;
  remainder.texts = reader.texts("about.texts");
  remainder.numbers = reader.numbers("about.numbers");
  if (!restore_remainder(remainder, trace)) reader.fail("section \"about\" does not fit together");
  visit_trace(trace, reader);
  reader.end();
  const std::string problem = first_inconsistency(trace);
  if (!problem.empty()) reader.fail(problem + " refers to something that is not there");
  check_acyclic(trace);
  trace.check_invariants();
  return trace;
}

}  // namespace spillway::traces
