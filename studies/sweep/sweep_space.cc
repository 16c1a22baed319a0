#include "studies/sweep/sweep_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

// Of options, so that conditions may say technique == full.
bool can_be_a_name(const std::string& label, const std::vector<std::string>& taken) {
  if (label.empty() || (label[0] >= '0' && label[0] <= '9')) return false;
  const bool plain = std::all_of(label.begin(), label.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain && std::find(taken.begin(), taken.end(), label) == taken.end();
}

std::string whole_text(double value) { return std::to_string(static_cast<std::int64_t>(value)); }

}  // namespace

SweepSpace::SweepSpace(const SweepFile& file) : file_(file), size_(file.points()) {
  stride_.assign(file.axes.size(), 1);
  for (std::size_t axis = file.axes.size(); axis-- > 1;)
    stride_[axis - 1] = stride_[axis] * static_cast<std::int64_t>(file.axes[axis].options.size());
  const auto name = [this](const std::string& text, int axis) {
    names_.push_back(text);
    depends_on_.push_back(axis);
    behind_.resize(names_.size(), std::vector<bool>(file_.axes.size()));
  };
  for (const auto& [text, value] : file.constants) {
    name(text, -1);
    constants_.push_back(value);
  }
  std::vector<std::string> taken;
  for (const SweepAxis& axis : file.axes) taken.push_back(axis.name);
  for (const SweepDerived& derived : file.derived) taken.push_back(derived.name);
  for (const auto& [text, value] : file.constants) taken.push_back(text);
  for (const SweepAxis& axis : file.axes)
    for (const SweepOption& option : axis.options)
      if (can_be_a_name(option.label, taken)) {
        name(option.label, -1);
        constants_.push_back(option.number);
        taken.push_back(option.label);
      }
  for (std::size_t axis = 0; axis < file.axes.size(); ++axis) {
    name(file.axes[axis].name, static_cast<int>(axis));
    behind_.back()[axis] = true;
  }
  first_derived_ = names_.size();
  rules_.resize(file.axes.size() + 1);
  sets_others_.resize(file.axes.size());
  for (std::size_t d = 0; d < file.derived.size(); ++d) {
    const SweepDerived& derived = file.derived[d];
    name(derived.name,
         add_rule(derived.expression, derived.name + " = " + derived.expression + " is no whole number",
                  "/derived/" + std::to_string(d), static_cast<int>(names_.size()), !derived.key.empty()));
    for (std::size_t axis = 0; axis < file.axes.size() && !derived.key.empty(); ++axis)
      sets_others_[axis] = sets_others_[axis] || behind_.back()[axis];
  }
  for (std::size_t r = 0; r < file.rules.size(); ++r) {
    const std::string place = "/where/" + std::to_string(r);
    if (add_rule(file.rules[r].expression, file.rules[r].reason, place, -1, false) < 0)
      throw InputError(file.path, place, "'" + file.rules[r].expression + "' is the same at every point",
                       "name an axis in it, or leave it out");
    if (compares_with_itself(file.rules[r].expression))
      throw InputError(file.path, place, "'" + file.rules[r].expression + "' compares a thing with itself",
                       "compare it with another, or leave it out");
  }
  cursor_ = empty_point();
}

int SweepSpace::add_rule(const std::string& expression, const std::string& reason, const std::string& place,
                         int value_index, bool must_be_whole) {
  SweepExpression parsed(expression, names_, file_.path, place);
  int axis = -1;
  std::vector<bool> behind(file_.axes.size());
  for (const std::size_t name : parsed.used()) {
    axis = std::max(axis, depends_on_[name]);
    for (std::size_t a = 0; a < behind.size(); ++a) behind[a] = behind[a] || behind_[name][a];
  }
  if (value_index >= 0) behind_.push_back(std::move(behind));
  rules_[static_cast<std::size_t>(axis + 1)].push_back({std::move(parsed), reason, must_be_whole, value_index});
  return axis;
}

const std::string* SweepSpace::descend(std::size_t axis, SweepPoint& point) {
  if (axis > 0)
    point.values[first_derived_ - file_.axes.size() + axis - 1] =
        file_.axes[axis - 1].options[point.options[axis - 1]].number;
  for (Rule& rule : rules_[axis]) {
    const double value = rule.expression.value(point.values);
    if (rule.value_index < 0) {
      if (value == 0 || !std::isfinite(value)) return &rule.reason;
      continue;
    }
    const double nearest = std::round(value);
    const bool whole = std::isfinite(value) && std::abs(value - nearest) < 1e-9 * std::max(1.0, std::abs(value));
    if (rule.must_be_whole && !whole) return &rule.reason;
    point.values[static_cast<std::size_t>(rule.value_index)] = whole ? nearest : value;
  }
  return nullptr;
}

SweepPoint SweepSpace::empty_point() const {
  SweepPoint point;
  point.values = constants_;
  point.values.resize(names_.size());
  point.options.resize(file_.axes.size());
  return point;
}

SweepPoint SweepSpace::at(std::int64_t number) {
  SPILLWAY_ASSERT(number >= 0 && number < size_);
  SweepPoint point = empty_point();
  point.number = number;
  for (std::size_t axis = 0; axis < file_.axes.size(); ++axis)
    point.options[axis] = static_cast<std::size_t>(number / stride_[axis]) % file_.axes[axis].options.size();
  for (std::size_t axis = 0; axis <= file_.axes.size(); ++axis) static_cast<void>(descend(axis, point));
  return point;
}

std::int64_t SweepSpace::neighbour(std::int64_t number, std::size_t axis, std::size_t option) const {
  const std::int64_t now = number / stride_[axis] % static_cast<std::int64_t>(file_.axes[axis].options.size());
  return number + (static_cast<std::int64_t>(option) - now) * stride_[axis];
}

bool SweepSpace::allows(std::int64_t number) {
  const auto skipped = skipped_;
  const bool allowed = next(number, number + 1) != nullptr;
  skipped_ = skipped;
  return allowed;
}

const SweepPoint* SweepSpace::next(std::int64_t from, std::int64_t until) {
  for (std::int64_t number = from; number < until;) {
    const std::string* reason = nullptr;
    std::size_t level = 0;
    std::int64_t rest = number;
    for (; level <= file_.axes.size(); ++level) {
      if (level > 0) {
        const std::int64_t option = rest / stride_[level - 1];
        rest -= option * stride_[level - 1];
        if (cursor_.options[level - 1] != static_cast<std::size_t>(option))
          cursor_levels_ = std::min(cursor_levels_, level);
        cursor_.options[level - 1] = static_cast<std::size_t>(option);
      }
      if (level < cursor_levels_) continue;
      reason = descend(level, cursor_);
      if (reason != nullptr) break;
      cursor_levels_ = level + 1;
    }
    if (reason == nullptr) {
      cursor_.number = number;
      return &cursor_;
    }
    const std::int64_t below = level == 0 ? size_ : stride_[level - 1];
    const std::int64_t next = std::min(until, (number / below + 1) * below);
    skipped_.try_emplace(*reason, SweepReason{0, number}).first->second.points += next - number;
    number = next;
  }
  return nullptr;
}

std::map<std::string, SweepReason> SweepSpace::take_skipped() { return std::exchange(skipped_, {}); }

std::vector<std::string> edits_of(const SweepSettings& settings) {
  std::vector<std::string> edits;
  for (const auto& [key, text] : settings) edits.push_back(std::string(key).append("=").append(text));
  return edits;
}

SweepSettings SweepSpace::settings(const SweepPoint& point) const {
  SweepSettings settings;
  for (std::size_t axis = 0; axis < file_.axes.size(); ++axis)
    for (const auto& setting : file_.axes[axis].options[point.options[axis]].settings) settings.push_back(setting);
  for (std::size_t d = 0; d < file_.derived.size(); ++d)
    if (!file_.derived[d].key.empty())
      settings.emplace_back(file_.derived[d].key, whole_text(point.values[first_derived_ + d]));
  return settings;
}

std::string SweepSpace::label(const SweepPoint& point) const {
  std::string label;
  for (std::size_t axis = 0; axis < file_.axes.size(); ++axis) {
    if (!label.empty()) label += ", ";
    label += file_.axes[axis].name + " " + file_.axes[axis].options[point.options[axis]].label;
  }
  return label;
}

}  // namespace spillway::studies
