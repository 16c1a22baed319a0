// A Chakra graph as its files have it, and the Trace it becomes. Shared by the protobuf and JSON forms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// Numbers as the Chakra schema has them.
enum class ChakraType : std::uint8_t {
  invalid = 0,
  metadata = 1,
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::invalid;
  std::vector<std::uint64_t> control, data;  // ids of the nodes waited for
  std::uint64_t start_us = 0, duration_us = 0;
  std::string input_values, output_values;  // text of Python lists
  bool is_cpu = false;
  bool has_comm_type = false;
  std::uint64_t comm_type = 0;
  std::uint64_t bytes = 0;  // comm_size or tensor_size
  std::int64_t thread = 0;  // host thread, or stream of device work
  std::int64_t record_id = -1, sequence = -1;
};

// Ops are in an order in which every op comes after what it waits for, else by id. Findings: dangling
// dependencies, nodes that wait for themselves (real files have some), start times that are all 0, repeated ids.
// Control dependencies that contradict the data are findings; throws InputError for cycles of data dependencies. O(n
// log n).
Trace chakra_trace(std::vector<ChakraNode> nodes, Provenance provenance);

}  // namespace spillway::traces
