#include "studies/diagnosis/held_tree.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::studies {
namespace {

struct Leaf {
  Bytes bytes{};
  std::uint64_t blocks = 0;
  std::int64_t example = -1;
  Bytes largest{};
};

// Built by name, then sorted.
class Builder {
 public:
  void add(const std::vector<std::string>& path, const Leaf& leaf) {
    Node* node = &root_;
    take(*node, leaf);
    for (const std::string& name : path) {
      node = &node->children[name];
      take(*node, leaf);
    }
  }
  HeldNode made(std::string name) { return finished(std::move(name), root_); }

 private:
  struct Node {
    Leaf sum;
    std::map<std::string, Node> children;
  };
  static void take(Node& node, const Leaf& leaf) {
    node.sum.bytes += leaf.bytes;
    node.sum.blocks += leaf.blocks;
    if (leaf.example >= 0 && leaf.largest > node.sum.largest) {
      node.sum.largest = leaf.largest;
      node.sum.example = leaf.example;
    }
  }
  static HeldNode finished(std::string name, const Node& from) {
    HeldNode node{std::move(name), from.sum.bytes, from.sum.blocks, from.sum.example, {}};
    for (const auto& [of, child] : from.children) node.children.push_back(finished(of, child));
    std::stable_sort(node.children.begin(), node.children.end(), [](const HeldNode& a, const HeldNode& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.name.size() < b.name.size();  // layer 9 before layer 10
    });
    return node;
  }
  Node root_;
};

bool is_digit(const std::string& text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

std::string layer_of(const Trace& trace, const MemoryEvent& event) {
  if (event.anchor != OpId::none && trace.ops.layer[index_of(event.anchor)] != no_index16)
    return "layer " + std::to_string(trace.ops.layer[index_of(event.anchor)]);
  return "no layer";
}

// "layers.7.attention.qkv": its layer.
std::string layer_of_name(std::string_view name) {
  constexpr std::string_view before = "layers.";
  const std::size_t at = name.find(before);
  if (at == std::string_view::npos) return {};
  std::size_t end = at + before.size();
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  return end == at + before.size() ? std::string()
                                   : "layer " + std::string(name.substr(at + before.size(), end - at - before.size()));
}

}  // namespace

HeldNode held_by_stack(const MemoryDiagnosis& diagnosis) {
  Builder builder;
  for (const MemoryStack& stack : diagnosis.stacks) {
    std::vector<std::string> path = stack.places;
    const auto own =
        std::find_if_not(path.rbegin(), path.rend(), [](const std::string& place) { return is_library(place); });
    if (own != path.rend()) path.erase(own.base(), path.end());
    if (path.empty()) path.emplace_back("no stack recorded");
    builder.add(path, {stack.bytes, stack.blocks, -1, {}});
  }
  HeldNode root = builder.made("all that is alive");
  while (root.children.size() == 1 && !root.children.front().children.empty() &&
         root.children.front().bytes == root.bytes) {
    HeldNode only = std::move(root.children.front());
    root.children = std::move(only.children);
  }
  return root;
}

HeldNode held_by_line(const MemoryDiagnosis& diagnosis) {
  Builder builder;
  for (const MemoryHolder& holder : diagnosis.places) {
    // "model.py:41 forward", not "torch::cuda".
    std::size_t colon = holder.name.find(':');
    while (colon != std::string::npos && !is_digit(holder.name, colon + 1)) colon = holder.name.find(':', colon + 1);
    const bool has_line = colon != std::string::npos;
    builder.add(has_line
                    ? std::vector<std::string>{holder.name.substr(0, colon), "line " + holder.name.substr(colon + 1)}
                    : std::vector<std::string>{holder.name},
                {holder.bytes, holder.blocks, -1, {}});
  }
  return builder.made("all that is alive");
}

HeldNode held_by_module(const MemoryDiagnosis& diagnosis) {
  Builder builder;
  for (const MemoryHolder& holder : diagnosis.modules)
    builder.add({holder.name}, {holder.bytes, holder.blocks, -1, {}});
  return builder.made("all that is alive");
}

HeldName held_name(const Trace& trace, const MemoryPicture& picture, const MemoryPicture::Block& block) {
  HeldName held{picture.kinds[block.kind], "no layer", "held before the step"};
  std::replace(held.owner.begin(), held.owner.end(), '_', ' ');
  if (block.event < 0) return held;
  const MemoryEvent& event = trace.memory_events[static_cast<std::size_t>(block.event)];
  held.layer = layer_of(trace, event);
  held.tensor.clear();
  if (event.tensor != TensorId::none) held.tensor = trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
  if (held.tensor.empty() && event.anchor != OpId::none)
    held.tensor = "for " + std::string(trace.strings.text(trace.ops.name[index_of(event.anchor)]));
  if (held.tensor.empty()) held.tensor = "no name";
  if (std::string own = layer_of_name(held.tensor); !own.empty()) held.layer = std::move(own);
  return held;
}

HeldNode held_by_owner(const Trace& trace, const MemoryPicture& picture, std::int64_t at) {
  Builder builder;
  for (std::size_t i = 0; i < picture.blocks.size(); ++i) {
    const MemoryPicture::Block& block = picture.blocks[i];
    if (block.begin > at || block.end <= at) continue;
    const HeldName held = held_name(trace, picture, block);
    builder.add({held.owner, held.layer, held.tensor}, {block.size, 1, static_cast<std::int64_t>(i), block.size});
  }
  return builder.made("all that is alive");
}

}  // namespace spillway::studies
