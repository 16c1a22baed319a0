#include "cli/output/answer_output.h"

#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/shell_word.h"
#include "reports/answer_html.h"
#include "studies/answer/answer_json.h"

namespace spillway::cli {

void check_answer_path(const std::string& path) {
  if (!path.ends_with(".html") && !path.ends_with(".json"))
    throw InputError(path, "--output", "neither .html nor .json",
                     "name a page (answer.html) or its JSON (answer.json)");
}

void write_answer(const studies::Answer& answer, const std::string& path) {
  OutputFile out(path);
  if (path.ends_with(".html"))
    out.write(reports::answer_html(answer));
  else
    out.write(studies::answer_json(answer).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
              "\n");
  out.commit();
}

std::string told_command(std::vector<std::string> words, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  std::string command = "spillway";
  for (const std::string& word : words) command += " " + shell_word(word);
  return command;
}

}  // namespace spillway::cli
