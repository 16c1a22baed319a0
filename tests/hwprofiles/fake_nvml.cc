// A library with the names and the manners of NVML, for pcie_topology_test.cc: two GPUs, no temperature.
#include <array>
#include <cstdio>
#include <cstring>

namespace {
struct PciInfo {
  std::array<char, 16> short_address;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> address;
};
std::array<char, 2> handles;
long index_of(const void* device) { return static_cast<const char*>(device) - handles.data(); }
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= handles.size()) return 2;
  *device = &handles[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU %ld", index_of(device));
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  std::snprintf(info->address.data(), info->address.size(), "00000000:%s:00.0", index_of(device) == 0 ? "1A" : "1B");
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 123'456;
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.1");
  return 0;
}
}
