// Ctrl-C, a hang-up or a request to end as a question asked now and then, so that what is half done can be undone.
#pragma once

#include <atomic>

namespace spillway::cli {

// The first SIGINT, SIGTERM or SIGHUP (unless nohup ignores it) only sets a flag; a second of the same ends the program
// at once. A closed pipe is then an error of the write, not a signal that ends the program with its files half-written.
void catch_interrupts();
bool is_interrupted();

// The same for work that stops by itself: StopScope(&interrupt_flag()).
const std::atomic<bool>& interrupt_flag();

}  // namespace spillway::cli
