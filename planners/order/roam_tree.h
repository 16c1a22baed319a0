// ROAM's subgraph tree: ranges of key points nested around the loss, each a slice of the forward pass and the slice of
// the backward pass that reads what it made.
//
//   order   |  forward  .........|loss|.........  backward  |
//   leaf 2  [    )               |    |               [     )        The nest is listed outermost first. A leaf grows
//   leaf 1       [      )        |    |         [     )              by one key point on each side while it holds at
//   leaf 0              [        )    [         )                    most `node_limit` operators.
#pragma once

#include <cstddef>
#include <vector>

namespace spillway::planners {

// Half-open ranges of positions in the order; one may be empty.
struct RoamLeaf {
  std::size_t forward_begin = 0, forward_end = 0;
  std::size_t backward_begin = 0, backward_end = 0;

  [[nodiscard]] std::size_t operators() const { return forward_end - forward_begin + backward_end - backward_begin; }
  friend bool operator==(const RoamLeaf&, const RoamLeaf&) = default;
};

// Leaves that hold every position of an order of `count` operators once, outermost first. A leaf of two neighbouring
// key points, and the outermost one, may exceed the limit. `keys` are the positions of key points, ascending. `loss` is
// the position of the loss; the first key point at or after it is the centre (the last one if there is none).
std::vector<RoamLeaf> subgraph_tree(const std::vector<std::size_t>& keys, std::size_t loss, std::size_t count,
                                    std::size_t node_limit);

}  // namespace spillway::planners
