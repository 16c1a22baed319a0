#include "cli/options/memory_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::cli {

std::int16_t memory_device(const Trace& trace, const std::string& file, int wanted) {
  const std::vector<std::int16_t> devices = memory_devices(trace);
  if (devices.empty())
    throw InputError(file, "", "holds no memory events of a GPU",
                     "record with profile_memory=True, or with torch.cuda.memory._record_memory_history()");
  if (wanted < 0) return devices.front();
  if (std::find(devices.begin(), devices.end(), wanted) == devices.end())
    throw InputError(file, "", fmt::format("device {} has no memory events", wanted),
                     fmt::format("use one of {}", fmt::join(devices, ", ")));
  return static_cast<std::int16_t>(wanted);
}

}  // namespace spillway::cli
