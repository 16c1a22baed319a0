// How much memory the process may hold while it reads files: what is kept counts, not what a file unfolds to.
#pragma once

#include <cstdint>
#include <string>

namespace spillway {

// Resident bytes, of the whole process. Default: 8 GiB, or three quarters of the machine's memory where that is less.
// To be set before other threads read.
std::uint64_t& memory_limit();

// Throws InputError (file, place) when more is resident than the limit. Some microseconds.
void check_memory_limit(const std::string& file, const std::string& place);

}  // namespace spillway
