#include <sys/types.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "cli/command_line.h"

// jemalloc's; null in builds without it.
extern "C" [[gnu::weak]] int mallctl(const char* name, void* was, size_t* was_size, void* now, size_t now_size);

namespace {

// A search frees and takes gigabytes with each replay; giving pages back between two was a fifth of its processor time.
void keep_freed_pages() {
  if (mallctl == nullptr) return;
  ssize_t never = -1;
  for (const char* const arenas : {"arenas.dirty_decay_ms", "arena.4096.dirty_decay_ms"})  // those to come, and all
    mallctl(arenas, nullptr, nullptr, &never, sizeof never);
}

}  // namespace

int main(int argc, char** argv) {
  // Those that replay again and again; readers of others' files keep their bounds of memory.
  constexpr std::string_view searches[] = {"fit", "plan", "capacity", "report", "techniques", "sweep"};
  if (argc > 1 && std::find(std::begin(searches), std::end(searches), argv[1]) != std::end(searches))
    keep_freed_pages();
  return spillway::cli::run_command_line(argc, argv);
}
