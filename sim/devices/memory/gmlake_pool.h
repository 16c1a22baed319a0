// The gmlake policy: large requests are served by stitching free physical memory from several places into one range of
// addresses (Guo et al., "GMLake: Efficient and Transparent GPU Memory Defragmentation for Large-scale DNN Training
// with Virtual Memory Stitching", ASPLOS 2024; details as in the authors' allocator for PyTorch 1.13).
//
//   segment    |## A ##|..... p1 .....|### B ###|... p2 ...|    addresses backed by 2 MiB chunks of its own
//                        \            \         /         /
//   stitched             |..... p1 .....|... p2 ...|            a second range of addresses on the same chunks
//
//   primitive block (pBlock)  a piece of a segment, live or free; free neighbours coalesce
//   stitched block (sBlock)   a list of pieces; usable when all of them are free; kept after use
//
// A request of n bytes (more than 1 MiB: rounded to 2 MiB) is served by the first of
//   S1, S2  the smallest free pBlock of its stream with at least n bytes; what is over stays a free pBlock
//   S1      the smallest free sBlock of n to reuse_limit x n bytes; its pieces behind n stay free
//   S3      if n >= fragment_limit: free pBlocks, largest first, until n is reached; the last is cut; a new sBlock
//   S4      with grow_and_stitch: only what is missing is taken from the driver, then S3
//   (else)  a new segment, of the size the torch policy takes
//   S5      cached segments are given back, then again; else out of memory
// Smaller requests go to the torch policy's small pool.
//
// Deviations from the paper, all as the published code does. It chooses pBlocks before sBlocks, an sBlock may be larger
// than the request, S4 is off, and splitting a pBlock makes no sBlock of its halves. Deviations from the code: an
// sBlock is not a segment in the statistics; pieces that make up other blocks are not counted as active. The wait for a
// range's last use before unmapping is left out, as is the cost of unmapping within a free. Settings max_split_size and
// garbage collection are refused.
//
// Allocate and free: O(log n + stitched blocks x their pieces).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/devices/memory/block_ledger.h"
#include "sim/devices/memory/free_set.h"
#include "sim/devices/memory/lent_torch.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/torch_settings.h"

namespace spillway::sim {

// Names in brackets: the environment variables of the published code, and the keys of parse_gmlake_settings().
struct GmlakeSettings {
  Bytes fragment_limit{512 << 20};  // [fragLimit, bytes] smaller requests are not stitched
  double reuse_limit = 10;          // [reuseLimit] an sBlock serves requests down to its size over this
  int defragment_level = 0;         // [defragLevel] 0: stitch before new memory is taken; 1: when there is none;
                                    // 2: after cached segments were given back
  Bytes stitched_limit{std::int64_t{1000} << 30};  // [autoGC, GiB] more in sBlocks: unused ones are unmapped
  bool grow_and_stitch = false;                    // [reAlloc] S4
  TorchSettings torch;                             // rounding, small pool, limits
};

// "fragLimit:67108864,reuseLimit:2" and those keys of PYTORCH_CUDA_ALLOC_CONF that round requests or limit memory.
// Throws InputError for unknown keys (with the nearest known one), bad values, and keys this policy does not model.
GmlakeSettings parse_gmlake_settings(std::string_view text, const std::string& source = "allocator settings");

class GmlakePool {
 public:
  explicit GmlakePool(const GmlakeSettings& settings = {});

  Allocation allocate(const AllocationRequest& request);
  std::uint32_t free(BlockId block, Picos time);
  void record_stream(BlockId block, std::int64_t stream) { ledger_.record_stream(block, stream); }
  void complete_event(BlockId block, std::int64_t stream) { ledger_.complete_event(block, stream); }
  void process_events(Picos time);
  DriverCost empty_cache(Picos time);
  // Allocates the live blocks again: this policy does not reach a recorded state of another allocator.
  std::vector<BlockId> restore(const PoolState& state) { return allocate_live_blocks(*this, state); }

  // Segments with their pieces: a live piece may be part of a larger block. The small pool's come as they are.
  [[nodiscard]] PoolState state() const;
  [[nodiscard]] std::string_view name() const { return gmlake_policy; }
  [[nodiscard]] const GmlakeSettings& settings() const { return settings_; }
  [[nodiscard]] const MemoryStatistics& statistics() const { return ledger_.statistics; }
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return ledger_.last_out_of_memory(); }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return ledger_.pending_events(); }
  void keep_rows(bool keep) { ledger_.keep_rows(keep); }
  [[nodiscard]] std::vector<AllocationRow> rows() const { return ledger_.rows(); }
  [[nodiscard]] std::size_t stitched_blocks() const { return stitched_.size() - unused_stitched_.size(); }
  [[nodiscard]] std::uint64_t stitches() const { return stitches_; }  // sBlocks made so far

  // Every invariant, recomputed. The first violation in words, or nothing. For tests and debug builds.
  [[nodiscard]] std::optional<std::string> check() const;

 private:
  struct Segment {
    Bytes total{};
    std::int64_t stream = 0;
  };
  struct Piece {
    Bytes size{};
    Addr segment{};
    bool used = false;
  };
  struct Run {
    Addr address{};  // in a segment
    Bytes size{};
  };
  struct Stitched {
    Addr address{};
    Bytes size{};  // 0: no such block
    std::int64_t stream = 0;
    std::vector<Run> runs;
    Bytes used{};           // of its chunks
    bool live = false;      // handed out
    bool orphaned = false;  // a chunk behind the used ones is gone: drop it after use
  };
  static constexpr std::uint32_t no_stitched = 0xffffffffU;

  Allocation allocate_small(const AllocationRequest& request);
  [[nodiscard]] Bytes round(Bytes bytes) const;
  bool place_large(const AllocationRequest& request, Bytes size, Allocation& made, std::uint32_t& stitched);
  bool take_piece(std::int64_t stream, Bytes size, Allocation& made);
  bool reuse_stitched(std::int64_t stream, Bytes size, Allocation& made, std::uint32_t& stitched);
  bool stitch(std::int64_t stream, Bytes size, Allocation& made, std::uint32_t& stitched);
  bool grow(std::int64_t stream, Bytes size, DriverCost& cost);
  bool add_segment(std::int64_t stream, Bytes segment, DriverCost& cost);
  void release(const BlockLedger::Block& block, Picos time);
  void release_cached(DriverCost& cost);
  void drop_stitched(std::uint32_t index);
  void drop_unused_stitched(DriverCost& cost);
  void mark_used(Addr address, Bytes size);
  void mark_free(Addr address);
  void adjust_stitched(Addr address, Bytes size, bool used);
  void list_stitched(std::uint32_t index, bool free);
  [[nodiscard]] bool is_idle(const Stitched& block) const { return !block.live && block.used == Bytes::zero(); }
  void insert_free(Addr address);
  void erase_free(Addr address);
  Addr reserve(Bytes size);

  GmlakeSettings settings_;
  Bytes limit_;
  BlockLedger ledger_;
  LentTorch small_;
  std::map<Addr, Segment> segments_;
  std::map<Addr, Piece> pieces_;
  FreeSet free_;           // pieces
  FreeSet free_stitched_;  // idle sBlocks; FreeBlock::block is their index
  std::vector<Stitched> stitched_;
  std::vector<std::uint32_t> unused_stitched_;
  Bytes stitched_bytes_{};
  Bytes large_reserved_{};
  Addr next_address_;
  std::uint64_t stitches_ = 0;
};

}  // namespace spillway::sim
