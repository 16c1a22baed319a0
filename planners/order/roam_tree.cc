#include "planners/order/roam_tree.h"

#include <algorithm>

namespace spillway::planners {
namespace {

class Tree {
 public:
  Tree(const std::vector<std::size_t>& keys, std::size_t centre, std::size_t count, std::size_t node_limit)
      : keys_(keys), node_limit_(node_limit), count_(count), inner_forward_(centre), inner_backward_(centre) {}

  std::vector<RoamLeaf> run() {
    grow_both();
    split_backward();
    // What is left on either side.
    leaves_.push_back({0, keys_[inner_forward_] + 1, keys_[inner_backward_] + 1, count_});
    std::reverse(leaves_.begin(), leaves_.end());
    return std::move(leaves_);
  }

 private:
  // Operators behind one key point up to another.
  [[nodiscard]] std::size_t between(std::size_t from, std::size_t to) const { return keys_[to] - keys_[from]; }

  void emit(std::size_t forward, std::size_t backward) {
    leaves_.push_back({keys_[forward] + 1, keys_[inner_forward_] + 1, keys_[inner_backward_] + 1, keys_[backward] + 1});
    inner_forward_ = forward;
    inner_backward_ = backward;
  }

  void grow_both() {
    while (inner_forward_ > 0 && inner_backward_ + 1 < keys_.size()) {
      std::size_t forward = inner_forward_ - 1, backward = inner_backward_ + 1;
      while (forward > 0 && backward + 1 < keys_.size() &&
             between(forward - 1, inner_forward_) + between(inner_backward_, backward + 1) <= node_limit_) {
        --forward;
        ++backward;
      }
      emit(forward, backward);
    }
  }

  // The backward pass has more key points than the forward pass: leaves without a forward slice. The outermost leaf
  // takes the forward pass that is left.
  void split_backward() {
    const std::size_t left = keys_[inner_forward_] + 1 + count_ - keys_[inner_backward_] - 1;
    if (left <= node_limit_) return;
    while (inner_backward_ + 1 < keys_.size()) {
      std::size_t backward = inner_backward_ + 1;
      while (backward + 1 < keys_.size() && between(inner_backward_, backward + 1) <= node_limit_) ++backward;
      emit(inner_forward_, backward);
    }
  }

  const std::vector<std::size_t>& keys_;
  std::size_t node_limit_, count_, inner_forward_, inner_backward_;
  std::vector<RoamLeaf> leaves_;
};

}  // namespace

std::vector<RoamLeaf> subgraph_tree(const std::vector<std::size_t>& keys, std::size_t loss, std::size_t count,
                                    std::size_t node_limit) {
  if (keys.empty()) {
    const std::size_t middle = std::min(loss + 1, count);
    return {{0, middle, middle, count}};
  }
  const auto centre = std::min<std::size_t>(
      static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), loss) - keys.begin()), keys.size() - 1);
  return Tree(keys, centre, count, node_limit).run();
}

}  // namespace spillway::planners
