// Feeds stored inputs through a fuzz target without libFuzzer, one test case per file:
//   fuzz_replay FUZZ_FOLDER NAME
// Files of regressions/NAME are fed as they are; those of seeds/NAME also cut at evenly spaced lengths, since a
// reader must survive a file that ends early, and changed at random, always alike (SPILLWAY_TEST_SIZE=full: more).
// SPILLWAY_FUZZ_SECONDS=N changes them for so long instead, each time otherwise, and keeps what is being fed in
// last-input.NAME of the folder it runs in. A case fails when the target crashes, throws or trips a sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/splitmix64.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/test_size.h"

namespace {

using spillway::Digest;
using spillway::SplitMix64;

constexpr std::size_t kCuts = 32;

spillway::fuzz::Target target = nullptr;  // of this run

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

using Bytes = std::vector<std::uint8_t>;

// Some changes of the kinds that spoil files: bits, bytes, pieces left out, said twice or taken from elsewhere,
// numbers.
Bytes changed(Bytes input, const Bytes& other, SplitMix64& dice) {
  const auto below = [&dice](std::size_t count) {
    return count == 0 ? 0 : static_cast<std::size_t>(dice.next() % count);
  };
  const auto at = [](std::size_t place) { return static_cast<std::ptrdiff_t>(place); };
  for (std::size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const std::size_t place = below(input.size()),
                      length = 1 + below(std::min<std::size_t>(input.size() - place + 1, 40));
    const std::size_t end = std::min(place + length, input.size());
    switch (below(6)) {
      case 0:
        if (!input.empty()) input[place] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        if (!input.empty()) input[place] = static_cast<std::uint8_t>(dice.next());
        break;
      case 2:
        input.erase(input.begin() + at(place), input.begin() + at(end));
        break;
      case 3: {
        const Bytes piece(input.begin() + at(place), input.begin() + at(end));
        const std::size_t to = below(input.size() + 1);
        input.insert(input.begin() + at(to), piece.begin(), piece.end());
        break;
      }
      case 4: {
        const std::size_t from = below(other.size());
        const std::size_t until = std::min(from + length, other.size());
        input.insert(input.begin() + at(place), other.begin() + at(from), other.begin() + at(until));
        break;
      }
      default: {
        constexpr std::string_view words[] = {"0",          "-1",   "1e308", "1e400", "9223372036854775807",
                                              "4294967296", "null", "{}",    "[]",    "\"\"",
                                              "nan",        "\xff", "0.5"};
        const std::string_view word = words[below(std::size(words))];
        input.erase(input.begin() + at(place), input.begin() + at(end));
        input.insert(input.begin() + at(place), word.begin(), word.end());
      }
    }
  }
  return input;
}

class StoredInput : public testing::Test {
 public:
  StoredInput(std::filesystem::path path, std::size_t cuts) : path_(std::move(path)), cuts_(cuts) {}

  void TestBody() override {
    const std::vector<std::uint8_t> whole = contents(path_);
    feed(whole, whole.size());
    for (std::size_t cut = 0; cut < cuts_; ++cut) feed(whole, whole.size() * cut / cuts_);
    if (cuts_ == 0) return;
    Digest seed;
    seed.add(path_.filename().string());
    SplitMix64 dice(seed.value());
    const std::size_t rounds = spillway::test::seeds(100, 2'000);
    for (std::size_t round = 0; round < rounds; ++round) {
      const Bytes input = changed(whole, whole, dice);
      feed(input, input.size());
    }
  }

 private:
  // A copy of exactly the cut's size, so that AddressSanitizer sees a read past it.
  static void feed(const std::vector<std::uint8_t>& whole, std::size_t size) {
    const std::vector<std::uint8_t> input(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(target(input.data(), input.size()), 0);
  }

  std::filesystem::path path_;
  std::size_t cuts_;
};

// Changed seeds for a while; the last one stays in a file should the target not come back.
class Soak : public testing::Test {
 public:
  Soak(std::vector<std::filesystem::path> seeds, std::string name, int seconds)
      : seeds_(std::move(seeds)), name_(std::move(name)), seconds_(seconds) {}

  void TestBody() override {
    std::vector<Bytes> inputs;
    for (const std::filesystem::path& seed : seeds_) inputs.push_back(contents(seed));
    const auto begin = std::chrono::steady_clock::now();
    SplitMix64 dice(static_cast<std::uint64_t>(begin.time_since_epoch().count()));
    std::size_t fed = 0;
    while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(seconds_)) {
      const Bytes& from = inputs[dice.below(inputs.size())];
      const Bytes input = changed(from, inputs[dice.below(inputs.size())], dice);
      std::ofstream("last-input." + name_, std::ios::binary)
          .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
      ASSERT_EQ(target(input.data(), input.size()), 0);
      ++fed;
    }
    std::filesystem::remove("last-input." + name_);
    std::printf("%s: %zu inputs in %d s\n", name_.c_str(), fed, seconds_);
  }

 private:
  std::vector<std::filesystem::path> seeds_;
  std::string name_;
  int seconds_;
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
  const auto found = spillway::fuzz::targets().find(name);
  if (found == spillway::fuzz::targets().end()) {
    std::fprintf(stderr, "no fuzz target %s\n", name.c_str());
    return 2;
  }
  target = found->second;
  if (const char* seconds = std::getenv("SPILLWAY_FUZZ_SECONDS"); seconds != nullptr) {
    testing::RegisterTest(name.c_str(), "soak", nullptr, nullptr, __FILE__, __LINE__, [=]() -> testing::Test* {
      return new Soak(files_in(folder / "seeds" / name), name, std::atoi(seconds));
    });
    return RUN_ALL_TESTS();
  }
  register_inputs(folder / "regressions" / name, name + "_regression", 0);
  if (register_inputs(folder / "seeds" / name, name + "_seed", kCuts) == 0) {
    std::fprintf(stderr, "no seeds in %s\n", (folder / "seeds" / name).c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
