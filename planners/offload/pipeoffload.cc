#include "planners/offload/pipeoffload.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "models/spec/parallel_layout.h"
#include "models/spec/pipeline_setup.h"
#include "planners/offload/tier_rates.h"

namespace spillway::planners {
namespace {

// Of each rank, when its passes of micro-batches through chunks begin.
class PassClock {
 public:
  PassClock(const Trace& trace, const ChunkedLayers& layers, const Result& unmoved) {
    std::map<std::uint16_t, Key> latest;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      if (trace.ops.kind[i] != OpKind::kernel || unmoved.op_start[i] == unknown_time) continue;
      if (trace.ops.micro_batch[i] == no_index16 || trace.ops.layer[i] == no_index16) continue;
      const std::uint16_t rank = trace.lanes[index_of(trace.ops.lane[i])].rank;
      const Key key{trace.ops.micro_batch[i], trace.ops.phase[i] == Phase::forward, layers.chunk[trace.ops.layer[i]]};
      const auto before = latest.find(rank);
      if (before != latest.end() && before->second == key) continue;
      latest.insert_or_assign(rank, key);
      passes_[rank].push_back({unmoved.op_start[i], OpId(static_cast<std::uint32_t>(i))});
    }
    for (auto& [rank, passes] : passes_)
      std::stable_sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) { return a.start < b.start; });
  }

  // The first op of the last pass that begins at or before `when`, but after `earliest`; of the first after `earliest`
  // where there is none; none where that isn't before `latest`.
  [[nodiscard]] OpId begun_by(std::uint16_t rank, Picos earliest, Picos when, Picos latest) const {
    const auto found = passes_.find(rank);
    if (found == passes_.end()) return OpId::none;
    const std::vector<Pass>& passes = found->second;
    const auto after = [&](Picos time) {
      return std::upper_bound(passes.begin(), passes.end(), time, [](Picos t, const Pass& p) { return t < p.start; });
    };
    auto pass = after(earliest);
    if (const auto wanted = after(when); wanted > pass) pass = wanted - 1;
    return pass == passes.end() || pass->start >= latest ? OpId::none : pass->op;
  }

 private:
  using Key = std::tuple<std::uint16_t, bool, std::int16_t>;  // micro-batch, forward, chunk
  struct Pass {
    Picos start{};
    OpId op = OpId::none;
  };
  std::map<std::uint16_t, std::vector<Pass>> passes_;  // by rank
};

// What one micro-batch leaves in one chunk that moves.
struct Batch {
  Bytes bytes{};
  Picos forward_end{}, backward_start = Picos::max();
};

std::vector<SavedTensor> saved_by(const Trace& trace, const ChunkedLayers& layers) {
  std::vector<SavedTensor> saved = saved_in_layers(trace);
  std::erase_if(saved, [&](const SavedTensor& one) { return layers.chunk[one.layer] >= layers.moved; });
  return saved;
}

std::vector<Absence> chunk_absences(const Trace& trace, const std::vector<SavedTensor>& saved,
                                    const ChunkedLayers& layers, const Result& unmoved, const TierRates& rates) {
  using Key = std::tuple<std::uint16_t, std::uint16_t, std::int16_t>;  // rank, micro-batch, chunk
  const auto key_of = [&](const SavedTensor& one) { return Key{one.rank, one.micro_batch, layers.chunk[one.layer]}; };
  std::map<Key, Batch> batches;
  for (const SavedTensor& one : saved) {
    Batch& batch = batches[key_of(one)];
    batch.bytes += one.bytes;
    batch.forward_end = std::max(batch.forward_end, unmoved.op_end[index_of(one.last_forward)]);
    batch.backward_start = std::min(batch.backward_start, unmoved.op_start[index_of(one.first_backward)]);
  }
  const PassClock clock(trace, layers, unmoved);
  std::map<Key, OpId> asked;
  for (const auto& [key, batch] : batches) {
    const double seconds = static_cast<double>(batch.bytes.count()) * (1 / rates.store + 1 / rates.load);
    asked[key] = clock.begun_by(std::get<0>(key), batch.forward_end, batch.backward_start - from_seconds(seconds),
                                batch.backward_start);
  }
  std::vector<Absence> absences;
  for (const SavedTensor& one : saved) {
    const OpId fetch = asked[key_of(one)];
    if (fetch == OpId::none) continue;
    absences.push_back({.tensor = one.tensor,
                        .tier = Tier::host,
                        .store_after = one.written_by,
                        .leave_after = one.last_forward,
                        .fetch_at = fetch,
                        .back_before = one.first_backward});
  }
  return absences;
}

}  // namespace

ChunkedLayers chunked_layers(const ModelSpec& model, const TrainingSetup& setup) {
  ChunkedLayers layers{.moved = chunks_that_move(setup)};
  if (layers.moved == 0) return layers;
  const ParallelLayout layout(setup, model, 1, plan_of(setup));
  layers.chunk.resize(static_cast<std::size_t>(model.all_layers()));
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage) {
    for (std::int64_t chunk = 0; chunk < layout.chunks(); ++chunk) {
      const LayerRange range = layout.layers(stage, chunk);
      std::fill_n(layers.chunk.begin() + range.first, range.count, static_cast<std::int16_t>(chunk));
    }
  }
  return layers;
}

OffloadOutcome run_pipeoffload(const Trace& trace, const ChunkedLayers& layers, const Replayer& replayer,
                               const OffloadSettings& settings) {
  OffloadOutcome outcome;
  const std::vector<SavedTensor> saved = saved_by(trace, layers);
  for (const SavedTensor& one : saved) outcome.moved.candidates += one.bytes;
  const Result unmoved = replayer.replay(trace, {.ideal_memory = true});
  outcome.plan = limited_plan("pipeoffload", replayer, settings);
  outcome.plan.paced_by_device = true;
  outcome.plan.absences =
      chunk_absences(trace, saved, layers, unmoved, tier_rates(replayer.hardware(), Tier::host, trace.rank_count));
  replay_with_forwarding(trace, replayer, outcome);
  ++outcome.rounds;
  outcome.moved.kept = outcome.moved.candidates - outcome.moved.stored;
  outcome.result.offload = outcome.moved;
  return outcome;
}

}  // namespace spillway::planners
