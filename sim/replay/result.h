// Result: what a replay found. Everything the faces show, with times in picoseconds and sizes in bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/replay/relative_speed.h"
#include "sim/replay/verdict.h"
#include "traces/step_fold.h"
#include "traces/trace.h"

namespace spillway::sim {

// One training step as replayed: from its first launch to the end of the last work launched in it.
struct StepResult {
  std::string name;
  Picos begin{}, end{};
  Picos recorded_span = unknown_time;  // the same interval in the capture, where it has times
  Picos device_busy{};                 // sum of its device work
  [[nodiscard]] Picos span() const { return end - begin; }
};

// Parts of the step's time: the chain of waits that ends with the last work, walked back to the start.
enum class Binding : std::uint8_t {
  compute,         // kernels bound by arithmetic
  hbm,             // kernels and copies bound by device memory
  pcie,            // copies between host and device
  network,         // collectives
  storage,         // reads and writes of drives
  host,            // host calls and the pauses between them
  launch_latency,  // launch to start, pauses between queued kernels, waking from a sync
  idle,            // waiting for a release time: nothing in the trace explains it
};
constexpr int binding_count = static_cast<int>(Binding::idle) + 1;
std::string_view to_string(Binding binding);
// "PCIe copies between host and GPU", for people.
std::string_view describe(Binding binding);
// The same for a narrow cell.
std::string_view describe_shortly(Binding binding);

// Time of a capture that nothing in it explains and that the replay keeps as it was. It is before a GPU operation, or
// in a host call that waited for GPU work nobody recorded. One row for all of one name.
struct KeptIdle {
  std::string name;      // "unexplained gap before ampere_sgemm_64x64"
  bool in_call = false;  // a host call's; else before work of the GPU
  std::uint64_t count = 0;
  Picos total{}, longest{};
  Picos on_path{};  // of the critical path: what no what-if of other things can change
};

// How the replay of a capture on its own timings compares with what was recorded.
struct Fidelity {
  Picos recorded{}, replayed{};  // spans of its steps, summed
  double error = 0;              // of the step that is most off: replayed / recorded - 1
  Picos unexplained{};           // KeptIdle::on_path of that replay, summed
  double unexplained_share = 0;  // of its replayed time
  std::string cause;             // what is missing in the capture; empty: nothing known
  Picos unprofiled{};            // the step without a profiler, the median of those measured; 0: none were
  double unprofiled_error = 0;   // of that replay's step against it
  Picos without_profiler{};      // what the step takes without the profiler, estimated; 0: nothing speaks for less
};

// A piece of that chain: an op, or the wait before it.
struct PathStep {
  OpId op = OpId::none;  // that ran, or was held up
  Picos begin{}, end{};
  Binding binding = Binding::idle;
  bool waits = false;
};

struct LinkResult {
  std::string name;
  Bytes bytes{};
  Rate capacity{};
  double busy_fraction = 0;  // bytes / (capacity x replayed time)
};

// Life of a drive set under the replayed writes, repeated without end; infinity when nothing is written.
struct DriveLife {
  double years = 0, low_years = 0, high_years = 0;
  std::string basis;  // what the endurance rests on
  std::vector<std::string> assumptions;
};

// GPUs that share a drive set and do as one rank does.
struct DriveSharer {
  std::uint16_t rank = 0;
  std::int64_t gpus = 1;
  Bytes written{}, read{};  // by each of them
};

// A drive set's load in the replayed time: the sum over the GPUs of its machine that share it, of stages that write
// different amounts (RankPlaces).
struct DriveTraffic {
  std::string name;  // "ranks 0-3 scratch"
  std::string set;   // drive group of the hardware profile
  std::int64_t drives = 1;
  Bytes written{}, read{};  // by all sharers together
  std::int64_t gpus = 1;    // of all sharers
  std::vector<DriveSharer> sharers;
  bool cache_was_full = false;    // some of it at the drives' steady rate
  Bytes held{};                   // most on the set at once, of all who share it
  std::optional<Bytes> room;      // of the set for that; none: unknown
  std::string model;              // drive profile; empty: unknown
  std::optional<DriveLife> life;  // not rated: none
};

// Traffic of an offload technique in the replayed time, of one rank of each kind.
struct OffloadResult {
  std::string technique;
  Bytes candidates{};  // what it might have moved
  Bytes stored{}, loaded{};
  Bytes forwarded{};                  // stored, but asked for back before that had ended: never left
  Bytes kept{};                       // candidates that stayed
  Bytes recomputed{};                 // given back, and recomputed
  double store_bytes_per_second = 0;  // of the slowest rank, while it stores, all offloaded
  Bytes in_flight{};                  // most that unfinished stores of a rank may hold; 0: no limit
  Bytes plain_peak{};                 // allocated at the peak of the step that moves nothing; 0: not asked
  bool settled = true;                // another replay would take no decision back
};

struct MemoryPoint {
  Picos time{};
  Bytes allocated{};
  Bytes reserved{};
};

// Who holds the memory when allocation peaks.
struct PeakOwner {
  std::string name;  // role, layer or tensor; "before the capture" for what was there already
  Bytes bytes{};
  bool known = true;  // its owner is known
};

struct MemoryResult {
  bool known = false;    // the trace has memory events
  bool on_host = false;  // a CPU-only capture: host memory, without a limit
  std::string allocator;
  // The phase that needs most, where a step has several: peaks and owners are its. The curve is the training's. Empty:
  // the training, or there is one.
  std::string phase;
  Bytes peak_allocated{}, peak_reserved{};
  Bytes capacity{};  // of the device minus what the driver takes; 0 unknown
  Bytes limit{};     // what the allocator was held to: the capacity less what is kept free of it; 0 none
  Picos peak_time{};
  bool out_of_memory = false;
  // Fits because the allocator gives cached segments back at the limit: peaks and curve are of the run that does.
  bool gives_back = false;
  std::string explanation;  // what was asked, what was held, what would have had to give
  std::uint64_t segments_allocated = 0;
  Picos driver_time{};        // the host's in the allocator's calls of the driver, within the replayed time
  Picos first_driver_time{};  // the same of a first step, when nothing is cached; not in the replayed time
  bool is_tight = false;      // fits, with the margin of the reserve used up
  std::string doubt;          // memory_doubt() of the trace, and what of its events no allocator can be asked for
  // Least additional device memory with which it fits (least_capacity()); 0: it fits, or nobody searched.
  Bytes short_of{};
  std::vector<MemoryPoint> timeline;
  std::vector<PeakOwner> owners;                            // by role, else phase; largest first
  std::vector<PeakOwner> owners_by_layer, owners_by_phase;  // the same bytes; empty where nothing is known of either
  PeakOwner largest;         // of these the one tensor that is no state or gradient; 0 bytes: not known
  std::int16_t device = -1;  // device with this memory; -1: the host
  [[nodiscard]] Verdict verdict() const;
  // Bytes it reserves without a limit beyond the limit; 0 if it fits. For planners that compare failures. The missing
  // bytes are short_of: allocators reserve less under a limit.
  [[nodiscard]] Bytes excess() const { return out_of_memory ? peak_reserved - limit : Bytes(0); }
};

// Kept free of a device's memory for what the step's allocator does not see. A step "fits" where it runs within the
// capacity less all of it; it is "tight" where it runs only within the capacity less what is taken, without the margin.
struct ReservePart {
  std::string name;  // "NCCL, 2 communicators (tp, dp)"
  Bytes bytes{};
  bool is_margin = false;    // may be given up
  bool in_capacity = false;  // taken off MemoryResult::capacity already; not counted again
  std::string provenance, source;
};
struct Reserve {
  std::vector<ReservePart> parts;
  Bytes taken{}, margin{};  // sums of the parts that are not in_capacity
  [[nodiscard]] Bytes bytes() const { return taken + margin; }
};

// Host memory of one machine that the step holds for its GPUs (host_memory.h).
struct HostMemoryResult {
  bool known = false;  // the step moves something there
  Bytes peak{}, capacity{};
  [[nodiscard]] Verdict verdict() const { return known ? verdict_of(peak, capacity) : Verdict::fits; }
};

// One simulated rank of a trace of several.
struct RankResult {
  std::string name;  // "stage 3"
  // Fraction of the replayed time in which nothing keeps its GPU busy (gpu_busy.h); none: no work of a GPU is known.
  std::optional<double> bubble;
  Picos compute_busy{};  // its kernels, without collectives
  Bytes peak_allocated{}, peak_reserved{};
  Verdict verdict = Verdict::unknown;
};

// Power of one GPU, the mean over those replayed, as a generated step's kernels draw it.
struct PowerResult {
  double clock_share = 1;  // lowest settled clock of a GPU, share of the highest
  double watts = 0;        // over the step
  double limit_watts = 0;
  double joules = 0;  // a step
};

// An evaluation of a generated step's model between training steps; no part of any step time.
struct EvaluationResult {
  Picos time{};                                  // of one, all its batches
  std::int64_t every_steps = 0, batches = 0;     // of training; of a replica
  std::int64_t simulated_batches = 0;            // the time of the others is that of one more
  std::int64_t tokens = 0;                       // of all replicas
  double time_share = 0, tokens_per_second = 0;  // of `every_steps` steps and one evaluation; trained over them
  Bytes peak{};                                  // allocated beside what the model keeps, on the rank with most
};

// A phase of a step of reinforcement: answers, the reference's log-probabilities, training. They follow each other, and
// each must fit.
struct PhaseResult {
  std::string name;
  Picos time{};
  Bytes peak{};                   // of one GPU, all that is there then
  Bytes allocated{}, reserved{};  // of that, what is not in the reserve
  Verdict verdict = Verdict::unknown;
  Bytes short_of{};      // 0: it fits, or is unknown
  std::string basis;     // what time and peak rest on
  bool on_host = false;  // peak is a machine's host memory
};

// Expected range of a predicted figure's measured value, in 80 % of steps like it.
struct FigureRange {
  bool known = false;
  double low = 1, high = 1;  // measured over predicted; low <= 1 <= high
  std::string basis;         // what it rests on; of an unknown one, why it is
};

struct InputProvenance {
  std::string name, value, provenance, source;
};

// Requests to the allocators of a folded step under a plan, in the order of its replay, and how often.
struct FoldedMemory {
  StepFold fold;
  std::vector<MemoryEvent> events;
};

struct Result {
  std::optional<FoldRefusal> refusal;  // of a folded step that can't be told; then nothing else is known
  std::string title;
  // A machine named by a few letters: their meaning, and the open points (HardwareProfile::assumed).
  std::string machine;
  std::vector<std::string> machine_assumed;
  Picos step_time{};
  FigureRange step_time_range, peak_range;  // peak_range: of peak_reserved and peak_allocated
  std::vector<StepResult> steps;
  std::array<Picos, binding_count> breakdown{};  // sums to the replayed time
  std::vector<PathStep> path;                    // what they are the sums of: end to begin, from time 0 to the last end
  Binding binding = Binding::idle;
  Picos replayed{};              // from time 0 to the last end
  std::optional<double> bubble;  // mean over the ranks where it is known
  double tokens_per_second = 0;  // 0 unknown
  double mfu = 0;                // model flops / (step time x peak); 0 unknown
  std::string mfu_basis;
  std::optional<EvaluationResult> evaluation;
  // Empty without an inference engine. step_time is their sum, the verdict the worst, memory that of the fullest; all
  // else is the training's.
  std::vector<PhaseResult> phases;
  // Loading and saving whole weights between steps (scenario/load_and_save.h): without times, and part of the verdict.
  std::vector<PhaseResult> between_steps;
  std::optional<PowerResult> power;  // absent: the trace does not say
  MemoryResult memory;               // of the rank and phase that need most
  Reserve reserve;                   // of each device
  HostMemoryResult host_memory;
  std::vector<RankResult> ranks;  // empty for a trace of one
  std::vector<LinkResult> links;
  std::vector<DriveTraffic> drives;  // those of transfers
  std::vector<KeptIdle> kept_idle;   // of captures; most on the critical path first
  std::optional<Fidelity> fidelity;  // of a capture with recorded times
  std::string drives_refuse;         // why the drives can't do what the step asks of them; empty: they can
  std::optional<OffloadResult> offload;
  std::uint64_t fingerprint = 0;
  // Open points that can turn the verdict as replayed, which is then unknown. Clauses that begin with "if" (it fits
  // then) or "unless" (the verdict as replayed holds otherwise). scenario/hinges.h.
  std::vector<std::string> hangs_on;
  std::vector<std::string> warnings;
  std::vector<InputProvenance> provenance;
  // By op of the replayed trace; unknown_time for ops that were not replayed. For a folded step, times as the part
  // shown runs by itself, and how often each op runs in the whole; else empty: once.
  std::vector<Picos> op_start, op_end;
  std::vector<std::int64_t> op_runs;
  std::shared_ptr<const FoldedMemory> folded_memory;  // where a device runs out of memory, and figures are asked for
  [[nodiscard]] std::int64_t runs_of(OpId op) const { return op_runs.empty() ? 1 : op_runs[index_of(op)]; }

  // Covers the device memory of every rank and the host's: the one place that says whether a step fits.
  [[nodiscard]] Verdict verdict() const { return hangs_on.empty() ? as_replayed() : Verdict::unknown; }
  // Whatever it hangs on.
  [[nodiscard]] Verdict as_replayed() const;
  // The same as verdict(); does_not_fit also if the drives refuse.
  [[nodiscard]] Verdict answer() const { return drives_refuse.empty() ? verdict() : Verdict::does_not_fit; }
  // Unexplained time on the critical path of this replay, also of a what-if.
  [[nodiscard]] Picos unexplained() const;
  // Precondition: verdict() is unknown. "the trace has no memory events".
  [[nodiscard]] std::string why_unknown() const;
  // Unknown, though there are memory events and a limit: what was recorded of them is in doubt, or hangs on what isn't
  // known.
  [[nodiscard]] bool is_in_doubt() const;
  [[nodiscard]] bool fits() const { return verdict() == Verdict::fits; }                 // known to, the reserve kept
  [[nodiscard]] bool may_fit() const { return as_replayed() != Verdict::does_not_fit; }  // or not known
};

}  // namespace spillway::sim
