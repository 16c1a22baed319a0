#include "base/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files_in_use.h"
#include "base/input_error.h"
#include "base/memory_limit.h"

namespace spillway {
namespace {

constexpr std::size_t input_buffer_bytes = 256 << 10, least_buffer_bytes = 1 << 10;
constexpr std::size_t peek_limit_bytes = 64 << 10;
constexpr std::uint64_t progress_interval_bytes = 8 << 20;
constexpr std::size_t read_all_chunk_bytes = 1 << 20, least_chunk_bytes = 16 << 10;

enum class Compression : std::uint8_t { none, gzip, zstd };

Compression detect(std::span<const std::byte> head) {
  const auto at = [&](std::size_t i) { return i < head.size() ? std::to_integer<unsigned>(head[i]) : 0x100U; };
  if (at(0) == 0x1f && at(1) == 0x8b && at(2) == 0x08) return Compression::gzip;
  const bool is_frame = at(0) == 0x28 && at(1) == 0xb5 && at(2) == 0x2f && at(3) == 0xfd;
  const bool is_skippable = at(0) >> 4U == 5 && at(1) == 0x2a && at(2) == 0x4d && at(3) == 0x18;
  if (is_frame || is_skippable) return Compression::zstd;
  return Compression::none;
}

struct InflateDeleter {
  void operator()(z_stream* stream) const {
    inflateEnd(stream);
    delete stream;
  }
};
struct ZstdDeleter {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

}  // namespace

struct ByteSource::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (descriptor >= 0) ::close(descriptor);
  }

  std::string name;
  int descriptor = -1;                // -1: bytes in memory
  std::span<const std::byte> memory;  // what is left of them
  std::uint64_t total_on_disk = 0;
  std::uint64_t read_from_disk = 0;
  std::uint64_t max_decompressed = 0;
  Progress progress;
  std::uint64_t next_report = progress_interval_bytes;

  Compression compression = Compression::none;
  std::unique_ptr<z_stream, InflateDeleter> inflater;
  std::unique_ptr<ZSTD_DStream, ZstdDeleter> unzstd;
  bool inside_frame = false;  // compressed data may not end here
  bool ended = false;
  bool begun = false;  // whether the byte order mark has been looked for

  std::vector<std::byte> input;  // raw bytes [input_begin, input_end) wait to be delivered or decompressed
  std::size_t input_begin = 0, input_end = 0;
  std::vector<std::byte> ahead;  // delivered bytes that peek() has looked at: [ahead_begin, ahead.size())
  std::size_t ahead_begin = 0;
  std::uint64_t produced = 0;  // bytes that left deliver()
  std::uint64_t consumed = 0;

  void start();
  std::size_t read_raw(std::span<std::byte> into);
  bool refill();
  std::size_t deliver(std::span<std::byte> into);
  std::size_t copy_plain(std::span<std::byte> into);
  std::size_t inflate_some(std::span<std::byte> into);
  std::size_t unzstd_some(std::span<std::byte> into);
  bool next_gzip_member();
  void skip_mark();
  void look_ahead(std::size_t count);
  void report(bool at_end);
  [[nodiscard]] std::string raw_place() const {
    return "byte " + std::to_string(read_from_disk - (input_end - input_begin));
  }
  [[noreturn]] void fail_truncated() const {
    throw InputError(name, raw_place(), "the compressed data ends in the middle", "copy or download the file again");
  }
  [[noreturn]] void fail_corrupt(const char* detail) const {
    throw InputError(name, raw_place(), std::string("the compressed data is damaged (") + detail + ")",
                     "copy or download the file again");
  }
};

void ByteSource::State::start() {
  input.resize(std::clamp<std::size_t>(total_on_disk, least_buffer_bytes, input_buffer_bytes));
  refill();
  compression = detect(std::span(input).first(input_end));
  if (compression == Compression::gzip) {
    auto stream = std::make_unique<z_stream>();
    constexpr int gzip_window = 15 + 16;
    SPILLWAY_ASSERT(inflateInit2(stream.get(), gzip_window) == Z_OK);
    inflater.reset(stream.release());
    inside_frame = true;
  } else if (compression == Compression::zstd) {
    unzstd.reset(ZSTD_createDStream());
    SPILLWAY_ASSERT(unzstd != nullptr);
    inside_frame = true;
  }
}

// Up to into.size() bytes as they lie on disk; 0 only at the end.
std::size_t ByteSource::State::read_raw(std::span<std::byte> into) {
  if (descriptor < 0) {
    const std::size_t count = std::min(into.size(), memory.size());
    if (count != 0) std::memcpy(into.data(), memory.data(), count);
    memory = memory.subspan(count);
    read_from_disk += count;
    return count;
  }
  while (true) {
    const ssize_t got = ::read(descriptor, into.data(), into.size());
    if (got >= 0) {
      read_from_disk += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR)
      throw InputError(name, raw_place(), std::string("can't be read: ") + std::strerror(errno),
                       "check the disk or copy the file");
  }
}

bool ByteSource::State::refill() {
  input_begin = 0;
  input_end = read_raw(input);
  return input_end != 0;
}

std::size_t ByteSource::State::copy_plain(std::span<std::byte> into) {
  if (input_begin == input_end) return read_raw(into);
  const std::size_t count = std::min(into.size(), input_end - input_begin);
  std::memcpy(into.data(), input.data() + input_begin, count);
  input_begin += count;
  return count;
}

// Between gzip members: true if another one follows, false at the end of the file.
bool ByteSource::State::next_gzip_member() {
  while (true) {
    if (input_begin == input_end && !refill()) return false;
    const auto head = std::to_integer<unsigned>(input[input_begin]);
    if (head == 0x1f) break;
    if (head != 0) fail_corrupt("bytes after the end of the gzip data");
    ++input_begin;
  }
  SPILLWAY_ASSERT(inflateReset(inflater.get()) == Z_OK);
  inside_frame = true;
  return true;
}

std::size_t ByteSource::State::inflate_some(std::span<std::byte> into) {
  z_stream& z = *inflater;
  const std::size_t wanted = std::min<std::size_t>(into.size(), 1U << 30);
  while (true) {
    if (!inside_frame && !next_gzip_member()) return 0;
    if (input_begin == input_end && !refill()) fail_truncated();
    z.next_in = reinterpret_cast<Bytef*>(input.data() + input_begin);
    z.avail_in = static_cast<uInt>(input_end - input_begin);
    z.next_out = reinterpret_cast<Bytef*>(into.data());
    z.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&z, Z_NO_FLUSH);
    input_begin = input_end - z.avail_in;
    if (result == Z_STREAM_END)
      inside_frame = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
      fail_corrupt(z.msg != nullptr ? z.msg : "gzip");
    if (z.avail_out != wanted) return wanted - z.avail_out;
  }
}

std::size_t ByteSource::State::unzstd_some(std::span<std::byte> into) {
  while (true) {
    if (input_begin == input_end && !refill()) {
      if (inside_frame) fail_truncated();
      return 0;
    }
    ZSTD_inBuffer in{input.data() + input_begin, input_end - input_begin, 0};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    const std::size_t result = ZSTD_decompressStream(unzstd.get(), &out, &in);
    input_begin += in.pos;
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
      throw InputError(name, raw_place(), "was compressed with a window of more than 128 MiB (zstd --long)",
                       "decompress it with zstd -d --long=31 and open the result");
    if (ZSTD_isError(result) != 0) fail_corrupt(ZSTD_getErrorName(result));
    inside_frame = result != 0;
    if (out.pos != 0) return out.pos;
  }
}

void ByteSource::State::report(bool at_end) {
  if (!at_end && produced < next_report) return;
  next_report = produced + progress_interval_bytes;
  if (at_end || produced > progress_interval_bytes) check_memory_limit(name, raw_place());
  if (progress && !progress(read_from_disk, total_on_disk)) throw Cancelled{};
}

// Fills `into`; less only at the end.
std::size_t ByteSource::State::deliver(std::span<std::byte> into) {
  std::size_t filled = 0;
  while (filled < into.size() && !ended) {
    const auto rest = into.subspan(filled);
    const std::size_t got = compression == Compression::none   ? copy_plain(rest)
                            : compression == Compression::gzip ? inflate_some(rest)
                                                               : unzstd_some(rest);
    filled += got;
    produced += got;
    ended = got == 0;
    if (compression != Compression::none && produced > max_decompressed)
      throw InputError(name, raw_place(), "decompresses to more than " + std::to_string(max_decompressed) + " bytes",
                       "decompress it yourself and open the result if it is really that large");
    report(ended);
  }
  return filled;
}

ByteSource::ByteSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

ByteSource ByteSource::open(const std::string& path, std::uint64_t max_decompressed_bytes, Progress progress) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw InputError(path, "", std::string("can't be opened: ") + std::strerror(errno), "check the path");
  if (!S_ISREG(info.st_mode))
    throw InputError(path, "", S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file",
                     "name a file; copy a pipe's or device's content to one first");
  auto state = std::make_unique<State>();
  state->name = path;
  state->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (state->descriptor < 0)
    throw InputError(path, "", std::string("can't be opened: ") + std::strerror(errno), "check its permissions");
  note_file_in_use(path);
  ::posix_fadvise(state->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  state->total_on_disk = static_cast<std::uint64_t>(info.st_size);
  state->max_decompressed = max_decompressed_bytes;
  state->progress = std::move(progress);
  state->start();
  return ByteSource(std::move(state));
}

ByteSource ByteSource::from_memory(std::string name, std::span<const std::byte> bytes,
                                   std::uint64_t max_decompressed_bytes) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->memory = bytes;
  state->total_on_disk = bytes.size();
  state->max_decompressed = max_decompressed_bytes;
  state->start();
  return ByteSource(std::move(state));
}

// At the first look, not when the file is opened: what is wrong with it shows as it is read.
void ByteSource::State::skip_mark() {
  if (begun) return;
  begun = true;
  constexpr std::array<std::byte, 3> mark = {std::byte{0xef}, std::byte{0xbb}, std::byte{0xbf}};
  look_ahead(mark.size());
  if (!std::equal(ahead.begin(), ahead.end(), mark.begin(), mark.end())) return;
  ahead_begin = consumed = mark.size();
}

void ByteSource::State::look_ahead(std::size_t count) {
  if (ahead.size() - ahead_begin >= count) return;
  ahead.erase(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(ahead_begin));
  ahead_begin = 0;
  const std::size_t had = ahead.size();
  ahead.resize(count);
  ahead.resize(had + deliver(std::span(ahead).subspan(had)));
}

std::size_t ByteSource::read(std::span<std::byte> into) {
  State& s = *state_;
  s.skip_mark();
  const std::size_t kept = std::min(into.size(), s.ahead.size() - s.ahead_begin);
  if (kept != 0) std::memcpy(into.data(), s.ahead.data() + s.ahead_begin, kept);
  s.ahead_begin += kept;
  const std::size_t filled = kept + s.deliver(into.subspan(kept));
  s.consumed += filled;
  return filled;
}

std::span<const std::byte> ByteSource::peek(std::size_t count) {
  SPILLWAY_ASSERT(count <= peek_limit_bytes);
  State& s = *state_;
  s.skip_mark();
  s.look_ahead(count);
  const auto waiting = std::span<const std::byte>(s.ahead).subspan(s.ahead_begin);
  return waiting.first(std::min(count, waiting.size()));
}

std::string ByteSource::read_all(std::uint64_t limit) {
  std::string all;
  while (true) {
    const std::size_t had = all.size();
    const std::size_t chunk = std::clamp(had, least_chunk_bytes, read_all_chunk_bytes);
    all.resize(had + chunk);
    const std::size_t got = read(std::as_writable_bytes(std::span(all)).subspan(had));
    all.resize(had + got);
    if (all.size() > limit)
      throw InputError(name(), "", "is larger than " + std::to_string(limit) + " bytes",
                       "this format is read as a whole; record a shorter window");
    if (got < chunk) return all;
  }
}

const std::string& ByteSource::name() const { return state_->name; }
std::uint64_t ByteSource::position() const { return state_->consumed; }

}  // namespace spillway
