// A profile that names another one as its base and states what is different:
//
//   {"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "h800-sxm5-80gb", "title": "...", "source": "...",
//    "base": "h100-sxm5-80gb", "nvlink_bandwidth": "200 GB/s"}
//
// Groups (peak_flops, roofline, a system's gpu) are merged key by key; a number, a curve and a list take the place of
// the base's whole. A base may have one itself. Each value keeps the origin that its own file gives it. Internal to
// this floor.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

// The file that each value of a merged profile comes from.
class ValueHomes {
 public:
  struct Home {
    std::string path;
    Origin origin;  // of the values in it that tell none of their own
  };

  ValueHomes() = default;
  explicit ValueHomes(Home home) : homes_{std::move(home)} {}

  // Places (JSON pointers) that `home` states itself; all others are as in `base`.
  ValueHomes(const ValueHomes& base, Home home, std::vector<std::string> places);

  // Home of the value at the place, or of what it lies in. Precondition: not made by default.
  [[nodiscard]] const Home& of(const std::string& place) const;

 private:
  struct Stated {
    std::string place;
    std::size_t home;
  };
  std::vector<Home> homes_;     // the base of all first
  std::vector<Stated> stated_;  // nearer files first
};

// `own` laid over `base`, without the heads' keys of the latter; `places` receives what `own` states.
nlohmann::ordered_json laid_over(const nlohmann::ordered_json& base, const nlohmann::ordered_json& own,
                                 std::vector<std::string>& places);

}  // namespace spillway::hwprofiles
