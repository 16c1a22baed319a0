// Feeds stored inputs through a fuzz target without libFuzzer, one test case per file:
//   NAME_fuzz_replay FUZZ_FOLDER NAME
// Files of regressions/NAME are fed as they are; those of seeds/NAME also cut at evenly spaced lengths, since a
// reader must survive a file that ends early. A case fails when the target crashes, throws or trips a sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kCuts = 32;

std::vector<std::uint8_t> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class StoredInput : public testing::Test {
 public:
  StoredInput(std::filesystem::path path, std::size_t cuts) : path_(std::move(path)), cuts_(cuts) {}

  void TestBody() override {
    const std::vector<std::uint8_t> whole = contents(path_);
    feed(whole, whole.size());
    for (std::size_t cut = 0; cut < cuts_; ++cut) feed(whole, whole.size() * cut / cuts_);
  }

 private:
  // A copy of exactly the cut's size, so that AddressSanitizer sees a read past it.
  static void feed(const std::vector<std::uint8_t>& whole, std::size_t size) {
    const std::vector<std::uint8_t> input(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
  }

  std::filesystem::path path_;
  std::size_t cuts_;
};

std::size_t register_inputs(const std::filesystem::path& folder, const std::string& suite, std::size_t cuts) {
  const std::vector<std::filesystem::path> files = files_in(folder);
  for (const std::filesystem::path& file : files) {
    testing::RegisterTest(suite.c_str(), file.filename().string().c_str(), nullptr, nullptr, file.string().c_str(), 1,
                          [file, cuts]() -> testing::Test* { return new StoredInput(file, cuts); });
  }
  return files.size();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FUZZ_FOLDER NAME\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::string name = argv[2];
  register_inputs(folder / "regressions" / name, name + "_regression", 0);
  if (register_inputs(folder / "seeds" / name, name + "_seed", kCuts) == 0) {
    std::fprintf(stderr, "no seeds in %s\n", (folder / "seeds" / name).c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
