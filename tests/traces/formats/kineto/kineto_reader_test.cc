#include "traces/formats/kineto/kineto_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "traces/derive.h"
#include "traces/formats/read.h"
#include "traces/memory_doubt.h"
#include "traces/summary.h"

namespace spillway::traces {
namespace {

constexpr std::uint64_t no_limit = std::uint64_t{1} << 40;

Trace read_text(const std::string& text) {
  ByteSource source = ByteSource::from_memory("memory", std::as_bytes(std::span(text)), no_limit);
  Trace trace = read_kineto(source, {});
  trace.check_invariants();
  return trace;
}

Trace read_events(const std::string& events) { return read_text("{\"traceEvents\": [" + events + "]}"); }

std::uint64_t count_of(const Trace& trace, std::string_view kind) {
  const Finding* found = trace.finding(kind);
  return found == nullptr ? 0 : found->count;
}

std::string call(const std::string& name, const std::string& ts, const std::string& dur, int correlation,
                 int thread = 5) {
  return R"({"ph":"X","cat":"cuda_runtime","name":")" + name + R"(","pid":1,"tid":)" + std::to_string(thread) +
         R"(,"ts":)" + ts + R"(,"dur":)" + dur + R"(,"args":{"correlation":)" + std::to_string(correlation) + "}}";
}
std::string kernel(const std::string& name, const std::string& ts, const std::string& dur, int correlation,
                   int stream = 7) {
  return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","pid":0,"tid":)" + std::to_string(stream) + R"(,"ts":)" +
         ts + R"(,"dur":)" + dur + R"(,"args":{"device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
         std::to_string(correlation) + "}}";
}

std::string text_of(const Trace& trace, std::size_t op) { return std::string(trace.strings.text(trace.ops.name[op])); }

// The rows come in any order; a stream runs its work in the order of the launches.
TEST(Kineto, OrdersWorkByLaunch) {
  const Trace trace =
      read_events(kernel("second", "30", "5", 2) + "," + kernel("first", "20", "5", 1) + "," +
                  call("cudaLaunchKernel", "12", "1", 2) + "," + call("cudaLaunchKernel", "10", "1", 1));
  ASSERT_EQ(trace.ops.size(), 4U);
  EXPECT_EQ(text_of(trace, 2), "first");
  EXPECT_EQ(trace.ops.launched_by[2], OpId(0));
  EXPECT_EQ(trace.ops.launched_by[3], OpId(1));
  EXPECT_EQ(trace.ops.start[2], microseconds(10));
}

std::string label(const std::string& what, int process, int thread, const std::string& name) {
  return R"({"ph":"M","name":")" + what + R"(","pid":)" + std::to_string(process) + R"(,"tid":)" +
         std::to_string(thread) + R"(,"args":{"name":")" + name + R"("}},)";
}
std::string plain(const std::string& name, int process, int thread, int start, int duration) {
  return R"({"ph":"X","name":")" + name + R"(","pid":)" + std::to_string(process) + R"(,"tid":)" +
         std::to_string(thread) + R"(,"ts":)" + std::to_string(start) + R"(.5,"dur":)" + std::to_string(duration) +
         "},";
}

// As JAX writes it: a GPU's streams are its work, of a TPU the line "XLA Ops"; "XLA Modules" says the same again.
TEST(Kineto, ReadsTheTimesOfXlasProfiler) {
  const Trace trace =
      read_events(label("process_name", 1, 0, "/device:GPU:0") + label("thread_name", 1, 14, "Stream #14(Compute)") +
                  label("thread_name", 1, 15, "Stream #15(MemcpyH2D)") + label("thread_name", 1, 30, "XLA Modules") +
                  label("thread_name", 1, 31, "XLA Ops") + label("process_name", 3, 0, "/device:TPU:1") +
                  label("thread_name", 3, 2, "XLA Ops") + label("thread_name", 3, 1, "Steps") +
                  label("process_name", 701, 0, "/host:CPU") + label("thread_name", 701, 9, "python") +
                  plain("PjitFunction(step)", 701, 9, 0, 50) + plain("jit_step", 1, 30, 10, 40) +
                  plain("fusion_1", 1, 31, 10, 9) + plain("loop_fusion_kernel", 1, 14, 10, 9) +
                  plain("MemcpyH2D", 1, 15, 11, 5) + plain("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1, 14, 20, 6) +
                  plain("fusion.7", 3, 2, 12, 30) + plain("1", 3, 1, 0, 100) + "{}");
  ASSERT_EQ(trace.ops.size(), 4U);
  EXPECT_EQ(trace.spans.size(), 1U);
  std::vector<std::tuple<std::string, int, OpKind>> found;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    found.emplace_back(text_of(trace, i), lane.device * 100 + static_cast<int>(lane.number), trace.ops.kind[i]);
  }
  std::sort(found.begin(), found.end());
  const std::vector<std::tuple<std::string, int, OpKind>> expected = {
      {"MemcpyH2D", 15, OpKind::copy_host_to_device},
      {"fusion.7", 100, OpKind::kernel},
      {"loop_fusion_kernel", 14, OpKind::kernel},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 14, OpKind::collective}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(count_of(trace, "times_only"), 5U);
  EXPECT_EQ(count_of(trace, "no_category"), 0U);
}

// rocprof writes numbers as texts, and names processes GPU0, COPY, CPU HIP API.
TEST(Kineto, ReadsTheTimesOfRocprof) {
  const auto event = [](const std::string& name, int process, int thread, int start) {
    return R"({"ph":"X","name":")" + name + R"(","pid":")" + std::to_string(process) + R"(","tid":")" +
           std::to_string(thread) + R"(","ts":")" + std::to_string(start) + R"(","dur":"7","args":{"Name":"x"}},)";
  };
  const auto named = [](int process, const std::string& name) {
    return R"({"args":{"name":")" + name + R"("},"ph":"M","pid":")" + std::to_string(process) +
           R"(","name":"process_name","sort_index":"0"},)";
  };
  const Trace trace =
      read_events(named(2, "CPU HIP API") + named(1, "COPY") + named(6, "GPU0") + named(7, "GPU1") +
                  event("hipLaunchKernel", 2, 77, 1) + event("gemm", 6, 3, 10) + event("gemm", 7, 0, 12) +
                  event("CopyHostToDevice", 1, 0, 4) + event("mystery", 9, 0, 4) + "{}");
  ASSERT_EQ(trace.ops.size(), 3U);
  EXPECT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.ops.duration[0], microseconds(7));
  EXPECT_EQ(count_of(trace, "no_category"), 1U);
}

// Work without a launch keeps its recorded place; one launch may start several kernels (a graph).
TEST(Kineto, KeepsWorkWithoutLaunchAndGraphs) {
  const Trace trace = read_events(call("cudaGraphLaunch", "10", "1", 1) + "," + kernel("a", "20", "5", 1) + "," +
                                  kernel("b", "40", "0", 1) + "," + kernel("lost", "30", "1", 9));
  ASSERT_EQ(trace.ops.size(), 4U);
  EXPECT_EQ(text_of(trace, 2), "lost");
  EXPECT_EQ(trace.ops.flags[2], static_cast<std::uint8_t>(OpFlag::missing_launch));
  EXPECT_EQ(trace.ops.launched_by[3], OpId(0));
  EXPECT_EQ(trace.ops.duration[3], Picos(0));
  EXPECT_EQ(count_of(trace, "missing_launch"), 1U);
}

// Two works of one stream can't run at once: the later begins where the earlier ends; the busy time stays.
TEST(Kineto, ClipsOverlapOfOneStream) {
  const Trace trace = read_events(kernel("a", "10", "10", 1) + "," + kernel("b", "15", "10", 2));
  EXPECT_EQ(trace.ops.start[1], microseconds(10));
  EXPECT_EQ(trace.ops.duration[1], microseconds(5));
  EXPECT_EQ(count_of(trace, "stream_overlap"), 1U);
}

// Damaged rows are dropped and counted; what follows is read.
TEST(Kineto, ResumesBehindDamage) {
  const Trace trace = read_events(kernel("a", "10", "1", 1) + R"(,{"ph":"X","cat" "kernel", "ts": 3},)" +
                                  kernel("say \"hi\" twice", "20", "1", 2) + "," + kernel("c\x01\xff", "30", "1", 3) +
                                  "," + kernel("d", "NaN", "1", 4) + "," + kernel("e", "40", "-3", 5) + "," +
                                  kernel("f", "50", "inf", 6) + "," + kernel("g", "9e30", "1", 7));
  EXPECT_EQ(summarize(trace).kernels, 3U);
  EXPECT_EQ(count_of(trace, "damaged_event"), 1U);
  EXPECT_EQ(count_of(trace, "unescaped_quotes"), 1U);
  EXPECT_EQ(count_of(trace, "negative_duration"), 1U);
  EXPECT_EQ(count_of(trace, "bad_time"), 2U);
  EXPECT_EQ(count_of(trace, "bad_duration"), 1U);
  EXPECT_EQ(text_of(trace, 1), "say \"hi\" twice");
}

// Brackets that never close would swallow all that follows.
TEST(Kineto, ResumesBehindAnEndlessEvent) {
  const Trace trace = read_events(kernel("a", "10", "1", 1) + R"(,{"ph":"X","args":{"Input Dims":[[[[[[[[[[[[[[},)" +
                                  kernel("b", "20", "1", 2) + "," + kernel("c", "30", "1", 3));
  EXPECT_EQ(summarize(trace).kernels, 3U);
  EXPECT_EQ(count_of(trace, "damaged_event"), 1U);
  EXPECT_EQ(count_of(trace, "truncated_file"), 0U);
}

// 10,000 damaged events, each inside the one before: reading each of them to its end is quadratic.
TEST(Kineto, ReadsNestedDamageOnce) {
  std::string nested;
  for (int i = 0; i < 10'000; ++i) nested += R"({"a":[)";
  for (int i = 0; i < 10'000; ++i) nested += "] x }";
  const Trace trace = read_events(nested + "," + kernel("a", "10", "1", 1));
  EXPECT_EQ(summarize(trace).kernels, 1U);
  EXPECT_LT(count_of(trace, "damaged_event"), 1'000U);
}

TEST(Kineto, AcceptsMissingEndAndDropsThePartialEvent) {
  const std::string whole = "{\"traceEvents\": [" + kernel("a", "10", "1", 1) + "," + kernel("b", "20", "1", 2);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{20}, std::size_t{60}}) {
    const Trace trace = read_text(whole.substr(0, whole.size() - cut));
    EXPECT_EQ(summarize(trace).kernels, 1U);
    EXPECT_EQ(count_of(trace, "truncated_file"), 1U);
  }
  EXPECT_EQ(summarize(read_text(whole)).kernels, 2U);
}

// 1.7e15 us since the epoch, or 4.4e12 us since baseTimeNanoseconds: both give the epoch of time 0. Keys may follow
// the events; displayTimeUnit does not change the unit; a time of 0 means that the profiler had none.
TEST(Kineto, KnowsBothTimeBases) {
  const std::string epoch = kernel("a", "1712195495519689.813", "1.5", 1);
  const Trace absolute =
      read_text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + kernel("z", "0", "1", 2) + "," + epoch + "]}");
  EXPECT_EQ(absolute.time_base_ns, 1712195495519689000);
  EXPECT_EQ(absolute.ops.start[0], nanoseconds(813));
  EXPECT_EQ(absolute.ops.duration[0], nanoseconds(1500));
  EXPECT_EQ(count_of(absolute, "zero_time"), 1U);
  const Trace relative = read_text("{\"traceEvents\":[" + kernel("a", "4400000000000.5", "1", 1) +
                                   "],\"baseTimeNanoseconds\": 1767189312000000000,\"distributedInfo\":{\"rank\":3}}");
  EXPECT_EQ(relative.time_base_ns, 1767189312000000000 + 4400000000000000);
  EXPECT_EQ(relative.provenance[0].rank, 3);
}

// record on 7, wait, next launch on 20: stream 20 waits for what 7 had done.
TEST(Kineto, InfersWaitsFromCallOrder) {
  const std::string calls = call("cudaLaunchKernel", "10", "1", 1) + "," + call("cudaEventRecord", "12", "1", 2) + "," +
                            call("cudaStreamWaitEvent", "14", "1", 3) + "," + call("cudaLaunchKernel", "16", "1", 4);
  const Trace trace = read_events(calls + "," + kernel("a", "20", "10", 1) + "," + kernel("b", "30", "5", 4, 20));
  const Sync* wait = trace.sync_of(OpId(2));
  ASSERT_NE(wait, nullptr);
  EXPECT_TRUE(wait->inferred);
  EXPECT_EQ(wait->event, OpId(1));
  EXPECT_EQ(trace.lanes[index_of(wait->lane)].number, 20);
  // b began while a ran: then it did not wait for it.
  const Trace contradicted =
      read_events(calls + "," + kernel("a", "20", "10", 1) + "," + kernel("b", "21", "5", 4, 20));
  EXPECT_EQ(contradicted.sync_of(OpId(2)), nullptr);
}

std::string memory_event(const std::string& bytes, const std::string& address, int index) {
  return R"({"ph":"i","name":"[memory]","pid":1,"tid":5,"ts":10,"args":{"Bytes":)" + bytes + R"(,"Addr":)" + address +
         R"(,"Device Id":0,"Device Type":1,"Ev Idx":)" + std::to_string(index) + "}}";
}

// Events of one instant are in the order of "Ev Idx", not of the file. Addresses use all 64 bits.
TEST(Kineto, OrdersMemoryEventsOfOneInstant) {
  const Trace trace =
      read_events(memory_event("-512", "18446744073709551615", 2) + "," + memory_event("512", "4096", 3) + "," +
                  memory_event("512", "18446744073709551615", 1));
  ASSERT_EQ(trace.memory_events.size(), 3U);
  EXPECT_EQ(trace.memory_events[0].action, MemoryAction::allocate);
  EXPECT_EQ(trace.memory_events[1].action, MemoryAction::free_requested);
  EXPECT_EQ(trace.memory_events[1].address, Addr(18446744073709551615U));
  EXPECT_EQ(trace.memory_events[2].address, Addr(4096));
  EXPECT_EQ(count_of(trace, "free_of_earlier_block"), 0U);
}

// What is wrong with work says nothing of memory; memory that was left out, or held before without a total, does.
TEST(Kineto, WhatIsWrongWithMemoryDoubtsIt) {
  const std::string taken = memory_event("512", "4096", 1), given = memory_event("-512", "4096", 2);
  EXPECT_EQ(memory_doubt(read_events(kernel("a", "NaN", "1", 1) + "," + kernel("b", "20", "-3", 2) + "," + taken)), "");
  const auto without = [](std::string event, const std::string& part, const std::string& other) {
    return event.replace(event.find(part), part.size(), other);
  };
  const std::pair<std::string, std::string> cases[] = {
      {without(taken, R"("ts":10)", R"("ts":"never")"), "a memory event without a usable \"ts\""},
      {without(taken, R"("Bytes":512)", R"("Bytes":"many")"), "a memory event without a usable size was dropped"},
      {without(taken, R"("Addr":4096,)", ""), "memory events without addresses"},
      {without(taken, R"("args":)", R"("args" )"), "an event is not valid JSON"},
      {given, "blocks allocated before the capture"}};
  for (const auto& [event, says] : cases)
    EXPECT_EQ(memory_doubt(read_events(taken + "," + memory_event("512", "8192", 3) + "," + event + "," + given))
                  .substr(0, says.size()),
              says)
        << event;
  const std::string total = without(given, R"("Device Id")", R"("Total Allocated":0,"Device Id")");
  EXPECT_EQ(memory_doubt(read_events(total)), "") << "what was there is known";
  const std::string whole = "{\"traceEvents\": [" + taken + "," + taken;
  EXPECT_EQ(memory_doubt(read_text(whole.substr(0, whole.size() - 20))).substr(0, 13), "the file ends");
}

// A thread may be written as a number and as a text; a stream may be named in "tid" alone.
TEST(Kineto, KnowsThreadsByNumberAndText) {
  const Trace trace =
      read_events(R"({"ph":"X","cat":"cuda_runtime","name":"cudaMalloc","pid":"1","tid":"5","ts":10,"dur":1},)" +
                  call("cudaFree", "12", "1", 1) +
                  R"(,{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 20","ts":20,"dur":1})");
  ASSERT_EQ(trace.ops.size(), 3U);
  EXPECT_EQ(trace.ops.lane[0], trace.ops.lane[1]);
  EXPECT_EQ(trace.lanes[index_of(trace.ops.lane[2])].number, 20);
}

// Threads of any number of processes, named by words and all of one number, are threads of their own.
TEST(Kineto, ThreadsOfOneNumberStayApart) {
  std::string events;
  for (int process = 0; process < 300; ++process)
    events += std::string(process == 0 ? "" : ",") + R"({"ph":"X","cat":"cuda_runtime","name":"cudaMalloc","pid":"p)" +
              static_cast<char>('a' + process % 26) + std::string(static_cast<std::size_t>(process / 26), 'x') +
              R"(","tid":5,"ts":)" + std::to_string(10 + process) + R"(,"dur":1})";
  const Trace trace = read_events(events);
  ASSERT_EQ(trace.lanes.size(), 300U);
  std::set<std::int64_t> numbers;
  for (const Lane& lane : trace.lanes) numbers.insert(lane.number);
  EXPECT_EQ(numbers.size(), 300U);
}

// JSON may write any letter as \u and four digits, in keys and values alike.
TEST(Kineto, EscapedLettersAreLetters) {
  const std::string plain_text =
      call("cudaLaunchKernel", "10", "1", 1) + "," + kernel("gemm", "20", "5", 1) + "," +
      R"({"ph":"X","cat":"cpu_op","name":"ProfilerStep#3","pid":1,"tid":5,"ts":9,"dur":20},)" +
      R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":30,"dur":2},)" +
      R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":5,"ts":11,)" +
      R"("args":{"Device Type":1,"Device Id":0,"Addr":4096,"Bytes":512}})";
  const Trace expected = read_events(plain_text);
  ASSERT_EQ(expected.ops.size(), 3U);
  for (const std::string word :
       {"X", "cat", "ph", "kernel", "cuda_runtime", "cudaLaunchKernel", "cpu_op", "ProfilerStep", "gpu_memcpy", "HtoD",
        "memory", "correlation", "Bytes", "args", "name", "dur", "pid"}) {
    std::string escaped = plain_text;
    constexpr std::string_view digits = "0123456789abcdef";
    const auto letter = static_cast<unsigned char>(word.back());
    const std::string code = std::string("\\u00") + digits[letter >> 4U] + digits[letter & 15U];
    for (std::size_t at = escaped.find(word); at != std::string::npos; at = escaped.find(word, at + 1))
      escaped.replace(at + word.size() - 1, 1, code);
    const Trace trace = read_events(escaped);
    ASSERT_EQ(trace.ops.size(), 3U) << word;
    EXPECT_EQ(trace.ops.kind, expected.ops.kind) << word;
    EXPECT_EQ(trace.ops.launched_by, expected.ops.launched_by) << word;
    EXPECT_EQ(trace.ops.duration, expected.ops.duration) << word;
    for (std::size_t op = 0; op < 3; ++op) EXPECT_EQ(text_of(trace, op), text_of(expected, op)) << word;
    EXPECT_EQ(trace.steps.size(), expected.steps.size()) << word;
    ASSERT_EQ(trace.memory_events.size(), 1U) << word;
    EXPECT_EQ(trace.memory_events[0].bytes, Bytes(512)) << word;
  }
}

// cuda_sync events say exactly which stream and which record a call waited for, against what the order suggests.
TEST(Kineto, TakesRecordedSyncs) {
  const std::string events =
      call("cudaLaunchKernel", "10", "1", 1) + "," + call("cudaEventRecord", "12", "1", 2) + "," +
      call("cudaLaunchKernel", "14", "1", 3) + "," + call("cudaEventRecord", "16", "1", 4) + "," +
      call("cudaStreamWaitEvent", "18", "1", 5) + "," + call("cudaLaunchKernel", "20", "1", 6) + "," +
      call("cudaStreamSynchronize", "22", "1", 7) + "," + kernel("a", "30", "1", 1) + "," +
      kernel("b", "30", "1", 3, 20) + "," + kernel("c", "40", "1", 6, 24) +
      R"(,{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":24,"ts":18,"dur":1,"args":{"stream":24,)"
      R"("wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2,"correlation":5,"device":0}})"
      R"(,{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":22,"dur":1,"args":{"stream":7,)"
      R"("correlation":7,"device":0}})";
  const Trace trace = read_events(events);
  const Sync* wait = trace.sync_of(OpId(4));
  ASSERT_NE(wait, nullptr);
  EXPECT_FALSE(wait->inferred);
  EXPECT_EQ(wait->event, OpId(1));
  EXPECT_EQ(trace.lanes[index_of(wait->lane)].number, 24);
  const Sync* sync = trace.sync_of(OpId(6));
  ASSERT_NE(sync, nullptr);
  EXPECT_FALSE(sync->inferred);
  EXPECT_EQ(trace.lanes[index_of(sync->lane)].number, 7);
}

// bytes = elements of the input * size of the type; a receiver has only an output.
TEST(Kineto, ReadsArgumentsOfCollectives) {
  const auto collective = [](const char* what, int in, int out, const char* ts) {
    return R"({"ph":"X","cat":"kernel","name":"ncclKernel","pid":0,"tid":20,"ts":)" + std::string(ts) +
           R"(,"dur":5,"args":{"device":0,"stream":20,"Collective name":")" + what + R"(","In msg nelems":)" +
           std::to_string(in) + R"(,"Out msg nelems":)" + std::to_string(out) +
           R"(,"Group size":8,"dtype":"BFloat16","Process Group Name":"7"}})";
  };
  const Trace trace =
      read_events(collective("_allgather_base", 100, 800, "10") + "," + collective("recv", 0, 30, "20"));
  ASSERT_EQ(trace.collectives.size(), 2U);
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::all_gather);
  EXPECT_EQ(trace.collectives[0].bytes, Bytes(200));
  EXPECT_EQ(trace.collectives[0].group_size, 8U);
  EXPECT_EQ(trace.strings.text(trace.collectives[0].group), "7");
  EXPECT_EQ(trace.collectives[1].kind, CollectiveKind::receive);
  EXPECT_EQ(trace.collectives[1].bytes, Bytes(60));
  EXPECT_EQ(trace.ops.bytes[0], Bytes(200));
}

// Flow events, whole or not, add nothing; neither does the profiler's own "Trace" row.
TEST(Kineto, IgnoresFlows) {
  const Trace trace =
      read_events(R"({"ph":"f","id":3,"pid":1,"tid":5,"ts":9,"cat":"fwdbwd","name":"fwdbwd","bp":"e"},)" +
                  kernel("a", "10", "1", 1) +
                  R"(,{"ph":"X","cat":"Trace","ts":10,"dur":9,"pid":"Spans","tid":"PyTorch Profiler","name":"x"})");
  EXPECT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.spans.size(), 0U);
  ASSERT_EQ(trace.findings.size(), 1U);
  EXPECT_EQ(trace.findings[0].kind, "missing_launch");
}

TEST(Kineto, RefusesWhatIsNoTrace) {
  EXPECT_THROW(read_text(""), InputError);
  EXPECT_THROW(read_text("{\"nodes\": []}"), InputError);
  EXPECT_THROW(read_text("hello"), InputError);
  EXPECT_EQ(read_events("").ops.size(), 0U);
}

// Opening a capture also fits it. In this file work on an idle stream starts 10 us after its launch, sometimes 30.
TEST(Kineto, IsFittedWhenOpened) {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  const auto path = std::filesystem::path(root == nullptr ? "." : root) / "tests/fuzz/seeds/kineto/queue.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  EXPECT_EQ(read_trace(path.string()).capture_fit.launch_to_start, microseconds(10));
}

std::filesystem::path data(const char* name) {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::filesystem::path(root == nullptr ? "." : root) / "../shared/data/traces" / name;
}

class KinetoFile : public testing::Test {
 protected:
  static Trace read(const std::filesystem::path& path) {
    ByteSource source = ByteSource::open(path.string(), no_limit);
    Trace trace = read_kineto(source, {});
    derive(trace);
    trace.check_invariants();
    return trace;
  }
};

// Five steps of 336 to 366 ms in which the GPU works 188.1 to 188.5 ms, in the last one 247.6 ms.
TEST_F(KinetoFile, DfIndexResolver) {
  const auto path = data("hta/df_index_resolver.json.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  const Trace trace = read(path);
  const TraceSummary summary = summarize(trace);
  EXPECT_EQ(summary.events, 216'092U);
  EXPECT_EQ(summary.kernels, 19'370U);
  EXPECT_EQ(summary.memory_events, 28'010U);
  EXPECT_EQ(summary.device_memory_events, 26'770U);
  EXPECT_EQ(summary.peak_allocated_bytes, Bytes(6'629'508'096));
  EXPECT_EQ(summary.peak_reserved_bytes, Bytes(12'782'141'440));
  ASSERT_EQ(summary.steps.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    const double busy = to_seconds(summary.steps[i].gpu_busy) * 1e3;
    EXPECT_NEAR(busy, i < 4 ? 188.3 : 247.6, 0.2);
    EXPECT_EQ(summary.steps[i].gpu_busy, summary.steps[i].gpu_work);
    EXPECT_GE(summary.steps[i].duration, milliseconds(336));
    EXPECT_LE(summary.steps[i].duration, milliseconds(366));
  }
  // Each step has kernels of all three phases.
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    std::vector<int> kernels(summary.steps.size(), 0);
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.ops.kind[i] == OpKind::kernel && trace.ops.phase[i] == phase && trace.ops.step[i] != no_index16)
        ++kernels[trace.ops.step[i]];
    for (const int count : kernels) EXPECT_GT(count, 0) << to_string(phase);
  }
  // TotalAllocated[i+1] = TotalAllocated[i] + Bytes
  Bytes running{-1};
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0) continue;
    const Bytes change = event.action == MemoryAction::allocate ? event.bytes : -event.bytes;
    if (running >= Bytes(0)) {
      ASSERT_EQ(event.total_allocated, running + change);
    }
    running = event.total_allocated;
  }
}

// The counts of the trap table.
TEST_F(KinetoFile, Traps) {
  const auto check = [](const char* file, const char* kind, std::uint64_t count) {
    if (std::filesystem::exists(data(file))) {
      EXPECT_EQ(count_of(read(data(file)), kind), count) << file;
    }
  };
  check("hta/trace_diff_test_V100_ws2_rank1.json.gz", "missing_launch", 614);
  check("hta/trace_diff_test_V100_ws2_rank1.json.gz", "stream_overlap", 31);
  check("tracelens/resnet_act_checkpoint.json.gz", "missing_launch", 968);
  check("triosim/profiler_vgg13-iter41.json.gz", "free_of_earlier_block", 28);
  check("kineto-tb_plugin/resnet50_num_workers_0.1623143089861.pt.trace.json.gz", "memory_without_address", 8220);
  if (!std::filesystem::exists(data("tracelens/resnet_act_checkpoint.json.gz"))) GTEST_SKIP() << "needs the data";
  EXPECT_EQ(summarize(read(data("tracelens/resnet_act_checkpoint.json.gz"))).steps.size(), 3U);
}

}  // namespace
}  // namespace spillway::traces
