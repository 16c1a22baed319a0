// Real kernels under plans: predict, run, compare.
//
//   measured    the trainer's step under a technique's plan: bytes of every transfer, order of kernels and transfers,
//               loss and weights bit by bit; with times also the step, its phases and how much of its transfers lies
//               under kernels
//   from_trace  a replay of the same plan on a hardware profile, with the durations of a reference trace: kernels of
//               plain steps, measured before on the same device
//   blind       the same with the durations that the profile alone gives (blind_times.h); times only, since bytes are
//               the plan's in either case
//
// Plans are made from the trainer's own trace, with durations measured on the backend. Memory, bytes and order are
// those of a run in which frees wait for stores (PlanRunOptions::in_order), times those of another one in which they do
// not. Peaks of memory are no row: the simulator's own pool hands out the addresses in the run as in the prediction.
// Their agreement says that the plan was carried out (pool_kept), and nothing of any framework's allocator.
//
//   step_time, forward_time, backward_time, optimizer_time    StepMeasure; medians of untimed steps
//   transfers_hidden, transfers_exposed                       Overlap; of a last step, each kernel timed by itself
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "validation/published/error_statistics.h"
#include "validation/trainer/backend.h"
#include "validation/trainer/overlap.h"
#include "validation/trainer/trainer_model.h"

namespace spillway::validation {

struct KernelCase {
  std::string model;  // for people: "2 layers of 64"
  TrainerModel shape;
  std::string technique;  // of trainer_techniques()
  bool is_look = false;   // too small to say anything of times: a first look, run where it is asked for by name
};

struct KernelRow {
  std::string metric, unit;
  double measured = 0, from_trace = 0;
  std::optional<double> blind;
  // Predicted / measured - 1; 0 when both are 0, infinite when only the measured is.
  [[nodiscard]] double relative_error() const { return error_of(from_trace); }
  [[nodiscard]] double error_of(double predicted) const;
  // Must be met to the byte; else it is a time.
  [[nodiscard]] bool is_exact() const { return unit == "B"; }
};

struct KernelOutcome {
  KernelCase run;
  std::string skipped;  // why it was not run; else empty, and:
  std::vector<KernelRow> rows;
  float first_loss = 0, last_loss = 0;
  bool same_bits = false;                                      // losses and final state as those of technique keep
  bool order_kept = false;                                     // kernels ran in the plan's order
  bool transfers_kept = false;                                 // transfers began in the plan's order, each whole
  bool pool_kept = false;                                      // the pool's peaks are those of the plan's requests
  Bytes pool_allocated, pool_reserved;                         // those peaks, of the run
  double measured_share = 0;                                   // BlindTimes::measured_share; 0 without times
  std::string file_access;                                     // TierStore::access()
  std::optional<Overlap> measured_overlap, predicted_overlap;  // with times, of runs that move something
  [[nodiscard]] bool sound() const { return same_bits && order_kept && transfers_kept && pool_kept; }
  // Both say that transfers are hidden, or both that they are not.
  [[nodiscard]] bool verdict_is_right() const {
    return !measured_overlap || measured_overlap->is_hidden() == predicted_overlap->is_hidden();
  }
};

struct KernelCaseOptions {
  int steps = 3;
  std::string file;                           // for what goes to drives; must not exist
  const HardwareProfile* hardware = nullptr;  // predictions are for this machine
  bool step_times = false;                    // compare times as well: the hardware is this machine
};

// Errors of the rows of one metric, predicted in one way.
struct KernelSummary {
  std::string metric;
  bool is_blind = false;  // else from a trace
  ErrorStatistics errors;
};
// In the order in which metrics first appear, blind ones before those from a trace; rows that measured 0 are left out.
// O(rows log rows).
std::vector<KernelSummary> summarize(const std::vector<KernelOutcome>& outcomes);

// Small ones for the CPU's reference kernels: three of model and batch, each by technique.
std::vector<KernelCase> cpu_kernel_cases();
// GPT-2 124M and 774M, Llama-1B and BERT-large sized ones by technique and batch, for a GPU, and a first look.
std::vector<KernelCase> gpu_kernel_cases();

// progress(done, all) before each case; false throws Cancelled. A fault of the file or of io_uring skips the cases that
// go to drives.
std::vector<KernelOutcome> run_kernel_cases(Backend& backend, const std::vector<KernelCase>& cases,
                                            const KernelCaseOptions& options,
                                            const std::function<bool(std::size_t, std::size_t)>& progress);

}  // namespace spillway::validation
