#include "studies/sweep/sweep_looks.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace spillway::studies {
namespace {

// The fields of unseen_fields(), whether what is unseen depends on them, and a value that is like no other.
struct Field {
  std::string_view key;
  bool decides;
  std::string_view apart;
};
constexpr std::array fields = {Field{"model.bucket_bytes", false, ""}, Field{"model.loss", false, "chunked"},
                               Field{"model.overlap_gradients", true, ""}, Field{"model.prefetch", false, ""}};

const Field* field_of(std::string_view key) {
  const auto* const found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& one) { return one.key == key; });
  return found == fields.end() ? nullptr : found;
}

// That all options of an axis set, and nothing else; empty: there is none.
std::string only_key(const SweepAxis& axis) {
  std::string key;
  for (const SweepOption& option : axis.options) {
    if (option.settings.size() != 1 || (!key.empty() && option.settings.front().first != key)) return {};
    key = option.settings.front().first;
  }
  return key;
}

}  // namespace

SweepLooks::SweepLooks(const SweepFile& file, SweepSpace& space, SweepScreen& screen)
    : file_(file), space_(space), screen_(screen) {
  for (std::size_t axis = 0; axis < file.axes.size(); ++axis) {
    std::string key = only_key(file.axes[axis]);
    const Field* const field = field_of(key);
    if (field == nullptr || space.sets_others(axis)) continue;
    const auto is_apart = [&](const SweepOption& option) { return option.settings.front().second == field->apart; };
    if (std::none_of(file.axes[axis].options.begin(), file.axes[axis].options.end(), is_apart))
      axes_.push_back({axis, std::move(key)});
  }
}

SweepEstimate& SweepLooks::look(Looks& looks, std::int64_t number,
                                SweepEstimate (SweepScreen::*how)(const SweepSettings&)) {
  const std::int64_t stand = stand_in(number);
  const auto found = looks.find(stand);
  if (found != looks.end()) return found->second;
  return looks.emplace(stand, (screen_.*how)(settings(stand))).first->second;
}

std::int64_t SweepLooks::stand_in(std::int64_t number) {
  if (axes_.empty()) return number;
  std::int64_t deciding = number;
  for (const Axis& axis : axes_)
    if (!field_of(axis.key)->decides) deciding = space_.neighbour(deciding, axis.index, 0);
  auto found = unseen_.find(deciding);
  if (found == unseen_.end()) found = unseen_.emplace(deciding, unseen_axes(deciding)).first;
  for (const std::size_t axis : found->second) number = space_.neighbour(number, axis, 0);
  return number;
}

std::vector<std::size_t> SweepLooks::unseen_axes(std::int64_t number) {
  const std::vector<std::string> keys = screen_.unseen(settings(number));
  if (keys.empty()) return {};
  // A value that is refused is refused everywhere: an axis that has one is looked at point by point.
  std::erase_if(axes_, [&](Axis& axis) {
    if (axis.is_tried) return false;
    axis.is_tried = true;
    for (std::size_t option = 0; option < file_.axes[axis.index].options.size(); ++option)
      if (screen_.unseen(settings(space_.neighbour(number, axis.index, option))).empty()) return true;
    return false;
  });
  std::vector<std::size_t> unseen;
  for (const Axis& axis : axes_)
    if (std::find(keys.begin(), keys.end(), axis.key) != keys.end()) unseen.push_back(axis.index);
  return unseen;
}

}  // namespace spillway::studies
