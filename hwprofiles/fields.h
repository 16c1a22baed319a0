// Fields of a profile's description beyond plain ones: numbers with a unit and an origin, and measured tables.
//
// describe(profile, visitor) names each field in file order (base/fields.h); a visitor reads, prints or changes it.
// Adding a field means one member in the noun's header and one line in fields.cc. Internal to this floor.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "hwprofiles/hardware_profile.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

// A number of any type, in the base unit of its dimension.
class Leaf {
 public:
  virtual ~Leaf() = default;
  [[nodiscard]] virtual bool required() const = 0;
  [[nodiscard]] virtual bool present() const = 0;
  [[nodiscard]] virtual double value() const = 0;          // precondition: present
  [[nodiscard]] virtual const Origin* origin() const = 0;  // null: it keeps none. Precondition: present
  // The value is rounded to what the type holds. Precondition: holds(value).
  virtual void set(double value, Origin origin) = 0;
  // Whether the stored type can hold the value.
  [[nodiscard]] virtual bool holds(double value) const = 0;
};

class ProfileVisitor : public virtual FieldVisitor {
 public:
  virtual void quantity(const FieldInfo& info, Leaf& leaf) = 0;
  virtual void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) = 0;
  virtual void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) = 0;
};

void describe(GpuProfile& gpu, ProfileVisitor& visitor);
void describe(NvmeProfile& drive, ProfileVisitor& visitor);
// `parents` receives or gives the name of each PCIe node's parent ("" for a root complex).
void describe(HostProfile& host, std::vector<std::string>& parents, ProfileVisitor& visitor);
void describe(NetworkProfile& network, ProfileVisitor& visitor);
// The composed whole, components nested under gpu, host, drives, scale_up, scale_out.
void describe(HardwareProfile& system, ProfileVisitor& visitor);

// Names in a system file; profile_library.cc puts the components in.
struct SystemReferences {
  struct Drives {
    std::string profile;
    DriveGroup group;  // all but the drive itself
  };
  std::string gpu, host, scale_up, scale_out;  // the networks may be empty
  std::vector<Drives> drives;
};
// A system file's own statements, and its references.
void describe(HardwareProfile& system, SystemReferences& references, ProfileVisitor& visitor);

// The beginning of every profile file.
struct ProfileHead {
  std::string name, title;
  std::string base;  // name or path of the profile that this one changes; empty: none
  Origin origin;     // of the leaves that tell none of their own
};
void describe_head(ProfileHead& head, ProfileKind& kind, FieldVisitor& visitor);

}  // namespace spillway::hwprofiles
