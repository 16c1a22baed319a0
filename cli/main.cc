#include <sys/types.h>

#include "cli/command_line.h"
#include "cli/command_pages.h"

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
  if (argc > 1 && spillway::cli::replays_often(argv[1])) keep_freed_pages();  // readers of files keep their bounds
  return spillway::cli::run_command_line(argc, argv);
}
