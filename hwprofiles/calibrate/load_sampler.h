// Clock and power of a GPU while it works: NVML asked ten times a second by a thread of its own.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hwprofiles/calibrate/nvml.h"

namespace spillway::hwprofiles {

struct LoadSample {
  double seconds = 0;  // since sampling began
  NvmlState state;
};

// Of the quarter of samples with the highest power; 0 where nothing was told.
struct LoadedState {
  unsigned sm_clock_mhz = 0;  // median
  unsigned milliwatts = 0;    // highest
  // What held the clock down in any of them: "power", "heat", "power brake", ...; empty: nothing.
  std::vector<std::string> limited_by;
};
LoadedState loaded_state(std::vector<LoadSample> samples);

class LoadSampler {
 public:
  // Precondition: index < gpus().size(). `nvml` must outlive it.
  LoadSampler(const Nvml& nvml, unsigned index);
  LoadSampler(const LoadSampler&) = delete;
  LoadSampler& operator=(const LoadSampler&) = delete;
  ~LoadSampler();

  // Ends the sampling; the samples in order of time.
  std::vector<LoadSample> stop();

 private:
  void sample();

  const Nvml& nvml_;
  unsigned index_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<LoadSample> samples_;
  std::thread thread_;
};

}  // namespace spillway::hwprofiles
