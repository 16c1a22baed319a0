// The answer (studies/answer) as a file: a page, or JSON.
#pragma once

#include <string>
#include <vector>

#include "studies/answer/answer.h"

namespace spillway::cli {

// For files that write_answer() writes: .html and .json. Throws InputError for another ending.
void check_answer_path(const std::string& path);
void write_answer(const studies::Answer& answer, const std::string& path);

// "spillway run a.json --set 'model.name=a b'": words and, of each setting, --set.
std::string told_command(std::vector<std::string> words, const std::vector<std::string>& settings);

}  // namespace spillway::cli
