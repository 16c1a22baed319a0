// Tiers for tensors that leave device memory, and the way there and back. As in SSDTrain's runtime, there is a pool of
// store workers and one of load workers (arXiv 2408.10013, section IV).
//
//   host    device -> pinned memory                                    one copy each way at a time
//   drive   device -> aligned staging -> O_DIRECT write by io_uring    as many as the pool has workers
//           device -> O_DIRECT write by cuFile, with gpudirect where it is there
//
// Transfers of one pool start in the order given; a load waits for the store of what it reads. The file is one of our
// own (ScratchFile) with a place for each tensor.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/io_queue.h"
#include "hwprofiles/calibrate/scratch_file.h"
#include "sim/replay/offload_plan.h"
#include "validation/trainer/backend.h"

namespace spillway::validation {

struct TierStoreOptions {
  std::string file;  // that does not exist; needed when something goes to drives
  std::int64_t store_workers = 6, load_workers = 6;
  bool gpudirect = false;  // by GPUDirect Storage; where that is not there, through host memory
  // Queue between memory and the file, of so many requests at once; none: io_uring.
  std::function<std::unique_ptr<IoQueue>(unsigned)> make_queue;
};

// One finished transfer.
struct TransferRecord {
  std::uint32_t tensor = 0;
  Tier tier = Tier::host;
  bool inbound = false;  // towards the device
  Bytes bytes;
  double asked_seconds = 0, started_seconds = 0, ended_seconds = 0;  // since the store was made or cleared
};

class TierStore {
 public:
  using Id = std::size_t;

  // drive_bytes: by tensor, what may go to drives (0: never); the file holds them all at once. Throws InputError as
  // IoRing and ScratchFile do, when anything may.
  TierStore(Backend& backend, const std::vector<Bytes>& drive_bytes, const TierStoreOptions& options);
  TierStore(const TierStore&) = delete;
  TierStore& operator=(const TierStore&) = delete;
  // Waits for what is under way.
  ~TierStore();

  // The device memory must stay until done(). After the kernels given to the backend so far.
  Id store(std::uint32_t tensor, Tier tier, std::byte* device, Bytes bytes);
  // Precondition: the tensor was stored in that tier.
  Id load(std::uint32_t tensor, Tier tier, std::byte* device, Bytes bytes);

  // Moves on what can be without waiting.
  void progress();
  [[nodiscard]] bool done(Id transfer) const { return transfers_[transfer].state == State::done; }
  void wait(Id transfer);

  // In the order they were given. Those of finished transfers.
  [[nodiscard]] std::vector<TransferRecord> records() const;
  // Forgets finished transfers. Precondition: none is under way.
  void clear();
  // Way to the file: "O_DIRECT", "buffered" (a file system without it), "" without a file. With cuFile, by what moved
  // so far, "GPUDirect Storage", "cuFile through host memory" (its compatibility mode) or "cuFile" where nothing tells.
  [[nodiscard]] std::string access() const;

 private:
  enum class State : std::uint8_t { waiting, copying, on_drive, done };
  struct Transfer {
    TransferRecord record;
    State state = State::waiting;
    std::byte* device = nullptr;
    Backend::Mark after = 0, copied = 0;
    std::optional<Id> needs;  // the store of the data that a load wants
    std::size_t slot = 0;     // of staging, or of the host's one copy
  };
  // One direction of one tier.
  struct Pool {
    std::deque<Id> waiting;
    std::vector<Id> working;
    std::vector<std::size_t> free_slots;
  };

  [[nodiscard]] double now() const;
  Pool& pool_of(const TransferRecord& record);
  Id add(std::uint32_t tensor, Tier tier, bool inbound, std::byte* device, Bytes bytes);
  void start_waiting(Pool& pool);
  void start(Id id, Transfer& transfer);
  bool move_on(Id id);
  void open_file(const TierStoreOptions& options, Bytes end);
  void open_queue(const TierStoreOptions& options);
  void take_completions();
  void submit(Id id, Transfer& transfer);
  void finish(Transfer& transfer);
  // Memory that the drive reads or writes for a transfer.
  [[nodiscard]] std::span<std::byte> drive_memory(const Transfer& transfer) const;
  [[nodiscard]] std::byte* staging(const Transfer& transfer) const;
  [[nodiscard]] std::byte* host_of(std::uint32_t tensor, Bytes bytes);

  Backend& backend_;
  std::string access_;
  std::vector<Transfer> transfers_;
  std::map<std::uint32_t, Id> last_store_;  // by tensor, of those not cleared
  std::map<std::uint32_t, std::byte*> host_;
  std::vector<Bytes> place_;  // by tensor, in the file
  Bytes staging_bytes_;       // of one slot
  std::byte* staging_ = nullptr;
  Pool pools_[2][2];  // by tier (host, drive) and direction (out, in)
  std::unique_ptr<IoQueue> queue_;
  bool is_direct_ = false;  // the queue takes device memory
  std::unique_ptr<ScratchFile> file_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace spillway::validation
