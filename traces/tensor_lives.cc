#include "traces/tensor_lives.h"

#include <algorithm>

namespace spillway::traces {
namespace {

bool has_storage(std::span<const TensorValue> values, std::int64_t storage) {
  return std::any_of(values.begin(), values.end(), [&](const TensorValue& v) { return v.storage == storage; });
}

// Bytes from the start of the storage to the end of the tensor; 0 when the numbers make no sense.
std::int64_t extent(const TensorValue& value) {
  std::int64_t end = 0, bytes = 0;
  if (value.offset < 0 || value.elements < 0 || value.element_bytes < 0) return 0;
  if (__builtin_add_overflow(value.offset, value.elements, &end)) return 0;
  if (__builtin_mul_overflow(end, value.element_bytes, &bytes) || bytes > std::int64_t{1} << 50) return 0;
  return bytes;
}

}  // namespace

TensorLives::Storage& TensorLives::begin_life(const TensorValue& value) {
  Storage& storage = storages_[value.storage];
  storage = Storage{.index = lives_++, .element_bytes = value.element_bytes};
  return storage;
}

TensorId TensorLives::touch(Storage& storage, const TensorValue& value) {
  const std::int64_t bytes = extent(value);
  if (bytes == 0 && value.elements != 0)
    trace_.note("bad_tensor_size", "tensor " + std::to_string(value.tensor),
                "its sizes make no sense; counted as 0 bytes", false);
  const auto found = storage.tensors.find(value.tensor);
  if (found != storage.tensors.end()) {
    Bytes& known = trace_.tensors.bytes[index_of(found->second)];
    known = std::max(known, Bytes(bytes));
    return found->second;
  }
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  trace_.tensors.name.push_back(trace_.strings.intern("tensor " + std::to_string(value.tensor)));
  trace_.tensors.bytes.push_back(Bytes(bytes));
  trace_.tensors.storage.push_back(storage.index);
  trace_.tensors.role.push_back(TensorRole::unknown);
  trace_.tensors.dtype.push_back(value.dtype);
  storage.tensors.emplace(value.tensor, id);
  return id;
}

void TensorLives::edge(OpId from, OpId to, EdgeKind kind, bool inferred) {
  if (link_ == Link::leave_edges || from == OpId::none || from == to) return;
  // An op that touches one storage through several tensors asks for the same edge again and again.
  for (auto e = trace_.edges.rbegin(); e != trace_.edges.rend() && e->to == to; ++e)
    if (e->from == from && e->kind == kind) return;
  trace_.edges.push_back({.from = from, .to = to, .kind = kind, .inferred = inferred});
}

void TensorLives::read(OpId op, const TensorValue& value) {
  auto found = storages_.find(value.storage);
  if (found == storages_.end() || found->second.element_bytes != value.element_bytes) {
    if (found != storages_.end())
      trace_.note("storage_reused_unseen", "storage " + std::to_string(value.storage),
                  "an address came back with another element size and no allocation in between; taken as a new tensor",
                  false);
    begin_life(value);
    found = storages_.find(value.storage);
  }
  Storage& storage = found->second;
  trace_.uses.push_back({op, touch(storage, value), Access::read});
  edge(storage.writer, op, EdgeKind::data, false);
  if (storage.readers.empty() || storage.readers.back() != op) storage.readers.push_back(op);
}

void TensorLives::write(OpId op, const TensorValue& value) {
  const auto found = storages_.find(value.storage);
  Storage& storage = found == storages_.end() ? begin_life(value) : found->second;
  trace_.uses.push_back({op, touch(storage, value), Access::write});
  if (storage.writer == op) return;
  edge(storage.writer, op, EdgeKind::control, true);
  for (const OpId reader : storage.readers) edge(reader, op, EdgeKind::control, true);
  storage.readers.clear();
  storage.writer = op;
}

void TensorLives::add(OpId op, std::span<const TensorValue> inputs, std::span<const TensorValue> mutated,
                      std::span<const TensorValue> outputs) {
  for (const TensorValue& value : inputs) read(op, value);
  for (const TensorValue& value : mutated) write(op, value);
  for (const TensorValue& value : outputs) {
    const bool given = has_storage(inputs, value.storage) || has_storage(mutated, value.storage);
    const auto known = storages_.find(value.storage);
    // A first write of this op ends the life before; a second output on the same storage joins the new one.
    if (!given && (known == storages_.end() || known->second.writer != op)) begin_life(value);
    // A view of an input is described, not written.
    if (given && !has_storage(mutated, value.storage)) {
      Storage& storage = storages_.find(value.storage)->second;
      const bool in_place = storage.tensors.contains(value.tensor);
      if (!in_place) {
        touch(storage, value);
        continue;
      }
    }
    write(op, value);
  }
}

}  // namespace spillway::traces
