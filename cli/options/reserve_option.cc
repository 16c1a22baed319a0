#include "cli/options/reserve_option.h"

#include "base/amount.h"
#include "base/input_error.h"

namespace spillway::cli {

void add_reserve_option(Command& command, std::string& reserve) {
  command
      .add_option("--keep-free", reserve,
                  "GPU memory to leave free for CUDA libraries and NCCL, e.g. 2GiB or 8% (default: estimated)")
      ->type_name("SIZE|SHARE");
}

std::vector<std::string> with_reserve(std::vector<std::string> settings, const std::string& reserve) {
  if (reserve.empty()) return settings;
  constexpr Bytes least(std::int64_t{1} << 20);
  try {
    const SizeOrShare kept = parse_size_or_share(reserve);
    if (kept.share == 0 && kept.size > Bytes(0) && kept.size < least)
      throw InputError("", "", "'" + reserve + "' is less than 1 MiB",
                       "give a unit, such as 2GiB, or a share, such as 8%");
  } catch (const InputError& error) {
    throw InputError("--keep-free", "", error.cause(), error.remedy());
  }
  settings.push_back("memory.reserve=" + reserve);
  return settings;
}

}  // namespace spillway::cli
