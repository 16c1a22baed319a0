// Choices and their reasons, for `--verbose`: lines on standard error, never results. For any thread; off until
// set_verbose. Code in loops need not mind repeating itself: a line is written once.
#pragma once

#include <string_view>

namespace spillway {

void set_verbose(bool wanted);
// For callers to which the line costs something.
bool is_verbose();

// "spillway: profile: a100-sxm-80gb (fits the capture's device 'NVIDIA A100')"
void log_choice(std::string_view topic, std::string_view choice);

}  // namespace spillway
