#include "cli/command_line.h"

// jemalloc keeps freed pages: a search frees and takes gigabytes with each replay, and giving them back between two was
// a fifth of its processor time. Read by the allocator at start; without jemalloc it is nobody's.
extern "C" const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";

int main(int argc, char** argv) { return spillway::cli::run_command_line(argc, argv); }
