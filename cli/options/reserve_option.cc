#include "cli/options/reserve_option.h"

#include "base/amount.h"
#include "base/input_error.h"

namespace spillway::cli {

void add_reserve_option(Command& command, std::string& reserve) {
  command
      .add_option("--keep-free", reserve,
                  "device memory kept free for what the allocator doesn't see: 2GiB, 8%; 0 for none; by parts if not "
                  "given (docs/explanation/does-it-fit.md)")
      ->type_name("SIZE|SHARE");
}

std::vector<std::string> with_reserve(std::vector<std::string> settings, const std::string& reserve) {
  if (reserve.empty()) return settings;
  try {
    static_cast<void>(parse_size_or_share(reserve));
  } catch (const InputError& error) {
    throw InputError("--keep-free", "", error.cause(), error.remedy());
  }
  settings.push_back("memory.reserve=" + reserve);
  return settings;
}

}  // namespace spillway::cli
