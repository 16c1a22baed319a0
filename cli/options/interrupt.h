// Ctrl-C as a question asked now and then, so that what is half done can be undone.
#pragma once

namespace spillway::cli {

// The first SIGINT only sets a flag; a second ends the program at once.
void catch_interrupts();
bool is_interrupted();

}  // namespace spillway::cli
