#include "sim/devices/memory/request_lives.h"

#include <map>

#include "sim/devices/memory/recorded_state.h"

namespace spillway::sim {

std::vector<RequestLife> request_lives(const Trace& trace, std::int16_t device) {
  std::vector<RequestLife> lives;
  std::map<Addr, std::size_t> live;
  std::int64_t now = 0;
  const auto end = [&](Addr address) {
    const auto found = live.find(address);
    if (found == live.end()) return;
    lives[found->second].upper = now;
    live.erase(found);
  };
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device) continue;
    if (event.action == MemoryAction::allocate && event.bytes > Bytes::zero()) {
      end(event.address);
      live[event.address] = lives.size();
      lives.push_back({lives.size(), now, -1, event.bytes});
    } else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      end(event.address);
    }
    ++now;
  }
  for (RequestLife& life : lives) {
    if (life.upper < 0) life.upper = now;
  }
  return lives;
}

std::vector<RequestLife> lives_before(const Trace& trace, std::int16_t device) {
  std::vector<RequestLife> lives;
  std::map<Addr, std::size_t> live;
  for (const BlockBefore& block : blocks_before(trace, device)) {
    if (!block.is_pending) live[block.address] = lives.size();
    lives.push_back({lives.size(), -1, block.is_pending ? 0 : -1, block.bytes});
  }
  std::int64_t now = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device) continue;
    const bool is_request = event.action == MemoryAction::allocate && event.bytes > Bytes::zero();
    if (is_request || event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      const auto found = live.find(event.address);
      if (found != live.end()) lives[found->second].upper = now;
      if (found != live.end()) live.erase(found);
    }
    ++now;
  }
  for (const auto& [address, number] : live) lives[number].upper = now;
  return lives;
}

std::string request_lives_csv(const std::vector<RequestLife>& lives, const std::vector<RequestLife>& before) {
  std::string text = "id,lower,upper,size\n";
  const std::int64_t shift = before.empty() ? 0 : 1;
  const auto add = [&](const std::string& id, const RequestLife& life) {
    const std::int64_t size = (life.bytes.count() + 511) / 512 * 512;
    text += id + "," + std::to_string(life.lower + shift) + "," + std::to_string(life.upper + shift) + "," +
            std::to_string(size) + "\n";
  };
  for (const RequestLife& life : before) add("before-" + std::to_string(life.request), life);
  for (const RequestLife& life : lives) add(std::to_string(life.request), life);
  return text;
}

}  // namespace spillway::sim
