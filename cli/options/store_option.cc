#include "cli/options/store_option.h"

#include <fmt/format.h>

namespace spillway::cli {

void add_store_option(Command& command, std::string& store) {
  command
      .add_option("--store", store,
                  "file of simulated results: read first, new ones added; sweep, capacity, fit, techniques and "
                  "report procurement share it")
      ->to_write()
      ->type_name("FILE");
}

StoreInUse::StoreInUse(const Context& context, const std::string& path) : context_(context), path_(path) {
  if (!path.empty()) store_.emplace(path);
}

StoreInUse::~StoreInUse() {
  if (store_ && store_->asked() > 0)
    note(context_, fmt::format("{} of {} simulations from {}", store_->found(), store_->asked(), path_));
}

}  // namespace spillway::cli
