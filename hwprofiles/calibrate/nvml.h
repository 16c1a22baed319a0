// The NVIDIA Management Library, where it is: names, links, clocks and power of GPUs. Loaded at run time, so that a
// program built anywhere runs on machines without it. Its functions are those of the NVML API reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::hwprofiles {

struct NvmlGpu {
  std::string name;                              // "NVIDIA H200"
  std::string pci_address;                       // "0000:1b:00.0"
  unsigned pcie_generation = 0, pcie_lanes = 0;  // the most that GPU and slot agree on, and as it is now; 0 unknown
};

// State at one moment; nothing where the GPU doesn't tell.
struct NvmlState {
  std::optional<unsigned> sm_clock_mhz, memory_clock_mhz, milliwatts, celsius;
  std::optional<unsigned> limit_milliwatts;  // that the clock is held to now
};

class Nvml {
 public:
  // None where the library is absent or doesn't start (no driver).
  static std::optional<Nvml> load(const std::string& library = "libnvidia-ml.so.1");

  [[nodiscard]] std::vector<NvmlGpu> gpus() const;
  // Precondition: index < gpus().size().
  [[nodiscard]] NvmlState state(unsigned index) const;

 private:
  struct Library;
  explicit Nvml(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  std::shared_ptr<Library> library_;
};

}  // namespace spillway::hwprofiles
