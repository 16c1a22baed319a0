#include "hwprofiles/calibrate/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cctype>
#include <cstring>
#include <utility>

namespace spillway::hwprofiles {
namespace {

using Device = struct NvmlDeviceTag*;
constexpr int success = 0;
enum class ClockDomain : int { sm = 1, memory = 2 };
constexpr int gpu_sensor = 0;

// nvmlPciInfo_t, version 3.
struct PciInfo {
  std::array<char, 16> short_address;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> address;
};

// "00000000:1B:00.0", as NVML writes it, to "0000:1b:00.0", as the system does.
std::string system_address(const PciInfo& info) {
  std::string address(info.address.data(), strnlen(info.address.data(), info.address.size()));
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto colon = address.find(':');
  if (colon != std::string::npos && colon > 4) address.erase(0, colon - 4);
  return address;
}

}  // namespace

struct Nvml::Library {
  explicit Library(void* opened) : handle(opened) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (started)
      if (const auto shutdown = find<int()>("nvmlShutdown")) shutdown();
    dlclose(handle);
  }

  // Null where this version of the library lacks it.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name));
  }

  // A value that `name` stores for a device.
  template <class Value, class... Arguments>
  std::optional<Value> ask(const char* name, Device device, Arguments... arguments) const {
    const auto function = find<int(Device, Arguments..., Value*)>(name);
    Value value{};
    if (function == nullptr || function(device, arguments..., &value) != success) return std::nullopt;
    return value;
  }

  std::optional<Device> device(unsigned index) const {
    const auto function = find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    Device found = nullptr;
    if (function == nullptr || function(index, &found) != success) return std::nullopt;
    return found;
  }

  void* handle;
  bool started = false;
};

std::optional<Nvml> Nvml::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  auto loaded = std::make_shared<Library>(handle);
  const auto start = loaded->find<int()>("nvmlInit_v2");
  if (start == nullptr || start() != success) return std::nullopt;
  loaded->started = true;
  return Nvml(std::move(loaded));
}

std::vector<NvmlGpu> Nvml::gpus() const {
  std::vector<NvmlGpu> gpus;
  const auto count_of = library_->find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  unsigned count = 0;
  if (count_of == nullptr || count_of(&count) != success) return gpus;
  for (unsigned i = 0; i < count; ++i) {
    const std::optional<Device> device = library_->device(i);
    if (!device) continue;
    NvmlGpu gpu;
    std::array<char, 96> name{};
    if (const auto name_of = library_->find<int(Device, char*, unsigned)>("nvmlDeviceGetName");
        name_of != nullptr && name_of(*device, name.data(), name.size() - 1) == success)
      gpu.name = name.data();
    if (const auto info = library_->ask<PciInfo>("nvmlDeviceGetPciInfo_v3", *device))
      gpu.pci_address = system_address(*info);
    gpu.pcie_generation = library_->ask<unsigned>("nvmlDeviceGetMaxPcieLinkGeneration", *device).value_or(0);
    gpu.pcie_lanes = library_->ask<unsigned>("nvmlDeviceGetCurrPcieLinkWidth", *device).value_or(0);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

NvmlState Nvml::state(unsigned index) const {
  NvmlState state;
  const std::optional<Device> device = library_->device(index);
  if (!device) return state;
  state.sm_clock_mhz = library_->ask<unsigned>("nvmlDeviceGetClockInfo", *device, static_cast<int>(ClockDomain::sm));
  state.memory_clock_mhz =
      library_->ask<unsigned>("nvmlDeviceGetClockInfo", *device, static_cast<int>(ClockDomain::memory));
  state.milliwatts = library_->ask<unsigned>("nvmlDeviceGetPowerUsage", *device);
  state.limit_milliwatts = library_->ask<unsigned>("nvmlDeviceGetEnforcedPowerLimit", *device);
  state.celsius = library_->ask<unsigned>("nvmlDeviceGetTemperature", *device, gpu_sensor);
  return state;
}

}  // namespace spillway::hwprofiles
