#include "gui/canvas/memory_scene.h"

#include <algorithm>
#include <utility>

namespace spillway::gui {

std::shared_ptr<const MemoryScene> memory_scene(MemoryPicture picture, bool by_line) {
  auto scene = std::make_shared<MemoryScene>();
  scene->allocated.reserve(picture.curve.size());
  scene->reserved.reserve(picture.curve.size());
  for (const MemoryPicture::Point& point : picture.curve) {
    scene->allocated.add(point.at, point.allocated.count());
    scene->reserved.add(point.at, point.reserved.count());
  }
  scene->map = AddressMap(picture);
  for (std::size_t kind = 0; kind < picture.kinds.size(); ++kind)
    scene->tokens.push_back(by_line && picture.kinds[kind] != "held before" ? line_token(kind)
                            : by_line                                       ? Token::cached
                                                                            : owner_token(picture.kinds[kind]));
  scene->owners = OwnerStack(picture, by_line ? scene->tokens : std::vector<Token>());
  scene->whole = {picture.begin, std::max(picture.end, picture.begin + 1)};
  picture.curve = {};  // they are in the curves and the stack
  picture.changes = {};
  scene->picture = std::move(picture);
  return scene;
}

TimeRange map_bytes(const MemoryScene& scene) {
  return {0, std::max<std::int64_t>(1, scene.map.height() + scene.map.height() / 50)};
}

}  // namespace spillway::gui
