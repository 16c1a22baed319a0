// A file as one string. Errors (missing, unreadable, too large) are InputErrors that name it.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_source.h"

namespace spillway {

// Decompressed as ByteSource does; at most `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit, ByteSource::Progress progress = {});

// The same of what is open already. A zero byte in the first 4 KiB means that it is no text: it is refused unread.
std::string read_text(ByteSource& source, std::uint64_t limit);

// As it lies on the disk, of any size.
std::string read_file_as_it_is(const std::string& path);

}  // namespace spillway
