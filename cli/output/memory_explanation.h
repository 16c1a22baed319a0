// Explaining memory, for `memory` and `run`: what reserved memory is made of, what would have saved some, pictures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "scenario/memory_knobs.h"
#include "sim/devices/memory/reserved_parts.h"
#include "sim/replay/result.h"

namespace spillway::cli {

class Command;

struct MemoryExplanation {
  ReservedParts parts;            // when most is reserved
  std::vector<MemoryKnob> knobs;  // best first
};
MemoryExplanation explain_memory(const Trace& trace, const AllocationStreamOptions& options);

std::string explanation_text(const MemoryExplanation& explanation);
nlohmann::ordered_json explanation_json(const MemoryExplanation& explanation);
std::string owners_text(const std::string& heading, const std::vector<PeakOwner>& owners, std::size_t most);
nlohmann::ordered_json owners_json(const std::vector<PeakOwner>& owners);

// Where the pictures go; empty: not wanted.
struct PictureFiles {
  std::string curve, map;
  [[nodiscard]] bool wanted() const { return !curve.empty() || !map.empty(); }
};
// --curve and --map. `files` must outlive the command.
void add_picture_options(Command& command, PictureFiles& files);
// Runs the stream once more. op_start: a replay's, by op; empty: the record's times.
void write_pictures(const PictureFiles& files, const Trace& trace, const AllocationStreamOptions& options,
                    std::span<const Picos> op_start, const std::string& title, Bytes capacity);

}  // namespace spillway::cli
