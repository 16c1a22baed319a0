// A file of our own to measure a drive with: new, reserved, unbuffered, and gone whatever happens.
//
// The name is taken with O_EXCL, so that nothing of the user's is ever opened. It is removed again as soon as the file
// is open: the system frees its blocks when the descriptor closes, also after a crash or a kill.
#pragma once

#include <string>

#include "base/units.h"

namespace spillway::hwprofiles {

class ScratchFile {
 public:
  enum class Access { direct, buffered };  // direct: O_DIRECT, past the page cache

  // Reserves `bytes` and leaves at least `reserve` free beside them. Throws InputError: the name exists, is a folder or
  // lies in none, no permission, too little space, no O_DIRECT there (tmpfs and other memory file systems).
  ScratchFile(const std::string& path, Bytes bytes, Bytes reserve, Access access);
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  Bytes bytes_;
  int descriptor_ = -1;
};

// Offsets, sizes and addresses of unbuffered I/O are multiples of this.
inline constexpr Bytes direct_alignment{4096};

}  // namespace spillway::hwprofiles
