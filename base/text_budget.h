// The budget of a stranger's text while it is read: how deep it nests, and how many letters are made of it. Each file
// has one, which is handed through all that reads it. So no reader within another begins to count again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway {

// Levels of brackets, quotes, blocks and dotted names together: nothing that people write goes deeper.
inline constexpr int deepest_nesting = 64;

class TextBudget {
 public:
  // Letters: 16 times the file's bytes, 4 MiB at least.
  TextBudget(std::string file, std::size_t bytes);

  [[nodiscard]] const std::string& file() const { return file_; }

  // Before so many letters are kept, or read again. Throws InputError (file, place).
  void spend(std::size_t letters, const std::string& place) {
    if (letters > left_) refuse_growth(place);
    left_ -= letters;
  }
  void spend(std::size_t letters, std::int64_t line) {
    if (letters > left_) refuse_growth(line_place(line));
    left_ -= letters;
  }

  // Whether so many levels more are too many. Throws InputError (file, line).
  void check_depth(int levels, std::int64_t line) const {
    if (depth_ + levels > deepest_nesting) refuse_depth(line);
  }

  // One level deeper during its lifetime.
  class Level {
   public:
    Level(TextBudget& of, std::int64_t line) : of_(of) {
      of.check_depth(1, line);
      ++of.depth_;
    }
    ~Level() { --of_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TextBudget& of_;
  };

 private:
  static std::string line_place(std::int64_t line);
  [[noreturn]] void refuse_growth(const std::string& place) const;
  [[noreturn]] void refuse_depth(std::int64_t line) const;

  std::string file_;
  std::size_t bytes_, left_;
  int depth_ = 0;
};

}  // namespace spillway
