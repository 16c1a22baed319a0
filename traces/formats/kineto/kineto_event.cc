#include "traces/formats/kineto/kineto_event.h"

#include "traces/formats/kineto/json_tokenizer.h"

namespace spillway::traces {
namespace {

using Field = KinetoField;

// Keys are told apart by their length first, then compared whole.
Field top_level_field(std::string_view key) {
  switch (key.size()) {
    case 2:
      return key == "ph" ? Field::phase : key == "ts" ? Field::timestamp : Field::count_;
    case 3:
      if (key == "dur") return Field::duration;
      if (key == "pid") return Field::process;
      if (key == "tid") return Field::thread;
      return key == "cat" ? Field::category : Field::count_;
    case 4:
      return key == "name" ? Field::name : Field::count_;
    default:
      return Field::count_;
  }
}

Field short_argument_field(std::string_view key) {
  switch (key.size()) {
    case 4:
      if (key == "Addr") return Field::address;
      if (key == "kind") return Field::copy_kind;
      return key == "name" ? Field::label : Field::count_;
    case 5:
      if (key == "bytes") return Field::bytes;
      if (key == "Bytes") return Field::block_bytes;
      if (key == "flops") return Field::flops;
      return key == "dtype" ? Field::dtype : Field::count_;
    case 6:
      if (key == "stream") return Field::stream;
      if (key == "device") return Field::device;
      return key == "Ev Idx" ? Field::event_index : Field::count_;
    case 9:
      return key == "Device Id" ? Field::device_id : Field::count_;
    case 10:
      return key == "Group size" ? Field::group_size : Field::count_;
    default:
      return Field::count_;
  }
}

Field argument_field(std::string_view key) {
  switch (key.size()) {
    case 11:
      if (key == "External id" || key == "external id") return Field::external_id;
      if (key == "correlation") return Field::correlation;
      return key == "Device Type" ? Field::device_type : Field::count_;
    case 13:
      return key == "In msg nelems" ? Field::in_elements : Field::count_;
    case 14:
      if (key == "Total Reserved") return Field::total_reserved;
      if (key == "cuda_sync_kind") return Field::sync_kind;
      if (key == "wait_on_stream") return Field::wait_on_stream;
      return key == "Out msg nelems" ? Field::out_elements : Field::count_;
    case 15:
      if (key == "Sequence number") return Field::sequence;
      if (key == "Total Allocated") return Field::total_allocated;
      return key == "Collective name" ? Field::collective_name : Field::count_;
    case 18:
      if (key == "Record function id") return Field::record_id;
      return key == "Process Group Name" ? Field::group_name : Field::count_;
    case 33:
      return key == "wait_on_cuda_event_record_corr_id" ? Field::wait_on_record : Field::count_;
    default:
      return short_argument_field(key);
  }
}

KinetoCategory category_of(std::string_view text) {
  switch (text.size()) {
    case 6:
      if (text == "cpu_op") return KinetoCategory::cpu_operator;
      if (text == "kernel" || text == "Kernel") return KinetoCategory::kernel;
      if (text == "Memcpy") return KinetoCategory::copy;
      return text == "Memset" ? KinetoCategory::memset : KinetoCategory::other;
    case 7:
      return text == "Runtime" ? KinetoCategory::runtime : KinetoCategory::other;
    case 8:
      return text == "Operator" ? KinetoCategory::cpu_operator : KinetoCategory::other;
    case 9:
      return text == "cuda_sync" ? KinetoCategory::sync : KinetoCategory::other;
    case 10:
      if (text == "gpu_memcpy") return KinetoCategory::copy;
      return text == "gpu_memset" ? KinetoCategory::memset : KinetoCategory::other;
    case 11:
      if (text == "hip_runtime") return KinetoCategory::runtime;
      return text == "cuda_driver" ? KinetoCategory::driver : KinetoCategory::other;
    case 12:
      return text == "cuda_runtime" ? KinetoCategory::runtime : KinetoCategory::other;
    case 15:
      if (text == "user_annotation") return KinetoCategory::annotation;
      return text == "python_function" ? KinetoCategory::python : KinetoCategory::other;
    case 19:
      return text == "gpu_user_annotation" ? KinetoCategory::gpu_annotation : KinetoCategory::other;
    default:
      return KinetoCategory::other;
  }
}

class EventParser {
 public:
  EventParser(const char* end, bool want_python, KinetoEvent& event)
      : end_(end), want_python_(want_python), event_(event) {}

  EventParse object(const char*& at, bool arguments);

 private:
  enum class Next : std::uint8_t { member, leave, window_ended, malformed };

  Next member(const char*& at, bool arguments);
  Next value(const char*& at, Field field, bool arguments);
  Next string_value(const char*& at, Field field);
  Next nested_arguments(const char*& at);
  void keep(Field field, std::string_view text, bool escaped);
  [[nodiscard]] bool uninteresting() const {
    return (event_.phase != 0 && event_.phase != 'X' && event_.phase != 'i' && event_.phase != 'I' &&
            event_.phase != 'M') ||
           (event_.category == KinetoCategory::python && !want_python_);
  }

  const char* end_;
  bool want_python_;
  KinetoEvent& event_;
};

// `at` is at the opening quote. A quote that is not followed by ',', '}', ']' is taken as a part of the text:
// some writers do not escape quotes inside names.
EventParser::Next EventParser::string_value(const char*& at, Field field) {
  const char* const first = at + 1;
  bool escaped = false;
  const char* close = json::find_quote(first, end_, escaped);
  while (close != nullptr) {
    const char* next = json::skip_space(close + 1, end_);
    if (next >= end_) return Next::window_ended;
    if (*next == ',' || *next == '}' || *next == ']') break;
    if (*next == ':' || *next == '{' || close - first > 65536) return Next::malformed;
    event_.quotes_mended = true;
    close = json::find_quote(close + 1, end_, escaped);
  }
  if (close == nullptr) return Next::window_ended;
  at = close + 1;
  if (field == Field::count_) return Next::member;
  keep(field, {first, static_cast<std::size_t>(close - first)}, escaped);
  return Next::member;
}

void EventParser::keep(Field field, std::string_view text, bool escaped) {
  const auto at = static_cast<std::size_t>(field);
  event_.values[at] = escaped ? event_.resolved[at] = json::unescape(text) : text;
  event_.present |= std::uint64_t{1} << at;
}

EventParser::Next EventParser::nested_arguments(const char*& at) {
  switch (object(at, true)) {
    case EventParse::ok:
      return Next::member;
    case EventParse::window_ended:
      return Next::window_ended;
    case EventParse::malformed:
      break;
  }
  return Next::malformed;
}

EventParser::Next EventParser::value(const char*& at, Field field, bool arguments) {
  if (*at == '"') {
    const Next next = string_value(at, field);
    if (next != Next::member || arguments) return next;
    if (field == Field::phase) event_.phase = event_.text(field).empty() ? '?' : event_.text(field).front();
    if (field == Field::category) event_.category = category_of(event_.text(field));
    if ((field == Field::phase || field == Field::category) && uninteresting()) return Next::leave;
    return Next::member;
  }
  if (*at == '}' || *at == ',' || *at == ']') return Next::malformed;
  const char* const first = at;
  at = json::skip_value(at, end_);
  if (at == nullptr) return Next::window_ended;
  if (field != Field::count_ && *first != '{' && *first != '[')
    keep(field, {first, static_cast<std::size_t>(at - first)}, false);
  return Next::member;
}

EventParser::Next EventParser::member(const char*& at, bool arguments) {
  if (*at != '"') return Next::malformed;
  bool escaped = false;
  const char* const key_begin = at + 1;
  const char* const key_end = json::find_quote(key_begin, end_, escaped);
  if (key_end == nullptr) return Next::window_ended;
  at = json::skip_space(key_end + 1, end_);
  if (at >= end_) return Next::window_ended;
  if (*at != ':') return Next::malformed;
  at = json::skip_space(at + 1, end_);
  if (at >= end_) return Next::window_ended;
  const std::string_view raw(key_begin, static_cast<std::size_t>(key_end - key_begin));
  const std::string resolved = escaped ? json::unescape(raw) : std::string();
  const std::string_view key = escaped ? std::string_view(resolved) : raw;
  if (!arguments && *at == '{' && key == "args") return nested_arguments(at);
  return value(at, arguments ? argument_field(key) : top_level_field(key), arguments);
}

EventParse EventParser::object(const char*& at, bool arguments) {
  at = json::skip_space(at + 1, end_);
  if (at < end_ && *at == '}') {
    ++at;
    return EventParse::ok;
  }
  while (at < end_) {
    switch (member(at, arguments)) {
      case Next::member:
        break;
      case Next::leave:
        at = json::skip_braces(at, end_, 1);
        return at == nullptr ? EventParse::window_ended : EventParse::ok;
      case Next::window_ended:
        return EventParse::window_ended;
      case Next::malformed:
        return EventParse::malformed;
    }
    at = json::skip_space(at, end_);
    if (at >= end_) break;
    if (*at == '}') {
      ++at;
      return EventParse::ok;
    }
    if (*at != ',') return EventParse::malformed;
    at = json::skip_space(at + 1, end_);
  }
  return EventParse::window_ended;
}

}  // namespace

std::int64_t KinetoEvent::integer(KinetoField field, std::int64_t fallback) const {
  json::Integer parsed;
  return has(field) && json::parse_integer(text(field), parsed) ? parsed.value : fallback;
}

KinetoField kineto_argument(std::string_view name) { return argument_field(name); }

KinetoCategory kineto_category(std::string_view name) { return category_of(name); }

EventParse parse_kineto_event(const char*& at, const char* end, bool want_python, KinetoEvent& event) {
  event.present = 0;
  event.category = KinetoCategory::none;
  event.phase = 0;
  event.quotes_mended = false;
  const char* const begin = at;
  const EventParse result = EventParser(end, want_python, event).object(at, false);
  if (result == EventParse::malformed) event.malformed_at = static_cast<std::size_t>(at - begin);
  if (result != EventParse::ok) at = begin;
  return result;
}

}  // namespace spillway::traces
