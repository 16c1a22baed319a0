// Settings of the torch policy, as PYTORCH_CUDA_ALLOC_CONF spells them, and what the device allows.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/units.h"

namespace spillway::sim {

struct TorchSettings {
  // Number of bins between powers of two a request is rounded up within, for sizes of [2^i, 2^(i+1)) MiB;
  // smaller sizes use entry 0, larger the last. 0 or 1: round to 512 bytes. Fewer distinct sizes: more reuse,
  // more slack. Default off.
  std::array<std::uint32_t, 16> roundup_power2_divisions{};
  // Blocks of at least this size are never split, nor used for smaller requests; when memory runs out,
  // cached ones are given back first. Bytes::max(): no such blocks (default). At least 20 MiB.
  Bytes max_split_size = Bytes::max();
  // An oversize block serves a request this much smaller than itself at most. At least 20 MiB (default).
  Bytes max_non_split_rounding{20 << 20};
  // Share of the limit above which a miss first frees cached segments older than average; 0: off (default).
  // Has an effect only with memory_fraction < 1, as in PyTorch.
  double garbage_collection_threshold = 0;
  // Segment size for requests of (1, 10) MiB, and page size of expandable large segments. Default 20 MiB.
  Bytes large_segment_size{20 << 20};
  // Segments for requests from 10 MiB on are multiples of this. PyTorch: 2 MiB, no separate setting.
  Bytes large_rounding{2 << 20};
  // Segments are address ranges mapped page by page instead of driver allocations (17-21). Default off.
  bool expandable_segments = false;
  // Share of the device's memory the process may reserve (set_per_process_memory_fraction), in [0, 1].
  double memory_fraction = 1;
  // The device's memory; Bytes::max(): unlimited (default).
  Bytes device_memory = Bytes::max();
  // Device memory taken outside the allocator (context, communication buffers, workspaces). Not derivable
  // from an allocation stream: an input.
  Bytes outside_memory{0};

  friend bool operator==(const TorchSettings&, const TorchSettings&) = default;
};

// Reads "key:value,key:value". Known keys that change no placement (backend:native, pinned_*, release_lock_on_*,
// graph_capture_record_stream_reuse, per_process_memory_fraction apart) are checked and ignored. `source` names
// the place the text came from. Throws InputError for unknown keys (with the nearest known one) and bad values.
TorchSettings parse_torch_settings(std::string_view text, const std::string& source = "PYTORCH_CUDA_ALLOC_CONF");

// Rule 3: the block size of a request. Precondition: bytes > 0 and below 2^62.
Bytes round_request(const TorchSettings& settings, Bytes bytes);
// Rule 13b: the segment size a rounded request takes from the driver on a miss.
Bytes segment_size(const TorchSettings& settings, Bytes rounded);
// Rule 5.
constexpr Bytes small_pool_limit{1 << 20};
constexpr bool is_small_request(Bytes rounded) { return rounded <= small_pool_limit; }
// Rule 13b: the share of the device's memory the process is allowed; Bytes::max() without a fraction.
Bytes allowed_limit(const TorchSettings& settings);
// Memory the driver can give: device memory less what others took.
Bytes physical_limit(const TorchSettings& settings);
// Reserved bytes of driver allocations may not pass either.
Bytes reserve_limit(const TorchSettings& settings);
// Rule 17: page size and address range of an expandable segment. Without a device size: room for 512 GiB.
Bytes page_size(const TorchSettings& settings, bool small);
Bytes address_range(const TorchSettings& settings, bool small);

}  // namespace spillway::sim
