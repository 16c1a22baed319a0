#include "sim/devices/memory/request_lives.h"

#include <map>

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

std::string request_lives_csv(const std::vector<RequestLife>& lives) {
  std::string text = "id,lower,upper,size\n";
  for (const RequestLife& life : lives) {
    const std::int64_t size = (life.bytes.count() + 511) / 512 * 512;
    text += std::to_string(life.request) + "," + std::to_string(life.lower) + "," + std::to_string(life.upper) + "," +
            std::to_string(size) + "\n";
  }
  return text;
}

}  // namespace spillway::sim
