// The points of a sweep: numbers to values, values to settings, and which combinations its rules leave out.
//
// Points are numbered with the first axis slowest. A rule is checked as soon as the axes it names have values, so a
// prefix that breaks it skips all points below it at once. Skipped points are counted by the rule's reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "studies/sweep/sweep_expression.h"
#include "studies/sweep/sweep_file.h"

namespace spillway::studies {

using SweepSettings = std::vector<std::pair<std::string, std::string>>;  // scenario key and text
std::vector<std::string> edits_of(const SweepSettings& settings);        // "key=text"

// Why points don't count, and how many.
struct SweepReason {
  std::int64_t points = 0;
  std::int64_t example = 0;  // number of the first of them
};

struct SweepPoint {
  std::int64_t number = 0;
  std::vector<std::size_t> options;  // by axis
  std::vector<double> values;        // constants, axes, derived
};

class SweepSpace {
 public:
  // `file` must outlive it. Throws InputError for expressions that don't parse. One per thread.
  explicit SweepSpace(const SweepFile& file);

  [[nodiscard]] std::int64_t size() const { return size_; }

  // The first point at `from` or after, before `until`, that no rule leaves out; null: none. Good until the next call.
  // Rules and derived values of axes that stay as they were at the last call are not worked out again.
  const SweepPoint* next(std::int64_t from, std::int64_t until);
  // Whatever the rules say. Precondition: 0 <= number < size().
  SweepPoint at(std::int64_t number);
  // Points left out by next() since the last call of this function, by reason.
  std::map<std::string, SweepReason> take_skipped();

  // The point that differs in one axis alone.
  [[nodiscard]] std::int64_t neighbour(std::int64_t number, std::size_t axis, std::size_t option) const;
  // Whether a derived value with a key depends on an axis, so that it sets more than its options say.
  [[nodiscard]] bool sets_others(std::size_t axis) const { return sets_others_[axis]; }
  // Whether no rule leaves a point out. Counts nothing as skipped.
  [[nodiscard]] bool allows(std::int64_t number);

  // Settings of axes first, then of derived values with a key, in the file's order.
  [[nodiscard]] SweepSettings settings(const SweepPoint& point) const;
  // "t 8, p 16, technique full"
  [[nodiscard]] std::string label(const SweepPoint& point) const;

 private:
  struct Rule {
    SweepExpression expression;
    std::string reason;
    bool must_be_whole = false;
    int value_index = -1;  // of a derived value, into values; -1: a condition
  };

  // The last axis with a value that it depends on; -1: constants alone.
  int add_rule(const std::string& expression, const std::string& reason, const std::string& place, int value_index,
               bool must_be_whole);
  [[nodiscard]] SweepPoint empty_point() const;
  // Fills in axis `axis` - 1 and what can be worked out then; the reason when a rule leaves it out.
  const std::string* descend(std::size_t axis, SweepPoint& point);

  const SweepFile& file_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> stride_;  // by axis
  std::vector<std::string> names_;
  std::vector<int> depends_on_;            // by name: the last axis behind it
  std::vector<std::vector<bool>> behind_;  // by name, by axis: whether it depends on it
  std::vector<bool> sets_others_;          // by axis
  std::vector<std::vector<Rule>> rules_;   // by axis + 1, at which they can be worked out
  std::vector<double> constants_;
  std::size_t first_derived_ = 0;
  std::map<std::string, SweepReason> skipped_;
  SweepPoint cursor_;              // of next()
  std::size_t cursor_levels_ = 0;  // of it, from the first, that are worked out
};

}  // namespace spillway::studies
