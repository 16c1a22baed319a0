#include "base/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/input_error.h"

namespace spillway {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::string limit_error(FileMemory& memory, std::uint64_t bytes) {
  try {
    for (; bytes > 0; bytes -= mib) memory.add(mib);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// A file of 1 MiB may ask for 64 MiB and 512 times its size, however many pieces that comes in.
TEST(FileMemory, IsInProportionToTheFile) {
  const std::string path = testing::TempDir() + "memory_limit_test.bin";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  const std::string content(mib, 'x');
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
  constexpr std::uint64_t allowed = (64 + 512) * mib;
  FileMemory memory(path);
  EXPECT_EQ(limit_error(memory, allowed), "");
  const std::string error = limit_error(memory, 8 * mib);
  EXPECT_NE(error.find(path), std::string::npos) << error;
  EXPECT_NE(error.find("576.0 MiB"), std::string::npos) << error;
  FileMemory at_once(path);
  EXPECT_THROW(at_once.add(std::uint64_t{1} << 60), InputError);
  std::remove(path.c_str());
}

TEST(FileMemory, KeepsToTheMemoryLimit) {
  FileMemory memory("memory");
  EXPECT_EQ(limit_error(memory, 8 * mib), "");
  const std::uint64_t before = memory_limit();
  memory_limit() = 1;
  EXPECT_NE(limit_error(memory, 8 * mib).find("--memory-limit"), std::string::npos);
  memory_limit() = before;
}

}  // namespace
}  // namespace spillway
