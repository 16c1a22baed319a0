// A file that appears whole or not at all: written beside its place, renamed when finished.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace spillway {

// Where temporary files go: TMPDIR, or /tmp where that is not set. Throws InputError where no folder is there.
std::string temporary_folder();

// Throws InputError where an OutputFile of that path would; makes and changes nothing.
void check_output(const std::string& path);

// A name that is removed with this, and by remove_unfinished_files(), unless it is kept.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path);  // of a file that this process made
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();
  [[nodiscard]] const std::string& path() const { return path_; }
  void keep();

 private:
  std::string path_;
};
// For who ends the program while others are at work: from then on none of them is made, kept or removed, and who tries
// waits for the end.
void remove_unfinished_files();

class OutputFile {
 public:
  // "-" is standard output (no atomicity); links are followed. Throws InputError when the place can't be written, or is
  // a file in use (base/files_in_use.h).
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Removes the temporary file unless commit() succeeded.
  ~OutputFile();

  void write(std::string_view bytes);
  // Flushes, syncs and renames. A full disk is an InputError and leaves what was there before untouched.
  void commit();

 private:
  std::string path_;
  std::optional<UnfinishedFile> temporary_;
  std::FILE* file_ = nullptr;
};

// All of a file, through an OutputFile.
void write_text(const std::string& path, std::string_view text);

}  // namespace spillway
