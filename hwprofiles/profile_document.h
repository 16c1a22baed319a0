// One profile file, parsed: JSON in, nouns and a list of problems out. Internal to this floor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/field_reader.h"
#include "hwprofiles/fields.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

class ProfileDocument {
 public:
  // Throws InputError: unreadable, over 16 MiB, not JSON (line and column), a key twice, not a profile of version 1.
  static ProfileDocument read(const std::string& path);

  [[nodiscard]] ProfileKind kind() const { return kind_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  // Name or path of the profile that this one changes; empty: none, or laid over it already.
  [[nodiscard]] const std::string& base() const { return base_; }
  // With the values of its base, a sound document of the same kind, where it states none.
  [[nodiscard]] ProfileDocument over(const ProfileDocument& base) const;
  // The file that states the value at a JSON pointer.
  [[nodiscard]] const std::string& home_of(const std::string& place) const;

  // Each fills what it can and appends what is wrong. Precondition: the kind fits.
  GpuProfile gpu(std::vector<FieldProblem>& problems) const;
  NvmeProfile nvme(std::vector<FieldProblem>& problems) const;
  HostProfile host(std::vector<FieldProblem>& problems) const;
  NetworkProfile network(std::vector<FieldProblem>& problems) const;
  HardwareProfile system(SystemReferences& references, std::vector<FieldProblem>& problems) const;

 private:
  struct Json;
  std::shared_ptr<const Json> json_;
  ProfileKind kind_ = ProfileKind::gpu;
  std::string name_, title_, path_, base_;
};

}  // namespace spillway::hwprofiles
