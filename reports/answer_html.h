// The answer as one interactive page: a file that loads nothing, runs no script but its own, and works from a disk.
#pragma once

#include <string>

#include "studies/answer/answer.h"

namespace spillway::reports {

// At most about 3 MB (answer_json.h). Names of files reach the page as data alone: "<", ">" and "&" are written as
// \uXXXX in it, and everywhere else escaped.
std::string answer_html(const Answer& answer);

}  // namespace spillway::reports
