// Hardware profiles: any bytes are a sound profile whose values can be listed, or have problems.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

SPILLWAY_FUZZ_TARGET(profile) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    static const spillway::hwprofiles::ProfileLibrary library = spillway::hwprofiles::ProfileLibrary::standard();
    const spillway::test::MemoryFile file(data, size);
    if (!library.check(file.path()).empty()) return 0;
    if (library.show(file.path()).empty()) std::abort();
    static_cast<void>(library.diff(file.path(), file.path()));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
