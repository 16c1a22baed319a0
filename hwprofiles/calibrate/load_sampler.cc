#include "hwprofiles/calibrate/load_sampler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/quantile.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::chrono::milliseconds period{100};

// nvmlClocksThrottleReason bits that limit a GPU under load.
constexpr std::pair<std::uint64_t, const char*> limits[] = {
    {0x2, "clocks set by the user"}, {0x4, "power"},           {0x8, "hardware (power or heat)"},
    {0x10, "synchronised boost"},    {0x20, "heat"},           {0x40, "heat"},
    {0x80, "power brake"},           {0x100, "display clocks"}};

}  // namespace

LoadedState loaded_state(std::vector<LoadSample> samples) {
  LoadedState loaded;
  std::erase_if(samples, [](const LoadSample& sample) { return !sample.state.milliwatts; });
  if (samples.empty()) return loaded;
  std::stable_sort(samples.begin(), samples.end(),
                   [](const LoadSample& a, const LoadSample& b) { return *a.state.milliwatts > *b.state.milliwatts; });
  samples.resize((samples.size() + 3) / 4);
  loaded.milliwatts = *samples.front().state.milliwatts;
  std::vector<unsigned> clocks;
  std::uint64_t reasons = 0;
  for (const LoadSample& sample : samples) {
    if (sample.state.sm_clock_mhz) clocks.push_back(*sample.state.sm_clock_mhz);
    reasons |= sample.state.throttle_reasons.value_or(0);
  }
  if (!clocks.empty()) loaded.sm_clock_mhz = upper_median(clocks);
  for (const auto& [bit, words] : limits)
    if ((reasons & bit) != 0 &&
        std::find(loaded.limited_by.begin(), loaded.limited_by.end(), words) == loaded.limited_by.end())
      loaded.limited_by.emplace_back(words);
  return loaded;
}

LoadSampler::LoadSampler(const Nvml& nvml, unsigned index)
    : nvml_(nvml), index_(index), thread_([this] { sample(); }) {}

LoadSampler::~LoadSampler() { stop(); }

void LoadSampler::sample() {
  const auto start = std::chrono::steady_clock::now();
  while (!stopping_) {
    const NvmlState state = nvml_.state(index_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    {
      const std::lock_guard lock(mutex_);
      samples_.push_back({seconds, state});
    }
    std::this_thread::sleep_for(period);
  }
}

std::vector<LoadSample> LoadSampler::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  return samples_;
}

}  // namespace spillway::hwprofiles
