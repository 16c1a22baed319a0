// Machines that clouds rent, by their types' names: each is what machine_choice.h takes, and the fabric that stands
// behind its network.
//
// Adapters are what counts: headline figures hold the front-end card, too. Only EFA has a measured curve; an answer
// tells what it takes for another fabric.
#pragma once

#include <span>
#include <string_view>

namespace spillway::hwprofiles {

struct CloudInstance {
  std::string_view cloud, type, short_name;
  std::string_view machine;  // "8xh200+ram=2048 GiB+cloud-3200-per-8"
  std::string_view fabric;   // "EFA v2, 32 x 100 Gbit/s"; empty: none
  std::string_view source;   // of GPUs, fabric and host
};

std::span<const CloudInstance> cloud_instances();

}  // namespace spillway::hwprofiles
