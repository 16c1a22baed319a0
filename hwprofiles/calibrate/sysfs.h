// Small reads from sysfs, or from a copy of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace spillway::hwprofiles {

// First line without spaces around it; empty when there is no such file or it can't be read.
std::string sysfs_text(const std::filesystem::path& file);
// 0 when it is not a number. Reads "0x8086" too.
std::int64_t sysfs_number(const std::filesystem::path& file);
// Generation 1 to 7 of a link speed as sysfs writes it ("16.0 GT/s PCIe"); 0 for what it doesn't know.
std::int64_t pcie_generation_of(const std::string& speed);

}  // namespace spillway::hwprofiles
