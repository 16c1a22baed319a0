// Typed indices of the engine's nouns: an activity id can't be passed where a link id is meant.
// TrackId names a lane of the engine; `LaneId` is the trace's own (traces/trace.h), and sim/replay uses both.
#pragma once

#include <cstdint>

namespace spillway::sim {

enum class ActivityId : std::uint32_t {};
enum class TrackId : std::uint32_t {};
enum class LinkId : std::uint32_t {};
enum class PathId : std::uint32_t {};
enum class ReservoirId : std::uint32_t {};

inline constexpr ActivityId no_activity{0xFFFFFFFFu};
inline constexpr TrackId no_lane{0xFFFFFFFFu};

constexpr std::uint32_t index(ActivityId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(TrackId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(LinkId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(PathId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(ReservoirId id) { return static_cast<std::uint32_t>(id); }

}  // namespace spillway::sim
