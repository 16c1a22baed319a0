#include "base/words.h"

namespace spillway {

std::optional<std::size_t> Words::find(std::string_view text) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (words_[i].name == text || (!text.empty() && words_[i].alias == text)) return i;
  return std::nullopt;
}

std::vector<std::string_view> Words::names() const {
  std::vector<std::string_view> names;
  for (const Word& word : words_) names.push_back(word.name);
  return names;
}

std::vector<std::string_view> Words::spellings() const {
  std::vector<std::string_view> spellings = names();
  for (const Word& word : words_)
    if (!word.alias.empty()) spellings.push_back(word.alias);
  return spellings;
}

std::string Words::listed() const {
  std::string text;
  for (const Word& word : words_) text += (text.empty() ? "" : ", ") + std::string(word.name);
  return text;
}

}  // namespace spillway
