#include <algorithm>
#include <charconv>
#include <map>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "planners/stalloc/memory_profile.h"

namespace spillway::planners {
namespace {

class LogReader {
 public:
  LogReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  MemoryProfile read() {
    set_phase("init");
    while (!text_.empty()) {
      const std::string_view line = next_line();
      if (line.empty()) continue;
      if (line.find(':') == std::string_view::npos)
        row(line);
      else
        marker(line);
    }
    if (profile_.requests.empty()) fail("holds no allocation");
    profile_.end = tick_;
    for (ProfiledRequest& request : profile_.requests)
      if (!request.freed) request.upper = tick_;
    for (const std::size_t open : open_) profile_.layers[open].end = tick_;
    return std::move(profile_);
  }

 private:
  std::string_view next_line() {
    ++line_;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = trimmed(text_.substr(0, end));
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return line;
  }
  static std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
    return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, last + 1 - begin);
  }
  std::uint64_t number(std::string_view& line, const char* what) const {
    line = trimmed(line);
    int base = 10;
    if (line.substr(0, 2) == "0x") {
      line.remove_prefix(2);
      base = 16;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, base);
    const bool is_whole = error == std::errc() && (end == line.data() + line.size() || *end == ' ' || *end == '\t');
    if (!is_whole) fail(std::string("has no whole number where ") + what + " should be");
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return value;
  }

  void row(std::string_view line) {
    constexpr std::uint64_t most = std::uint64_t{1} << 46;
    const std::uint64_t action = number(line, "1 (allocated) or 0 (freed)");
    const std::uint64_t pointer = number(line, "the pointer");
    const std::uint64_t bytes = number(line, "the size");
    if (!trimmed(line).empty()) number(line, "the stream");
    if (action > 1 || !trimmed(line).empty()) fail("is neither '1 POINTER BYTES STREAM' nor '0 POINTER BYTES STREAM'");
    if (bytes > most) fail("allocates more than any device has");
    if (asked_ > std::uint64_t{1} << 62) fail("sizes add up to 2^62 bytes or more");
    if (action == 1) asked_ += bytes;
    if (action == 0) {
      free(pointer);
    } else if (bytes > 0) {
      free(pointer);
      live_[pointer] = profile_.requests.size();
      profile_.requests.push_back({.lower = tick_++,
                                   .bytes = Bytes(static_cast<std::int64_t>(bytes)),
                                   .phase_allocated = phase_,
                                   .phase_freed = phase_,
                                   .layer_allocated = dynamic_layer()});
    }
  }
  void free(std::uint64_t pointer) {
    const auto found = live_.find(pointer);
    if (found == live_.end()) return;
    ProfiledRequest& request = profile_.requests[found->second];
    request.upper = tick_++;
    request.phase_freed = phase_;
    if (request.dynamic()) request.layer_freed = dynamic_layer();
    request.freed = true;
    live_.erase(found);
  }

  void marker(std::string_view line) {
    const std::size_t colon = line.find(':');
    const std::string_view left = trimmed(line.substr(0, colon)), right = trimmed(line.substr(colon + 1));
    if (left == "Iteration Index") {
      if (profile_.iterations.empty() || profile_.iterations.back() < tick_) profile_.iterations.push_back(tick_);
      iteration_ = std::string(right);
      passes_.clear();
      set_phase("init");
    } else if (const std::size_t arrow = left.find("->"); arrow != std::string_view::npos) {
      layer(std::string(trimmed(left.substr(0, arrow))), right);
    } else if (right == "F" || right == "B") {
      const bool is_counted = left.find_first_not_of("0123456789") != std::string_view::npos;
      set_phase((is_counted ? std::to_string(passes_[std::string(right)]++) : std::string(left)) + std::string(right));
    } else {
      fail("'" + std::string(line) + "' is no marker known");
    }
  }
  void set_phase(const std::string& name) {
    const auto [at, is_new] =
        phases_.emplace(iteration_ + "/" + name, static_cast<std::int32_t>(profile_.phases.size()));
    if (is_new) profile_.phases.push_back(at->first);
    phase_ = at->second;
  }

  void layer(const std::string& module, std::string_view what) {
    if (what.size() < 5 || (what[0] != 'F' && what[0] != 'B') || what[1] != '-')
      fail("a layer neither starts nor ends");
    const std::string name = module + " " + what[0];
    if (what.substr(2) == "start") {
      open_.push_back(profile_.layers.size());
      profile_.layers.push_back({name, tick_, tick_});
    } else if (what.substr(2) == "end") {
      const auto found = std::find_if(open_.rbegin(), open_.rend(),
                                      [&](std::size_t open) { return profile_.layers[open].name == name; });
      if (found == open_.rend()) fail("layer '" + name + "' ends without a start");
      profile_.layers[*found].end = tick_;
      open_.erase(std::next(found).base());
    } else {
      fail("a layer neither starts nor ends");
    }
  }
  [[nodiscard]] std::int32_t dynamic_layer() const {
    if (open_.empty()) return -1;
    const std::string& name = profile_.layers[open_.back()].name;
    return name.rfind("mlp-", 0) == 0 || name.rfind("moe-", 0) == 0 ? static_cast<std::int32_t>(open_.back()) : -1;
  }
  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(file_, "line " + std::to_string(line_), cause,
                     "it must be a mem_log_dev*.txt of STAlloc's profiler; see docs/internals/stalloc.md");
  }

  std::string_view text_;
  std::string file_;
  std::size_t line_ = 0;
  MemoryProfile profile_;
  std::map<std::string, std::int32_t> phases_;
  std::map<std::string, int> passes_;  // micro-batches begun, by direction
  std::string iteration_ = "head";
  std::int32_t phase_ = 0;
  std::int64_t tick_ = 0;
  std::uint64_t asked_ = 0;  // bytes of all allocations
  std::map<std::uint64_t, std::size_t> live_;
  std::vector<std::size_t> open_;  // layers, innermost last
};

}  // namespace

MemoryProfile read_memory_log(std::string_view text, const std::string& file) { return LogReader(text, file).read(); }

bool is_memory_log(const std::string& path) {
  ByteSource source = ByteSource::open(path, largest_memory_log);
  std::string begin;
  for (const std::byte byte : source.peek(16)) begin += static_cast<char>(byte);
  return begin.starts_with("1 ") || begin.starts_with("0 ") || begin.starts_with("Iteration Index");
}

}  // namespace spillway::planners
