// A file as a stream of bytes, decompressed on the fly: plain, gzip (also several members) or zstd.
//
// The compression is found by the first bytes, never by the name. Memory: one input and one output buffer, of zstd its
// window (128 MiB or less). `max_decompressed_bytes` bounds what compressed input may unfold to; plain files may be of
// any size. A UTF-8 byte order mark at the beginning is left out: no reader of a text need know it. Errors (missing,
// unreadable, truncated or corrupt compressed data, more than the allowed bytes) are InputErrors that name the file
// and the byte offset. Zero padding after the last gzip member and zstd's skippable frames are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace spillway {

// Thrown when a progress callback says stop. Not an error of the input, so not an InputError.
struct Cancelled {};

class ByteSource {
 public:
  // Called about every 8 MiB of what is delivered, and once at the end.
  // bytes_read / bytes_total are of the file on disk; return false to cancel (throws Cancelled).
  using Progress = std::function<bool(std::uint64_t bytes_read, std::uint64_t bytes_total)>;

  // Directories, devices and fifos are refused.
  static ByteSource open(const std::string& path, std::uint64_t max_decompressed_bytes, Progress progress = {});
  // Bytes in memory, for tests and fuzzers; `name` stands for the file in messages. Decompresses as open() does.
  static ByteSource from_memory(std::string name, std::span<const std::byte> bytes,
                                std::uint64_t max_decompressed_bytes);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Fills `into` from the front; returns the count, less than into.size() only at the end, 0 at the end.
  std::size_t read(std::span<std::byte> into);
  // Looks at the next up to `count` (at most 64 KiB) bytes without consuming them.
  std::span<const std::byte> peek(std::size_t count);
  // Everything that is left. Throws InputError when it is more than `limit`.
  std::string read_all(std::uint64_t limit);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::uint64_t position() const;  // decompressed bytes consumed

 private:
  struct State;
  explicit ByteSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace spillway
