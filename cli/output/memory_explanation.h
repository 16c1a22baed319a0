// Explaining memory, for `memory` and `run`: what reserved memory is made of, what would have saved some, pictures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenario/memory_knobs.h"
#include "scenario/scenario_memory.h"
#include "sim/pictures/reserved_parts.h"
#include "sim/replay/result.h"

namespace spillway::cli {

class Command;

struct MemoryExplanation {
  ReservedParts parts;            // when most is reserved
  std::vector<MemoryKnob> knobs;  // best first
};
MemoryExplanation explain_memory(const Trace& trace, const AllocationStreamOptions& options);

// The parts of reserved memory; explanation_text() adds settings that would have reserved less.
std::string reserved_parts_text(const MemoryExplanation& explanation);
std::string explanation_text(const MemoryExplanation& explanation);
nlohmann::ordered_json explanation_json(const MemoryExplanation& explanation);
std::string owners_text(const std::string& heading, const std::vector<PeakOwner>& owners, std::size_t most);
nlohmann::ordered_json owners_json(const std::vector<PeakOwner>& owners);

// Paths of the pictures; empty: not wanted.
struct PictureFiles {
  std::string curve, map;
  [[nodiscard]] bool wanted() const { return !curve.empty() || !map.empty(); }
};
// --curve and --map. `files` must outlive the command.
void add_picture_options(Command& command, PictureFiles& files);
void write_pictures(const PictureFiles& files, const MemoryPicture& picture);
// Pictures of a record, at its own times. Runs the stream once more.
void write_pictures(const PictureFiles& files, const Trace& trace, const AllocationStreamOptions& options,
                    const std::string& title, Bytes capacity);
// Pictures of a step on the replay's clock, up to the GPU's place. Runs the stream once more.
void write_pictures(const PictureFiles& files, const LoadedScenario& loaded, ScenarioRun run);

}  // namespace spillway::cli
