#include "planners/recompute/layer_plans.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

using LayerKey = std::tuple<std::uint16_t, std::uint16_t, std::uint16_t>;

std::uint16_t layer_of(const Trace& trace, OpId op) { return trace.ops.layer[index_of(op)]; }

// Of an op inside an attention core: "layers.3.attention.core"; else empty.
std::string core_of(const Trace& trace, OpId op) {
  const std::string module = module_of(trace, op, 4);
  return module.ends_with(".core") ? module : "";
}

// Positions of the passes' layers among those of their rank and micro-batch: 0, 1, 2, ...
std::vector<std::size_t> places(const std::vector<LayerPass>& passes) {
  std::vector<std::size_t> place(passes.size(), 0);
  for (std::size_t p = 1; p < passes.size(); ++p)
    if (passes[p].rank == passes[p - 1].rank && passes[p].micro_batch == passes[p - 1].micro_batch)
      place[p] = place[p - 1] + 1;
  return place;
}

}  // namespace

bool is_of_one_layer(const Trace& trace, const SavedTensor& saved) {
  return saved.layer != no_index16 && layer_of(trace, saved.written_by) == saved.layer &&
         layer_of(trace, saved.last_forward) == saved.layer;
}

std::vector<LayerPass> layer_passes(const RecomputeIndex& index) {
  const Trace& trace = index.trace();
  std::map<LayerKey, LayerPass> passes;
  for (std::size_t t = 0; t < index.saved().size(); ++t) {
    const SavedTensor& saved = index.saved()[t];
    if (saved.layer == no_index16) continue;
    LayerPass& pass = passes[{saved.rank, saved.micro_batch, saved.layer}];
    const std::uint16_t made = layer_of(trace, saved.written_by);
    if (is_of_one_layer(trace, saved)) {
      pass.interior.push_back(t);
      if (pass.begins_backward == OpId::none ||
          index.position(saved.first_backward) < index.position(pass.begins_backward))
        pass.begins_backward = saved.first_backward;
    } else if (made != no_index16 && made < saved.layer) {
      pass.crossing.push_back(t);
    }
  }
  std::vector<LayerPass> result;
  for (auto& [key, pass] : passes) {
    if (pass.interior.empty()) continue;
    std::tie(pass.rank, pass.micro_batch, pass.layer) = key;
    result.push_back(std::move(pass));
  }
  if (result.empty())
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "layers",
                     "none of the tensors that the backward needs belongs to a layer",
                     "use a step with layers that doesn't recompute by itself (model.recompute none)");
  return result;
}

AwayUntil nothing_away(const RecomputeIndex& index) { return AwayUntil(index.saved().size(), OpId::none); }

AwayUntil full_recompute(const RecomputeIndex& index) { return recompute_every(index, 1); }

AwayUntil recompute_every(const RecomputeIndex& index, std::int64_t k) {
  SPILLWAY_ASSERT(k >= 1);
  AwayUntil away = nothing_away(index);
  const std::vector<LayerPass> passes = layer_passes(index);
  const std::vector<std::size_t> place = places(passes);
  for (std::size_t p = 0; p < passes.size(); ++p)
    if (place[p] % static_cast<std::size_t>(k) == 0)
      for (const std::size_t t : passes[p].interior) away[t] = passes[p].begins_backward;
  return away;
}

AwayUntil recompute_segments(const RecomputeIndex& index, std::int64_t k) {
  SPILLWAY_ASSERT(k >= 1);
  AwayUntil away = nothing_away(index);
  const std::vector<LayerPass> passes = layer_passes(index);
  const std::vector<std::size_t> place = places(passes);
  const auto length = static_cast<std::size_t>(k);
  for (std::size_t p = 0; p < passes.size(); ++p) {
    std::size_t last = p;
    while (last + 1 < passes.size() && place[last + 1] > place[last] && place[last + 1] % length != 0) ++last;
    const OpId back = passes[last].begins_backward;
    for (const std::size_t t : passes[p].interior) away[t] = back;
    if (place[p] % length == 0) continue;
    for (const std::size_t t : passes[p].crossing) {
      // A tensor from before the segment stays.
      const std::uint16_t made = layer_of(index.trace(), index.saved()[t].written_by);
      const std::size_t into = place[p] % length;
      if (made >= passes[p - into].layer && index.position(back) <= index.position(index.saved()[t].first_backward))
        away[t] = back;
    }
  }
  return away;
}

AwayUntil selective_recompute(const RecomputeIndex& index) {
  const Trace& trace = index.trace();
  AwayUntil away = nothing_away(index);
  std::map<std::string, std::size_t> kernels;  // of a core, all its passes together
  std::map<std::string, std::size_t> passes;
  std::map<std::pair<std::string, std::uint16_t>, std::vector<std::size_t>> cores;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != OpKind::kernel || trace.ops.phase[i] != Phase::forward) continue;
    const std::string core = core_of(trace, OpId(static_cast<std::uint32_t>(i)));
    if (!core.empty()) ++kernels[core];
  }
  for (std::size_t t = 0; t < index.saved().size(); ++t) {
    const SavedTensor& saved = index.saved()[t];
    const std::string core = core_of(trace, saved.written_by);
    if (core.empty() || core_of(trace, saved.last_forward) != core) continue;
    std::vector<std::size_t>& tensors = cores[{core, saved.micro_batch}];
    if (tensors.empty()) ++passes[core];
    tensors.push_back(t);
  }
  for (const auto& [key, tensors] : cores) {
    if (kernels[key.first] <= passes[key.first]) continue;
    OpId back = index.saved()[tensors.front()].first_backward;
    for (const std::size_t t : tensors)
      if (index.position(index.saved()[t].first_backward) < index.position(back))
        back = index.saved()[t].first_backward;
    for (const std::size_t t : tensors) away[t] = back;
  }
  return away;
}

}  // namespace spillway::planners
