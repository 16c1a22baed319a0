#include "base/input_error.h"

#include <utility>

namespace spillway {
namespace {

std::string describe(const std::string& file, const std::string& place, const std::string& cause,
                     const std::string& remedy) {
  std::string text = file;
  if (!place.empty()) text += (text.empty() ? "" : ": ") + place;
  if (!cause.empty()) text += (text.empty() ? "" : ": ") + cause;
  if (!remedy.empty()) text += "\n  remedy: " + remedy;
  return text;
}

}  // namespace

InputError::InputError(std::string file, std::string place, std::string cause, std::string remedy)
    : std::runtime_error(describe(file, place, cause, remedy)),
      file_(std::move(file)),
      place_(std::move(place)),
      cause_(std::move(cause)),
      remedy_(std::move(remedy)) {}

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": broken invariant: " + expression);
}

}  // namespace spillway
