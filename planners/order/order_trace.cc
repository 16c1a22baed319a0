#include "planners/order/order_trace.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr OperatorIndex no_operator_yet = std::numeric_limits<OperatorIndex>::max();
constexpr std::int64_t largest_tensor = std::int64_t{1} << 61;

struct Touch {
  OperatorIndex op = 0;
  bool writes = false;
};

class Builder {
 public:
  Builder(const Trace& trace, const std::string& file) : trace_(trace), file_(file) {}

  OrderGraph build() {
    if (!trace_.has(Capability::uses) || trace_.uses.empty())
      throw InputError(file_, "", "a trace that does not say what its operators read and write",
                       "record one that does: an ExecutionTrace of PyTorch, or a Chakra trace");
    collect();
    for (std::size_t s = 0; s < touches_.size(); ++s) add_storage(s);
    return std::move(graph_);
  }

 private:
  // By storage its users in order, each once; its bytes; whether device work touches it.
  void collect() {
    std::uint32_t storages = 0;
    for (const std::uint32_t storage : trace_.tensors.storage) storages = std::max(storages, storage + 1);
    touches_.resize(storages);
    bytes_.assign(storages, 0);
    on_device_.assign(storages, false);
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      std::int64_t& bytes = bytes_[trace_.tensors.storage[t]];
      bytes = std::max(bytes, trace_.tensors.bytes[t].count());
    }
    std::vector<OperatorIndex> index(trace_.ops.size(), no_operator_yet);
    for (const Use& use : trace_.uses) {
      OperatorIndex& op = index[index_of(use.op)];
      if (op == no_operator_yet) {
        op = static_cast<OperatorIndex>(graph_.operators.size());
        graph_.operators.push_back(std::string(trace_.strings.text(trace_.ops.name[index_of(use.op)])) + " #" +
                                   std::to_string(index_of(use.op)));
        graph_.program_order.push_back(op);
      }
      const std::uint32_t storage = trace_.tensors.storage[index_of(use.tensor)];
      std::vector<Touch>& touches = touches_[storage];
      if (touches.empty() || touches.back().op != op) touches.push_back({op, false});
      touches.back().writes = touches.back().writes || use.access == Access::write;
      reads_first_.resize(std::max<std::size_t>(reads_first_.size(), storage + 1), false);
      if (touches.size() == 1 && use.access == Access::read) reads_first_[storage] = true;
      if (is_device_work(trace_.ops.kind[index_of(use.op)])) on_device_[storage] = true;
    }
  }

  void add_storage(std::size_t s) {
    const std::vector<Touch>& touches = touches_[s];
    if (touches.empty()) return;
    const std::int64_t bytes = on_device_[s] ? bytes_[s] : 0;
    if (bytes > largest_tensor - total_)
      throw InputError(file_, "", "tensors of more than 2^61 bytes in all", "look for a wrong size in the trace");
    total_ += bytes;
    if (reads_first_[s] || !touches.front().writes) {
      graph_.constant_bytes += bytes;
    } else {
      OrderTensor tensor{touches.front().op, bytes, {}};
      for (std::size_t i = 1; i < touches.size(); ++i) tensor.sinks.push_back(touches[i].op);
      graph_.tensors.push_back(std::move(tensor));
    }
    add_hazards(touches);
  }

  // Each read waits for the last write, each write for it and the reads since.
  void add_hazards(const std::vector<Touch>& touches) {
    OperatorIndex writer = no_operator_yet;
    std::vector<OperatorIndex> readers;
    for (const Touch& touch : touches) {
      if (touch.writes) {
        for (const OperatorIndex reader : readers) graph_.tensors.push_back({reader, 0, {touch.op}});
        if (readers.empty() && writer != no_operator_yet) graph_.tensors.push_back({writer, 0, {touch.op}});
        writer = touch.op;
        readers.clear();
      } else {
        if (writer != no_operator_yet) graph_.tensors.push_back({writer, 0, {touch.op}});
        readers.push_back(touch.op);
      }
    }
  }

  const Trace& trace_;
  const std::string& file_;
  OrderGraph graph_;
  std::vector<std::vector<Touch>> touches_;
  std::vector<std::int64_t> bytes_;
  std::vector<bool> on_device_, reads_first_;
  std::int64_t total_ = 0;
};

}  // namespace

OrderGraph order_graph_of(const Trace& trace, const std::string& file) { return Builder(trace, file).build(); }

}  // namespace spillway::planners
