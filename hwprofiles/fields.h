// One description of every profile's fields, walked by the loader, by show and diff, and by overrides.
//
// describe(profile, visitor) names each field in file order; a visitor reads, prints or changes it. Adding
// a field means one member in the noun's header and one line in fields.cc. Internal to this floor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "base/quantity.h"

namespace spillway::hwprofiles {

struct FieldInfo {
  std::string_view key;
  Dimension dimension = Dimension::plain;
  double min = 0, max = std::numeric_limits<double>::infinity();  // closed, in base units
};

// A numeric leaf of any type, in the base unit of its dimension.
class Leaf {
 public:
  virtual ~Leaf() = default;
  [[nodiscard]] virtual bool required() const = 0;
  [[nodiscard]] virtual bool present() const = 0;
  [[nodiscard]] virtual double value() const = 0;          // precondition: present
  [[nodiscard]] virtual const Origin& origin() const = 0;  // precondition: present
  // The value is rounded to what the type holds. Precondition: holds(value).
  virtual void set(double value, Origin origin) = 0;
  // Whether the stored type can hold the value.
  [[nodiscard]] virtual bool holds(double value) const = 0;
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void text(std::string_view key, std::string& value, bool required) = 0;
  virtual void flag(std::string_view key, bool& value) = 0;
  // One of `names`; `index` is its place.
  virtual void choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) = 0;
  virtual void number(const FieldInfo& info, Leaf& leaf) = 0;
  // A number without an origin (a count, a class bound).
  virtual void integer(const FieldInfo& info, std::int64_t& value) = 0;
  virtual void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) = 0;
  virtual void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) = 0;
  // A nested object; false: it is absent, skip its fields.
  virtual bool begin_group(std::string_view key, bool required) = 0;
  virtual void end_group() = 0;
  // An array of objects: the number of elements (`current` for visitors that only look).
  virtual std::size_t begin_list(std::string_view key, std::size_t current) = 0;
  virtual void begin_element(std::size_t index) = 0;
  virtual void end_element() = 0;
  virtual void end_list() = 0;
};

void describe(GpuProfile& gpu, FieldVisitor& visitor);
void describe(NvmeProfile& drive, FieldVisitor& visitor);
// `parents` receives or gives the name of each PCIe node's parent ("" for a root complex).
void describe(HostProfile& host, std::vector<std::string>& parents, FieldVisitor& visitor);
void describe(NetworkProfile& network, FieldVisitor& visitor);
// The composed whole, components nested under gpu, host, drives, scale_up, scale_out.
void describe(HardwareProfile& system, FieldVisitor& visitor);
// What a system file states itself beside its references.
void describe_system_leaves(HardwareProfile& system, FieldVisitor& visitor);

}  // namespace spillway::hwprofiles
