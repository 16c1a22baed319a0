#include "reports/pictures/timeline_svg.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "base/svg_text.h"
#include "models/step/trace_generator.h"
#include "sim/pictures/timeline_lanes.h"
#include "sim/replay/replayed_trace.h"
#include "tests/models/example_profile.h"

namespace spillway::reports {
namespace {

struct Replay {
  Trace trace;
  Result result;
};

LaneId add_lane(Trace& trace, LaneKind kind, std::int64_t number, std::string_view name) {
  Lane lane;
  lane.kind = kind;
  lane.device = kind == LaneKind::host_thread ? std::int16_t{-1} : std::int16_t{0};
  lane.number = number;
  lane.name = trace.strings.intern(name);
  return trace.lane(lane);
}

OpId add_op(Replay& replay, LaneId lane, OpKind kind, Phase phase, std::string_view name, Picos start, Picos duration) {
  OpRow row;
  row.name = replay.trace.strings.intern(name);
  row.kind = kind;
  row.phase = phase;
  row.lane = lane;
  row.start = start;
  row.duration = duration;
  replay.result.op_start.push_back(start);
  replay.result.op_end.push_back(start == unknown_time ? unknown_time : start + duration);
  return replay.trace.append_op(row);
}

// Every op at its recorded time, and memory rising to a peak in the middle.
void replay_as_recorded(Replay& replay) {
  Result& result = replay.result;
  const Ops& ops = replay.trace.ops;
  result.op_start = ops.start;
  result.op_end = ops.start;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.start[i] == unknown_time || ops.duration[i] == unknown_time) continue;
    result.op_end[i] = ops.start[i] + ops.duration[i];
    result.replayed = std::max(result.replayed, result.op_end[i]);
  }
  result.step_time = result.replayed;
  result.steps = {{"step 0", Picos(0), result.replayed / 2}, {"step 1", result.replayed / 2, result.replayed}};
  result.breakdown[static_cast<std::size_t>(Binding::compute)] = result.replayed * 6 / 10;
  result.breakdown[static_cast<std::size_t>(Binding::hbm)] = result.replayed * 3 / 10;
  result.breakdown[static_cast<std::size_t>(Binding::pcie)] = result.replayed / 50;
  result.breakdown[static_cast<std::size_t>(Binding::host)] = result.replayed * 8 / 100;
  result.binding = Binding::compute;
  MemoryResult& memory = result.memory;
  memory.known = true;
  memory.allocator = "PyTorch caching allocator";
  memory.capacity = memory.limit = Bytes(std::int64_t{10} << 30);
  for (int i = 0; i <= 1000; ++i) {
    const Bytes allocated(std::int64_t{i <= 500 ? i : 1000 - i} * (15 << 20) + (1 << 30));
    const Bytes reserved = std::max(memory.peak_reserved, allocated + Bytes(300 << 20));
    memory.timeline.push_back({result.replayed / 1000 * i, allocated, reserved});
    if (allocated > memory.peak_allocated)
      memory.peak_allocated = allocated, memory.peak_time = memory.timeline.back().time;
    memory.peak_reserved = reserved;
  }
  memory.owners = {{"activations", Bytes(std::int64_t{5} << 30)}, {"weights", Bytes(1 << 30)}};
}

Replay gpt2() {
  TrainingSetup setup;
  setup.micro_batch = 4;
  setup.sequence = 1024;
  Replay replay;
  replay.trace = generate_trace(find_model("gpt2-small"), setup, CostModel(example_profile()));
  replay.result.title = "GPT-2 small on one GPU, micro-batch 4 & sequence 1024";
  replay_as_recorded(replay);
  return replay;
}

// `count` kernels of a microsecond, every tenth a thousand times as long.
Replay many_ops(int count) {
  Replay replay;
  std::vector<LaneId> lanes;
  for (int i = 0; i < 12; ++i)
    lanes.push_back(add_lane(replay.trace, LaneKind::stream, i, "stream " + std::to_string(i)));
  Picos at{};
  for (int i = 0; i < count; ++i) {
    const Picos duration = microseconds(i % 10 == 0 ? 1000 : 1);
    const std::string name(200, static_cast<char>('a' + i % 26));
    add_op(replay, lanes[static_cast<std::size_t>(i) % 12], OpKind::kernel, static_cast<Phase>(i % phase_count), name,
           at, duration);
    at += duration / 12;
  }
  replay_as_recorded(replay);
  return replay;
}

// True if tags nest, attributes are quoted, and no bare & or < is left: what XML asks of the subset written here.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&' && xml.compare(i, 5, "&amp;") != 0 && xml.compare(i, 4, "&lt;") != 0 &&
        xml.compare(i, 4, "&gt;") != 0 && xml.compare(i, 6, "&quot;") != 0)
      return false;
    if (xml[i] != '<') continue;
    const std::size_t end = xml.find('>', i);
    const std::string tag = xml.substr(i + 1, end == std::string::npos ? end : end - i - 1);
    if (end == std::string::npos || tag.find('<') != std::string::npos || tag.empty()) return false;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    i = end;
    if (tag[0] == '?') continue;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
      if (std::isalpha(static_cast<unsigned char>(tag[0])) == 0) return false;
    }
  }
  return open.empty();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(TimelineSvg, ShowsLanesStepsMemoryAndBreakdownOfATrainingStep) {
  const Replay replay = gpt2();
  const std::string svg = timeline_svg(replay.trace, replay.result);
  EXPECT_TRUE(well_formed(svg));
  for (const Lane& lane : replay.trace.lanes)
    EXPECT_TRUE(has(svg, "<title>" + std::string(replay.trace.strings.text(lane.name)) + "</title>"));
  EXPECT_TRUE(has(svg, ">capacity 10.00 GiB<"));
  EXPECT_TRUE(has(svg, ">peak 8.32 GiB<"));  // 1 GiB + 500 * 15 MiB
  EXPECT_TRUE(has(svg, "Fits with 1.38 GiB free of 10.0 GiB; peak 8.62 GiB of 10.00 GiB."));
  EXPECT_TRUE(has(svg, "Bound by GPU arithmetic (60% of the time)."));
  EXPECT_TRUE(has(svg, ">step 1<"));
  for (const auto color : {WorkColor::forward, WorkColor::backward, WorkColor::optimizer})
    EXPECT_TRUE(has(svg, describe(color)));
  EXPECT_FALSE(has(svg, describe(WorkColor::communication)));  // the legend names only what is drawn
  EXPECT_FALSE(has(svg, "<script"));
  // For eyes: SPILLWAY_SVG_OUT=folder keeps the pictures.
  if (const char* folder = std::getenv("SPILLWAY_SVG_OUT")) {
    std::ofstream(std::string(folder) + "/gpt2.svg") << svg;
    Replay full = many_ops(30'000);
    full.result.memory.out_of_memory = true;
    full.result.memory.short_of = Bytes(1 << 30);
    full.result.memory.capacity = Bytes(std::int64_t{8} << 30);
    full.result.memory.explanation = "An activation of 512 MiB was asked for when 7.9 GiB were held.";
    std::ofstream(std::string(folder) + "/many.svg") << timeline_svg(full.trace, full.result);
    std::ofstream(std::string(folder) + "/narrow.svg") << timeline_svg(replay.trace, replay.result, {640, 12});
  }
}

TEST(TimelineSvg, EqualInputsGiveEqualBytes) {
  const Replay a = gpt2(), b = gpt2();
  EXPECT_EQ(timeline_svg(a.trace, a.result), timeline_svg(b.trace, b.result));
}

// The size is bounded by the pixels, not by the ops.
TEST(TimelineSvg, AHundredThousandOpsStayUnderTwoMegabytes) {
  const Replay replay = many_ops(100'000);
  const std::string svg = timeline_svg(replay.trace, replay.result);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_LT(svg.size(), 2'000'000U);
  RecordProperty("bytes", static_cast<int>(svg.size()));
}

TEST(TimelineSvg, AnEmptyResultStillMakesAPicture) {
  const std::string svg = timeline_svg(Trace(), Result());
  EXPECT_TRUE(well_formed(svg));
  EXPECT_TRUE(has(svg, "Nothing was replayed."));
  EXPECT_TRUE(has(svg, "Unknown: the trace has no usable memory events."));
}

TEST(TimelineSvg, EscapesNames) {
  Replay replay;
  const LaneId lane = add_lane(replay.trace, LaneKind::stream, 7, "stream <7> & \"co\"");
  add_op(replay, lane, OpKind::kernel, Phase::forward, "gemm<float, 4>&\x01\xFF", Picos(0), microseconds(10));
  replay_as_recorded(replay);
  replay.result.title = "a < b & c";
  replay.result.steps[0].name = "<step>";
  replay.result.memory.owners = {{"<owner> & co", Bytes(1)}};
  const std::string svg = timeline_svg(replay.trace, replay.result);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_TRUE(has(svg, "stream &lt;7&gt; &amp; &quot;co&quot;"));
  EXPECT_TRUE(has(svg, "gemm&lt;float, 4&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD, 10.00"));
}

TEST(TimelineSvg, SaysByHowMuchItDoesNotFit) {
  Replay replay = gpt2();
  replay.result.memory.capacity = Bytes(std::int64_t{8} << 30);
  replay.result.memory.out_of_memory = true;
  replay.result.memory.short_of = Bytes(600 << 20);
  replay.result.memory.explanation = "The last block asked for was an activation.";
  const std::string svg = timeline_svg(replay.trace, replay.result);
  for (const char* const part : {"Does not fit: 0.586 GiB short on the", "8.62 GiB of"})
    EXPECT_TRUE(has(svg, part)) << svg.substr(svg.find("Does not fit"), 200);
  EXPECT_TRUE(has(svg, "The last block asked for was an activation."));
}

// 10 GiB, of which 1 GiB is margin and 512 MiB are taken: 888 MiB are left of 9.5 GiB, less than the margin.
TEST(TimelineSvg, SaysWhatIsKeptFreeAndWhenThatIsTight) {
  Replay replay = gpt2();
  replay.result.reserve.taken = Bytes(512 << 20);
  replay.result.reserve.margin = Bytes(1 << 30);
  replay.result.memory.limit = Bytes((std::int64_t{17} << 29) + (std::int64_t{512} << 20));
  EXPECT_TRUE(has(timeline_svg(replay.trace, replay.result), "peak 8.62 GiB of 10.00 GiB, 1.50 GiB of it kept free."));
  replay.result.memory.is_tight = true;
  replay.result.memory.limit = Bytes(std::int64_t{19} << 29);
  const std::string svg = timeline_svg(replay.trace, replay.result);
  const sim::MemoryResult& memory = replay.result.memory;
  EXPECT_TRUE(has(svg, "Tight: runs with " + short_size(memory.limit - memory.peak_reserved) + " free"));
  EXPECT_TRUE(has(svg, "margin of 1.00 GiB"));
}

TEST(TimelineSvg, LanesBeyondTheLimitAreNamedInANote) {
  Replay replay;
  for (int i = 0; i < 15; ++i) {
    const LaneId lane = add_lane(replay.trace, LaneKind::stream, i, "lane-" + std::to_string(100 + i));
    add_op(replay, lane, OpKind::kernel, Phase::forward, "k", Picos(0), microseconds(100 - i));
  }
  replay_as_recorded(replay);
  const std::string svg = timeline_svg(replay.trace, replay.result);
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(has(svg, "lane-" + std::to_string(100 + i)));
  EXPECT_TRUE(has(svg, "Less busy, not drawn: lane-112, lane-113, lane-114."));
}

TEST(FoldLanes, OpsNotReplayedOrOutsideTheSpanAreNotDrawn) {
  Replay replay;
  const LaneId seen = add_lane(replay.trace, LaneKind::stream, 7, "seen");
  const LaneId unseen = add_lane(replay.trace, LaneKind::stream, 8, "unseen");
  const OpId inside = add_op(replay, seen, OpKind::kernel, Phase::forward, "inside", Picos(0), microseconds(50));
  add_op(replay, unseen, OpKind::kernel, Phase::forward, "never", unknown_time, microseconds(50));
  add_op(replay, unseen, OpKind::kernel, Phase::forward, "late", microseconds(100), microseconds(50));
  add_op(replay, unseen, OpKind::kernel, Phase::forward, "early", microseconds(-50), microseconds(20));
  const std::vector<LaneRow> rows = fold_lanes(replay.trace, replay.result, microseconds(100), 1000);
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].blocks.size(), 1U);
  EXPECT_EQ(rows[0].blocks[0].op, inside);
  EXPECT_DOUBLE_EQ(rows[0].blocks[0].x, 0);
  EXPECT_DOUBLE_EQ(rows[0].blocks[0].width, 500);
  replay.result.replayed = microseconds(100);
  const std::string svg = timeline_svg(replay.trace, replay.result);
  for (const char* name : {"never", "late", "early", "unseen"}) EXPECT_FALSE(has(svg, name)) << name;
}

// 100 columns of 10 us: the first filled to 30% forward and 25% backward, the second by one op without duration.
TEST(FoldLanes, WorkShorterThanAPixelTakesTheColourOfTheMost) {
  Replay replay;
  const LaneId lane = add_lane(replay.trace, LaneKind::stream, 7, "s");
  add_op(replay, lane, OpKind::kernel, Phase::forward, "a", microseconds(0), microseconds(3));
  add_op(replay, lane, OpKind::kernel, Phase::backward, "b", microseconds(5), nanoseconds(2500));
  add_op(replay, lane, OpKind::copy_host_to_device, Phase::unknown, "c", microseconds(15), Picos(0));
  const std::vector<LaneRow> rows = fold_lanes(replay.trace, replay.result, microseconds(1000), 100);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].blocks.empty());
  ASSERT_EQ(rows[0].runs.size(), 2U);
  EXPECT_EQ(rows[0].runs[0].color, WorkColor::forward);
  EXPECT_EQ(rows[0].runs[0].level, 2);  // over half busy
  EXPECT_EQ(rows[0].runs[1].first, 1);
  EXPECT_EQ(rows[0].runs[1].color, WorkColor::copy);
  EXPECT_EQ(rows[0].busy, nanoseconds(5500));
}

TEST(SvgText, UnitsAndTicks) {
  EXPECT_EQ(duration_text(microseconds(1250)), "1.25 ms");
  EXPECT_EQ(duration_text(Picos(0)), "0 ps");
  EXPECT_EQ(bytes_text(Bytes(-(std::int64_t{3} << 30))), "-3.00 GiB");
  const std::vector<Tick> ticks = time_ticks(milliseconds(512), 5);
  ASSERT_EQ(ticks.size(), 3U);  // 512 / 5 = 102.4: steps of 200 ms
  EXPECT_EQ(ticks[1].at, milliseconds(200).count());
  EXPECT_EQ(ticks[1].label, "200");
  EXPECT_EQ(ticks[2].label, "400 ms");
  EXPECT_EQ(byte_ticks(Bytes(std::int64_t{1} << 30), 4)[1].label, "0.5 GiB");
  EXPECT_TRUE(time_ticks(Picos(0), 5).empty());
  for (const std::int64_t span :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{999}, std::int64_t{123456789}, Picos::max().count()})
    EXPECT_LE(time_ticks(Picos(span), 8).size(), 21U) << span;
}

TEST(SvgText, ShortensAndWrapsToTheRoom) {
  const std::string cut = fit_text("a rather long name of a kernel", 10, 100);
  EXPECT_LE(text_width(cut, 10), 100);
  EXPECT_TRUE(has(cut, "\xE2\x80\xA6"));
  EXPECT_EQ(fit_text("short", 10, 100), "short");
  const std::vector<std::string> lines = wrap_text("one two three four five six seven eight nine ten", 10, 100, 3);
  ASSERT_EQ(lines.size(), 3U);
  for (const std::string& line : lines) EXPECT_LE(text_width(line, 10), 100);
  EXPECT_TRUE(has(lines.back(), "\xE2\x80\xA6"));
}

TEST(ReplayedTrace, CarriesReplayedTimes) {
  Replay replay;
  const LaneId lane = add_lane(replay.trace, LaneKind::stream, 7, "s");
  const OpId moved = add_op(replay, lane, OpKind::kernel, Phase::forward, "a", microseconds(5), microseconds(10));
  const OpId left_out = add_op(replay, lane, OpKind::kernel, Phase::forward, "b", microseconds(20), microseconds(10));
  replay.result.op_start = {microseconds(1), unknown_time};
  replay.result.op_end = {microseconds(4), unknown_time};
  replay.result.memory.timeline = {{Picos(0), Bytes(10), Bytes(16)}, {microseconds(2), Bytes(4), Bytes(16)}};
  const Trace trace = replayed_trace(replay.trace, replay.result);
  trace.check_invariants();
  EXPECT_TRUE(trace.has(Capability::times));
  EXPECT_EQ(trace.ops.start[index_of(moved)], microseconds(1));
  EXPECT_EQ(trace.ops.duration[index_of(moved)], microseconds(3));
  EXPECT_EQ(trace.ops.start[index_of(left_out)], unknown_time);
  EXPECT_EQ(trace.ops.duration[index_of(left_out)], unknown_time);
  ASSERT_EQ(trace.memory_events.size(), 3U);  // reserve 16, allocate 10, free 6
  EXPECT_EQ(trace.memory_events[0].action, MemoryAction::segment_allocate);
  EXPECT_EQ(trace.memory_events[1].bytes, Bytes(10));
  EXPECT_EQ(trace.memory_events[2].action, MemoryAction::free_completed);
  EXPECT_EQ(trace.memory_events[2].bytes, Bytes(6));
  EXPECT_EQ(trace.memory_events[2].time, microseconds(2));
  EXPECT_EQ(trace.memory_events[2].total_allocated, Bytes(4));
}

}  // namespace
}  // namespace spillway::reports
