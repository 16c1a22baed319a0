#include "base/input_error.h"

#include <utility>

#include "base/shortened.h"

namespace spillway {
namespace {

constexpr std::size_t longest_path = 4096;    // that a system opens
constexpr std::size_t longest_remedy = 8000;  // may list every name that there is

std::string describe(const std::string& file, const std::string& place, const std::string& cause,
                     const std::string& remedy) {
  std::string text = file;
  if (!place.empty()) text += (text.empty() ? "" : ": ") + place;
  if (!cause.empty()) text += (text.empty() ? "" : ": ") + cause;
  if (!remedy.empty()) text += "\n  remedy: " + remedy;
  return text;
}

}  // namespace

InputError::InputError(std::string file, const std::string& place, const std::string& cause, const std::string& remedy)
    : std::runtime_error(describe(shortened(file, longest_path), shortened(place), shortened(cause),
                                  shortened(remedy, longest_remedy))),
      file_(std::move(file)),
      place_(shortened(place)),
      cause_(shortened(cause)),
      remedy_(shortened(remedy, longest_remedy)) {}

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": broken invariant: " + expression);
}

}  // namespace spillway
