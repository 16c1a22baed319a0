#include "base/markdown_text.h"

namespace spillway {

std::string markdown_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') {
      result += ' ';
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      if (c == '\\' || c == '|' || c == '[' || c == ']') result += '\\';
      result += c;
    }
  }
  return result;
}

}  // namespace spillway
