#include "base/text_budget.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"

namespace spillway {
namespace {

std::size_t letters_of(std::size_t bytes) { return std::max<std::size_t>(16 * bytes, 4U << 20U); }

}  // namespace

TextBudget::TextBudget(std::string file, std::size_t bytes)
    : file_(std::move(file)), bytes_(bytes), left_(letters_of(bytes)) {}

std::string TextBudget::line_place(std::int64_t line) { return "line " + std::to_string(line); }

void TextBudget::refuse_growth(const std::string& place) const {
  throw InputError(
      file_, place, fmt::format("what its {} bytes say takes more than {} letters here", bytes_, letters_of(bytes_)),
      "say each value once: names, values or aliases that are put into one another again and again are no launch");
}

void TextBudget::refuse_depth(std::int64_t line) const {
  throw InputError(file_, line_place(line), fmt::format("nested deeper than {} levels", deepest_nesting),
                   "check that this is the right file");
}

}  // namespace spillway
