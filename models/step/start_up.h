// How a generated step came about: what building the model and its optimizer asked of the allocator, and what the first
// iteration makes for good (Trace::start_up).
//
// Megatron-core 0.14 (core/distributed/param_and_grad_buffer.py, core/optimizer/distrib_optimizer.py at 23e00ed0):
// parameters are built one by one. With the distributed optimizer (ZeRO stage 1) those of a chunk, experts apart, then
// move into one buffer, last one first. They always get one fp32 buffer for their gradients. A rank's optimizer has one
// master per parameter that meets its range of the buffer. Its Adam makes both moments behind the first backward: they
// are carved out of cached activations. Ranks differ by roundings; these are the first one's.
//
// Others: the step's own first events say how the model was built. Moments come with the first update as well:
// PyTorch's, Apex's and Transformer Engine's optimizers make an entry of their state when they first meet a parameter.
//
// Elements of a buffer: parameters in reverse order, each from a multiple of 64 on; its end is a multiple of the
// gradient group's size and of 128.
#pragma once

#include <deque>
#include <vector>

#include "models/session/autograd.h"
#include "models/spec/training_setup.h"
#include "traces/trace.h"

namespace spillway::models {

// In the order in which Megatron-core builds them.
using BuiltChunk = std::vector<TrainedParameter*>;
BuiltChunk built_chunk(std::deque<TrainedParameter>& parameters);

// Whether parameters and gradients lie in buffers; else the step's own first events tell how the model was built.
bool has_buffers(const TrainingSetup& setup);

// `setup_events`: the step's memory events of what is there when it begins. `late`: those of them that the first
// iteration makes, beside the moments. O(parameters).
std::vector<StartUpEvent> start_up_of(const TrainingSetup& setup, const std::vector<BuiltChunk>& chunks,
                                      const std::vector<MemoryEvent>& setup_events, const std::vector<Tensor>& late);

}  // namespace spillway::models
