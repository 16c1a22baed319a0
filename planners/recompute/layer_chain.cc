#include "planners/recompute/layer_chain.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace spillway::planners {
namespace {

using PassKey = std::tuple<std::uint16_t, std::uint16_t, std::uint16_t>;  // rank, micro-batch, layer

struct Span {
  std::size_t first = ~std::size_t{0}, last = 0;
  Picos time{};
  void add(std::size_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

struct PassSpans {
  Span forward, backward;
};

std::uint16_t rank_of(const Trace& trace, OpId op) { return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank; }

// Times add up over kernels and collectives; spans are of positions.
std::map<PassKey, PassSpans> pass_spans(const RecomputeIndex& index) {
  const Trace& trace = index.trace();
  std::map<PassKey, PassSpans> spans;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (!is_device_work(trace.ops.kind[i]) || trace.ops.layer[i] == no_index16) continue;
    const Phase phase = trace.ops.phase[i];
    if (phase != Phase::forward && phase != Phase::backward) continue;
    const auto op = OpId(static_cast<std::uint32_t>(i));
    PassSpans& pass = spans[{rank_of(trace, op), trace.ops.micro_batch[i], trace.ops.layer[i]}];
    Span& span = phase == Phase::forward ? pass.forward : pass.backward;
    span.add(index.position(op));
    if (trace.ops.duration[i] != unknown_time) span.time += trace.ops.duration[i];
  }
  return spans;
}

// Bytes held after each position by all but the given storages.
std::vector<Bytes> held_by_others(const Trace& trace, std::uint16_t rank, const std::set<std::uint32_t>& storages) {
  std::vector<Bytes> most(trace.ops.size() + 1, Bytes(-1));
  Bytes held{};
  std::size_t column = 0, filled = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.anchor != OpId::none) column = std::max(column, index_of(event.anchor));
    for (; filled < column; ++filled) most[filled + 1] = std::max(most[filled + 1], held);
    if (event.device < 0 || (event.stream != LaneId::none && trace.lanes[index_of(event.stream)].rank != rank))
      continue;
    if (event.tensor != TensorId::none && storages.contains(trace.tensors.storage[index_of(event.tensor)])) continue;
    if (event.action == MemoryAction::allocate) held += event.bytes;
    if (event.action == MemoryAction::free_requested) held -= event.bytes;
    most[column] = std::max(most[column], held);
  }
  for (; filled < trace.ops.size(); ++filled) most[filled + 1] = std::max(most[filled + 1], held);
  return most;
}

// So that a solution takes some 10^8 operations, whatever the chain's length.
std::int64_t slots_for(std::size_t stages) {
  const auto n = static_cast<std::int64_t>(std::min<std::size_t>(stages, 1'000));
  return std::clamp<std::int64_t>(400'000'000 / (n * n * n), 128, 4096);
}

Bytes most_in(const std::vector<Bytes>& held, const Span& span) {
  Bytes most{};
  for (std::size_t at = span.first; at <= span.last && at < held.size(); ++at) most = std::max(most, held[at]);
  return most;
}

}  // namespace

LayerChain::LayerChain(RecomputeIndex& index, Bytes least) : index_(index), passes_(layer_passes(index)) {
  FrontierCache frontiers(index, least);
  for (const LayerPass& pass : passes_) {
    std::vector<std::uint16_t>& layers = ranks_[pass.rank].layers;
    if (std::find(layers.begin(), layers.end(), pass.layer) == layers.end()) layers.push_back(pass.layer);
  }
  for (auto& [number, rank] : ranks_) {
    std::sort(rank.layers.begin(), rank.layers.end());
    rank.stages.resize(rank.layers.size() + 1);
    rank.stages.back().options.emplace_back();
    rank.frontiers.resize(rank.layers.size());
  }
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> lists;
  for (const LayerPass& pass : passes_) {
    Rank& rank = ranks_.at(pass.rank);
    const auto stage = static_cast<std::size_t>(std::lower_bound(rank.layers.begin(), rank.layers.end(), pass.layer) -
                                                rank.layers.begin());
    const auto list = lists.emplace(std::pair(pass.rank, pass.micro_batch), rank.passes.size());
    if (list.second) rank.passes.emplace_back(rank.layers.size(), nullptr);
    rank.passes[list.first->second][stage] = &pass;
    if (rank.frontiers[stage].empty()) rank.frontiers[stage] = frontiers.of(pass);
    ChainStage& to = rank.stages[stage];
    Bytes interior{}, input{};
    for (const std::size_t t : pass.interior) interior += index.saved()[t].bytes;
    for (const std::size_t t : inputs(rank, pass, stage)) input += index.saved()[t].bytes;
    to.interior = std::max(to.interior, interior);
    to.input = std::max(to.input, input);
  }
  add_times();
  add_memory();
}

std::vector<std::size_t> LayerChain::inputs(const Rank& rank, const LayerPass& pass, std::size_t stage) const {
  std::vector<std::size_t> result;
  if (stage == 0) return result;
  for (const std::size_t t : pass.crossing)
    if (index_.trace().ops.layer[index_of(index_.saved()[t].written_by)] == rank.layers[stage - 1]) result.push_back(t);
  return result;
}

void LayerChain::add_times() {
  const std::map<PassKey, PassSpans> spans = pass_spans(index_);
  for (auto& [number, rank] : ranks_)
    for (std::size_t s = 0; s < rank.layers.size(); ++s) {
      ChainStage& stage = rank.stages[s];
      for (const auto& passes : rank.passes) {
        if (passes[s] == nullptr) continue;
        const auto found = spans.find({number, passes[s]->micro_batch, passes[s]->layer});
        if (found == spans.end()) continue;
        stage.forward = std::max(stage.forward, found->second.forward.time);
        stage.backward = std::max(stage.backward, found->second.backward.time);
      }
      ChainOption option{stage.interior, Picos(0)};
      stage.options.push_back(option);
      for (const FrontierStep& step : rank.frontiers[s]) {
        option.saved = std::max(Bytes(0), option.saved - step.bytes);
        option.again += step.time;
        stage.options.push_back(option);
      }
    }
}

std::set<std::uint32_t> LayerChain::own_storages(const Rank& rank) const {
  std::set<std::uint32_t> storages;
  for (const auto& passes : rank.passes)
    for (std::size_t s = 0; s < passes.size(); ++s) {
      if (passes[s] == nullptr) continue;
      for (const std::size_t t : passes[s]->interior) storages.insert(index_.saved()[t].storage);
      for (const std::size_t t : inputs(rank, *passes[s], s)) storages.insert(index_.saved()[t].storage);
    }
  return storages;
}

void LayerChain::add_memory() {
  const std::map<PassKey, PassSpans> spans = pass_spans(index_);
  for (auto& [number, rank] : ranks_) {
    for (const Bytes bytes : held_by_others(index_.trace(), number, {}))
      rank.everything = std::max(rank.everything, bytes);
    const std::vector<Bytes> others = held_by_others(index_.trace(), number, own_storages(rank));
    for (const auto& passes : rank.passes) {
      Span head;  // between the last layer's forward and its backward
      for (std::size_t s = 0; s < passes.size(); ++s) {
        if (passes[s] == nullptr) continue;
        const auto found = spans.find({number, passes[s]->micro_batch, passes[s]->layer});
        if (found == spans.end() || found->second.backward.time == Picos(0)) continue;
        const PassSpans& pass = found->second;
        add_needs(others, *passes[s], pass.forward.first, pass.forward.last, rank.stages[s]);
        rank.stages[s].backward_need = std::max(rank.stages[s].backward_need, most_in(others, pass.backward));
        rank.stages[s].backward_base = std::max(rank.stages[s].backward_base, others[pass.backward.first]);
        head.first = pass.forward.last;
        head.last = pass.backward.first;
      }
      ChainStage& last = rank.stages.back();
      last.backward_need = std::max(last.backward_need, most_in(others, head));
    }
    for (const ChainStage& stage : rank.stages)
      rank.least = std::max({rank.least, stage.backward_need, stage.first_need});
  }
}

// Of a pass whose forward stands at first..last.
void LayerChain::add_needs(const std::vector<Bytes>& others, const LayerPass& pass, std::size_t first, std::size_t last,
                           ChainStage& stage) const {
  std::vector<Bytes> passing(others.begin() + static_cast<std::ptrdiff_t>(first),
                             others.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  const Bytes most = *std::max_element(passing.begin(), passing.end());
  for (const std::size_t t : pass.interior) {
    const SavedTensor& saved = index_.saved()[t];
    const std::size_t until = std::min(last, index_.position(saved.last_forward));
    for (std::size_t at = std::max(first, index_.position(saved.written_by)); at <= until; ++at)
      passing[at - first] += saved.bytes;
  }
  const Bytes most_passing = *std::max_element(passing.begin(), passing.end());
  stage.first_need = std::max(stage.first_need, most);
  stage.first_pass_need = std::max(stage.first_pass_need, most_passing);
  stage.again_need = std::max(stage.again_need, most - others[first]);
  stage.again_pass_need = std::max(stage.again_pass_need, most_passing - others[first]);
}

AwayUntil LayerChain::away(std::span<const double> part, std::int64_t slots) const {
  AwayUntil away = nothing_away(index_);
  for (const auto& [number, rank] : ranks_) {
    const double room = static_cast<double>((rank.everything - rank.least).count());
    const Bytes limit = rank.least + Bytes(static_cast<std::int64_t>(part[number] * std::max(0.0, room)));
    if (const std::optional<ChainPlan> plan =
            solve_chain(rank.stages, limit, slots > 0 ? slots : slots_for(rank.stages.size()))) {
      place(rank, *plan, away);
      continue;
    }
    for (const auto& passes : rank.passes)
      for (const LayerPass* pass : passes)
        if (pass != nullptr)
          for (const std::size_t t : pass->interior) away[t] = pass->begins_backward;
  }
  return away;
}

void LayerChain::place(const Rank& rank, const ChainPlan& plan, AwayUntil& away) const {
  for (const auto& passes : rank.passes) {
    const auto when = [&passes](std::size_t from) {
      return from == ChainPlan::kept || passes[from] == nullptr ? OpId::none : passes[from]->begins_backward;
    };
    for (std::size_t s = 0; s < passes.size(); ++s) {
      if (passes[s] == nullptr) continue;
      for (const std::size_t t : passes[s]->interior) away[t] = when(plan.interior_from[s]);
      for (std::size_t step = 0; step < plan.option[s]; ++step)
        for (const std::size_t place : rank.frontiers[s][step].tensors)
          if (place < passes[s]->interior.size())  // a pass that saves less than the first
            away[passes[s]->interior[place]] = passes[s]->begins_backward;
      for (const std::size_t t : inputs(rank, *passes[s], s)) away[t] = when(plan.input_from[s]);
    }
  }
}

}  // namespace spillway::planners
