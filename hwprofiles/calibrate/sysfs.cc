#include "hwprofiles/calibrate/sysfs.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace spillway::hwprofiles {

std::string sysfs_text(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

std::int64_t sysfs_number(const std::filesystem::path& file) {
  const std::string text = sysfs_text(file);
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 0);
  return end != text.c_str() ? value : 0;
}

std::int64_t pcie_generation_of(const std::string& speed) {
  static constexpr std::array<double, 7> transfers = {2.5, 5, 8, 16, 32, 64, 128};
  const double given = std::strtod(speed.c_str(), nullptr);
  for (std::size_t i = 0; i < transfers.size(); ++i)
    if (std::abs(given - transfers[i]) < 0.01) return static_cast<std::int64_t>(i + 1);
  return 0;
}

}  // namespace spillway::hwprofiles
