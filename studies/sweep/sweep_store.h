// Results of sweeps: an append-only file, content-addressed, that outlives any interruption.
//
// One record a line: eight hexadecimal digits of the CRC-32 of the rest, a space, and a JSON object with the record's
// "key". A record is written with one call at the end of the file. A tail that is no whole record (a write cut short)
// and broken records before it are left out and reported. The first append cuts such a tail off, and nothing else is
// ever changed. A file without a record that isn't empty is no store: it is refused as it is. Stores may be joined by
// any tool that appends one file to another. A key names everything the record depends on, so a record of another
// program version or another file is never taken for one's own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace spillway::studies {

class SweepStore {
 public:
  // Kept in memory only.
  SweepStore() = default;
  // Opens or creates; holds a lock until destroyed. Throws InputError where it can't be read, written or locked, or is
  // no store.
  explicit SweepStore(const std::string& path);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  // Takes all records of another store; its file isn't changed, not even a broken tail. Throws InputError where it
  // can't be read or is no store.
  void read(const std::string& path);

  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;  // JSON text
  // `json`: an object, one line, with "key": key. A record that is there already is not written again. Throws
  // InputError when the disk is full: the record is then taken back. May be called by several threads.
  void append(const std::string& key, const std::string& json);

  // Appends all of its records to another store.
  void copy_into(SweepStore& other) const;

  [[nodiscard]] std::size_t size() const { return records_.size(); }
  // Broken parts that opening found, in words.
  [[nodiscard]] const std::vector<std::string>& repairs() const { return repairs_; }

 private:
  // Bytes up to the end of the last whole record. Throws InputError for what is no store.
  std::uint64_t take(const std::string& path, const std::string& content);

  std::string path_;
  int file_ = -1;
  std::optional<std::uint64_t> torn_at_;  // where a tail begins that is no whole record
  mutable std::mutex mutex_;
  std::map<std::string, std::string> records_;
  std::vector<std::string> repairs_;
};

}  // namespace spillway::studies
