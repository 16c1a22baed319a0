// The frameworks of generated steps, as one table of what sets them apart: nothing asks for a framework by its name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway::models {

// The framework that gives kernels and buffers.
// `eager`: PyTorch modules as they stand.
// `megatron_2022`: Megatron-LM's fused kernels (masked softmax, bias-GELU, bias-dropout-add). The weight-gradient
// product itself adds gradients into fp32 buffers. The host waits for the device after each transfer between stages.
// `megatron`: Megatron-core 0.14 with Transformer Engine 2.11. The same with layers as Transformer Engine has them: a
// norm and the linear layer behind it are one function. Parameters and gradients are in contiguous buffers. Names,
// workspaces and dummy gradients are as its Python keeps them (models/network/te_ops.cc, models/step/start_up.h).
// `megatron_2021`: Megatron-LM before September 2021 (SC'21; its DeepSpeed fork until July 2023). As megatron_2022, but
// gradients are in the type of the weights, and separate kernels add them up. A pipeline's are reduced through a copy
// of all of them. Collectives of a tensor group are waited for. Without flash attention its fused softmax takes shapes
// in multiples of four only.
// `nanotron`: PyTorch modules, with Megatron-LM's loss over a split vocabulary on logits in fp32. Gradients of a
// micro-batch stay until its backward ends and are added into fp32 buffers
// (src/nanotron/optim/gradient_accumulator.py). Between replicas it has PyTorch's DistributedDataParallel; its buckets
// hold all gradients once more for good.
// `huggingface`: PyTorch modules under transformers' Trainer since 4.50. A recomputed layer's result stays until its
// backward ends (the reentrant checkpoint). Results of a model in mixed precision are cast to fp32 (Accelerate). One
// group of parameters has weight decay and one has none. Under FSDP 1 the inputs of recomputed layers with frozen
// weights, and their gradients, stay until the backward ends. The cause is a cycle through the hook that frees such
// weights (torch/distributed/fsdp/_runtime_utils.py).
// `huggingface_2024`: the same before 4.50. Logits are copied to be shifted by a token. Attention of models with
// windows or experts repeats shared keys and values. `deepspeed`: transformers under DeepSpeed; its Trainer casts
// nothing. Modules are in 16 bits. States, buckets and sub-groups are flat (models/step/deepspeed_zero.h). Weights are
// gathered by module (WeightGatherer).
enum class Framework : std::uint8_t {
  eager,
  megatron,
  megatron_2022,
  megatron_2021,
  nanotron,
  huggingface,
  huggingface_2024,
  deepspeed
};

// Traits of a framework that others don't have. A new framework is a row here, and what no row has yet a new trait.
struct FrameworkTraits {
  std::string_view word, about;  // as a scenario says it; for people
  // PyTorch modules with PyTorch's own data parallelism: under zero_stage 3 they are FSDP's.
  bool pytorch = false;
  bool fsdp = false;              // shards are fp32 weights where there are such
  bool deepspeed = false;         // ZeRO is DeepSpeed's own
  bool transformers = false;      // models and Trainer of Hugging Face's
  bool megatron = false;          // Megatron's layers, buckets and optimizer
  bool core = false;              // of Megatron-core on Transformer Engine
  bool gradient_buffers = false;  // weight gradients are added into fp32 buffers that live all the time
  bool gathers_context = false;   // context parallelism may gather keys and values
  bool keeps_operators = false;   // recomputation may keep results by operator
  bool split_loss = false;        // of a split vocabulary, also on one GPU
  bool dtensor = false;           // tensor ranks are torch.distributed.tensor's, fp8 is torchao's
  // Of a model or layer.
  bool separate_passes = false;       // bias, dropout and residual are passes of their own
  bool softmax_limits = false;        // the fused softmax takes shapes in multiples of four alone
  bool copies_logits = false;         // to shift them by a token
  bool widens_results = false;        // casts them to fp32 when a forward in mixed precision ends (Accelerate)
  bool keeps_frozen_inputs = false;   // of recomputed layers, until the backward ends (FSDP 1)
  bool repeats_shared_heads = false;  // of attention with windows or experts
  bool strided_heads = false;         // PyTorch's attention takes heads where they are, fused kernels or not
  bool keeps_gathered = false;        // the gathered input of a split product stays for its backward
  bool regroups_heads = false;        // queries, keys and values are copied before attention
  bool widens_split_logits = false;   // to fp32, before the split loss
  // Of a step.
  bool spreads_by_cost = false;        // layers over the stages, by what they cost
  bool gradients_at_end = false;       // stay until a micro-batch's backward ends, then are added up
  bool buckets_hold_all = false;       // DistributedDataParallel's, with all gradients once more for good
  bool copies_gradients = false;       // to one buffer, to be reduced
  bool waits_for_collectives = false;  // of a tensor group, the kernels behind them
  bool pauses_between_steps = false;   // the program does other work there
  std::int64_t most_zero_stage = 3;
};

constexpr std::array<FrameworkTraits, 8> framework_table = {{
    {.word = "eager",
     .about = "PyTorch modules as they stand",
     .pytorch = true,
     .fsdp = true,
     .gathers_context = true,
     .keeps_operators = true,
     .dtensor = true,
     .keeps_gathered = true},
    {.word = "megatron",
     .about = "Megatron-core's on Transformer Engine",
     .megatron = true,
     .core = true,
     .gradient_buffers = true,
     .split_loss = true},
    {.word = "megatron_2022",
     .about = "Megatron-LM's fused ones of 2022 and 2023",
     .megatron = true,
     .gradient_buffers = true,
     .split_loss = true,
     .separate_passes = true},
    {.word = "megatron_2021",
     .about = "those of its versions up to 2021",
     .megatron = true,
     .split_loss = true,
     .softmax_limits = true,
     .copies_gradients = true,
     .waits_for_collectives = true},
    {.word = "nanotron",
     .about = "PyTorch modules, fp32 gradient buffers, DistributedDataParallel's buckets",
     .split_loss = true,
     .keeps_gathered = true,
     .regroups_heads = true,
     .widens_split_logits = true,
     .spreads_by_cost = true,
     .gradients_at_end = true,
     .buckets_hold_all = true,
     .pauses_between_steps = true,
     .most_zero_stage = 1},
    {.word = "huggingface",
     .about = "PyTorch modules under transformers' Trainer, FSDP 1",
     .pytorch = true,
     .fsdp = true,
     .transformers = true,
     .widens_results = true,
     .keeps_frozen_inputs = true,
     .strided_heads = true},
    {.word = "huggingface_2024",
     .about = "the same before transformers 4.50: shifted copies of logits",
     .pytorch = true,
     .fsdp = true,
     .transformers = true,
     .copies_logits = true,
     .widens_results = true,
     .keeps_frozen_inputs = true,
     .repeats_shared_heads = true},
    {.word = "deepspeed",
     .about = "the same under DeepSpeed: its ZeRO, modules in 16 bits",
     .pytorch = true,
     .deepspeed = true,
     .transformers = true,
     .strided_heads = true},
}};

constexpr const FrameworkTraits& traits_of(Framework framework) {
  return framework_table[static_cast<std::size_t>(framework)];
}
constexpr std::string_view to_string(Framework framework) { return traits_of(framework).word; }

}  // namespace spillway::models
