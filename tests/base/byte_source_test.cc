#include "base/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_error.h"

namespace spillway {
namespace {

constexpr std::uint64_t no_limit = std::uint64_t{1} << 40;

std::string gzip(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string sample() {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

std::string read_back(const std::string& stored, std::uint64_t limit = no_limit) {
  return ByteSource::from_memory("memory", std::as_bytes(std::span(stored)), limit).read_all(no_limit);
}

std::string error_of(const std::string& stored, std::uint64_t limit = no_limit) {
  try {
    read_back(stored, limit);
  } catch (const InputError& error) {
    return error.cause();
  }
  return "";
}

// What comes out is what went in, whatever the wrapping.
TEST(ByteSource, DeliversTheSameBytesPlainAndCompressed) {
  const std::string text = sample();
  EXPECT_EQ(read_back(text), text);
  EXPECT_EQ(read_back(gzip(text)), text);
  EXPECT_EQ(read_back(zstd(text)), text);
  EXPECT_EQ(read_back(""), "");
}

// RFC 1952, 2.2: a gzip file is a series of members that are simply concatenated; zstd frames likewise (RFC 8878).
TEST(ByteSource, JoinsSeveralMembers) {
  EXPECT_EQ(read_back(gzip("one ") + gzip("") + gzip("two")), "one two");
  EXPECT_EQ(read_back(zstd("one ") + zstd("two")), "one two");
  EXPECT_EQ(read_back(gzip("padded") + std::string(512, '\0')), "padded");
}

// A mark at the very beginning is left out, once; elsewhere it is a letter as any other.
TEST(ByteSource, LeavesOutAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF", text = "{\"a\": \"" + mark + "\"}";
  for (const std::string& stored : {mark + text, gzip(mark + text), zstd(mark + text)})
    EXPECT_EQ(read_back(stored), text);
  EXPECT_EQ(read_back(mark + mark), mark);
  EXPECT_EQ(read_back(mark), "");
  EXPECT_EQ(read_back(mark.substr(0, 2)), mark.substr(0, 2));
  const std::string stored = mark + text;
  ByteSource source = ByteSource::from_memory("memory", std::as_bytes(std::span(stored)), no_limit);
  EXPECT_EQ(static_cast<char>(source.peek(1)[0]), '{');
  EXPECT_EQ(source.position(), mark.size());
}

// What other programs put into a zstd file beside its data: pzstd's, a seek table.
TEST(ByteSource, SkipsSkippableFrames) {
  const std::string skippable = std::string("\x5a\x2a\x4d\x18\x05\0\0\0", 8) + "12345", text = sample();
  EXPECT_EQ(read_back(skippable + zstd(text)), text);
  EXPECT_EQ(read_back(skippable + skippable + zstd(text) + skippable + zstd(text) + skippable), text + text);
  EXPECT_EQ(read_back(skippable), "");
  EXPECT_NE(error_of(skippable.substr(0, 10)), "");
}

// A frame that asks for 2 GiB, as zstd --long=31 writes of a pipe.
TEST(ByteSource, SaysThatAWindowIsTooLarge) {
  const std::string frame("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9);
  EXPECT_NE(error_of(frame).find("window of more than 128 MiB"), std::string::npos) << error_of(frame);
}

TEST(ByteSource, RefusesDamagedData) {
  const std::string text = sample();
  const std::string packed = gzip(text), zpacked = zstd(text);
  EXPECT_NE(error_of(packed.substr(0, packed.size() / 2)).find("ends in the middle"), std::string::npos);
  EXPECT_NE(error_of(packed.substr(0, packed.size() - 1)).find("ends in the middle"), std::string::npos);
  EXPECT_NE(error_of(zpacked.substr(0, zpacked.size() / 2)).find("ends in the middle"), std::string::npos);
  EXPECT_NE(error_of(packed + "garbage").find("damaged"), std::string::npos);
  std::string flipped = packed;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x55);
  EXPECT_NE(error_of(flipped).find("damaged"), std::string::npos);
}

// 64 MiB of zeros pack into 64 KiB: unfolding stops soon after the allowed size.
TEST(ByteSource, StopsAtTheDecompressedLimit) {
  const std::string bomb = gzip(std::string(64U << 20, '\0'));
  EXPECT_NE(error_of(bomb, 1U << 20).find("more than 1048576 bytes"), std::string::npos);
  EXPECT_EQ(error_of(bomb, 64U << 20), "");
}

TEST(ByteSource, PeekDoesNotConsume) {
  const std::string stored = gzip("abcdefgh");
  ByteSource source = ByteSource::from_memory("memory", std::as_bytes(std::span(stored)), no_limit);
  const auto text_of = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text_of(source.peek(3)), "abc");
  EXPECT_EQ(source.position(), 0U);
  std::array<std::byte, 2> two{};
  EXPECT_EQ(source.read(two), 2U);
  EXPECT_EQ(source.position(), 2U);
  EXPECT_EQ(text_of(source.peek(64)), "cdefgh");
  EXPECT_EQ(source.read_all(no_limit), "cdefgh");
  EXPECT_EQ(source.read(two), 0U);
  EXPECT_EQ(source.position(), 8U);
}

TEST(ByteSource, OpensFilesOnly) {
  const std::filesystem::path folder = testing::TempDir();
  EXPECT_THROW(ByteSource::open(folder.string(), no_limit), InputError);
  EXPECT_THROW(ByteSource::open((folder / "no_such_file").string(), no_limit), InputError);
  EXPECT_THROW(ByteSource::open("/dev/null", no_limit), InputError);
  const std::string path = (folder / "byte_source_test.bin").string();
  std::ofstream(path, std::ios::binary) << "content";
  EXPECT_EQ(ByteSource::open(path, no_limit).read_all(no_limit), "content");
  EXPECT_THROW(ByteSource::open(path, no_limit).read_all(3), InputError);
  std::filesystem::remove(path);
}

// Reports grow up to the size on disk; saying no throws Cancelled.
TEST(ByteSource, ReportsProgressAndCancels) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "byte_source_progress.bin").string();
  const std::string content(20U << 20, 'x');
  std::ofstream(path, std::ios::binary) << content;
  std::uint64_t last = 0;
  int reports = 0;
  auto source = ByteSource::open(path, no_limit, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, content.size());
    EXPECT_GE(done, last);
    last = done;
    ++reports;
    return true;
  });
  EXPECT_EQ(source.read_all(no_limit).size(), content.size());
  EXPECT_EQ(last, content.size());
  EXPECT_GE(reports, 3);
  auto cancelled = ByteSource::open(path, no_limit, [](std::uint64_t, std::uint64_t) { return false; });
  EXPECT_THROW(cancelled.read_all(no_limit), Cancelled);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace spillway
