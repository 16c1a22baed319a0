#include "hwprofiles/calibrate/cufile_way.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace spillway::hwprofiles {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::optional<bool> flag_of(std::string_view word) {
  if (word == "true" || word == "TRUE" || word == "1") return true;
  if (word == "false" || word == "FALSE" || word == "0") return false;
  return std::nullopt;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The file without its comments, which JSON has none of.
std::string settings() {
  std::istringstream lines(text_of(environment("CUFILE_ENV_PATH_JSON", "/etc/cufile.json")));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.find("//")) + '\n';
  return text;
}

// The environment goes before the file, in which the key comes once.
bool setting(const std::string& file, const std::string& key, const char* variable, bool otherwise) {
  if (const std::optional<bool> said = flag_of(environment(variable, ""))) return *said;
  std::size_t at = file.find('"' + key + '"');
  if (at == std::string::npos) return otherwise;
  at = file.find_first_not_of(": \t\r\n", at + key.size() + 2);
  if (at == std::string::npos) return otherwise;
  return flag_of(std::string_view(file).substr(at, file.find_first_of(",} \t\r\n", at) - at)).value_or(otherwise);
}

}  // namespace

std::optional<std::uint64_t> nvidia_fs_requests(const std::string& stats) {
  std::istringstream lines(stats);
  std::uint64_t requests = 0;
  bool is_enabled = false, has_any = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("IO stats")) is_enabled = line.substr(0, line.find(',')).find("Enabled") != std::string::npos;
    const std::size_t done = line.find(" ok=");
    if ((!line.starts_with("Reads") && !line.starts_with("Writes")) || done == std::string::npos) continue;
    requests += std::strtoull(line.c_str() + done + 4, nullptr, 10);
    has_any = true;
  }
  return is_enabled && has_any ? std::optional(requests) : std::nullopt;
}

CufileEvidence cufile_evidence(bool has_peer_to_peer) {
  const std::string folder = environment("SPILLWAY_NVIDIA_FS", "/proc/driver/nvidia-fs");
  CufileEvidence evidence;
  std::error_code error;
  evidence.has_nvidia_fs = std::filesystem::is_directory(folder, error);
  if (evidence.has_nvidia_fs) evidence.requests = nvidia_fs_requests(text_of(folder + "/stats"));
  evidence.has_peer_to_peer = has_peer_to_peer;
  const std::string file = settings();
  evidence.allows_compatibility = setting(file, "allow_compat_mode", "CUFILE_ALLOW_COMPAT_MODE", true);
  evidence.forces_compatibility = setting(file, "force_compat_mode", "CUFILE_FORCE_COMPAT_MODE", false);
  return evidence;
}

CufileVerdict cufile_verdict(const CufileEvidence& before, const CufileEvidence& after) {
  if (after.forces_compatibility) return {CufileWay::compatibility, "force_compat_mode is set"};
  if (!after.allows_compatibility) return {CufileWay::direct, "allow_compat_mode is off, so there is no other way"};
  if (before.requests && after.requests) {
    if (*after.requests > *before.requests) return {CufileWay::direct, "nvidia-fs counted the requests"};
    if (!after.has_peer_to_peer) return {CufileWay::compatibility, "nvidia-fs saw none of the requests"};
  }
  if (!after.has_nvidia_fs && !after.has_peer_to_peer)
    return {CufileWay::compatibility, "nvidia-fs is not loaded, and cuFile has no peer-to-peer DMA here"};
  return {CufileWay::unknown,
          after.has_peer_to_peer
              ? "nothing tells whether peer-to-peer DMA was used (CUFILE_ALLOW_COMPAT_MODE=false allows nothing else)"
              : "nvidia-fs counts no requests (its parameter rw_stats_enabled; CUFILE_ALLOW_COMPAT_MODE=false allows "
                "no other way)"};
}

}  // namespace spillway::hwprofiles
