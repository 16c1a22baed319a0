// Groups of equal phases, fused into boxes: the packing STAlloc's paper describes (HomoPhase).
//
//   offset   one group: allocated in 0F, freed in 0B     fused with 0B-0B, in the steps the first leaves free
//     ^      |####|                                      |####|..bb|
//     |      |######|              -->                   |######|bb|
//     |      |########|                                  |########|b
//     +------------------> time
//
//   TMP(D) = sum of (size x life) of the members / (size x life of the box): how full a box is, in (0, 1]
//
// Source: STAlloc (EuroSys 2026, arXiv 2507.16274), section 5.1 and equation 2, with the thresholds of the authors'
// code (infinigence/STAlloc 3a9f97f). Small and thin groups are dissolved, groups below TMP 0.7 too. A fusion must
// raise TMP_fused^2 above the product of the two. A fusion that would make the box taller keeps what fits and leaves
// the rest as a separate group, if TMP_fused x TMP_rest is above that product.
//
// Deviation: pairs are tried in order of time, once each, and only if lifetimes meet without one lying within the
// other; the code tries all pairs.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

struct PhasedRequest {
  LayoutBuffer life;
  std::int32_t allocated = 0, freed = 0;  // phases
};

struct PhaseBox {
  struct Member {
    std::size_t request = 0;
    std::int64_t offset = 0;  // from the box's beginning
  };
  std::int64_t lower = 0, upper = 0, size = 0;
  std::vector<Member> members;  // by offset
  double fullness = 0;          // TMP
};

// Every request is in exactly one box. Boxes of several requests come from groups; the others hold one each.
std::vector<PhaseBox> fuse_phases(std::span<const PhasedRequest> requests);

// The whole: boxes by layer_by_size(), which gives up, as this does. Offsets in the order given.
std::vector<std::int64_t> group_by_phase(std::span<const PhasedRequest> requests,
                                         std::int64_t most_looks = std::numeric_limits<std::int64_t>::max());

}  // namespace spillway::planners
