// Who holds a GPU's memory, as a tree: by the calls that asked for it where stacks were recorded, else by owner, layer
// and tensor. Treemaps and flame graphs are drawn from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/pictures/memory_picture.h"
#include "studies/diagnosis/memory_diagnosis.h"

namespace spillway::studies {

struct HeldNode {
  std::string name;
  Bytes bytes{};  // of its children together, and what it holds itself
  std::uint64_t blocks = 0;
  std::int64_t example = -1;       // the largest block's index in MemoryPicture::blocks; -1: none is known
  std::vector<HeldNode> children;  // most bytes first
};

// Callers around callees, outermost first; calls that everything goes through are left out, and lines of torch and of
// packages below the program's own last line.
HeldNode held_by_stack(const MemoryDiagnosis& diagnosis);
// File, then line, by the program's own innermost line.
HeldNode held_by_line(const MemoryDiagnosis& diagnosis);
// forward() of the program's own modules.
HeldNode held_by_module(const MemoryDiagnosis& diagnosis);
// Name of a block of a step's memory: who holds it, "layer 7" or "no layer", the tensor ("for what work it is" where it
// has no name).
struct HeldName {
  std::string owner, layer, tensor;
};
HeldName held_name(const Trace& trace, const MemoryPicture& picture, const MemoryPicture::Block& block);
// Tree of the blocks alive at that time: owner, then layer, then tensor ("what work it is for" where it has no name).
HeldNode held_by_owner(const Trace& trace, const MemoryPicture& picture, std::int64_t at);

}  // namespace spillway::studies
