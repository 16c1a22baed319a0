#include "validation/trainer/tier_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "base/input_error.h"
#include "hwprofiles/calibrate/gds_queue.h"
#include "hwprofiles/calibrate/io_ring.h"

namespace spillway::validation {
namespace {

Bytes aligned(Bytes bytes) {
  const Bytes step = direct_alignment;
  return step * ((bytes.count() + step.count() - 1) / step.count());
}

}  // namespace

TierStore::TierStore(Backend& backend, const std::vector<Bytes>& drive_bytes, const TierStoreOptions& options)
    : backend_(backend), start_(std::chrono::steady_clock::now()) {
  SPILLWAY_ASSERT(options.store_workers >= 1 && options.load_workers >= 1);
  for (const bool inbound : {false, true}) {
    pools_[0][inbound].free_slots = {0};
    const std::int64_t workers = inbound ? options.load_workers : options.store_workers;
    const std::int64_t first = inbound ? options.store_workers : 0;
    for (std::int64_t w = workers; w-- > 0;)
      pools_[1][inbound].free_slots.push_back(static_cast<std::size_t>(first + w));
  }
  Bytes end;
  for (const Bytes bytes : drive_bytes) {
    place_.push_back(end);
    end += aligned(bytes);
    staging_bytes_ = std::max(staging_bytes_, aligned(bytes));
  }
  if (end == Bytes(0)) return;
  if (options.file.empty())
    throw InputError("", "", "the plan offloads to drives and no file is named",
                     "name a file that does not exist, on the drive to offload to");
  open_file(options, end);
  open_queue(options);
}

void TierStore::open_file(const TierStoreOptions& options, Bytes end) {
  access_ = "O_DIRECT";
  try {
    file_ = std::make_unique<ScratchFile>(options.file, end, Bytes(0), ScratchFile::Access::direct);
  } catch (const InputError& error) {
    if (error.cause().find("O_DIRECT") == std::string::npos) throw;
    file_ = std::make_unique<ScratchFile>(options.file, end, Bytes(0), ScratchFile::Access::buffered);
    access_ = "buffered";
  }
}

void TierStore::open_queue(const TierStoreOptions& options) {
  const std::int64_t slots = options.store_workers + options.load_workers;
  const auto entries = static_cast<unsigned>(std::min<std::int64_t>(slots, 4096));
  if (options.gpudirect && access_ == "O_DIRECT") {
    try {
      queue_ = std::make_unique<GdsQueue>(file_->descriptor(), entries, [this] { backend_.begin_thread(); });
      is_direct_ = true;
      return;
    } catch (const InputError& error) {
      if (error.file() != "cuFile") throw;  // without it through host memory
    }
  }
  staging_ = backend_.take_host(staging_bytes_ * slots);
  if (staging_ == nullptr)
    throw InputError("", "", "no host memory for the staging buffers of offloading", "use fewer workers");
  if (options.make_queue) {
    queue_ = options.make_queue(entries);
    return;
  }
  auto ring = std::make_unique<IoRing>(entries);
  // Without locked memory the kernel looks pages up at each request; that works as well.
  static_cast<void>(ring->register_buffer({staging_, static_cast<std::size_t>((staging_bytes_ * slots).count())}));
  queue_ = std::move(ring);
}

std::string TierStore::access() const {
  if (!is_direct_) return access_;
  const CufileWay way = static_cast<const GdsQueue&>(*queue_).way().way;
  return way == CufileWay::direct          ? "GPUDirect Storage"
         : way == CufileWay::compatibility ? "cuFile through host memory"
                                           : "cuFile";
}

TierStore::~TierStore() {
  for (Id id = 0; id < transfers_.size(); ++id) {
    try {
      wait(id);
    } catch (const InputError&) {  // a failed transfer has ended; whoever waited for it was told
      transfers_[id].state = State::done;
    }
  }
  queue_.reset();
  for (const auto& [tensor, memory] : host_) backend_.give_host(memory);
  if (staging_ != nullptr) backend_.give_host(staging_);
}

double TierStore::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

TierStore::Pool& TierStore::pool_of(const TransferRecord& record) {
  return pools_[record.tier == Tier::drive ? 1 : 0][record.inbound ? 1 : 0];
}

std::byte* TierStore::staging(const Transfer& transfer) const {
  return staging_ + staging_bytes_.count() * static_cast<std::int64_t>(transfer.slot);
}

std::byte* TierStore::host_of(std::uint32_t tensor, Bytes bytes) {
  std::byte*& memory = host_[tensor];
  if (memory == nullptr) memory = backend_.take_host(bytes);
  if (memory == nullptr) {
    host_.erase(tensor);
    throw InputError("", "", "no host memory for a tensor that is offloaded to it", "offload to drives instead");
  }
  return memory;
}

TierStore::Id TierStore::add(std::uint32_t tensor, Tier tier, bool inbound, std::byte* device, Bytes bytes) {
  SPILLWAY_ASSERT(tier != Tier::recompute && (tier == Tier::host || file_ != nullptr));
  Transfer transfer;
  transfer.record = {tensor, tier, inbound, bytes, now(), 0, 0};
  transfer.device = device;
  transfer.after = backend_.mark();
  const Id id = transfers_.size();
  if (inbound) {
    if (const auto stored = last_store_.find(tensor); stored != last_store_.end()) transfer.needs = stored->second;
  } else {
    last_store_[tensor] = id;
  }
  transfers_.push_back(transfer);
  pool_of(transfer.record).waiting.push_back(id);
  progress();
  return id;
}

TierStore::Id TierStore::store(std::uint32_t tensor, Tier tier, std::byte* device, Bytes bytes) {
  return add(tensor, tier, false, device, bytes);
}

TierStore::Id TierStore::load(std::uint32_t tensor, Tier tier, std::byte* device, Bytes bytes) {
  return add(tensor, tier, true, device, bytes);
}

void TierStore::progress() {
  take_completions();
  for (auto& tier : pools_)
    for (Pool& pool : tier) {
      for (std::size_t w = 0; w < pool.working.size();) {
        const Id id = pool.working[w];
        if (move_on(id)) {
          pool.free_slots.push_back(transfers_[id].slot);
          pool.working.erase(pool.working.begin() + static_cast<std::ptrdiff_t>(w));
        } else {
          ++w;
        }
      }
      start_waiting(pool);
    }
}

void TierStore::start_waiting(Pool& pool) {
  while (!pool.waiting.empty() && !pool.free_slots.empty()) {
    const Id id = pool.waiting.front();
    Transfer& transfer = transfers_[id];
    if (transfer.needs && !done(*transfer.needs)) return;
    pool.waiting.pop_front();
    transfer.slot = pool.free_slots.back();
    pool.free_slots.pop_back();
    pool.working.push_back(id);
    transfer.record.started_seconds = now();
    start(id, transfer);
  }
}

// Loads from drives through host memory begin with the drive; what needs no staging waits for the kernels before it;
// everything else begins with a copy.
void TierStore::start(Id id, Transfer& transfer) {
  const TransferRecord& record = transfer.record;
  const bool is_drive = record.tier == Tier::drive;
  if (is_drive && record.inbound && !is_direct_) return submit(id, transfer);
  transfer.state = State::copying;
  transfer.copied = transfer.after;
  if (is_drive && is_direct_) return;
  std::byte* host = is_drive ? staging(transfer) : host_of(record.tensor, record.bytes);
  transfer.copied = backend_.copy(record.inbound ? Backend::CopyTo::device : Backend::CopyTo::host, transfer.device,
                                  host, record.bytes, transfer.after);
}

std::span<std::byte> TierStore::drive_memory(const Transfer& transfer) const {
  if (is_direct_) return {transfer.device, static_cast<std::size_t>(transfer.record.bytes.count())};
  return {staging(transfer), static_cast<std::size_t>(aligned(transfer.record.bytes).count())};
}

void TierStore::submit(Id id, Transfer& transfer) {
  queue_->submit(transfer.record.inbound ? IoQueue::Direction::read : IoQueue::Direction::write, file_->descriptor(),
                 drive_memory(transfer), place_[transfer.record.tensor], id);
  transfer.state = State::on_drive;
}

// True when it is done.
bool TierStore::move_on(Id id) {
  Transfer& transfer = transfers_[id];
  if (transfer.state == State::copying && backend_.passed(transfer.copied)) {
    const bool goes_on = transfer.record.tier == Tier::drive && (is_direct_ || !transfer.record.inbound);
    goes_on ? submit(id, transfer) : finish(transfer);
  }
  return transfer.state == State::done;
}

void TierStore::finish(Transfer& transfer) {
  transfer.state = State::done;
  transfer.record.ended_seconds = now();
}

void TierStore::take_completions() {
  while (queue_ != nullptr && queue_->in_flight() > 0) {
    const std::optional<IoQueue::Completion> completion = queue_->poll();
    if (!completion) return;
    Transfer& transfer = transfers_[completion->tag];
    const auto expected = static_cast<std::int64_t>(drive_memory(transfer).size());
    if (completion->result != expected) {
      transfer.state = State::done;
      const std::string word = completion->result < 0 ? std::strerror(static_cast<int>(-completion->result))
                                                      : fmt::format("only {} bytes moved", completion->result);
      throw InputError(
          file_->path(), "",
          fmt::format("{} {} bytes failed: {}", transfer.record.inbound ? "reading" : "writing", expected, word),
          "check the drive and the system's log; the file is removed");
    }
    if (transfer.record.inbound && !is_direct_) {
      transfer.copied = backend_.copy(Backend::CopyTo::device, transfer.device, staging(transfer),
                                      transfer.record.bytes, transfer.after);
      transfer.state = State::copying;
    } else {
      finish(transfer);
    }
  }
}

// Looks at all transfers while it waits: one that waits for a worker begins when the one before it is seen to have
// ended.
void TierStore::wait(Id id) {
  while (!done(id)) {
    progress();
    if (!done(id)) std::this_thread::yield();
  }
  progress();  // its worker is free again
}

std::vector<TransferRecord> TierStore::records() const {
  std::vector<TransferRecord> records;
  for (const Transfer& transfer : transfers_)
    if (transfer.state == State::done) records.push_back(transfer.record);
  return records;
}

void TierStore::clear() {
  for (const Transfer& transfer : transfers_) SPILLWAY_ASSERT(transfer.state == State::done);
  for (const auto& tier : pools_)
    for (const Pool& pool : tier) SPILLWAY_ASSERT(pool.waiting.empty() && pool.working.empty());
  transfers_.clear();
  last_store_.clear();
  start_ = std::chrono::steady_clock::now();
}

}  // namespace spillway::validation
