// How far predictions lay from published steps that nothing was fitted to: the groups of validation cases of
// `spillway validate published`, as tests/goldens/published.json pins them; a test holds this table to that file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/floors.h"

namespace spillway::studies {

// What kind of step a group measured.
enum class MeasuredKind : std::uint8_t {
  one_gpu,
  sharded,       // ZeRO 3 (FSDP), to 512 GPUs
  sharded_wide,  // ZeRO 3 over 384 GPUs and more, as of 2021
  one_machine,   // tensor, pipeline and data parallelism inside a machine
  machines,      // over several
  schedules,     // pipeline schedules that split the backward
};

struct PublishedError {
  std::string_view source, metric;  // "SC'21 Table 1", "iteration_time"
  MeasuredKind kind;
  std::int64_t cases;
  double median;  // predicted / measured - 1 of times, throughputs or peaks, with its sign
  double p90;     // of its size
  [[nodiscard]] bool is_memory() const { return metric == "peak_allocated" || metric == "peak_reserved"; }
};

std::span<const PublishedError> published_errors();

// The group of that kind with the widest 90th percentile, of times or of memory; null: none was measured.
const PublishedError* widest_error(MeasuredKind kind, bool of_memory);

}  // namespace spillway::studies
