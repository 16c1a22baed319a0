// The files that a process reads and writes, so that none of them is written over: each by what it is, whatever it is
// called (through links, "./" and second names).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace spillway {

struct FileIdentity {
  std::uint64_t device = 0, node = 0;
  std::string name;  // in the folder that device and node are, of a file that isn't there yet; empty: the file itself

  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

// Identity of a regular file, or of a name in a folder that nothing has yet. None: anything else.
std::optional<FileIdentity> file_identity(const std::string& path);

// From now on every OutputFile refuses what this process has read or written. Unless called, none does: a window saves
// over what it opened.
void guard_files_in_use();
void note_file_in_use(const std::string& path);
// The file may be written although it was read: a profile that is measured again, and was opened for its name.
void forget_file_in_use(const std::string& path);
// Throws InputError where the guard is on and the file was noted.
void check_not_in_use(const std::string& path);

}  // namespace spillway
