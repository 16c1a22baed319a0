// The published tables of each GPU, and its datasheet's facts.
#pragma once

#include <string>
#include <vector>

#include "models/cost/operator_times.h"

namespace spillway::models::fit {

struct GpuTables {
  std::string name;                   // "h100-sxm", of the file written
  std::vector<std::string> profiles;  // hardware profiles of this GPU; the first gives the datasheet
  // Files in the folders "aiconfigurator", "cudnn-frontend" and "vidur"; empty: not measured.
  std::string gemm, context_attention, encoder_attention, sdpa_prefix, norms, vidur;
  std::string kin;  // fitted together with this one, when it comes later in the list
};

const std::vector<GpuTables>& gpu_tables();

// From the first profile, with what was measured of the very GPU (achieved_flops) left in.
DatasheetFacts facts_of(const GpuTables& gpu);

}  // namespace spillway::models::fit
