#include "traces/formats/kineto/kineto_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/input_error.h"
#include "base/json_integer.h"
#include "base/memory_limit.h"
#include "traces/formats/kineto/json_tokenizer.h"
#include "traces/formats/kineto/kineto_assemble.h"
#include "traces/formats/kineto/kineto_event.h"
#include "traces/formats/kineto/kineto_part.h"
#include "traces/formats/kineto/kineto_rows.h"

namespace spillway::traces {
namespace {

using Json = nlohmann::json;

// Epoch microseconds of 1973: recorded times above are since the epoch, below since baseTimeNanoseconds or boot.
constexpr std::int64_t epoch_like_us = 100'000'000'000'000;
// Below this, times in picoseconds fit without an origin.
constexpr std::int64_t small_time_us = 1'000'000'000;

// Reading resumes inside a damaged event, so that one that lost its end does not take the next along. Events nested
// in damaged events would be read over and over: beyond this many bytes it resumes where the damage showed.
constexpr std::uint64_t reread_limit = std::uint64_t{32} << 20;

class Reader {
 public:
  Reader(ByteSource& source, const ReadOptions& options, std::optional<KinetoPart> part = {})
      : source_(source),
        options_(options),
        memory_(source.name()),
        part_(part),
        window_(source),
        at_(window_.begin()) {}

  Trace read();

 private:
  void read_members();
  void read_events();
  bool read_event();
  bool resynchronise();
  bool leave_endless_event();
  void take_member(std::string_view key, std::string_view value);
  void take_devices(const Json& devices);
  void note_damage(const std::string& where);
  [[nodiscard]] bool is_wanted() const;
  void finish();
  // The next character that is not space; '\0' at the end.
  char next_char();
  bool more();
  std::string_view whole_value();
  std::int64_t find_origin();
  [[nodiscard]] std::string place(const char* at) const { return "byte " + std::to_string(window_.offset(at)); }

  ByteSource& source_;
  const ReadOptions& options_;
  FileMemory memory_;
  std::optional<KinetoPart> part_;
  Trace trace_;
  JsonWindow window_;
  const char* at_;
  KinetoEvent event_;
  std::optional<KinetoRows> rows_;
  std::int64_t base_time_ns_ = 0;
  bool seen_events_ = false;
  bool truncated_ = false;
  int endless_events_ = 0;
  std::uint64_t reread_bytes_ = 0;
  std::string member_;
};

bool Reader::more() { return window_.refill(at_) == JsonWindow::Refill::more; }

char Reader::next_char() {
  while (true) {
    at_ = json::skip_space(at_, window_.end());
    if (at_ < window_.end()) return *at_;
    if (!more()) return '\0';
  }
}

// The text of the value at the cursor, which moves behind it. Empty when the input ends in it.
std::string_view Reader::whole_value() {
  while (true) {
    const char* const end = json::skip_value(at_, window_.end());
    if (end != nullptr) {
      const std::string_view value(at_, static_cast<std::size_t>(end - at_));
      at_ = end;
      return value;
    }
    const auto refilled = window_.refill(at_);
    if (refilled == JsonWindow::Refill::more) continue;
    if (refilled == JsonWindow::Refill::too_long)
      throw InputError(source_.name(), place(at_), "a value is longer than 64 MiB",
                       "is this a trace of torch.profiler?");
    at_ = window_.end();
    return {};
  }
}

// The first recorded time that is not 0, in microseconds; 0 if it is small. Looks at the window only.
std::int64_t Reader::find_origin() {
  const std::string_view text(at_, static_cast<std::size_t>(window_.end() - at_));
  constexpr std::string_view key = "\"ts\"";
  for (std::size_t found = text.find(key); found != std::string_view::npos; found = text.find(key, found + 1)) {
    std::size_t begin = text.find_first_not_of(" \t:\"", found + key.size());
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find_first_of(",}\" \r\n", begin);
    if (end == std::string_view::npos) break;
    json::Micros micros;
    if (json::parse_micros(text.substr(begin, end - begin), micros) && micros.whole != 0)
      return std::abs(micros.whole) > small_time_us ? micros.whole : 0;
  }
  return 0;
}

void Reader::note_damage(const std::string& where) {
  trace_.note("damaged_event", where, "an event is not valid JSON; it was dropped and reading resumed behind it", true);
}

// From inside a damaged event to the next '{' that opens an event: after ',' or '[', before a key.
bool Reader::resynchronise() {
  ++at_;
  char before = '{';
  while (true) {
    for (; at_ < window_.end(); ++at_) {
      const char c = *at_;
      if (c == '{' && (before == ',' || before == '[')) {
        const char* const key = json::skip_space(at_ + 1, window_.end());
        if (key >= window_.end()) break;
        if (*key == '"') return true;
      }
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') before = c;
    }
    if (!more()) return false;
  }
}

// Outside of the part that is read lies what begins there; what has no time (names of threads) is always wanted.
bool Reader::is_wanted() const {
  if (!part_ || event_.phase == 'M') return true;
  json::Micros micros;
  if (!json::parse_micros(event_.text(KinetoField::timestamp), micros)) return true;
  return micros.whole >= part_->from_us && micros.whole < part_->until_us;
}

// One event at the cursor. false: the input ended in it.
bool Reader::read_event() {
  while (true) {
    const char* const begin = at_;
    switch (parse_kineto_event(at_, window_.end(), options_.keep_python, event_)) {
      case EventParse::ok:
        ++trace_.source_events;
        if (is_wanted()) rows_->add(event_, window_.offset(begin));
        return true;
      case EventParse::malformed:
        ++trace_.source_events;
        note_damage(place(at_));
        reread_bytes_ += event_.malformed_at;
        if (reread_bytes_ > reread_limit) at_ += event_.malformed_at;
        return resynchronise();
      case EventParse::window_ended:
        break;
    }
    if (window_.refill(at_) == JsonWindow::Refill::more) continue;
    return leave_endless_event();
  }
}

// The event at the cursor reaches the end of the file, or of what the window can hold: it is the last one, cut short,
// or its brackets don't close. Then reading resumes at the next event; few times, since each looks at all that is left.
bool Reader::leave_endless_event() {
  constexpr int most = 16;
  const std::string begin = place(at_);
  if (++endless_events_ > most || !resynchronise()) return false;
  ++trace_.source_events;
  note_damage(begin);
  return true;
}

void Reader::read_events() {
  seen_events_ = true;
  ++at_;
  next_char();
  if (!rows_) rows_.emplace(trace_, memory_, options_.keep_python, find_origin());
  while (true) {
    const char c = next_char();
    if (c == ']') {
      ++at_;
      return;
    }
    if (c == ',') {
      ++at_;
      continue;
    }
    if (c == '{') {
      if (read_event()) continue;
    } else if (c != '\0') {
      note_damage(place(at_));
      if (resynchronise()) continue;
    }
    truncated_ = true;
    trace_.note("truncated_file", place(at_),
                "the file ends inside the events (a killed job?); the last partial event was dropped", false);
    return;
  }
}

void Reader::take_devices(const Json& devices) {
  for (const Json& entry : devices) {
    if (!entry.is_object()) continue;
    const auto number = [&](const char* key) {
      const auto found = entry.find(key);
      return found != entry.end() ? json_integer(*found).value_or(0) : 0;
    };
    const auto name = entry.find("name");
    trace_.devices.push_back(
        {.name = trace_.strings.intern(name != entry.end() && name->is_string() ? name->get<std::string>() : ""),
         .ordinal = static_cast<std::int16_t>(std::clamp<std::int64_t>(number("id"), 0, 32767)),
         .memory = Bytes(std::max<std::int64_t>(number("totalGlobalMem"), 0)),
         .multiprocessors = static_cast<std::int32_t>(std::clamp<std::int64_t>(number("numSms"), 0, 1 << 20))});
  }
}

void Reader::take_member(std::string_view key, std::string_view value) {
  const bool wanted =
      key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo" || key == "baseTimeNanoseconds";
  if (!wanted) return;
  memory_.add(value.size() * sizeof(Json));
  const Json parsed = Json::parse(value.begin(), value.end(), nullptr, false, true);
  Provenance& from = trace_.provenance.front();
  if (parsed.is_discarded()) {
    trace_.note("damaged_header", key, "this part of the file's header is not valid JSON and was ignored", true);
  } else if (key == "schemaVersion") {
    from.schema_version = parsed.dump(-1, ' ', true, Json::error_handler_t::replace);
  } else if (key == "deviceProperties" && parsed.is_array()) {
    take_devices(parsed);
  } else if (key == "distributedInfo" && parsed.is_object()) {
    const auto number = [&](const char* name) {
      const auto found = parsed.find(name);
      return found != parsed.end() ? json_integer(*found).value_or(-1) : -1;
    };
    from.rank = number("rank");
    from.world_size = number("world_size");
  } else if (key == "baseTimeNanoseconds" && parsed.is_number_integer()) {
    base_time_ns_ = json_integer(parsed).value_or(0);
  }
}

// Members of the outermost object, in any order.
void Reader::read_members() {
  ++at_;
  while (true) {
    char c = next_char();
    if (c == ',') {
      ++at_;
      continue;
    }
    if (c != '"') {
      if (c == '}' || truncated_) return;
      break;
    }
    member_ = whole_value();
    if (member_.empty()) break;
    if (next_char() != ':') break;
    ++at_;
    c = next_char();
    if (c == '\0') break;
    const std::string key = json::unescape(std::string_view(member_).substr(1, member_.size() - 2));
    if (key == "traceEvents" && c == '[') {
      read_events();
      if (truncated_) return;
      continue;
    }
    const char* const begin = at_;
    const std::string_view value = whole_value();
    if (value.empty() && at_ == begin) {
      trace_.note("truncated_file", key, "the file's header has no value; what follows was not read", true);
      return;
    }
    if (value.empty()) break;
    take_member(key, value);
  }
  trace_.note("truncated_file", place(at_), "the file ends early or goes on after its end (a killed job?)", false);
}

void Reader::finish() {
  rows_->name_lanes();
  if (trace_.finding("times_only") != nullptr) trace_.provenance.front().producer = "XLA's profiler or rocprof";
  const Picos zero = assemble_kineto(*rows_, trace_);
  const std::int64_t first_us = rows_->origin_us() + zero.count() / 1'000'000;
  std::int64_t first_ns = 0;
  if (std::abs(rows_->origin_us()) < std::numeric_limits<std::int64_t>::max() / 2'000) first_ns = first_us * 1'000;
  const bool epoch = first_us > epoch_like_us;
  std::int64_t sum = 0;
  if (epoch)
    trace_.time_base_ns = first_ns;
  else if (base_time_ns_ != 0 && !__builtin_add_overflow(base_time_ns_, first_ns, &sum))
    trace_.time_base_ns = sum;
  rows_->note_informational();
}

Trace Reader::read() {
  trace_.provenance.push_back({.file = source_.name(), .format = "kineto", .producer = "torch.profiler (Kineto)"});
  const char first = next_char();
  if (first == '[')
    read_events();
  else if (first == '{')
    read_members();
  if (!seen_events_)
    throw InputError(source_.name(), "", "no \"traceEvents\" in it", "is this a trace written by torch.profiler?");
  finish();
  return std::move(trace_);
}

}  // namespace

Trace read_kineto(ByteSource& source, const ReadOptions& options) { return Reader(source, options).read(); }

Trace read_kineto_part(ByteSource& source, const ReadOptions& options, const KinetoPart& part) {
  return Reader(source, options, part).read();
}

}  // namespace spillway::traces
