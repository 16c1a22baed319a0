// Distinguishes the tensors that shared an address, and links the ops that share a tensor.
//
// Input: for each op in order, which storages it reads and writes, under ids that are reused. See
// traces/formats/execution_trace_reader.h for the rules.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// A tensor as an op names it.
struct TensorValue {
  std::int64_t tensor = 0;
  std::int64_t storage = 0;
  std::int64_t offset = 0;  // elements
  std::int64_t elements = 0;
  std::int64_t element_bytes = 0;
  StringId device{};
  StringId dtype{};
};

class TensorLives {
 public:
  enum class Link : std::uint8_t { add_edges, leave_edges };
  explicit TensorLives(Trace& trace, Link link = Link::add_edges) : trace_(trace), link_(link) {}

  // Call in op order. `inputs` are read; `outputs` and `mutated` are written. Amortised O(values).
  void add(OpId op, std::span<const TensorValue> inputs, std::span<const TensorValue> mutated,
           std::span<const TensorValue> outputs);

 private:
  struct Storage {
    std::uint32_t index = 0;  // dense, in Tensors::storage
    std::int64_t element_bytes = 0;
    OpId writer = OpId::none;
    std::vector<OpId> readers;  // since the last write
    std::map<std::int64_t, TensorId> tensors;
  };

  Storage& begin_life(const TensorValue& value);
  TensorId touch(Storage& storage, const TensorValue& value);
  void read(OpId op, const TensorValue& value);
  void write(OpId op, const TensorValue& value);
  void edge(OpId from, OpId to, EdgeKind kind, bool inferred);

  Trace& trace_;
  Link link_;
  std::unordered_map<std::int64_t, Storage> storages_;
  std::uint32_t lives_ = 0;
};

}  // namespace spillway::traces
