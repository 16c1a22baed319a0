#include "planners/order/order_memo.h"

#include <bit>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr std::size_t most_kept = 16;

struct Entry {
  std::uint64_t key = 0;
  std::mutex seeking;  // held by the thread that seeks the order
  std::optional<OrderOutcome> order;
};

std::mutex entries_mutex;
std::deque<std::shared_ptr<Entry>>& entries() {
  static std::deque<std::shared_ptr<Entry>> all;  // guarded by entries_mutex; the newest last
  return all;
}

std::shared_ptr<Entry> entry_of(std::uint64_t key) {
  const std::lock_guard lock(entries_mutex);
  for (const std::shared_ptr<Entry>& entry : entries())
    if (entry->key == key) return entry;
  const auto entry = std::make_shared<Entry>();
  entry->key = key;
  entries().push_back(entry);
  if (entries().size() > most_kept) entries().pop_front();
  return entry;
}

}  // namespace

std::uint64_t digest_of_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options) {
  Digest digest;
  const auto add = [&](auto value) { digest.add(static_cast<std::uint64_t>(value)); };
  add(method);
  add(options.best.effort);
  add(options.roam.node_limit);
  add(std::bit_cast<std::uint64_t>(options.roam.ratio));
  add(options.roam.segment_effort);
  add(options.roam.layout);
  add(graph.constant_bytes);
  add(graph.operators.size());
  for (const std::string& name : graph.operators) digest.add(name);
  for (const OperatorIndex op : graph.program_order) add(op);
  add(graph.tensors.size());
  for (const OrderTensor& tensor : graph.tensors) {
    add(tensor.source);
    add(tensor.size);
    add(tensor.sinks.size());
    for (const OperatorIndex sink : tensor.sinks) add(sink);
  }
  return digest.value();
}

OrderOutcome known_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options) {
  SPILLWAY_ASSERT(!options.best.progress && !options.roam.progress);
  const std::shared_ptr<Entry> entry = entry_of(digest_of_order(method, graph, options));
  const std::lock_guard lock(entry->seeking);
  if (!entry->order) entry->order = order_by(method, graph, options);
  return *entry->order;
}

}  // namespace spillway::planners
