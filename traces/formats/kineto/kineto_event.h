// One event of a Chrome trace, as views into the tokenizer's window; texts with escapes are resolved here, so that no
// one else need know that "\u006bernel" is "kernel".
//
// Only the fields a replay needs are kept; everything else is skipped without a look.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::traces {

enum class KinetoField : std::uint8_t {
  phase,
  category,
  name,
  process,
  thread,
  timestamp,
  duration,
  // of "args"
  stream,
  device,
  correlation,
  bytes,
  external_id,
  sequence,
  record_id,
  event_index,
  address,
  block_bytes,
  flops,
  total_allocated,
  total_reserved,
  device_type,
  device_id,
  sync_kind,
  wait_on_stream,
  wait_on_record,
  collective_name,
  in_elements,
  out_elements,
  dtype,
  group_size,
  group_name,
  label,
  copy_kind,
  count_,
};

enum class KinetoCategory : std::uint8_t {
  none,
  other,
  cpu_operator,
  annotation,
  gpu_annotation,
  runtime,
  driver,
  kernel,
  copy,
  memset,
  sync,
  python,
};

struct KinetoEvent {
  static constexpr auto field_count = static_cast<std::size_t>(KinetoField::count_);
  std::array<std::string_view, field_count> values;  // valid where `present`
  std::array<std::string, field_count> resolved;     // what a value with escapes points to
  std::uint64_t present = 0;
  KinetoCategory category = KinetoCategory::none;
  char phase = 0;                // 'X', 'i', 'M', ...; 0 if there is none
  bool quotes_mended = false;    // a string had unescaped quotes inside
  std::size_t malformed_at = 0;  // how far behind its beginning a malformed event was seen to be so

  [[nodiscard]] bool has(KinetoField field) const { return (present >> static_cast<unsigned>(field) & 1U) != 0; }
  // Empty if absent.
  [[nodiscard]] std::string_view text(KinetoField field) const {
    return has(field) ? values[static_cast<std::size_t>(field)] : std::string_view();
  }
  // `fallback` if absent or not an integer.
  [[nodiscard]] std::int64_t integer(KinetoField field, std::int64_t fallback) const;
};
static_assert(static_cast<unsigned>(KinetoField::count_) <= 64);

// The field that an argument of this name fills; count_ if it isn't kept.
KinetoField kineto_argument(std::string_view name);
KinetoCategory kineto_category(std::string_view name);

enum class EventParse : std::uint8_t { ok, window_ended, malformed };

// Reads the object that starts at `at` ('{') and moves `at` behind it. Flow events and, unless wanted,
// python functions are left as soon as they are known to be such. On malformed, `at` stays.
EventParse parse_kineto_event(const char*& at, const char* end, bool want_python, KinetoEvent& event);

}  // namespace spillway::traces
