#include "traces/formats/chakra_reader.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/json_integer.h"
#include "traces/formats/chakra_graph.h"
#include "traces/formats/json_rows.h"
#include "traces/formats/perfetto/protobuf_fields.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr std::size_t max_nodes = 50'000'000;
// As its number here and, with room to grow, as an edge of the graph.
constexpr std::uint64_t bytes_of_a_wait = 5 * sizeof(std::uint64_t);

// Repeated integers come packed (one length-delimited field) or one by one.
bool append_ids(const ProtobufField& field, std::vector<std::uint64_t>& ids) {
  if (!field.is_bytes) {
    ids.push_back(field.value);
    return true;
  }
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(field.bytes.data()), static_cast<int>(field.bytes.size()));
  while (static_cast<std::size_t>(in.CurrentPosition()) < field.bytes.size()) {
    std::uint64_t id = 0;
    if (!in.ReadVarint64(&id)) return false;
    ids.push_back(id);
  }
  return true;
}

// An AttributeProto: a name and the one value set. Numbers of the value fields as in the schema.
struct Attribute {
  std::string_view name;
  std::uint64_t number = 0;
  std::string_view text;
};

bool read_attribute(std::string_view message, Attribute& attribute) {
  return for_protobuf_fields(message, [&](const ProtobufField& field) {
    constexpr std::uint32_t name = 1, sint32 = 15, sint64 = 17, text = 29;
    if (field.number == name) attribute.name = field.bytes;
    if (field.number == text) attribute.text = field.bytes;
    const bool zigzag = field.number == sint32 || field.number == sint64;
    if (field.number > 2 && !field.is_bytes)
      attribute.number = zigzag ? (field.value >> 1U) ^ (~(field.value & 1U) + 1) : field.value;
  });
}

void apply(const Attribute& attribute, ChakraNode& node) {
  if (attribute.name == "is_cpu_op") node.is_cpu = attribute.number != 0;
  if (attribute.name == "comm_size" || (attribute.name == "tensor_size" && node.bytes == 0))
    node.bytes = attribute.number;
  if (attribute.name == "tid" || attribute.name == "stream") node.thread = static_cast<std::int64_t>(attribute.number);
  if (attribute.name == "rf_id") node.record_id = static_cast<std::int64_t>(attribute.number);
  if (attribute.name == "seq_id") node.sequence = static_cast<std::int64_t>(attribute.number);
  if (attribute.name == "comm_type") {
    node.has_comm_type = true;
    node.comm_type = attribute.number;
  }
}

bool read_values(std::string_view message, std::string& values) {
  return for_protobuf_fields(message, [&](const ProtobufField& field) {
    if (field.number == 1) values = field.bytes;
  });
}

bool read_node(std::string_view message, ChakraNode& node) {
  bool sound = true;
  const bool complete = for_protobuf_fields(message, [&](const ProtobufField& field) {
    switch (field.number) {
      case 1:
        node.id = field.value;
        break;
      case 2:
        node.name = to_valid_utf8(field.bytes);
        break;
      case 3:
        node.type = field.value <= 7 ? static_cast<ChakraType>(field.value) : ChakraType::invalid;
        break;
      case 4:
        sound &= append_ids(field, node.control);
        break;
      case 5:
        sound &= append_ids(field, node.data);
        break;
      case 6:
        node.start_us = field.value;
        break;
      case 7:
        node.duration_us = field.value;
        break;
      case 8:
        sound &= read_values(field.bytes, node.input_values);
        break;
      case 9:
        sound &= read_values(field.bytes, node.output_values);
        break;
      case 10: {
        Attribute attribute;
        sound &= read_attribute(field.bytes, attribute);
        apply(attribute, node);
        break;
      }
      default:
        break;  // fields of later schemas
    }
  });
  return complete && sound;
}

class Messages {
 public:
  explicit Messages(ByteSource& source) : source_(source) {}

  // False at a clean end of the file.
  bool next(std::string& message) {
    start_ = source_.position();
    if (source_.peek(1).empty()) return false;
    const std::uint64_t length = read_length();
    if (length > max_protobuf_message)
      fail("a message claims " + std::to_string(length) + " bytes", "this is not a Chakra trace, or it is damaged");
    message.resize(static_cast<std::size_t>(length));
    if (source_.read(std::as_writable_bytes(std::span(message.data(), message.size()))) != message.size())
      fail("the file ends in the middle of a message", "the file is cut off; copy or record it again");
    return true;
  }

  [[noreturn]] void fail(const std::string& cause, const std::string& remedy) const {
    throw InputError(source_.name(), "byte " + std::to_string(start_), cause, remedy);
  }

 private:
  std::uint64_t read_length() {
    std::uint64_t length = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      std::byte byte{};
      if (source_.read(std::span(&byte, 1)) != 1)
        fail("the file ends in the middle of a length", "the file is cut off");
      length |= (std::to_integer<std::uint64_t>(byte) & 0x7fU) << shift;
      if ((std::to_integer<unsigned>(byte) & 0x80U) == 0) return length;
    }
    fail("a length of more than 64 bits", "this is not a Chakra trace, or it is damaged");
  }

  ByteSource& source_;
  std::uint64_t start_ = 0;
};

// GlobalMetadata begins with a text (version) or an attribute; a Node with its id, a number.
bool is_metadata(std::string_view message) { return message.empty() || message[0] == '\x0a' || message[0] == '\x12'; }

void read_metadata(std::string_view message, Provenance& provenance) {
  for_protobuf_fields(message, [&](const ProtobufField& field) {
    Attribute attribute;
    if (field.number == 1) provenance.schema_version = to_valid_utf8(field.bytes);
    if (field.number != 2 || !read_attribute(field.bytes, attribute)) return;
    if (attribute.name == "schema") provenance.schema_version = to_valid_utf8(attribute.text);
  });
}

// "ctrlDeps", "ctrl_deps" and "CtrlDeps" are one key.
std::string plain_key(std::string_view key) {
  std::string plain;
  for (const char c : key)
    if (c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

std::uint64_t positive(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const auto number = json_integer(value);
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

void append_ids(const nlohmann::json& list, std::vector<std::uint64_t>& ids) {
  if (!list.is_array()) return;
  for (const auto& id : list)
    if (id.is_number()) ids.push_back(positive(id));
}

ChakraNode node_of_json(const nlohmann::json& row) {
  ChakraNode node;
  for (const auto& entry : row.items()) {
    const std::string key = plain_key(entry.key());
    if (key == "id") node.id = positive(entry.value());
    if (key == "name") node.name = json_text(entry.value());
    if (key == "nodetype" || key == "type")
      node.type = positive(entry.value()) <= 7 ? static_cast<ChakraType>(positive(entry.value())) : ChakraType::invalid;
    if (key == "ctrldeps") append_ids(entry.value(), node.control);
    if (key == "datadeps") append_ids(entry.value(), node.data);
    if (key == "runtime" || key == "durationmicros") node.duration_us = positive(entry.value());
    if (key == "starttimemicros") node.start_us = positive(entry.value());
    const std::string attribute = key == "iscpuop"      ? "is_cpu_op"
                                  : key == "commsize"   ? "comm_size"
                                  : key == "commtype"   ? "comm_type"
                                  : key == "tensorsize" ? "tensor_size"
                                                        : "";
    if (!attribute.empty()) apply({.name = attribute, .number = positive(entry.value())}, node);
  }
  return node;
}

}  // namespace

Trace read_chakra(ByteSource& source, const ReadOptions& /*options*/) {
  Messages messages(source);
  FileMemory memory(source.name());
  Provenance provenance{.file = source.name(), .format = "chakra", .producer = "Chakra"};
  std::vector<ChakraNode> nodes;
  std::string message;
  bool first = true;
  while (messages.next(message)) {
    if (std::exchange(first, false) && is_metadata(message)) {
      read_metadata(message, provenance);
      continue;
    }
    ChakraNode node;
    if (!read_node(message, node)) messages.fail("a message that is not a Chakra node", "the file is damaged");
    if (nodes.size() >= max_nodes) messages.fail("more than 50 million nodes", "record fewer steps");
    memory.add(sizeof node + (node.control.size() + node.data.size()) * bytes_of_a_wait + node.name.size() +
               node.input_values.size() + node.output_values.size());
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) messages.fail("no nodes", "record the trace again");
  return chakra_trace(std::move(nodes), std::move(provenance));
}

Trace read_chakra_json(ByteSource& source, const ReadOptions& options) {
  const std::string text = source.read_all(std::min(options.max_decompressed_bytes, std::uint64_t{4} << 30));
  std::vector<ChakraNode> nodes;
  bool found = false;
  std::uint64_t damaged = 0;
  FileMemory memory(source.name());
  read_json_rows(text, memory, [&](std::string_view key, nlohmann::json& row) {
    if (key != "workload_graph") return;
    found = true;
    if (!row.is_object()) return;
    nodes.push_back(node_of_json(row));
    damaged += nodes.back().name.find("voId ") != std::string::npos;
  });
  if (!found || nodes.empty())
    throw InputError(source.name(), "", "no nodes under \"workload_graph\": not a Chakra JSON trace",
                     "give the protobuf file (.et) instead");
  Trace trace = chakra_trace(std::move(nodes), {.file = source.name(), .format = "chakra", .producer = "Chakra JSON"});
  for (std::uint64_t i = 0; i < damaged; ++i)
    trace.note("damaged_names", i == 0 ? "voId" : "",
               "a search and replace went over this file; names are spoilt, numbers not", false);
  return trace;
}

}  // namespace spillway::traces
