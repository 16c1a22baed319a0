#include "planners/order/order_exact.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/splitmix64.h"
#include "base/stop.h"

namespace spillway::planners {
namespace {

struct Key {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Key&, const Key&) = default;
  Key& operator^=(const Key& other) {
    low ^= other.low;
    high ^= other.high;
    return *this;
  }
};

struct KeyHash {
  std::size_t operator()(const Key& key) const { return splitmix64(key.low ^ splitmix64(key.high)); }
};

class Search {
 public:
  Search(const OrderLinks& links, const OrderSearchOptions& options)
      : links_(links), options_(options), state_(links), keys_(links.operators()) {
    OperatorIndex place = 0;
    for (OperatorIndex op = 0; op < links.operators(); ++op) count_ += links.is_root(op) ? 0 : 1;
    for (OperatorIndex op = 0; op < links.operators(); ++op) {
      if (links.is_root(op)) continue;
      if (count_ > 128) {
        keys_[op] = {splitmix64(2 * std::uint64_t{op}), splitmix64(2 * std::uint64_t{op} + 1)};
      } else {
        (place < 64 ? keys_[op].low : keys_[op].high) = std::uint64_t{1} << (place % 64);
        ++place;
      }
    }
  }

  OrderSearchResult run() {
    OrderSearchResult result;
    start();
    while (!frames_.empty() && effort_ < options_.effort) {
      if (state_.order().size() == links_.operators()) break;
      Frame& frame = frames_.back();
      if (frame.next == frame.choices.size()) {
        frames_.pop_back();
        continue;
      }
      const OperatorIndex op = frame.choices[frame.next++];
      state_.back_to(frame.length, frame.peak);
      enter(frame.ready, frame.key, op);
    }
    result.effort = effort_;
    if (state_.order().size() == links_.operators()) {
      result.order = state_.order();
      result.peak = state_.peak();
    } else {
      result.complete = frames_.empty();
    }
    return result;
  }

 private:
  struct Frame {
    std::size_t length = 0, next = 0;
    std::int64_t peak = 0;
    Key key;
    std::vector<OperatorIndex> ready, choices;
  };

  void start() {
    std::vector<OperatorIndex> ready;
    for (OperatorIndex op = 0; op < links_.operators(); ++op)
      if (state_.ready(op) && !links_.is_root(op)) ready.push_back(op);
    settle(std::move(ready), Key{});
  }

  void enter(const std::vector<OperatorIndex>& before, Key key, OperatorIndex op) {
    std::vector<OperatorIndex> ready = before;
    step(ready, key, op);
    settle(std::move(ready), key);
  }

  void step(std::vector<OperatorIndex>& ready, Key& key, OperatorIndex op) {
    state_.run(op);
    key ^= keys_[op];
    ready.erase(std::find(ready.begin(), ready.end(), op));
    const std::size_t first = ready.size();
    for (const TensorIndex t : links_.out(op))
      for (const OperatorIndex sink : links_.sinks(t))
        if (state_.ready(sink) &&
            std::find(ready.begin() + static_cast<std::ptrdiff_t>(first), ready.end(), sink) == ready.end())
          ready.push_back(sink);
  }

  // Runs what never harms, then opens the set that leaves if it is new.
  void settle(std::vector<OperatorIndex> ready, Key key) {
    std::vector<std::pair<std::int64_t, OperatorIndex>> choices;
    for (bool again = true; again;) {
      check_stop();
      again = false;
      choices.clear();
      for (const OperatorIndex op : ready) {
        ++effort_;
        const OrderState::Cost cost = state_.cost(op);
        if (state_.live() + cost.rise >= options_.below) continue;
        if (cost.net <= 0) {
          step(ready, key, op);
          again = true;
          break;
        }
        choices.emplace_back(-options_.rank[op], op);
      }
    }
    if (!entered_.insert(key).second) return;
    std::sort(choices.begin(), choices.end());
    Frame frame{state_.order().size(), 0, state_.peak(), key, std::move(ready), {}};
    for (const auto& choice : choices) frame.choices.push_back(choice.second);
    frames_.push_back(std::move(frame));
  }

  const OrderLinks& links_;
  const OrderSearchOptions& options_;
  OrderState state_;
  std::vector<Key> keys_;
  std::size_t count_ = 0;
  std::unordered_set<Key, KeyHash> entered_;
  std::vector<Frame> frames_;
  std::int64_t effort_ = 0;
};

}  // namespace

OrderSearchResult search_order(const OrderLinks& links, const OrderSearchOptions& options) {
  return Search(links, options).run();
}

}  // namespace spillway::planners
