#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/input_error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("output_file_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path folder_;
};

// The file appears at commit, not before, and nothing else is left in its folder.
TEST_F(OutputFileTest, AppearsAtCommit) {
  {
    OutputFile out(path("a"));
    out.write("one ");
    out.write("two");
    EXPECT_FALSE(fs::exists(path("a")));
    out.commit();
  }
  EXPECT_EQ(content(path("a")), "one two");
  EXPECT_EQ(file_count(), 1U);
}

// A link stays one, and the file it leads to is replaced; one that leads nowhere is no place to write.
TEST_F(OutputFileTest, WritesThroughLinks) {
  fs::create_directory(path("far"));
  std::ofstream(path("far/file")) << "old";
  fs::create_symlink("far/file", path("link"));
  check_output(path("link"));
  {
    OutputFile out(path("link"));
    out.write("new");
    out.commit();
  }
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("far/file")), "new");
  fs::create_symlink("nothing", path("dangling"));
  fs::create_symlink("other", path("loop"));
  fs::create_symlink("loop", path("other"));
  for (const char* name : {"dangling", "loop"}) {
    EXPECT_THROW(check_output(path(name)), InputError) << name;
    EXPECT_THROW(OutputFile out(path(name)), InputError) << name;
    EXPECT_TRUE(fs::is_symlink(path(name))) << name;
  }
  EXPECT_EQ(file_count(), 5U);
}

// Not the file: nothing else that is printed there may be lost.
TEST_F(OutputFileTest, ALinkToStandardOutputIsStandardOutput) {
  fs::create_symlink("/proc/self/fd/1", path("link"));
  testing::internal::CaptureStdout();
  {
    OutputFile out(path("link"));
    out.write("text");
    out.commit();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "text");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

// Without commit what was there before stays, and the temporary file goes.
TEST_F(OutputFileTest, AbandonedLeavesTheOldFile) {
  std::ofstream(path("a")) << "old";
  {
    OutputFile out(path("a"));
    out.write("new");
  }
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(file_count(), 1U);
}

// A replaced file keeps its permissions; a new one obeys the umask instead of mkstemp's 0600.
TEST_F(OutputFileTest, Permissions) {
  std::ofstream(path("a")) << "old";
  ::chmod(path("a").c_str(), 0640);
  OutputFile out(path("a"));
  out.write("new");
  out.commit();
  struct stat info {};
  ASSERT_EQ(::stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
}

TEST_F(OutputFileTest, MissingFolderAndFolderAreInputErrors) {
  EXPECT_THROW(OutputFile(path("no/such/folder/a")), InputError);
  EXPECT_THROW(OutputFile(folder_.string()), InputError);
}

// /dev/full accepts opens and fails every flush with ENOSPC: the error a full disk gives.
TEST_F(OutputFileTest, FullDiskIsAnInputError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  OutputFile out("/dev/full");
  try {
    out.write("x");
    out.commit();
    FAIL() << "writing to a full device went unnoticed";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "/dev/full");
    EXPECT_NE(std::string(error.what()).find("space"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace spillway
