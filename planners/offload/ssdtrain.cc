#include "planners/offload/ssdtrain.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace spillway::planners {
namespace {

constexpr std::size_t scope_parts = 3;   // "layers.3.mlp"
constexpr std::size_t module_parts = 4;  // "layers.3.mlp.up"

// One module of one micro-batch on one rank, as its ops run.
struct Module {
  OpId first_forward = OpId::none, first_backward = OpId::none;
};
using ModuleKey = std::tuple<std::uint16_t, std::uint16_t, std::string>;  // rank, micro-batch, name

std::string scope_name(const Trace& trace, std::size_t op) {
  const std::string named = module_of(trace, OpId(static_cast<std::uint32_t>(op)), scope_parts);
  return named.starts_with("layers.") ? named : "layers." + std::to_string(trace.ops.layer[op]);
}

bool is_backward(Phase phase) { return phase == Phase::backward || phase == Phase::recompute; }

// When to ask for each candidate: the op whose launch does it; none: its first use.
class Prefetcher {
 public:
  Prefetcher(const Trace& trace, std::span<const SavedTensor> candidates, const SsdtrainSettings& settings)
      : trace_(trace), candidates_(candidates), settings_(settings), module_of_(candidates.size()) {
    collect_modules();
  }

  std::vector<OpId> run() {
    std::vector<OpId> asked(candidates_.size(), OpId::none);
    if (settings_.prefetch == Prefetch::off) return asked;
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::size_t>> groups;  // rank, micro-batch: modules
    for (std::size_t m = 0; m < modules_.size(); ++m)
      groups[{std::get<0>(keys_[m]), std::get<1>(keys_[m])}].push_back(m);
    std::vector<OpId> trigger(modules_.size(), OpId::none);
    for (auto& [key, modules] : groups) set_triggers(modules, trigger);
    for (std::size_t c = 0; c < candidates_.size(); ++c) asked[c] = trigger[module_of_[c]];
    return asked;
  }

 private:
  void collect_modules() {
    std::map<ModuleKey, std::size_t> index;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const SavedTensor& saved = candidates_[c];
      std::string name = module_of(trace_, saved.first_backward, module_parts);
      if (name.empty()) name = "tensor " + std::to_string(saved.storage);  // a capture without names: one by one
      const auto [at, is_new] = index.try_emplace({saved.rank, saved.micro_batch, std::move(name)}, modules_.size());
      if (is_new) {
        modules_.emplace_back();
        keys_.push_back(at->first);
      }
      module_of_[c] = at->second;
      Module& module = modules_[at->second];
      module.first_forward = std::min(module.first_forward, saved.written_by);
      module.first_backward = std::min(module.first_backward, saved.first_backward);
    }
  }

  // Module i of the backward (0 the first to run): the first chunk is 0 .. leaves-1, which nothing asks for ahead
  // unless another micro-batch runs just before; the last module of each chunk asks for the next chunk.
  void set_triggers(std::vector<std::size_t>& modules, std::vector<OpId>& trigger) {
    std::sort(modules.begin(), modules.end(),
              [this](std::size_t a, std::size_t b) { return modules_[a].first_backward < modules_[b].first_backward; });
    const auto leaves = settings_.prefetch == Prefetch::module
                            ? std::size_t{1}
                            : static_cast<std::size_t>(std::max<std::int64_t>(1, settings_.chunk_leaves));
    for (std::size_t i = 0; i < modules.size(); ++i) {
      const std::size_t chunk = i / leaves;
      trigger[modules[i]] =
          chunk == 0 ? before_the_backward(modules.front()) : modules_[modules[chunk * leaves - 1]].first_backward;
    }
  }

  // The last op launched before a backward begins, when it is another micro-batch's: the scheduler's hint.
  [[nodiscard]] OpId before_the_backward(std::size_t module) const {
    const std::size_t first = index_of(modules_[module].first_backward);
    const std::uint16_t rank = std::get<0>(keys_[module]);
    for (std::size_t i = first; i-- > 0;) {
      if (!is_device_work(trace_.ops.kind[i]) || trace_.lanes[index_of(trace_.ops.lane[i])].rank != rank) continue;
      if (trace_.ops.micro_batch[i] == no_index16) return OpId::none;
      if (trace_.ops.micro_batch[i] == std::get<1>(keys_[module])) {
        if (trace_.ops.phase[i] == Phase::forward) return OpId::none;
        continue;  // head and loss of its own backward
      }
      return OpId(static_cast<std::uint32_t>(i));
    }
    return OpId::none;
  }

  const Trace& trace_;
  std::span<const SavedTensor> candidates_;
  const SsdtrainSettings& settings_;
  std::vector<std::size_t> module_of_;  // by candidate
  std::vector<Module> modules_;
  std::vector<ModuleKey> keys_;
};

using PassKey = std::pair<std::uint16_t, std::uint16_t>;  // rank, micro-batch

// Passes whose backward begins right after their own forward, with no other micro-batch between.
std::set<PassKey> turning_passes(const Trace& trace) {
  std::set<PassKey> turning, begun;
  std::map<std::uint16_t, std::uint16_t> latest;  // by rank: micro-batch of its last forward or backward op
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const std::uint16_t micro_batch = trace.ops.micro_batch[i];
    if (!is_device_work(trace.ops.kind[i]) || micro_batch == no_index16) continue;
    const std::uint16_t rank = trace.lanes[index_of(trace.ops.lane[i])].rank;
    const auto before = latest.find(rank);
    if (is_backward(trace.ops.phase[i]) && begun.emplace(rank, micro_batch).second && before != latest.end() &&
        before->second == micro_batch)
      turning.emplace(rank, micro_batch);
    latest[rank] = micro_batch;
  }
  return turning;
}

class ScopeBuilder {
 public:
  ScopeBuilder(const Trace& trace, std::span<const SavedTensor> candidates) : trace_(trace), candidates_(candidates) {
    for (const SavedTensor& saved : candidates) writers_.insert(saved.written_by);
  }

  void add_to_layer(std::size_t op, Picos time) {
    if (trace_.ops.layer[op] != no_index16) scope(op, scope_name(trace_, op)).time += time;
  }
  // Cut before each op that makes a candidate.
  void add_to_pass(std::size_t op, Picos time) {
    const auto id = OpId(static_cast<std::uint32_t>(op));
    std::string& current = part_[{rank_of(op), trace_.ops.micro_batch[op]}];
    if (current.empty() || writers_.contains(id)) current = "part from op " + std::to_string(op);
    scope(op, current).time += time;
    if (writers_.contains(id)) made_in_.emplace(id, current);
  }

  // Each candidate in the scope that saves it, else in the one that made it.
  std::vector<OffloadScope> finish() {
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const SavedTensor& saved = candidates_[c];
      const auto made = made_in_.find(saved.written_by);
      const auto find = [&](const std::string& name) { return index_.find({saved.rank, saved.micro_batch, name}); };
      auto at = find(made != made_in_.end() ? made->second : scope_name(trace_, index_of(saved.first_backward)));
      if (at == index_.end()) at = find(scope_name(trace_, index_of(saved.written_by)));
      if (at == index_.end()) continue;
      scopes_[at->second].bytes += saved.bytes;
      scopes_[at->second].tensors.push_back(c);
    }
    return std::move(scopes_);
  }

 private:
  [[nodiscard]] std::uint16_t rank_of(std::size_t op) const { return trace_.lanes[index_of(trace_.ops.lane[op])].rank; }

  OffloadScope& scope(std::size_t op, const std::string& name) {
    const auto [at, is_new] = index_.try_emplace({rank_of(op), trace_.ops.micro_batch[op], name}, scopes_.size());
    if (is_new) {
      OffloadScope& made = scopes_.emplace_back();
      made.name = name;
      made.rank = rank_of(op);
      made.micro_batch = trace_.ops.micro_batch[op];
      made.layer = trace_.ops.layer[op];
    }
    return scopes_[at->second];
  }

  const Trace& trace_;
  std::span<const SavedTensor> candidates_;
  std::set<OpId> writers_;
  std::map<ModuleKey, std::size_t> index_;
  std::map<PassKey, std::string> part_;  // the scope a pass is in
  std::map<OpId, std::string> made_in_;  // by writer
  std::vector<OffloadScope> scopes_;
};

}  // namespace

std::string_view to_string(Prefetch prefetch) {
  switch (prefetch) {
    case Prefetch::chunked:
      return "chunked";
    case Prefetch::module:
      return "module";
    case Prefetch::off:
      return "off";
  }
  return "chunked";
}

std::vector<SavedTensor> saved_in_layers(const Trace& trace) {
  std::vector<SavedTensor> saved = saved_tensors(trace);
  if (names_layers(trace)) std::erase_if(saved, [](const SavedTensor& one) { return one.layer == no_index16; });
  return saved;
}

bool is_large_enough(const SavedTensor& saved, std::int64_t least_elements) {
  return (saved.elements > 0 ? saved.elements : saved.bytes.count() / 2) >= least_elements;
}

std::vector<SavedTensor> offload_candidates(const Trace& trace, const SsdtrainSettings& settings) {
  std::vector<SavedTensor> candidates = saved_in_layers(trace);
  std::erase_if(candidates, [&](const SavedTensor& saved) { return !is_large_enough(saved, settings.least_elements); });
  return candidates;
}

std::vector<OffloadScope> offload_scopes(const Trace& trace, std::span<const SavedTensor> candidates,
                                         std::span<const Picos> op_start, std::span<const Picos> op_end) {
  const bool layered = names_layers(trace);
  ScopeBuilder builder(trace, candidates);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.phase[i] != Phase::forward || !is_device_work(trace.ops.kind[i]) || op_start[i] == unknown_time)
      continue;
    if (layered)
      builder.add_to_layer(i, op_end[i] - op_start[i]);
    else
      builder.add_to_pass(i, op_end[i] - op_start[i]);
  }
  return builder.finish();
}

void keep_adaptively(std::vector<OffloadScope>& scopes, std::span<const double> bytes_per_second) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<OffloadScope*>> walks;
  for (OffloadScope& scope : scopes) walks[{scope.rank, scope.micro_batch}].push_back(&scope);
  for (auto& [key, walk] : walks) {
    double forward = 0, time = 0, bytes = 0;
    for (const OffloadScope* scope : walk) forward += to_seconds(scope->time);
    bool kept = false;
    for (OffloadScope* scope : walk) {
      const double left = 3 * forward - 2 * time;
      const auto own = static_cast<double>(scope->bytes.count());
      scope->need_bytes_per_second = left > 0 ? (bytes + 2 * own) / left : 0;
      kept = kept || scope->need_bytes_per_second > bytes_per_second[scope->rank];
      scope->kept = scope->kept || kept;
      time += to_seconds(scope->time);
      bytes += own;
    }
  }
}

std::vector<Absence> ssdtrain_absences(const Trace& trace, std::span<const SavedTensor> candidates,
                                       std::span<const OffloadScope> scopes, const SsdtrainSettings& settings,
                                       Tier tier) {
  std::vector<bool> kept(candidates.size(), false);
  std::map<PassKey, const OffloadScope*> last;
  for (const OffloadScope& scope : scopes) {
    last[{scope.rank, scope.micro_batch}] = &scope;
    if (scope.kept)
      for (const std::size_t c : scope.tensors) kept[c] = true;
  }
  const std::set<PassKey> turning = settings.keep_last ? turning_passes(trace) : std::set<PassKey>();
  for (const auto& [key, scope] : last)
    if (turning.contains(key))
      for (const std::size_t c : scope->tensors) kept[c] = true;
  const std::vector<OpId> asked = Prefetcher(trace, candidates, settings).run();
  std::vector<Absence> absences;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (kept[c]) continue;
    const SavedTensor& saved = candidates[c];
    Absence absence{saved.tensor, tier, saved.written_by, saved.last_forward, asked[c], saved.first_backward, false};
    if (absence.fetch_at != OpId::none &&
        (absence.fetch_at <= absence.leave_after || absence.fetch_at > absence.back_before))
      absence.fetch_at = OpId::none;
    absences.push_back(absence);
  }
  return absences;
}

}  // namespace spillway::planners
