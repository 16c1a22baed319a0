#include "traces/formats/chakra_writer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/formats/chakra_graph.h"

namespace spillway::traces {
namespace {

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_varint(out, field << 3U);
  put_varint(out, value);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_varint(out, field << 3U | 2U);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_ids(std::string& out, std::uint32_t field, const std::vector<std::uint64_t>& ids) {
  if (ids.empty()) return;
  std::string packed;
  for (const std::uint64_t id : ids) put_varint(packed, id);
  put_bytes(out, field, packed);
}

constexpr std::uint32_t int64_field = 9, uint64_field = 13, bool_field = 27, text_field = 29;  // of AttributeProto

void put_attribute(std::string& out, std::uint32_t list, std::string_view name, std::uint32_t kind,
                   std::uint64_t value) {
  std::string attribute;
  put_bytes(attribute, 1, name);
  put_number(attribute, kind, value);
  put_bytes(out, list, attribute);
}

std::uint64_t micros(Picos time) {
  return time == unknown_time || time < Picos(0) ? 0 : static_cast<std::uint64_t>(time / picos_per_microsecond);
}

ChakraType type_of(const Trace& trace, OpId op) {
  if (trace.ops.kind[index_of(op)] != OpKind::collective) return ChakraType::compute;
  const Collective* collective = trace.collective_of(op);
  if (collective != nullptr && collective->kind == CollectiveKind::send) return ChakraType::send;
  if (collective != nullptr && collective->kind == CollectiveKind::receive) return ChakraType::receive;
  return ChakraType::collective;
}

// Number of the schema's CollectiveCommType; -1 when it has none.
int comm_type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::reduce:
      return 1;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::barrier:
      return 9;
    case CollectiveKind::unknown:
    case CollectiveKind::send:
    case CollectiveKind::receive:
      break;
  }
  return -1;
}

struct Dependencies {
  std::vector<std::uint64_t> data, control;
};

std::vector<Dependencies> dependencies_of(const Trace& trace) {
  std::vector<Dependencies> result(trace.ops.size());
  const auto number = [](OpId op) { return static_cast<std::uint64_t>(index_of(op)) + 1; };
  for (const Edge& edge : trace.edges) {
    Dependencies& to = result[index_of(edge.to)];
    (edge.kind == EdgeKind::data ? to.data : to.control).push_back(number(edge.from));
  }
  std::vector<OpId> last(trace.lanes.size(), OpId::none);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    OpId& before = last[index_of(trace.ops.lane[i])];
    if (before != OpId::none) result[i].control.push_back(number(before));
    before = static_cast<OpId>(i);
    if (trace.ops.launched_by[i] != OpId::none) result[i].control.push_back(number(trace.ops.launched_by[i]));
  }
  for (Dependencies& d : result) {
    for (auto* ids : {&d.data, &d.control}) {
      std::sort(ids->begin(), ids->end());
      ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
    }
  }
  return result;
}

std::string node_message(const Trace& trace, std::size_t i, const Dependencies& dependencies) {
  const Ops& ops = trace.ops;
  const auto op = static_cast<OpId>(i);
  std::string node;
  put_number(node, 1, i + 1);
  put_bytes(node, 2, trace.strings.text(ops.name[i]));
  put_number(node, 3, static_cast<std::uint64_t>(type_of(trace, op)));
  put_ids(node, 4, dependencies.control);
  put_ids(node, 5, dependencies.data);
  put_number(node, 6, micros(ops.start[i]));
  put_number(node, 7, micros(ops.duration[i]));
  put_attribute(node, 10, "is_cpu_op", bool_field, is_host_call(ops.kind[i]) ? 1 : 0);
  put_attribute(node, 10, "tid", int64_field, static_cast<std::uint64_t>(trace.lanes[index_of(ops.lane[i])].number));
  const Collective* collective = trace.collective_of(op);
  if (collective == nullptr) return node;
  put_attribute(node, 10, "comm_size", uint64_field,
                static_cast<std::uint64_t>(std::max<std::int64_t>(collective->bytes.count(), 0)));
  const int comm_type = comm_type_of(collective->kind);
  if (comm_type >= 0) put_attribute(node, 10, "comm_type", int64_field, static_cast<std::uint64_t>(comm_type));
  return node;
}

void put_message(OutputFile& out, const std::string& message) {
  std::string length;
  put_varint(length, message.size());
  out.write(length);
  out.write(message);
}

}  // namespace

void write_chakra(const Trace& trace, OutputFile& out) {
  std::string metadata, schema;
  put_bytes(metadata, 1, "0.0.4");
  put_bytes(schema, 1, "schema");
  put_bytes(schema, text_field, "1.1.0-chakra.0.0.4");
  put_bytes(metadata, 2, schema);
  put_message(out, metadata);
  const std::vector<Dependencies> dependencies = dependencies_of(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) put_message(out, node_message(trace, i, dependencies[i]));
}

}  // namespace spillway::traces
