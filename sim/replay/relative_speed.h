// How much faster the replayed machine is than the one the durations of a trace belong to.
//
// A captured trace carries times of the machine it was recorded on; a what-if divides them. 1 leaves them
// unchanged, 2 is twice as fast. Generated traces already carry times of their machine (all 1).
#pragma once

#include "base/units.h"
#include "traces/trace.h"

namespace spillway::sim {

struct RelativeSpeed {
  double compute = 1;  // arithmetic of kernels bound by it
  double memory = 1;   // HBM: memory-bound kernels, device-to-device copies, memset
  double host = 1;     // host calls and the gaps between them
  double pcie = 1;     // copies between host and device (their recorded rate is the cap)
  double network = 1;  // collectives

  bool operator==(const RelativeSpeed&) const = default;
};

// The resource that an op's duration depends on. Known from flops and bytes where the trace has them (`roofline`), else
// from the kernel's name: matrix products, convolutions and attention count as compute, all else as memory.
enum class WorkClass : std::uint8_t { compute, memory, pcie, network, host, storage };
constexpr int work_class_count = 6;
std::string_view to_string(WorkClass work);

// machine_balance: flops per byte at which a kernel turns compute-bound; <= 0: unknown, names decide.
WorkClass classify(const Trace& trace, OpId op, double machine_balance);
// True for names of matrix products, convolutions and attention (cuBLAS, cuDNN, CUTLASS, rocBLAS, MIOpen, Triton).
bool is_compute_kernel_name(std::string_view name);

// duration / speed, rounded to the nearest picosecond; never negative. Throws nothing.
Picos scaled(Picos duration, double speed);

}  // namespace spillway::sim
