#include "sim/devices/memory/torch_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t largest_mebibytes = std::numeric_limits<std::int64_t>::max() / mebibyte;
constexpr Bytes smallest_block{512};
constexpr Bytes small_segment{2 * mebibyte};
constexpr Bytes smallest_direct_segment{10 * mebibyte};
constexpr Bytes largest_reach{512 * 1024 * mebibyte};

constexpr std::string_view keys[] = {
    "max_split_size_mb", "max_non_split_rounding_mb", "garbage_collection_threshold", "roundup_power2_divisions",
    "large_segment_size_mb", "per_process_memory_fraction", "expandable_segments", "backend",
    // Known to PyTorch, without effect on which block serves which request.
    "release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "pinned_num_register_threads",
    "pinned_use_background_threads", "graph_capture_record_stream_reuse"};

Bytes round_up(Bytes bytes, Bytes multiple) {
  return (bytes.count() + multiple.count() - 1) / multiple.count() * multiple;
}

// Reads the settings text piece by piece; spaces don't count.
class SettingsReader {
 public:
  SettingsReader(std::string_view text, const std::string& source) : source_(source) {
    std::copy_if(text.begin(), text.end(), std::back_inserter(text_), [](char c) { return c != ' '; });
  }

  TorchSettings read() {
    if (text_.empty()) return settings_;
    do {
      key_ = word();
      expect(':');
      read_value();
    } while (take(','));
    if (at_ != text_.size()) fail("unexpected '" + text_.substr(at_, 1) + "'", "separate settings by commas");
    return settings_;
  }

 private:
  void read_value() {
    if (key_ == "max_split_size_mb") {
      settings_.max_split_size = mebibytes(20);
    } else if (key_ == "max_non_split_rounding_mb") {
      settings_.max_non_split_rounding = mebibytes(20);
    } else if (key_ == "large_segment_size_mb") {
      settings_.large_segment_size = mebibytes(20);
    } else if (key_ == "garbage_collection_threshold") {
      settings_.garbage_collection_threshold = fraction();
    } else if (key_ == "per_process_memory_fraction") {
      settings_.memory_fraction = fraction();
    } else if (key_ == "roundup_power2_divisions") {
      take('[') ? division_list() : settings_.roundup_power2_divisions.fill(divisions());
    } else if (key_ == "expandable_segments") {
      settings_.expandable_segments = truth();
    } else if (key_ == "backend") {
      if (word() != "native") fail("only PyTorch's native allocator is modelled", "use backend:native");
    } else if (std::find(std::begin(keys), std::end(keys), key_) != std::end(keys)) {
      key_ == "pinned_num_register_threads" ? static_cast<void>(number(1)) : static_cast<void>(truth());
    } else {
      fail("unknown setting", suggest(key_, keys));
    }
  }

  // Rule 4: the first key also fills the entries below it, '>' those from the last key's on.
  void division_list() {
    auto& table = settings_.roundup_power2_divisions;
    std::size_t last = 0;
    bool first = true;
    if (take(']')) return;
    do {
      const bool rest = take('>');
      std::size_t index = last;
      if (!rest) {
        const auto size = static_cast<std::uint64_t>(number(1));
        if (!std::has_single_bit(size))
          fail("interval bounds are powers of two (MiB)", "write for example [256:1,512:2,>:8]");
        index = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size)) - 1, table.size() - 1);
      }
      expect(':');
      const std::uint32_t value = divisions();
      if (rest)
        std::fill(table.begin() + static_cast<std::ptrdiff_t>(index), table.end(), value);
      else if (first)
        std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(index), value);
      table[index] = value;
      first = first && rest;
      last = index;
    } while (take(','));
    expect(']');
  }

  std::uint32_t divisions() {
    const std::int64_t value = number(0);
    if (value > 1024 || (value != 0 && !std::has_single_bit(static_cast<std::uint64_t>(value))))
      fail("divisions are 0 or a power of two up to 1024", "write for example roundup_power2_divisions:8");
    return static_cast<std::uint32_t>(value);
  }

  Bytes mebibytes(std::int64_t least) { return Bytes(std::min(number(least), largest_mebibytes) * mebibyte); }

  std::int64_t number(std::int64_t least) {
    const std::string text = word();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least)
      fail("'" + text + "' is not a whole number of at least " + std::to_string(least), "give such a number");
    return value;
  }

  double fraction() {
    const std::string text = word();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || value > 1 ||
        (value == 1 && key_ == "garbage_collection_threshold"))
      fail("'" + text + "' is not a share between 0 and 1", "give a number like 0.8");
    return value;
  }

  bool truth() {
    const std::string text = word();
    if (text != "True" && text != "False") fail("'" + text + "' is neither True nor False", "write True or False");
    return text == "True";
  }

  std::string word() {
    const std::size_t end = std::min(text_.find_first_of(",:[]>", at_), text_.size());
    std::string result = text_.substr(at_, end - at_);
    at_ = end;
    return result;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'", "settings read key:value,key:value");
  }
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy) const {
    throw InputError(source_, key_.empty() ? "byte " + std::to_string(at_) : key_, cause, remedy);
  }

  std::string source_;
  std::string text_;
  std::size_t at_ = 0;
  std::string key_;
  TorchSettings settings_;
};

}  // namespace

TorchSettings parse_torch_settings(std::string_view text, const std::string& source) {
  return SettingsReader(text, source).read();
}

Bytes round_request(const TorchSettings& settings, Bytes bytes) {
  if (bytes < smallest_block) return smallest_block;
  const auto size = static_cast<std::uint64_t>(bytes.count());
  const int megabytes_log = static_cast<int>(std::bit_width(size)) - 1 - 20;
  const std::uint64_t divisions =
      settings.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(megabytes_log, 0, 15))];
  if (divisions <= 1 || bytes <= static_cast<std::int64_t>(divisions) * smallest_block)
    return round_up(bytes, smallest_block);
  if (std::has_single_bit(size)) return bytes;
  const std::uint64_t step = std::bit_floor(size) / divisions;
  if (step == 0) return Bytes(static_cast<std::int64_t>(std::bit_ceil(size)));
  return round_up(bytes, Bytes(static_cast<std::int64_t>(step)));
}

Bytes segment_size(const TorchSettings& settings, Bytes rounded) {
  if (is_small_request(rounded)) return small_segment;
  if (rounded < smallest_direct_segment) return settings.large_segment_size;
  return round_up(rounded, settings.large_rounding);
}

Bytes allowed_limit(const TorchSettings& settings) {
  if (settings.device_memory == Bytes::max() || settings.memory_fraction >= 1) return Bytes::max();
  return Bytes(
      static_cast<std::int64_t>(settings.memory_fraction * static_cast<double>(settings.device_memory.count())));
}

Bytes physical_limit(const TorchSettings& settings) {
  if (settings.device_memory == Bytes::max()) return Bytes::max();
  return std::max(Bytes::zero(), settings.device_memory - settings.outside_memory);
}

Bytes reserve_limit(const TorchSettings& settings) {
  return std::min(allowed_limit(settings), physical_limit(settings));
}

Bytes page_size(const TorchSettings& settings, bool small) {
  return small ? small_segment : settings.large_segment_size;
}

Bytes address_range(const TorchSettings& settings, bool small) {
  const Bytes memory = std::min(settings.device_memory, largest_reach);
  return round_up(memory + Bytes(memory.count() / 8), page_size(settings, small));
}

}  // namespace spillway::sim
