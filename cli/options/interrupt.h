// Ctrl-C, a hang-up or a request to end as a question asked now and then, so that what is half done can be undone.
#pragma once

#include <atomic>
#include <functional>

namespace spillway::cli {

// The first SIGINT, SIGTERM or SIGHUP (unless nohup ignores it) sets a flag; a second of the same ends the program at
// once. Work that goes on for 0.4 s (up to 1.2 s where cores are short) despite StopScope and is_interrupted() is ended
// where it is. Unfinished output files are removed, the exit code is that of an interrupt. A closed pipe is then an
// error of the write, not a signal that ends the program with its files half-written.
void catch_interrupts();
bool is_interrupted();

// The same for work that stops by itself: StopScope(&interrupt_flag()).
const std::atomic<bool>& interrupt_flag();

// work, for commands with a whole answer or none: throws Cancelled (base/byte_source.h) soon after an interrupt, out
// of a replay or a planner under way. Not for those that print the best so far.
void run_stoppable(const std::function<void()>& work);

}  // namespace spillway::cli
