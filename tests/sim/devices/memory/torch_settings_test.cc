#include "sim/devices/memory/torch_settings.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t settings_mib = 1 << 20;

Bytes rounded(std::int64_t bytes, const char* settings = "") {
  return round_request(parse_torch_settings(settings), Bytes(bytes));
}

std::string refusal(const char* text) {
  try {
    parse_torch_settings(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Rule 3 without divisions: n < 512 -> 512, else the next multiple of 512.
TEST(TorchSettings, RoundsToMultiplesOf512) {
  EXPECT_EQ(rounded(1), Bytes(512));
  EXPECT_EQ(rounded(511), Bytes(512));
  EXPECT_EQ(rounded(512), Bytes(512));
  EXPECT_EQ(rounded(513), Bytes(1024));
  EXPECT_EQ(rounded(settings_mib + 1), Bytes(settings_mib + 512));
}

// Rule 3 with D = 4: between 2^20 and 2^21 the only sizes are 2^20 (1 + k/4); powers of two stay.
TEST(TorchSettings, RoundsWithinPowersOfTwo) {
  const char* settings = "roundup_power2_divisions:4";
  EXPECT_EQ(rounded(settings_mib, settings), Bytes(settings_mib));
  EXPECT_EQ(rounded(settings_mib + 1, settings), Bytes(settings_mib * 5 / 4));
  EXPECT_EQ(rounded(settings_mib * 5 / 4, settings), Bytes(settings_mib * 5 / 4));
  EXPECT_EQ(rounded(settings_mib * 7 / 4 + 1, settings), Bytes(2 * settings_mib));
  EXPECT_EQ(rounded(1200 * settings_mib, settings), Bytes(1280 * settings_mib));
}

// Rule 3: divisions apply only when n > 512 D; at D = 4 that is 2048. 2049 -> 2048 + 2048/4.
TEST(TorchSettings, DivisionsNeedMoreThan512Each) {
  const char* settings = "roundup_power2_divisions:4";
  EXPECT_EQ(rounded(1025, settings), Bytes(1536));
  EXPECT_EQ(rounded(2048, settings), Bytes(2048));
  EXPECT_EQ(rounded(2049, settings), Bytes(2560));
}

// Rules 3 and 4: a division of 1 or 0 switches the rounding off.
TEST(TorchSettings, OneDivisionIsNone) {
  EXPECT_EQ(rounded(3 * settings_mib + 1, "roundup_power2_divisions:1"), Bytes(3 * settings_mib + 512));
  EXPECT_EQ(rounded(3 * settings_mib + 1, "roundup_power2_divisions:0"), Bytes(3 * settings_mib + 512));
}

// Rule 4: index = log2(key in MiB); the first key fills the entries below it, '>' those from the last index up.
TEST(TorchSettings, DivisionListFillsBelowAndAbove) {
  const TorchSettings settings = parse_torch_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  for (int i = 0; i <= 8; ++i) EXPECT_EQ(settings.roundup_power2_divisions[i], 1U) << i;
  EXPECT_EQ(settings.roundup_power2_divisions[9], 2U);
  for (int i = 10; i < 16; ++i) EXPECT_EQ(settings.roundup_power2_divisions[i], 8U) << i;
}

// Rule 4: the table's index is clamp(floor(log2 n) - 20, 0, 15): below 1 MiB entry 0, from 32 GiB entry 15.
TEST(TorchSettings, TableIndexIsClamped) {
  TorchSettings settings;
  settings.roundup_power2_divisions[0] = 2;
  settings.roundup_power2_divisions[15] = 2;
  EXPECT_EQ(round_request(settings, Bytes(5000)), Bytes(6144));
  EXPECT_EQ(round_request(settings, Bytes((std::int64_t{1} << 40) + 1)), Bytes(std::int64_t{3} << 39));
  EXPECT_EQ(round_request(settings, Bytes(2 * settings_mib + 1)), Bytes(2 * settings_mib + 512));
}

// Rule 13b: n <= 1 MiB -> 2 MiB; n < 10 MiB -> 20 MiB; else the next multiple of 2 MiB.
TEST(TorchSettings, SegmentSizes) {
  const TorchSettings settings;
  EXPECT_EQ(segment_size(settings, Bytes(512)), Bytes(2 * settings_mib));
  EXPECT_EQ(segment_size(settings, Bytes(settings_mib)), Bytes(2 * settings_mib));
  EXPECT_EQ(segment_size(settings, Bytes(settings_mib + 512)), Bytes(20 * settings_mib));
  EXPECT_EQ(segment_size(settings, Bytes(10 * settings_mib - 512)), Bytes(20 * settings_mib));
  EXPECT_EQ(segment_size(settings, Bytes(10 * settings_mib)), Bytes(10 * settings_mib));
  EXPECT_EQ(segment_size(settings, Bytes(10 * settings_mib + 512)), Bytes(12 * settings_mib));
  EXPECT_EQ(segment_size(parse_torch_settings("large_segment_size_mb:40"), Bytes(2 * settings_mib)),
            Bytes(40 * settings_mib));
}

// Rule 13b: the limit is min(fraction * device, device - outside).
TEST(TorchSettings, ReserveLimit) {
  TorchSettings settings;
  EXPECT_EQ(reserve_limit(settings), Bytes::max());
  settings.device_memory = Bytes(1000 * settings_mib);
  EXPECT_EQ(reserve_limit(settings), Bytes(1000 * settings_mib));
  settings.outside_memory = Bytes(300 * settings_mib);
  EXPECT_EQ(reserve_limit(settings), Bytes(700 * settings_mib));
  settings.memory_fraction = 0.5;
  EXPECT_EQ(reserve_limit(settings), Bytes(500 * settings_mib));
}

TEST(TorchSettings, ReadsEveryKey) {
  const TorchSettings settings = parse_torch_settings(
      "max_split_size_mb:128, garbage_collection_threshold:0.8,max_non_split_rounding_mb:40,backend:native,"
      "expandable_segments:False,per_process_memory_fraction:0.9,pinned_num_register_threads:4,"
      "release_lock_on_cudamalloc:True");
  EXPECT_EQ(settings.max_split_size, Bytes(128 * settings_mib));
  EXPECT_EQ(settings.max_non_split_rounding, Bytes(40 * settings_mib));
  EXPECT_DOUBLE_EQ(settings.garbage_collection_threshold, 0.8);
  EXPECT_DOUBLE_EQ(settings.memory_fraction, 0.9);
  EXPECT_FALSE(settings.expandable_segments);
  EXPECT_TRUE(parse_torch_settings("expandable_segments:True").expandable_segments);
  EXPECT_EQ(parse_torch_settings(""), TorchSettings{});
}

// Rule 17: ceil(1.125 total / g) g addresses; g = 2 MiB (small) or the large segment size.
TEST(TorchSettings, ExpandableRanges) {
  TorchSettings settings;
  settings.device_memory = Bytes(80 * settings_mib);
  EXPECT_EQ(page_size(settings, true), Bytes(2 * settings_mib));
  EXPECT_EQ(page_size(settings, false), Bytes(20 * settings_mib));
  EXPECT_EQ(address_range(settings, true), Bytes(90 * settings_mib));
  EXPECT_EQ(address_range(settings, false), Bytes(100 * settings_mib));
  settings.large_segment_size = Bytes(32 * settings_mib);
  EXPECT_EQ(address_range(settings, false), Bytes(96 * settings_mib));
}

// What we don't model or know is refused in words, never skipped.
TEST(TorchSettings, RefusesWithARemedy) {
  EXPECT_NE(refusal("max_splitsize_mb:128").find("did you mean max_split_size_mb?"), std::string::npos);
  EXPECT_NE(refusal("wibble:1").find("use one of"), std::string::npos);
  EXPECT_NE(refusal("backend:cudaMallocAsync").find("backend:native"), std::string::npos);
  for (const char* text :
       {"max_split_size_mb", "max_split_size_mb:", "max_split_size_mb:19", "max_split_size_mb:-1",
        "max_split_size_mb:12x", "max_split_size_mb:99999999999999999999", "garbage_collection_threshold:1.0",
        "garbage_collection_threshold:0", "garbage_collection_threshold:nan", "roundup_power2_divisions:3",
        "roundup_power2_divisions:[256:1", "roundup_power2_divisions:[300:1]", "roundup_power2_divisions:[0:1]",
        "expandable_segments:true", "max_split_size_mb:128,", "max_split_size_mb:128;x", ",", "[", "]"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
  EXPECT_EQ(parse_torch_settings("max_split_size_mb:9000000000000").max_split_size,
            Bytes(std::numeric_limits<std::int64_t>::max() / settings_mib * settings_mib));
}

}  // namespace
}  // namespace spillway::sim
