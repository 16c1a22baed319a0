#include "hwprofiles/gpu_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "hwprofiles/fields.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::string_view schema = "spillway-gpu-points/1";
constexpr std::uint64_t largest_points_file = 256U << 20U;

const Words& kind_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (std::size_t i = 0; i < point_kind_count; ++i) list.push_back({point_kind_name(static_cast<PointKind>(i))});
    return Words(std::move(list));
  }();
  return words;
}
const Words& precision_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (std::size_t i = 0; i < precision_count; ++i) list.push_back({precision_name(static_cast<Precision>(i))});
    return Words(std::move(list));
  }();
  return words;
}

// Left out where it is 0.
void number_or_none(FieldVisitor& visitor, const FieldInfo& info, double& value) {
  std::optional<double> given;
  if (value != 0) given = value;
  fields::number(visitor, info, given);
  value = given.value_or(0);
}
void bytes_or_none(FieldVisitor& visitor, const FieldInfo& info, Bytes& value) {
  std::int64_t count = value.count();
  fields::integer_or_none(visitor, info, count);
  value = Bytes(count);
}

void describe(GpuIdentity& device, FieldVisitor& visitor) {
  visitor.constant({.key = "schema", .required = true}, schema);
  fields::text(visitor, {.key = "name", .required = true}, device.name);
  fields::text(visitor, {.key = "driver"}, device.driver);
  fields::bytes(visitor, {.key = "memory_bytes", .required = true}, device.memory);
  fields::bytes(visitor, {.key = "context_bytes"}, device.context);
  fields::integer(visitor, {.key = "sm_count", .required = true}, device.sm_count);
  fields::bytes(visitor, {.key = "l2_bytes"}, device.l2_cache);
  fields::integer(visitor, {.key = "copy_engines_per_direction", .min = 1}, device.copy_engines_per_direction);
  number_or_none(visitor, {.key = "power_limit_watts"}, device.power_limit_watts);
}

void describe(GpuPoint& point, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "kind", .required = true}, point.kind, kind_words());
  fields::text(visitor, {.key = "what"}, point.what);
  fields::text(visitor, {.key = "source"}, point.source);
  fields::number(visitor, {.key = "value", .min = 0, .max = 1e18, .required = true, .above_min = true},
                 point.value.median);
  number_or_none(visitor, {.key = "spread"}, point.value.relative);
  fields::integer(visitor, {.key = "samples", .min = 1}, point.samples);
  if (point.kind == PointKind::product || point.kind == PointKind::operation)
    fields::word(visitor, {.key = "precision"}, point.precision, precision_words());
  for (const auto& [key, side] : {std::pair{"m", &point.m},
                                  {"n", &point.n},
                                  {"k", &point.k},
                                  {"batch", &point.batch},
                                  {"heads", &point.heads},
                                  {"kv_heads", &point.kv_heads},
                                  {"sequence", &point.sequence},
                                  {"head_dim", &point.head_dim}})
    fields::integer_or_none(visitor, {.key = key, .max = 1e12}, *side);
  bytes_or_none(visitor, {.key = "bytes"}, point.bytes);
  if (point.kind == PointKind::copy_to_device || point.kind == PointKind::copy_to_host)
    fields::flag(visitor, {.key = "pinned"}, point.pinned);
  if (point.kind == PointKind::operation) fields::flag(visitor, {.key = "causal"}, point.causal);
  number_or_none(visitor, {.key = "clock_mhz"}, point.clock_mhz);
  number_or_none(visitor, {.key = "watts"}, point.watts);
  number_or_none(visitor, {.key = "at_seconds"}, point.at_seconds);
}

void describe(FailedPart& failed, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "part", .required = true}, failed.part);
  fields::text(visitor, {.key = "cause", .required = true}, failed.cause);
}

struct Line {
  std::optional<GpuIdentity> device;
  std::optional<GpuPoint> point;
  std::optional<FailedPart> failed;
  std::string note;
  bool is_end = false;
};

void describe(Line& line, FieldVisitor& visitor) {
  fields::part(visitor, {.key = "device"}, line.device, [&](GpuIdentity& device) { describe(device, visitor); });
  fields::part(visitor, {.key = "point"}, line.point, [&](GpuPoint& point) { describe(point, visitor); });
  fields::part(visitor, {.key = "failed"}, line.failed, [&](FailedPart& failed) { describe(failed, visitor); });
  fields::text(visitor, {.key = "note"}, line.note);
  std::optional<bool> end;
  if (line.is_end) end = true;
  visitor.flag({.key = "end"}, end);
  line.is_end = end.value_or(false);
}

std::string text_of(Line line) {
  FieldWriter writer;
  describe(line, writer);
  return writer.line() + "\n";
}

Line line_of(std::string_view text, const std::string& file, std::size_t number) {
  Line line;
  try {
    read_document(text, file, [&](FieldVisitor& visitor) { describe(line, visitor); });
  } catch (const InputError& error) {
    throw InputError(file, fmt::format("line {}{}", number, error.place().empty() ? "" : ", " + error.place()),
                     error.cause(), error.remedy());
  }
  return line;
}

}  // namespace

std::string_view point_kind_name(PointKind kind) {
  static constexpr std::array<std::string_view, point_kind_count> names = {"launch_call",
                                                                           "launch_to_start",
                                                                           "kernel_gap",
                                                                           "launch_queue",
                                                                           "event_record_call",
                                                                           "event_wait_call",
                                                                           "event_gap",
                                                                           "malloc_call",
                                                                           "free_call",
                                                                           "chunk_create",
                                                                           "chunk_map",
                                                                           "chunk_unmap",
                                                                           "memory_kernel",
                                                                           "product",
                                                                           "copy_to_device",
                                                                           "copy_to_host",
                                                                           "duplex_rate",
                                                                           "kernel_rate_alone",
                                                                           "kernel_rate_beside_copies",
                                                                           "copy_rate_alone",
                                                                           "copy_rate_beside_kernels",
                                                                           "two_stream_speedup",
                                                                           "sustained_product",
                                                                           "sustained_window",
                                                                           "operation"};
  return names[static_cast<std::size_t>(kind)];
}

const Words& kernel_library_words() {
  static const Words words = {{"pytorch", "PyTorch's own kernels: norms, cross-entropy, fused AdamW"},
                              {"flash-attention", "FlashAttention 2, in PyTorch's SDPA or the package"},
                              {"cudnn", "cuDNN's attention as PyTorch's SDPA calls it"},
                              {"cudnn-graph", "cuDNN's kernels by its graph API, as the GPU module calls it"}};
  return words;
}

std::optional<KernelLibrary> library_of(const GpuPoint& point) {
  const std::string_view source = point.source;
  const std::optional<std::size_t> found = kernel_library_words().find(source.substr(0, source.find(' ')));
  return found ? std::optional(static_cast<KernelLibrary>(*found)) : std::nullopt;
}

void add_points(GpuMeasurement& measured, GpuMeasurement added, const std::string& file) {
  if (added.device.name != measured.device.name || added.device.sm_count != measured.device.sm_count)
    throw InputError(file, "device",
                     fmt::format("is of {} with {} multiprocessors, the points before of {} with {}", added.device.name,
                                 added.device.sm_count, measured.device.name, measured.device.sm_count),
                     "make a profile of each GPU's points by itself");
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(measured.points, added.points);
  append(measured.notes, added.notes);
  append(measured.failed, added.failed);
  measured.is_whole = measured.is_whole && added.is_whole;
}

const GpuPoint* find_point(const GpuMeasurement& measured, PointKind kind) {
  const auto found = std::find_if(measured.points.begin(), measured.points.end(),
                                  [&](const GpuPoint& point) { return point.kind == kind; });
  return found == measured.points.end() ? nullptr : &*found;
}

std::string device_line(const GpuIdentity& device) { return text_of({.device = device}); }
std::string point_line(const GpuPoint& point) { return text_of({.point = point}); }
std::string note_line(const std::string& note) { return text_of({.note = note}); }
std::string failed_line(const FailedPart& failed) { return text_of({.failed = failed}); }
std::string end_line() { return text_of({.is_end = true}); }

GpuMeasurement read_gpu_points(const std::string& path) {
  const std::string text = read_file(path, largest_points_file);
  GpuMeasurement measured;
  bool has_device = false;
  std::size_t number = 0, at = 0;
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    Line line = line_of(std::string_view(text).substr(at, end - at), path, ++number);
    if (line.device) {
      measured.device = *line.device;
      has_device = true;
    } else if (!has_device) {
      throw InputError(path, "line 1", "no file of raw points of a GPU",
                       "name one that `spillway calibrate gpu` wrote");
    }
    if (line.point) measured.points.push_back(*line.point);
    if (!line.note.empty()) measured.notes.push_back(line.note);
    if (line.failed) measured.failed.push_back(*line.failed);
    measured.is_whole = measured.is_whole || line.is_end;
  }
  if (!has_device)
    throw InputError(path, "", "no file of raw points of a GPU", "name one that `spillway calibrate gpu` wrote");
  return measured;
}

GpuPointFile::GpuPointFile(std::string path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (file_ >= 0) return;
  if (errno == EEXIST)
    throw InputError(path_, "", "is there already, and raw points are not written over", "name another file");
  throw InputError(path_, "", std::string("can't be written: ") + std::strerror(errno),
                   "name a file in a folder that is there");
}

GpuPointFile::~GpuPointFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (is_empty_) ::unlink(path_.c_str());
}

void GpuPointFile::add(const std::string& line) {
  std::size_t done = 0;
  is_empty_ = false;
  while (done < line.size()) {
    const ssize_t wrote = ::write(file_, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      throw InputError(path_, "", std::string("can't be written: ") + std::strerror(errno), "free space on the disk");
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace spillway::hwprofiles
