#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "studies/diagnosis/busy_time.h"
#include "studies/diagnosis/memory_diagnosis.h"
#include "studies/diagnosis/relieved_trace.h"
#include "traces/compiled_kernel.h"

namespace spillway::studies {
namespace {

// |union of intervals within [a, b)|, counted picosecond by picosecond.
TEST(BusyTime, IsTheLengthOfTheUnion) {
  std::mt19937 random(20261122);
  const auto below = [&random](std::uint32_t limit) { return static_cast<std::int64_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    std::vector<TimeInterval> intervals;
    std::vector<bool> busy(60, false);
    for (std::int64_t k = below(8); k > 0; --k) {
      const std::int64_t begin = below(50), end = begin + below(10);
      intervals.push_back({Picos(begin), Picos(end)});
      for (std::int64_t at = begin; at < end; ++at) busy[static_cast<std::size_t>(at)] = true;
    }
    const BusyTime time(intervals);
    for (std::int64_t a = 0; a < 60; ++a) {
      std::int64_t expected = 0;
      for (std::int64_t b = a; b <= 60; ++b) {
        EXPECT_EQ(time.within(Picos(a), Picos(b)), Picos(expected)) << a << " " << b;
        if (b < 60) expected += busy[static_cast<std::size_t>(b)] ? 1 : 0;
      }
    }
  }
}

// Streams' works one after the other, each ascending, of odd and even numbers of streams: works of stream k are
// [10 i + k, 10 i + k + 1) and [10 i + 9, 10 i + 11), so that of each 10 as many are busy as there are streams, and 2.
TEST(BusyTime, TakesStreamsInAnyOrder) {
  constexpr std::int64_t works = 64;
  for (const std::int64_t streams : {1, 2, 3, 4, 5, 6}) {
    std::vector<TimeInterval> intervals;
    for (std::int64_t k = streams; k > 0; --k)
      for (std::int64_t i = 0; i < works; ++i) intervals.push_back({Picos(10 * i + k), Picos(10 * i + k + 1)});
    for (std::int64_t i = 0; i < works; ++i) intervals.push_back({Picos(10 * i + 9), Picos(10 * i + 11)});
    const BusyTime time(intervals);
    EXPECT_EQ(time.parts().size(), static_cast<std::size_t>(works + 1));
    EXPECT_EQ(time.length(), Picos(works * (streams + 2)));
    EXPECT_EQ(time.within(Picos(100), Picos(200)), Picos(10 * (streams + 2)));
  }
}

// Without [10, 20): a call before stays, one across loses what lies inside, one behind moves up by 10.
TEST(RelievedTrace, TakesTheHostsTimeAway) {
  Trace trace;
  const LaneId host = trace.lane({.kind = LaneKind::host_thread});
  const auto call = [&](std::int64_t start, std::int64_t duration) {
    trace.append_op({.kind = OpKind::host_work, .lane = host, .start = Picos(start), .duration = Picos(duration)});
  };
  call(0, 5), call(8, 4), call(13, 2), call(18, 6), call(30, 1);
  trace.unexplained_waits = {{OpId(0), Picos(3)}, {OpId(2), Picos(1)}};
  const Trace relieved = without_host_time(trace, {{Picos(10), Picos(20)}});
  const std::vector<Picos> starts = {Picos(0), Picos(8), Picos(10), Picos(10), Picos(20)};
  const std::vector<Picos> durations = {Picos(5), Picos(2), Picos(0), Picos(4), Picos(1)};
  EXPECT_EQ(relieved.ops.start, starts);
  EXPECT_EQ(relieved.ops.duration, durations);
  ASSERT_EQ(relieved.unexplained_waits.size(), 1U) << "what was kept inside is gone with it";
  EXPECT_EQ(relieved.unexplained_waits[0].op, OpId(0));
}

TEST(CompiledKernel, NamesTheOperatorsItFuses) {
  EXPECT_EQ(compiled_operators("triton_poi_fused_add_0"), "add");
  EXPECT_EQ(compiled_operators("triton_per_fused_add_native_layer_norm_5"), "add, native_layer_norm");
  EXPECT_EQ(compiled_operators("triton_red_fused__log_softmax_nll_loss_forward_12"), "_log_softmax, nll_loss_forward");
  EXPECT_EQ(compiled_operators("triton_poi_fused__to_copy_mul_silu_3_0d1d2d"), "_to_copy, mul, silu")
      << "neither number nor mangled suffix";
  EXPECT_EQ(compiled_operators("triton__0d1d2d"), "");
  EXPECT_EQ(compiled_operators("ampere_sgemm_128x64_tn"), "");
}

// Two lines hold 3 and 5 MiB; one block was there before the history, one is given back; the third request fails.
TEST(MemoryDiagnosis, SumsByLineAtTheFailure) {
  constexpr std::int64_t mib = 1 << 20;
  Trace trace;
  const auto frame = [&](const char* place, std::uint32_t caller) {
    trace.stack_frames.push_back({trace.strings.intern(place), caller});
    return static_cast<std::uint32_t>(trace.stack_frames.size() - 1);
  };
  const std::uint32_t main = frame("train.py:1 main", no_stack);
  const std::uint32_t model = frame("model.py:7 forward", main);
  const std::uint32_t library = frame("/x/site-packages/torch/nn/linear.py:9 forward", model);
  const auto event = [&](MemoryAction action, std::uint64_t address, std::int64_t bytes, std::uint32_t stack) {
    trace.memory_events.push_back({.time = Picos(static_cast<std::int64_t>(trace.memory_events.size())),
                                   .address = Addr(address),
                                   .bytes = Bytes(bytes),
                                   .action = action,
                                   .stack = stack});
  };
  event(MemoryAction::allocate, 0x1000000, 3 * mib, main);
  event(MemoryAction::allocate, 0x2000000, 5 * mib, library);
  event(MemoryAction::allocate, 0x3000000, 7 * mib, library);
  event(MemoryAction::free_requested, 0x3000000, 7 * mib, main);
  event(MemoryAction::free_completed, 0x3000000, 7 * mib, main);
  event(MemoryAction::free_requested, 0x4000000, 2 * mib, main);  // from before
  event(MemoryAction::free_completed, 0x4000000, 2 * mib, main);
  event(MemoryAction::out_of_memory, 1 * mib, 64 * mib, library);
  event(MemoryAction::allocate, 0x5000000, 100 * mib, main);  // behind the failure
  trace.set(Capability::memory);
  const MemoryDiagnosis found = diagnose_memory(trace, 0);
  EXPECT_EQ(found.event, 7U);
  EXPECT_EQ(found.alive, Bytes(8 * mib));
  ASSERT_EQ(found.places.size(), 2U);
  EXPECT_EQ(found.places[0].name, "model.py:7 forward") << "a library's line is not the program's own";
  EXPECT_EQ(found.places[0].bytes, Bytes(5 * mib));
  EXPECT_EQ(found.places[1].name, "train.py:1 main");
  ASSERT_TRUE(found.ran_out);
  EXPECT_EQ(found.ran_out->asked, Bytes(64 * mib));
  EXPECT_EQ(found.ran_out->device_free, Bytes(mib));
  for (const OtherAllocator& other : found.ran_out->others) EXPECT_FALSE(other.serves) << other.name;
  EXPECT_EQ(folded_memory_stacks(found),
            "train.py:1 main 3145728\n"
            "train.py:1 main;model.py:7 forward;/x/site-packages/torch/nn/linear.py:9 forward 5242880\n");
}

// Stacks of C++ as torch.cuda.memory records them by default: files without lines, the recorder's own frames innermost.
TEST(MemoryDiagnosis, TellsTheProgramFromItsLibrariesInCpp) {
  Trace trace;
  const auto stack = [&](const std::vector<const char*>& innermost_first) {
    std::uint32_t at = no_stack;
    for (std::size_t i = innermost_first.size(); i-- > 0;) {
      trace.stack_frames.push_back({trace.strings.intern(innermost_first[i]), at});
      at = static_cast<std::uint32_t>(trace.stack_frames.size() - 1);
    }
    return at;
  };
  const char* recorder = "memory_snapshot.cpp torch::cuda::(anonymous namespace)::gather_with_cpp()";
  const char* allocator = "? c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)";
  const std::uint32_t forward = stack({recorder, allocator, "RegisterCUDA.cpp at::wrapper_CUDA_bmm(at::Tensor const&)",
                                       "/home/x/model.py:41 forward", "/home/x/train.py:3 main"});
  const std::uint32_t backward =
      stack({recorder, allocator, "?? at::_ops::bmm::call(at::Tensor const&)",
             "?? torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)",
             "?? torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)",
             "thread48.o execute_native_thread_routine"});
  const std::uint32_t load = stack({recorder, allocator, "?? at::_ops::empty_strided::call(c10::ArrayRef<long>)"});
  std::uint64_t address = 0;
  for (const auto& [bytes, at] : {std::pair{4000, forward}, {3000, backward}, {2000, load}})
    trace.memory_events.push_back(
        {.time = Picos(0), .address = Addr(address += 4096), .bytes = Bytes(bytes), .stack = at});
  trace.set(Capability::memory);
  const MemoryDiagnosis found = diagnose_memory(trace, 0);
  ASSERT_EQ(found.places.size(), 3U);
  EXPECT_EQ(found.places[0].name, "/home/x/model.py:41 forward");
  EXPECT_EQ(found.places[1].name, "in C++, backward: BmmBackward0");
  EXPECT_EQ(found.places[2].name, "in C++: at::empty_strided");
  ASSERT_EQ(found.phases.size(), 3U);
  EXPECT_EQ(found.phases[1].name, "backward");
}

// Some writers record completions alone.
TEST(MemoryDiagnosis, CompletedFreesAreFrees) {
  Trace trace;
  for (std::uint64_t i = 0; i < 10; ++i) {
    trace.memory_events.push_back({.time = Picos(0), .address = Addr(4096 * (i + 1)), .bytes = Bytes(512)});
    trace.memory_events.push_back({.time = Picos(0),
                                   .address = Addr(4096 * (i + 1)),
                                   .bytes = Bytes(512),
                                   .action = MemoryAction::free_completed});
  }
  trace.set(Capability::memory);
  EXPECT_EQ(diagnose_memory(trace, 0).alive, Bytes(512));
}

}  // namespace
}  // namespace spillway::studies
