// --store: the file that results of replays are kept in and taken from, wherever a command replays many scenarios
// (scenario/replay_store.h).
#pragma once

#include <optional>
#include <string>

#include "cli/options/command_options.h"
#include "cli/options/context.h"
#include "scenario/replay_store.h"

namespace spillway::cli {

// store must outlive the parse.
void add_store_option(Command& command, std::string& store);

// Opens the store that is named, if one is; says at its end how many replays it had.
class StoreInUse {
 public:
  // Throws InputError as ReplayStore does.
  StoreInUse(const Context& context, const std::string& path);
  ~StoreInUse();
  [[nodiscard]] ReplayStore* get() { return store_ ? &*store_ : nullptr; }
  StoreInUse(const StoreInUse&) = delete;
  StoreInUse& operator=(const StoreInUse&) = delete;

 private:
  const Context& context_;
  const std::string path_;
  std::optional<ReplayStore> store_;
};

}  // namespace spillway::cli
