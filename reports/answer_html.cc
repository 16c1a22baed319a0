#include "reports/answer_html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/svg_text.h"
#include "reports/answer_shell.h"
#include "studies/answer/answer_json.h"

namespace spillway::reports {
namespace {

// All of it ASCII: JSON writes other characters as \uXXXX, and so it does what ends or begins a tag.
std::string script_data(const nlohmann::ordered_json& json) {
  std::string data;
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&')
      data += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      data += c;
  }
  return data;
}

std::string escaped(std::string_view text) { return svg_escape(visible_text(text)); }

// For who runs no scripts: the verdict, the ways, the command.
std::string plain_answer(const Answer& answer) {
  std::string html = "<h1>" + escaped(answer.title) + "</h1>\n<p>" + escaped(answer.machine) + "</p>\n<p><b>" +
                     escaped(answer.heading) + "</b></p>\n";
  for (const std::string& sentence : {answer.as_given, answer.why.sentence, answer.advice, answer.when})
    if (!sentence.empty()) html += "<p>" + escaped(sentence) + "</p>\n";
  if (!answer.ways.empty()) {
    html += "<table><tr><th>set-up</th><th>step</th><th>tokens/s</th><th>GiB left</th><th>runs in</th></tr>\n";
    for (const AnswerWay& way : answer.ways)
      html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(way.name),
                          escaped(way.figures.step), escaped(way.figures.tokens), escaped(way.figures.left),
                          escaped(way.runs_in));
    html += "</table>\n";
  }
  return html + "<pre>" + escaped(answer.command) + "</pre>\n";
}

}  // namespace

std::string answer_html(const Answer& answer) {
  std::string html(answer_shell_before_title);
  html += escaped(answer.title);
  html += answer_shell_before_noscript;
  html += plain_answer(answer);
  html += answer_shell_before_data;
  html += script_data(answer_json(answer));
  html += answer_shell_behind_data;
  return html;
}

}  // namespace spillway::reports
