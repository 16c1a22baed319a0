// Host time per operator, in multiples of HostProfile::dispatch_cost, which is that of a plain PyTorch operator.
//
// Megatron-LM's layers are deep Python (autograd functions, RNG contexts, parallel state, checkpointing), so what the
// program calls costs several times as much; the backward is driven by autograd's engine in C++, calling back into
// Python for Megatron's own functions. Both factors were fitted to iteration times, by hand to half a unit, because the
// optimum is flat: 7 to 8 and 4.5 to 5.5 do equally well on the fit-role rows (a fifth, by hash) of vTrain's
// single-machine table (MICRO 2024, Megatron-DeepSpeed on A100), with 8 us per operator: 60 and 40 us.
#pragma once

#include "models/network/eager_session.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

inline constexpr double megatron_program_factor = 7.5;  // forward, recompute, optimizer
inline constexpr double megatron_engine_factor = 5;     // backward

inline void set_host_times(EagerSession& session, Framework framework) {
  if (!is_megatron(framework)) return;
  const double base = to_seconds(session.cost().host_time_per_kernel());
  session.set_host_times(from_seconds(base * megatron_program_factor), from_seconds(base * megatron_engine_factor));
}

}  // namespace spillway::models
