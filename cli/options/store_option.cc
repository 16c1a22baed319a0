#include "cli/options/store_option.h"

#include <fmt/format.h>

namespace spillway::cli {

void add_store_option(Command& command, std::string& store) {
  command
      .add_option("--store", store,
                  "take results of replays from this file, and keep them there: sweep, capacity, fit, techniques and "
                  "report procurement share it (docs/how-to/run-a-sweep.md)")
      ->to_write()
      ->type_name("FILE");
}

StoreInUse::StoreInUse(const Context& context, const std::string& path) : context_(context), path_(path) {
  if (!path.empty()) store_.emplace(path);
}

StoreInUse::~StoreInUse() {
  if (store_ && store_->asked() > 0)
    note(context_, fmt::format("{} of {} replays from {}", store_->found(), store_->asked(), path_));
}

}  // namespace spillway::cli
