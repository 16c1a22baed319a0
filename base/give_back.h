// Memory of containers that are done with.
#pragma once

#include <utility>

namespace spillway {

// Empties a container and frees what it holds. `container = {}` keeps a vector's memory: it is assigned an empty list.
template <class Container>
void give_back(Container& container) {
  [[maybe_unused]] const Container freed = std::exchange(container, Container());
}

}  // namespace spillway
