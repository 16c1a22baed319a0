// A number and where it came from: every leaf of a hardware profile is one of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::hwprofiles {

enum class OriginKind { measured, datasheet, fitted, assumed };

// "measured", "datasheet", "fitted", "assumed".
std::string_view provenance_name(OriginKind provenance);

struct Origin {
  OriginKind provenance = OriginKind::assumed;
  std::string source;  // who says so: a document, a table, a reason for an assumption
  std::string date;    // ISO 8601 day, month or year; may be empty
  double spread = 0;   // of repeated measurements: half the interquartile range / median; 0: not stated
};

template <class T>
struct Sourced {
  T value{};
  Origin origin;
};

// Absent when no source gives it; nothing is invented in its place.
template <class T>
using Maybe = std::optional<Sourced<T>>;

}  // namespace spillway::hwprofiles
