// Ctrl-C as a question asked now and then, so that what is half done can be undone.
#pragma once

#include <atomic>

namespace spillway::cli {

// The first SIGINT only sets a flag; a second ends the program at once.
void catch_interrupts();
bool is_interrupted();

// The same for work that stops by itself: StopScope(&interrupt_flag()).
const std::atomic<bool>& interrupt_flag();

}  // namespace spillway::cli
