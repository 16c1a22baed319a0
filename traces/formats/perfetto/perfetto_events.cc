#include "traces/formats/perfetto/perfetto_events.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "traces/formats/kineto/kineto_assemble.h"
#include "traces/formats/kineto/kineto_rows.h"

namespace spillway::traces {
namespace {

using EventField = KinetoField;

constexpr int deepest_parent = 64;
// Copies that name no stream: beyond any queue's number.
constexpr std::int64_t copy_lanes = 1'000'000;

// Nanoseconds of 1973: a clock beyond counts from 1970. Below the second, times need no origin.
constexpr std::int64_t epoch_like_ns = 100'000'000'000'000'000;
constexpr std::int64_t small_time_ns = 1'000'000'000'000;

// Who wrote it, as far as it shows.
enum class PerfettoWriter : std::uint8_t { other, torch, rocprof };
enum class Meaning : std::uint8_t { other, kineto, hip_call, hsa_call, range, kernel, copy };

// Where a track's slices happen.
struct Line {
  std::string process, thread;  // as Chrome's pid and tid
  std::string process_label, thread_label;
  bool is_thread = false;
  // Of rocprofv3's tracks of devices; -1: not said.
  std::int64_t agent = -1, stream = -1;
  bool is_gpu = false, is_stream_of_copies_only = false;
};

std::int64_t number_at(std::string_view text, std::size_t at) {
  std::int64_t value = -1;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

std::int64_t last_number(std::string_view text) {
  const std::size_t begin = text.find_last_not_of("0123456789") + 1;
  return begin < text.size() ? number_at(text, begin) : -1;
}

// Fields of one event, as the texts that JSON would have.
class EventText {
 public:
  void clear() {
    event_ = {};
    used_ = 0;
  }
  void set(EventField field, std::string_view text) {
    event_.values[static_cast<std::size_t>(field)] = text;
    event_.present |= std::uint64_t{1} << static_cast<unsigned>(field);
  }
  void set(EventField field, std::int64_t value) { set(field, number(value)); }
  // Nanoseconds as microseconds. Of a length below none, only the sign counts.
  void set_time(EventField field, std::int64_t ns) {
    if (ns < 0 && field == EventField::duration) return set(field, "-1");
    char* const begin = numbers_.data() + used_;
    if (ns < 0) numbers_[used_++] = '-';
    const std::int64_t rest = std::abs(ns % 1000);
    number(std::abs(ns / 1000));
    char* const point = numbers_.data() + used_;
    point[0] = '.';
    point[1] = static_cast<char>('0' + rest / 100);
    point[2] = static_cast<char>('0' + rest / 10 % 10);
    point[3] = static_cast<char>('0' + rest % 10);
    used_ += 4;
    set(field, std::string_view(begin, static_cast<std::size_t>(point + 4 - begin)));
  }
  KinetoEvent& event() { return event_; }

 private:
  std::string_view number(std::int64_t value) {
    char* const begin = numbers_.data() + used_;
    char* const end = std::to_chars(begin, begin + 24, value).ptr;
    used_ += static_cast<std::size_t>(end - begin);
    return {begin, static_cast<std::size_t>(end - begin)};
  }

  KinetoEvent event_;
  std::array<char, 28 * (static_cast<std::size_t>(EventField::count_) + 4)> numbers_{};
  std::size_t used_ = 0;
};

class Events {
 public:
  Events(const PerfettoCapture& capture, const std::string& file, Trace& trace, KinetoRows& rows)
      : capture_(capture), file_(file), trace_(trace), rows_(rows) {}

  PerfettoWriter run() {
    find_processes();
    for (std::uint32_t t = 0; t < capture_.tracks.size(); ++t) lines_.push_back(line_of(t));
    survey();
    join_calls();
    for (const Line& line : lines_) add_labels(line);
    for (const PerfettoSlice& slice : capture_.slices) add(slice);
    return has_kineto_ ? PerfettoWriter::torch : has_rocprof_ ? PerfettoWriter::rocprof : PerfettoWriter::other;
  }

 private:
  [[nodiscard]] std::string_view text(StringId id) const { return trace_.strings.text(id); }
  void find_processes();
  const PerfettoTrack* parent_of(const PerfettoTrack& track) const;
  Line line_of(std::uint32_t track) const;
  static void name_device(std::string_view name, Line& line);
  Meaning meaning_of(StringId category);
  void survey();
  void join_calls();
  void add_label(const Line& line, std::string_view what, std::string_view label);
  void add_labels(const Line& line);
  void add(const PerfettoSlice& slice);
  void add_rocprof(const PerfettoSlice& slice, Meaning meaning, const Line& line);
  [[nodiscard]] const PerfettoValue* value_of(const PerfettoSlice& slice, std::uint8_t key) const;
  [[nodiscard]] std::int64_t correlation_of(const PerfettoSlice& slice) const;
  [[nodiscard]] std::int64_t agent_of(const PerfettoSlice& slice, PerfettoKey key) const;
  [[nodiscard]] std::int64_t ordinal_of(std::int64_t agent) const;

  const PerfettoCapture& capture_;
  const std::string& file_;
  Trace& trace_;
  KinetoRows& rows_;
  std::vector<Line> lines_;
  std::unordered_map<std::int64_t, StringId> process_names_;
  std::unordered_map<std::int64_t, Meaning> meanings_;         // by id of the category
  std::set<std::int64_t> gpus_;                                // agents that are GPUs
  std::unordered_map<std::int64_t, std::int64_t> joined_;      // correlation of an HSA call -> of the HIP call around
  std::unordered_map<std::uint64_t, std::int64_t> arrow_ids_;  // flows, counted
  bool has_kineto_ = false, has_rocprof_ = false, has_hip_ = false, has_correlation_ = false;
  EventText text_;
};

void Events::find_processes() {
  for (const PerfettoTrack& track : capture_.tracks) {
    if (!track.process) continue;
    const StringId name = text(track.process_name).empty() ? track.name : track.process_name;
    if (!text(name).empty()) process_names_.insert_or_assign(*track.process, name);
  }
}

const PerfettoTrack* Events::parent_of(const PerfettoTrack& track) const {
  const auto found = track.parent == 0 ? capture_.track_of.end() : capture_.track_of.find(track.parent);
  return found == capture_.track_of.end() ? nullptr : &capture_.tracks[found->second];
}

// "COMPUTE AGENT [4] STREAM [0] (GPU)", "COPY to AGENT [4] THREAD [1] (GPU)", "GPU Kernel Dispatch [0] Queue [1]".
void Events::name_device(std::string_view name, Line& line) {
  std::string plain;
  for (const char c : name) plain += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::size_t lane = std::string::npos;
  for (const std::string_view word : {"STREAM [", "QUEUE [", "THREAD ["}) {
    const std::size_t at = plain.find(word);
    if (at == std::string::npos) continue;
    lane = at;
    line.stream = number_at(plain, at + word.size());
    line.is_stream_of_copies_only = word.front() == 'T';
    break;
  }
  const std::size_t bracket = plain.find('[');
  if (bracket < lane && bracket != std::string::npos) line.agent = number_at(plain, bracket + 1);
  line.is_gpu = line.agent >= 0 && plain.find("CPU") == std::string::npos && plain.find("GPU") != std::string::npos;
}

Line Events::line_of(std::uint32_t index) const {
  const PerfettoTrack& track = capture_.tracks[index];
  Line line{.is_thread = track.thread.has_value()};
  std::optional<std::int64_t> process;
  const PerfettoTrack* top = &track;
  int depth = 0;
  for (const PerfettoTrack* at = &track; at != nullptr; at = parent_of(*at)) {
    if (++depth > deepest_parent)
      throw InputError(file_, "byte " + std::to_string(track.place),
                       "the parents of track " + std::to_string(track.uuid) + " form a circle or lie deeper than 64",
                       "the file is damaged; record the trace again");
    if (!process) process = at->process ? at->process : at->process_of_thread;
    top = at;
  }
  line.process = process ? std::to_string(*process) : "track " + std::to_string(top->uuid);
  line.thread = std::to_string(track.thread ? *track.thread : static_cast<std::int64_t>(track.uuid));
  if (process) {
    const auto named = process_names_.find(*process);
    if (named != process_names_.end()) line.process_label = text(named->second);
  } else if (top != &track) {
    line.process_label = text(top->name);
  }
  line.thread_label = text(text(track.thread_name).empty() ? track.name : track.thread_name);
  name_device(text(track.name), line);
  return line;
}

Meaning Events::meaning_of(StringId category) {
  const auto [found, is_new] = meanings_.try_emplace(static_cast<std::int64_t>(category), Meaning::other);
  if (!is_new) return found->second;
  std::string_view name = text(category);
  if (kineto_category(name) != KinetoCategory::other) return found->second = Meaning::kineto;
  if (name.starts_with("rocm_")) name.remove_prefix(5);
  if (name.starts_with("hip_") && name.ends_with("api")) found->second = Meaning::hip_call;
  if (name == "hsa_api") found->second = Meaning::hsa_call;
  if (name == "marker_api" || name == "rccl_api") found->second = Meaning::range;
  if (name == "kernel_dispatch") found->second = Meaning::kernel;
  if (name == "memory_copy") found->second = Meaning::copy;
  return found->second;
}

const PerfettoValue* Events::value_of(const PerfettoSlice& slice, std::uint8_t key) const {
  const auto begin = capture_.values.begin() + slice.first_value, end = begin + slice.values;
  const auto found = std::find_if(begin, end, [&](const PerfettoValue& value) { return value.key == key; });
  return found == end ? nullptr : &*found;
}

// -1: none.
std::int64_t Events::correlation_of(const PerfettoSlice& slice) const {
  const PerfettoValue* const value = value_of(slice, static_cast<std::uint8_t>(EventField::correlation));
  return value == nullptr ? -1 : value->is_text ? last_number(text(value->text)) : value->integer;
}

std::int64_t Events::agent_of(const PerfettoSlice& slice, PerfettoKey key) const {
  const PerfettoValue* const value = value_of(slice, static_cast<std::uint8_t>(key));
  return value == nullptr ? -1 : value->is_text ? last_number(text(value->text)) : value->integer;
}

std::int64_t Events::ordinal_of(std::int64_t agent) const {
  const auto found = gpus_.find(agent);
  return found == gpus_.end() ? 0 : std::distance(gpus_.begin(), found);
}

void Events::survey() {
  for (const PerfettoSlice& slice : capture_.slices) {
    if (slice.shape == PerfettoShape::open) continue;
    const Meaning meaning = meaning_of(slice.category);
    has_kineto_ |= meaning == Meaning::kineto;
    has_hip_ |= meaning == Meaning::hip_call;
    has_correlation_ |= correlation_of(slice) >= 0;
    if (meaning != Meaning::kernel && meaning != Meaning::copy) continue;
    has_rocprof_ = true;
    const Line& line = lines_[slice.track];
    if (meaning == Meaning::kernel)
      gpus_.insert(
          std::max<std::int64_t>(line.agent >= 0 ? line.agent : agent_of(slice, PerfettoKey::target_agent), 0));
    if (meaning == Meaning::copy && line.is_gpu) gpus_.insert(line.agent);
  }
  has_rocprof_ |= has_hip_;
}

// HIP's calls are made of HSA's, and it is one of these whose number a copy may carry.
void Events::join_calls() {
  if (!has_hip_) return;
  struct Call {
    std::uint32_t track = 0;
    std::int64_t start = 0, end = 0, correlation = -1;
  };
  std::vector<Call> hip, hsa;
  for (const PerfettoSlice& slice : capture_.slices) {
    const Meaning meaning = meaning_of(slice.category);
    if (slice.shape != PerfettoShape::slice || (meaning != Meaning::hip_call && meaning != Meaning::hsa_call)) continue;
    (meaning == Meaning::hip_call ? hip : hsa)
        .push_back({slice.track, slice.start_ns, slice.start_ns + slice.duration_ns, correlation_of(slice)});
  }
  std::sort(hip.begin(), hip.end(),
            [](const Call& a, const Call& b) { return std::tie(a.track, a.start) < std::tie(b.track, b.start); });
  for (const Call& call : hsa) {
    auto around = std::upper_bound(hip.begin(), hip.end(), call, [](const Call& a, const Call& b) {
      return std::tie(a.track, a.start) < std::tie(b.track, b.start);
    });
    if (around == hip.begin()) continue;
    --around;
    if (around->track == call.track && around->end >= call.end && call.correlation >= 0)
      joined_.emplace(call.correlation, around->correlation);
  }
  for (const Call& call : hip) joined_.erase(call.correlation);
}

void Events::add_label(const Line& line, std::string_view what, std::string_view label) {
  if (label.empty()) return;
  text_.clear();
  KinetoEvent& event = text_.event();
  event.phase = 'M';
  text_.set(EventField::name, what);
  text_.set(EventField::process, line.process);
  text_.set(EventField::thread, line.thread);
  text_.set(EventField::label, label);
  rows_.add(event, 0);
}

void Events::add_labels(const Line& line) {
  add_label(line, "process_name", line.process_label);
  add_label(line, "thread_name", line.thread_label);
}

void Events::add_rocprof(const PerfettoSlice& slice, Meaning meaning, const Line& line) {
  KinetoEvent& event = text_.event();
  if (const std::int64_t correlation = correlation_of(slice); correlation >= 0 && !joined_.empty()) {
    const auto joined = joined_.find(correlation);
    if (joined != joined_.end()) text_.set(EventField::correlation, joined->second);
  }
  const std::int64_t target = line.agent >= 0 ? line.agent : agent_of(slice, PerfettoKey::target_agent);
  std::int64_t stream = std::max<std::int64_t>(line.stream, 0), device = target;
  if (meaning == Meaning::kernel) {
    event.category = KinetoCategory::kernel;
  } else {
    event.category = KinetoCategory::copy;
    const std::int64_t source = agent_of(slice, PerfettoKey::source_agent);
    const bool to_gpu = gpus_.contains(target), from_gpu = gpus_.contains(source);
    if (!to_gpu && from_gpu) device = source;
    if (line.is_stream_of_copies_only || line.stream < 0) stream = copy_lanes + 2 * stream + (to_gpu ? 0 : 1);
    const std::string_view name = event.text(EventField::name);
    const auto says = [&](std::string_view words) { return name.find(words) != std::string_view::npos; };
    if (says("HOST_TO_DEVICE"))
      text_.set(EventField::copy_kind, "HtoD");
    else if (says("DEVICE_TO_HOST"))
      text_.set(EventField::copy_kind, "DtoH");
    else if (to_gpu && from_gpu && source != target)
      text_.set(EventField::copy_kind, "PtoP");
  }
  text_.set(EventField::device, ordinal_of(device));
  text_.set(EventField::stream, stream);
}

void Events::add(const PerfettoSlice& slice) {
  if (slice.shape == PerfettoShape::open) return;
  const Meaning meaning = meaning_of(slice.category);
  const Line& line = lines_[slice.track];
  text_.clear();
  KinetoEvent& event = text_.event();
  event.phase = slice.shape == PerfettoShape::slice ? 'X' : 'i';
  for (std::uint32_t i = slice.first_value; i < slice.first_value + slice.values; ++i) {
    const PerfettoValue& value = capture_.values[i];
    if (value.key >= static_cast<std::uint8_t>(EventField::count_) || event.has(EventField(value.key))) continue;
    if (value.is_text)
      text_.set(EventField(value.key), text(value.text));
    else
      text_.set(EventField(value.key), value.integer);
  }
  text_.set(EventField::name, text(slice.name));
  text_.set(EventField::process, line.process);
  text_.set(EventField::thread, line.thread);
  text_.set_time(EventField::timestamp, slice.start_ns);
  if (slice.shape == PerfettoShape::slice) text_.set_time(EventField::duration, slice.duration_ns);
  if (!has_correlation_ && slice.flow != 0)
    text_.set(EventField::correlation,
              arrow_ids_.try_emplace(slice.flow, static_cast<std::int64_t>(arrow_ids_.size()) + 1).first->second);
  switch (meaning) {
    case Meaning::kineto:
      event.category = kineto_category(text(slice.category));
      break;
    case Meaning::hip_call:
      event.category = KinetoCategory::runtime;
      break;
    case Meaning::hsa_call:
      event.category = has_hip_ ? KinetoCategory::annotation : KinetoCategory::runtime;
      break;
    case Meaning::range:
      event.category = KinetoCategory::annotation;
      break;
    case Meaning::kernel:
    case Meaning::copy:
      add_rocprof(slice, meaning, line);
      break;
    case Meaning::other:
      if (has_kineto_ && !text(slice.category).empty())
        event.category = KinetoCategory::other;
      else if (line.is_thread && !line.process_label.starts_with("/") && line.agent < 0)
        event.category = KinetoCategory::annotation;
      break;
  }
  rows_.add(event, slice.place);
}

}  // namespace

void assemble_perfetto(PerfettoCapture capture, FileMemory& memory, bool keep_python,
                       std::optional<std::int64_t> to_epoch, Trace& trace) {
  // The earliest instant that is not 0, as the other readers of events take it.
  const auto origin = std::find_if(capture.slices.begin(), capture.slices.end(), [](const PerfettoSlice& slice) {
    return slice.shape != PerfettoShape::open && slice.start_ns / 1000 != 0;
  });
  const bool is_far = origin != capture.slices.end() && std::abs(origin->start_ns) > small_time_ns;
  KinetoRows rows(trace, memory, keep_python, is_far ? origin->start_ns / 1000 : 0);
  const PerfettoWriter writer = Events(capture, memory.file(), trace, rows).run();
  capture = {};
  rows.name_lanes();
  Provenance& from = trace.provenance.front();
  if (writer == PerfettoWriter::torch) from.producer = "torch.profiler (converted)";
  if (writer == PerfettoWriter::rocprof) from.producer = "rocprofv3";
  const Picos zero = assemble_kineto(rows, trace);
  const std::int64_t first_ns = rows.origin_us() * 1000 + zero.count() / 1000;
  std::int64_t sum = 0;
  if (first_ns > epoch_like_ns)
    trace.time_base_ns = first_ns;
  else if (to_epoch && !__builtin_add_overflow(first_ns, *to_epoch, &sum))
    trace.time_base_ns = sum;
  rows.note_informational();
}

}  // namespace spillway::traces
