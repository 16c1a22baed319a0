// Host time per operator, in multiples of HostProfile::dispatch_cost, which is that of a plain PyTorch operator.
//
// Megatron-LM's layers are deep Python (autograd functions, RNG contexts, parallel state, checkpointing), so the
// program's calls cost several times as much. Autograd's engine in C++ drives the backward, and calls back into Python
// for Megatron's own functions. Both factors were fitted to iteration times, by hand to half a unit, because the
// optimum is flat. They give 60 and 40 us with 8 us per operator; 7 to 8 and 4.5 to 5.5 do equally well. The rows are
// the fit-role ones (a fifth, by hash) of vTrain's single-machine table (MICRO 2024, Megatron-DeepSpeed on A100).
//
// Layers of nanotron that are split over tensors are written likewise. They take 4.3 to 4.8 ms a layer and micro-batch,
// forwards and backwards, at widths of 2048 to 4096 and splits of 4 and 8. Half as much again per operator as
// Megatron's gives that, fitted by hand to the fit-role rows of its grid on H100 with one sequence per micro-batch.
//
// Each operator of Megatron-core's mixture of experts says what it asks of the host (HostWork,
// models/network/moe_block.cc). Plain operators of PyTorch under autograd are 10 us forwards, 7 backwards (assumed). An
// expert's product or cast in Transformer Engine's loops is 40 us, with descriptors, heuristic, Python objects and
// hooks. That was fitted to Megatron-Bridge performance tables, where 30 to 50 do almost equally well.
#pragma once

#include "models/session/eager_session.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

inline constexpr double megatron_program_factor = 7.5;  // forward, recompute, optimizer
inline constexpr double megatron_engine_factor = 5;     // backward
inline constexpr double plain_program_factor = 1.25, plain_engine_factor = 0.875, expert_factor = 5;
inline constexpr double module_factor = 1.5, view_share = 0.3;
inline constexpr double split_program_factor = 11, split_engine_factor = 7.5;

// PyTorch's modules under autograd take half as much again per operator as the bare dispatch, forwards for the Python
// around it, backwards for the engine's nodes. A view takes 0.3 of that, as it launches nothing: on a processor of 4
// GHz an add takes 1.3 us and a view 1.1 without a launch, of 4 to 5 us. The factor was fitted by hand to the two
// shortest sequences of Qwen-1.8B's LoRA (validation/published/qwen-finetuning.json, role fit). Its layers take 5.2 ms
// whatever the sequence up to a thousand tokens. Inductor's code launches kernel by kernel without modules, views and
// autograd's nodes between them: the bare dispatch.

// nanotron's loop between a step's update and the next forward, with the GPU idle: the loss is read, the batch made,
// schedule and logs written. Its steps under 1.2 s take 50 ms beyond the prediction, whatever their size. That was
// fitted by hand to the fit-role rows of its grid (17 rows; half of them within 30 ms of that).
inline constexpr Picos between_steps = milliseconds(50);

// DeepSpeed's ZeRO 3 hooks into each module before and after its forward and its backward, and each fetch of a module's
// weights is more Python (deepspeed/runtime/zero/parameter_offload.py, partitioned_param_coordinator.py). The times
// have the order of what its hooks call. One published step of experts gathered one by one took 1.65 ms a fetch,
// network included (55,296 fetches over two machines in 91.2 s).
inline constexpr Picos zero_forward_hooks = microseconds(120), zero_backward_hooks = microseconds(100),
                       zero_fetch = microseconds(100);

inline void set_host_times(EagerSession& session, const TrainingSetup& setup) {
  session.set_launch_blocking(setup.launch_blocking);
  const bool megatron = setup.traits().megatron;
  const bool is_split = setup.traits().pauses_between_steps && setup.tensor_parallel > 1;
  if (setup.traits().pytorch) {
    const double each = to_seconds(session.cost().host_time_per_kernel()) * (setup.compile ? 1 : module_factor);
    const Picos time = from_seconds(each), view = setup.compile ? Picos(0) : from_seconds(each * view_share);
    const HostTimes times{time, time, time, view};
    session.set_host_times(times, times);
  }
  if (!megatron && !is_split) return;
  const std::int64_t deep_ranks = setup.expert_dispatcher == ExpertDispatcher::deepep ? setup.expert_parallel : 0;
  const double base = to_seconds(session.cost().host_time_per_kernel()) *
                      (setup.traits().core ? session.cost().host_slowdown(deep_ranks) : 1);
  const auto times = [base](double call, double plain) {
    return HostTimes{from_seconds(base * call), from_seconds(base * plain), from_seconds(base * expert_factor)};
  };
  session.set_host_times(times(megatron ? megatron_program_factor : split_program_factor, plain_program_factor),
                         times(megatron ? megatron_engine_factor : split_engine_factor, plain_engine_factor));
}

}  // namespace spillway::models
