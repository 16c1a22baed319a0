// One NVMe drive as the engine sees it: rates, cache, window, wear.
//
// Submission window. A transfer is cut into extents of `extent` bytes of which `queue_depth` are in flight; by Little's
// law it can't move faster than queue_depth * extent / latency, whatever the drive's rate.
// Block size. The sequential rate is multiplied by the profile's efficiency at (queue_depth, extent) where it has a
// table; else the window alone distinguishes small blocks from large ones.
// Write cache. Reviews say how many bytes a drive takes at its fast rate before it drops; while taking them it already
// drains at the steady rate. The reservoir is sized so that an empty cache written without pause is full after exactly
// those bytes:  size = bytes * (fast - steady) / fast. Full, the drive writes at its steady rate; idle, the cache
// empties at that rate, and half empty the fast rate is back (the half is assumed). Drives that fold pSLC to TLC
// between the two rates take `folding_bytes` more at the folding rate, by the same rule. If the profile does not say
// how many, the drop is taken at once, which is pessimistic.
// Interference. Reads at r and writes at w share the media: r/R + w/W <= 2 - interference, so 1 is one shared budget
// and 0 independence. W stays the fast rate after the drop.
// Source: our own model; what a profile says of cache, steady rate and ratings names its source there.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "hwprofiles/nvme_profile.h"

namespace spillway::sim {

struct NvmeModel {
  struct Cache {
    Bytes size;          // of the reservoir, see above
    Bytes resume_level;  // the fast rate is back once the level has come down to this
    Rate drain;
    Bytes fold_level;  // the folding rate from here on; 0: no such stage
    Rate fold;
  };
  Rate read, write, steady_write;  // steady_write == write without a cache
  Rate read_window, write_window;  // what the submission window allows, unlimited when latency is 0
  std::optional<Cache> cache;
  Picos read_latency, write_latency;
  double interference = 0;  // [0, 1]
};

inline constexpr Bytes default_extent{1 << 20};  // tensors are written in large extents

// Throws InputError when the profile states no sequential rates; `queue_depth` 0 takes the profile's.
NvmeModel nvme_model(const NvmeProfile& drive, Bytes extent = default_extent, std::int64_t queue_depth = 0);

// Years until `endurance` bytes are written at `bytes_per_step` every `step`: endurance * step / bytes_per_step.
// Infinity when nothing is written. This is the published simple relation (SSDTrain, arXiv 2408.10013, III-D), without
// its retention and write-amplification factors. It knows no temperature, no retention, no unevenness over drives.
// `endurance` >= 0, `step` > 0.
double life_years(Bytes endurance, Bytes bytes_per_step, Picos step);

}  // namespace spillway::sim
