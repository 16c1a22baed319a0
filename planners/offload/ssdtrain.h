// SSDTrain: activations to SSD while the step computes (arXiv 2408.10013, sections III and IV; runtime
// K-Wu/FlashTrain).
//
// Candidates. All that the forward saves for the backward, each storage once (tensor deduplication). Excluded: storages
// smaller than `least_elements`, and those saved outside the layers (loss, head, embeddings: the runtime's ignored
// modules). Weights and their transposes are never saved tensors here. Kept. The last module of a forward with its own
// backward next (`keep_last`), and, adaptively, a suffix of the forward. The rule walks the scopes of one micro-batch
// in post-order (attention, feed-forward, layer). The first scope n with
//   (sum of v_p over scopes p before n + 2 v_n) / (3 T_f - 2 sum of t_p)  >  B
// and everything after it stays; v is the bytes a scope saves, t its forward time, T_f the whole forward's, and B the
// rank's measured rate of offloading. Prefetch. With `chunked`, modules in backward order are cut into chunks of
// `chunk_leaves`. The next chunk is asked for when the last module of a chunk begins its backward. With `module`, each
// module asks for the next one; with `off`, at first use.
//
// Deviations. Scopes come from the names of tensors ("layers.3.attention...", "layers.3.mlp..."); a layer without such
// names is one scope. If a trace names no layers (captures), a pass is cut before each op that makes a candidate, so
// that each scope saves one. The runtime hands a tensor over when a module packs it; here it is handed over when its
// writer has been launched. `in_flight` is ours: see docs/internals/offload.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/offload_plan.h"
#include "sim/replay/result.h"
#include "traces/saved_tensors.h"

namespace spillway::planners {

inline constexpr std::string_view ssdtrain_word = "ssdtrain";

enum class Prefetch : std::uint8_t { chunked, module, off };
std::string_view to_string(Prefetch prefetch);

struct SsdtrainSettings {
  std::int64_t least_elements = std::int64_t{8} * 1024 * 1024;
  Prefetch prefetch = Prefetch::chunked;
  std::int64_t chunk_leaves = 2;
  bool adaptive = true;
  bool keep_last = true;
};

// A part of one micro-batch's forward, in post-order.
struct OffloadScope {
  std::string name;  // "layers.3.mlp"
  std::uint16_t rank = 0, micro_batch = no_index16, layer = no_index16;
  Bytes bytes{};  // of its candidates
  Picos time{};   // of its forward ops, without those of scopes inside it
  double need_bytes_per_second = 0;
  bool kept = false;
  std::vector<std::size_t> tensors;  // into the candidates
};

// The saved tensors of the modules that offload: those of layers, or, where the trace names no layers, all.
std::vector<SavedTensor> saved_in_layers(const Trace& trace);
// Large enough. Without a type, two bytes an element are taken: what training mostly keeps.
bool is_large_enough(const SavedTensor& saved, std::int64_t least_elements);
// Both, in the order of saved_tensors().
std::vector<SavedTensor> offload_candidates(const Trace& trace, const SsdtrainSettings& settings);

// The scopes of every rank and micro-batch, in the order of their forwards. op_start, op_end: of a replay of `trace`.
std::vector<OffloadScope> offload_scopes(const Trace& trace, std::span<const SavedTensor> candidates,
                                         std::span<const Picos> op_start, std::span<const Picos> op_end);

// Marks what the adaptive rule keeps at its rank's rate, in each rank's and micro-batch's own walk. Precondition: a
// rate for each rank.
void keep_adaptively(std::vector<OffloadScope>& scopes, std::span<const double> bytes_per_second);

// `tier`: host or drive. In the order of the candidates that leave. O((candidates + ops) log).
std::vector<Absence> ssdtrain_absences(const Trace& trace, std::span<const SavedTensor> candidates,
                                       std::span<const OffloadScope> scopes, const SsdtrainSettings& settings,
                                       Tier tier);

}  // namespace spillway::planners
