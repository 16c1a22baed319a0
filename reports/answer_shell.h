// The page's shell, in the pieces between what an answer brings: made of page.html, page.css and page.js in the
// folder answer by embed.py there.
#pragma once

#include <string_view>

namespace spillway::reports {

extern const std::string_view answer_shell_before_title, answer_shell_before_noscript, answer_shell_before_data,
    answer_shell_behind_data;

}  // namespace spillway::reports
