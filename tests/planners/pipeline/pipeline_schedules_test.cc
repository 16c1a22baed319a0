// Named schedules against closed forms, published tables and a worked example.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/optimizer_window.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"
#include "tests/planners/pipeline_files.h"

namespace spillway::planners {
namespace {

PipelineRequest sizes(std::int64_t p, std::int64_t m, std::int64_t v = 0) {
  PipelineRequest request;
  request.devices = p;
  request.micro_batches = m;
  request.chunks = v;
  return request;
}

struct Played {
  PipelinePlan plan;
  PipelineTimeline timeline;
  std::vector<double> peaks;
  [[nodiscard]] double worst_peak() const { return *std::max_element(peaks.begin(), peaks.end()); }
  // Of the device that has most of it, in ticks.
  [[nodiscard]] Ticks idle() const {
    return timeline.makespan - *std::min_element(timeline.work.begin(), timeline.work.end());
  }
};

Played play(const std::string& name, const PipelineRequest& request, const StageTimes& times) {
  PipelineRequest timed = request;
  timed.times = times;
  Played played{build_schedule(name, timed), {}, {}};
  check_plan(played.plan);
  played.timeline = execute_plan(played.plan, times);
  played.peaks = activation_peaks(played.plan, played.timeline);
  return played;
}

StageTimes times_of(Ticks forward, Ticks input, Ticks weight, Ticks transfer = 0) {
  StageTimes times;
  times.positions = {{forward, input, weight, forward}};
  times.transfer = transfer;
  return times;
}

std::string orders(const PipelinePlan& plan, std::size_t device) {
  std::string text;
  for (const PipelineOp& op : plan.compute[device]) {
    if (!text.empty()) text += ' ';
    const bool deep = op.pass.chunk == 1;
    text += op.kind == PipelineOpKind::forward ? (deep ? 'F' : 'f') : (deep ? 'B' : 'b');
    text += std::to_string(op.pass.micro_batch);
  }
  return text;
}

// Derived by hand from the block's offsets k = [0, 3], l = [3, 0]; f and b are the shallow chunk, F and B the deep one.
TEST(PipelineSchedules, ChronosWorkedExample) {
  const Played played = play("chronos", sizes(4, 8, 2), times_of(1, 1, 1));
  EXPECT_EQ(orders(played.plan, 0),
            "f0 f1 F0 f2 F1 f3 B0 F2 f4 B1 F3 b0 f5 B2 F4 b1 f6 B3 F5 b2 f7 B4 F6 b3 B5 F7 b4 B6 b5 B7 b6 b7");
  EXPECT_EQ(orders(played.plan, 1),
            "f0 f1 F0 f2 F1 B0 f3 F2 B1 f4 b0 F3 B2 f5 b1 F4 B3 f6 b2 F5 B4 f7 b3 F6 B5 b4 F7 B6 b5 B7 b6 b7");
  EXPECT_EQ(orders(played.plan, 2),
            "f0 f1 F0 f2 B0 F1 f3 B1 F2 b0 f4 B2 F3 b1 f5 B3 F4 b2 f6 B4 F5 b3 f7 B5 F6 b4 B6 F7 b5 B7 b6 b7");
  EXPECT_EQ(orders(played.plan, 3),
            "f0 f1 F0 B0 f2 F1 B1 f3 b0 F2 B2 f4 b1 F3 B3 f5 b2 F4 B4 f6 b3 F5 B5 f7 b4 F6 B6 b5 F7 B7 b6 b7");
  EXPECT_EQ(played.timeline.makespan, 66);
  EXPECT_EQ(played.peaks, (std::vector<double>{3.5, 3, 2.5, 2}));
}

// t_b = 2 t_f: bubble (p-1)/(m+p-1), 1F1B's; peak p (v+1) / (2 v) plus what rounding slots to tiles costs.
TEST(PipelineSchedules, ChronosGrid) {
  std::size_t cases = 0;
  for (std::int64_t p = 2; p <= 16; ++p) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (const std::int64_t m : {p, 2 * p, 4 * p}) {
        SCOPED_TRACE("p " + std::to_string(p) + " m " + std::to_string(m) + " v " + std::to_string(v));
        const Played played = play("chronos", sizes(p, m, v), times_of(1, 1, 1));
        EXPECT_EQ(played.timeline.makespan, 3 * v * (m + p - 1));
        const double ideal = static_cast<double>(p * (v + 1)) / static_cast<double>(2 * v);
        EXPECT_GE(played.worst_peak(), ideal);
        EXPECT_LE(played.worst_peak(), ideal + 1.125);
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 135u);
}

// With the r shallow chunks recomputed: p (v-r) (v-r+1) / (2 v^2) held, and one chunk being recomputed.
TEST(PipelineSchedules, ChronosRecomputed) {
  for (std::int64_t p = 2; p <= 16; ++p) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t r = 1; r < v; ++r) {
        SCOPED_TRACE("p " + std::to_string(p) + " v " + std::to_string(v) + " r " + std::to_string(r));
        PipelineRequest request = sizes(p, 4 * p, v);
        request.recomputed_chunks = r;
        const Played played = play("chronos", request, times_of(1, 1, 1));
        const auto dv = static_cast<double>(v), deep = static_cast<double>(v - r);
        const double formula = static_cast<double>(p) * deep * (deep + 1) / (2 * dv * dv) + 1 / dv;
        EXPECT_NEAR(played.worst_peak(), formula, 1.125);
        EXPECT_EQ(played.timeline.work[0], 4 * p * (3 * v + r));  // r forwards more per micro-batch
      }
    }
  }
}

// p 8, v 2: a quarter of 1F1B's 8 micro-batches and half of one while a chunk is recomputed.
TEST(PipelineSchedules, HalfRecomputedIsAQuarterOfOneFOneB) {
  PipelineRequest request = sizes(8, 32, 2);
  request.recomputed_chunks = 1;
  EXPECT_EQ(play("chronos", request, times_of(1, 1, 1)).worst_peak(), 2.5);
}

// Checkpoints are counted apart: 10 % of a chunk's activations kept by each of the passes that wait.
TEST(PipelineSchedules, CheckpointsOfRecomputedChunks) {
  PipelineRequest request = sizes(4, 8, 2);
  request.recomputed_chunks = 1;
  const Played played = play("chronos", request, times_of(1, 1, 1));
  const double without = played.peaks[0];
  const double with = activation_peaks(played.plan, played.timeline, {.checkpoint = 100'000})[0];
  EXPECT_GT(with, without);
  EXPECT_LT(with, without + 0.1 * 4);
}

// Bubble over the whole step, for any times: GPipe and 1F1B (p-1)(t_f+t_b), interleaved (p-1)(t_f+t_b)/v.
TEST(PipelineSchedules, OneFOneBFamilyClosedForms) {
  for (const std::int64_t p : {1, 2, 3, 4, 7, 8, 16}) {
    const StageTimes times = times_of(12, 10, 8);
    EXPECT_EQ(play("gpipe", sizes(p, 2 * p), times).idle(), (p - 1) * 30);
    EXPECT_EQ(play("1f1b", sizes(p, 2 * p), times).idle(), (p - 1) * 30);
    EXPECT_EQ(play("eager-1f1b", sizes(p, 2 * p), times).idle(), (p - 1) * 30);
    EXPECT_EQ(play("interleaved", sizes(p, 2 * p, 3), times).idle(), (p - 1) * 30);  // chunks as long as stages here
    EXPECT_EQ(play("1f1b", sizes(p, 4 * p), times).worst_peak(), static_cast<double>(p));
    EXPECT_EQ(play("interleaved", sizes(p, 2 * p, 3), times).worst_peak(), static_cast<double>(3 * p + p - 1) / 3);
  }
}

// Zero Bubble, Table 2: (p-1)(T_F+T_B-T_W) and (p-1)(T_F+T_B-2 T_W); memory p and 2 p - 1. T_B >= T_W, no transfers.
TEST(PipelineSchedules, HandcraftedZeroBubbleClosedForms) {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    const StageTimes times = times_of(11, 11, 9);
    const Played first = play("zb-h1", sizes(p, 3 * p), times), second = play("zb-h2", sizes(p, 3 * p), times);
    const Ticks work = 3 * p * 31;
    EXPECT_EQ(first.timeline.longest_span - work, (p - 1) * (11 + 11 - 9));
    EXPECT_EQ(second.timeline.longest_span - work, (p - 1) * (11 + 11 - 18));
    EXPECT_EQ(first.worst_peak(), static_cast<double>(p));
    EXPECT_EQ(second.worst_peak(), static_cast<double>(2 * p - 1));
  }
}

// PipeOffload, Table 1, chunk times: GIS (p-1)(T_F+T_B); GIS-H that plus (v-1) p/2 (T_F+T_B-T_W). Memory p and
// p (v+1) / (2 v).
TEST(PipelineSchedules, GroupedClosedForms) {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    for (const std::int64_t v : {2, 3, 4}) {
      SCOPED_TRACE("p " + std::to_string(p) + " v " + std::to_string(v));
      const Played whole = play("gis", sizes(p, 4 * p, v), times_of(1, 1, 1));
      const Played half = play("gis-h", sizes(p, 4 * p, v), times_of(1, 1, 1));
      EXPECT_EQ(whole.idle(), (p - 1) * 2);
      EXPECT_EQ(half.idle(), (p - 1) * 2 + (v - 1) * p / 2);
      EXPECT_EQ(whole.worst_peak(), static_cast<double>(p));
      EXPECT_EQ(half.worst_peak(), static_cast<double>(p * (v + 1)) / static_cast<double>(2 * v));
    }
  }
}

// DualPipe's README: (PP/2-1)(F&B + B - 3 W) on the middle devices, which overlap most, B the whole backward; PP + 1
// micro-batches. V: PP = 2 p halves of stages.
TEST(PipelineSchedules, DualPipeClosedForms) {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    for (const Ticks saved : {0, 4}) {
      StageTimes times = times_of(10, 10, 10);
      times.paired = 30 - saved;
      const Played dual = play("dualpipe", sizes(p, 4 * p), times);
      EXPECT_EQ(dual.idle(), (p / 2 - 1) * (30 - saved + 20 - 30)) << p << ' ' << saved;
      EXPECT_EQ(dual.worst_peak(), static_cast<double>(p + 1));
      const Played half = play("dualpipe-v", sizes(p, 4 * p), times);
      EXPECT_EQ(half.idle(), (p - 1) * (30 - saved + 20 - 30)) << p << ' ' << saved;
      EXPECT_EQ(half.worst_peak(), static_cast<double>(2 * p + 1) / 2);
    }
  }
}

// Chimera, section 3: (D-2) / (2 N + D - 2) where forwards and backwards take equally long; at most D micro-batches.
TEST(PipelineSchedules, ChimeraClosedForm) {
  for (const std::int64_t p : {2, 4, 6, 8, 16}) {
    for (const std::int64_t m : {p, 2 * p, 4 * p}) {
      const Played played = play("chimera", sizes(p, m), times_of(2, 1, 1));
      EXPECT_EQ(played.timeline.makespan, 2 * (2 * m + p - 2)) << p << ' ' << m;
      EXPECT_LE(played.worst_peak(), static_cast<double>(p));
    }
  }
}

// Hanayo with W waves and m = P: no more idle than the published (2P-2) / (3PW+P-1) at T_B = 2 T_F; memory as 1F1B's.
TEST(PipelineSchedules, HanayoWithinItsBound) {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    for (const std::int64_t waves : {1, 2}) {
      const Played played = play("hanayo", sizes(p, p, 2 * waves), times_of(1, 1, 1));
      EXPECT_LE(played.timeline.bubble_of_makespan(),
                static_cast<double>(2 * p - 2) / static_cast<double>(3 * p * waves + p - 1));
      EXPECT_LE(played.worst_peak(), static_cast<double>(p));
    }
  }
}

// (p-1+k)/k micro-batches; (p-1)(t_f+t_b) of a slice idle. Chunks divide both by v.
TEST(PipelineSchedules, SlicesClosedForms) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t k : {2, 4, 8}) {
      PipelineRequest request = sizes(p, p);
      request.slices = k;
      const Played played = play("seq1f1b", request, times_of(k, k, k));
      EXPECT_EQ(played.idle(), (p - 1) * 3);
      EXPECT_EQ(played.worst_peak(), static_cast<double>(p - 1 + k) / static_cast<double>(k));
    }
    const Played slim = play("slimpipe", sizes(p, p, 2), times_of(p, p, p));
    EXPECT_EQ(slim.worst_peak(), static_cast<double>(2 * p + p - 1) / static_cast<double>(2 * p));
  }
}

// BPipe: the first half of the devices hold at most ceil((p+2)/2) micro-batches, at no cost while a transfer is shorter
// than a backward; the second half hold theirs meanwhile, one more while it is on its way.
TEST(PipelineSchedules, BPipeBalancesMemory) {
  for (const std::int64_t p : {4, 6, 8, 16}) {
    StageTimes times = times_of(10, 10, 10);
    times.offload = times.reload = 8;
    const Played played = play("bpipe", sizes(p, 4 * p), times);
    EXPECT_EQ(played.idle(), (p - 1) * 30);
    for (std::int64_t d = 0; d < p; ++d)
      EXPECT_LE(played.peaks[static_cast<std::size_t>(d)], static_cast<double>((p + 3) / 2 + (d < p / 2 ? 0 : 1)));
  }
}

// Half the chunks offloaded: the peak of recomputing them instead, (v+2)/(8v) p and a chunk, at no cost while a round
// trip fits; all of them: a few chunks whatever p is.
TEST(PipelineSchedules, PipeOffload) {
  StageTimes times = times_of(10, 10, 10);
  times.offload = times.reload = 10;
  const Played uniform = play("po-uniform", sizes(8, 32, 2), times), half = play("po-h", sizes(8, 32, 2), times);
  EXPECT_EQ(half.timeline.makespan, uniform.timeline.makespan);
  EXPECT_EQ(half.worst_peak(), 2.5);
  for (const std::int64_t p : {4, 8, 16}) EXPECT_LE(play("po-f", sizes(p, 4 * p, 2), times).worst_peak(), 1.5);
  times.offload = times.reload = 100;  // more than there is time for: the step waits for the link
  EXPECT_GT(play("po-f", sizes(8, 32, 2), times).timeline.makespan, uniform.timeline.makespan);
}

// Between its last backward and its next first forward, chunk c of device d has (c p + d) t_b + (c p + d) t_f.
TEST(PipelineSchedules, ChronosOffloadWindows) {
  for (const auto& [p, v] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 2}, {6, 3}, {6, 2}, {3, 2}}) {
    const Played played = play("chronos", sizes(p, 4 * p, v), times_of(1, 1, 1));
    const WindowReport report = optimizer_windows(played.plan, played.timeline, {.chunks = v});
    ASSERT_EQ(report.windows.size(), static_cast<std::size_t>(p * v));
    for (const OptimizerWindow& window : report.windows) {
      SCOPED_TRACE("p " + std::to_string(p) + " v " + std::to_string(v) + " device " + std::to_string(window.device) +
                   " chunk " + std::to_string(window.chunk));
      const std::int64_t position = window.chunk * p + window.device;
      EXPECT_GE(window.tail, 2 * position);
      EXPECT_GE(window.head, position);
      if (window.chunk == 0) {
        EXPECT_EQ(window.tail + window.head, 3 * position);
      }
    }
    EXPECT_EQ(report.exposed, 0);
  }
}

// Device 0's deep chunk of p 4, m 8, v 2 waits 4 passes of each kind: 4 t_b + 4 t_f = 12, and a little for slots.
// Out, update and in of 4 pieces overlap: 10 + 2.5 + 2.5 after the last backward; what is over the window is exposed.
TEST(PipelineSchedules, ChronosOffloadExposesWhatDoesNotFit) {
  const Played played = play("chronos", sizes(4, 8, 2), times_of(1000, 1000, 1000));
  OffloadedOptimizer optimizer{1, OptimizerPlace::host, 10'000, 10'000, 10'000, 4};
  WindowReport report = optimizer_windows(played.plan, played.timeline, optimizer);
  ASSERT_EQ(report.windows.size(), 4u);
  for (const OptimizerWindow& window : report.windows) EXPECT_EQ(window.ready, 15'000);
  const OptimizerWindow& first = report.windows[0];
  EXPECT_EQ(first.exposed, std::max<Ticks>(0, 15'000 - first.tail - first.head));
  EXPECT_EQ(report.exposed, first.exposed);  // the narrowest window
  optimizer.place = OptimizerPlace::device;  // in and update, and out behind them
  report = optimizer_windows(played.plan, played.timeline, optimizer);
  EXPECT_EQ(report.windows[0].ready, 12'500);
  optimizer.out = optimizer.in = optimizer.update = 100'000;
  report = optimizer_windows(played.plan, played.timeline, optimizer);
  EXPECT_EQ(report.exposed, 125'000 - report.windows[0].tail - report.windows[0].head);
}

struct ZeroBubbleCase {
  std::string model;
  std::int64_t p = 0, m = 0, layers_per_stage = 0;
  double weight_part = 0;
  std::map<std::string, double> times;  // Table 9
  std::map<std::string, double> rates;  // Table 5, by schedule
};

void expect_table_5(const ZeroBubbleCase& known) {
  const auto ticks = [&](const char* name) { return std::llround(known.times.at(name) * 1e6); };
  for (const auto& [schedule, rate] : known.rates) {
    SCOPED_TRACE(known.model + " m " + std::to_string(known.m) + " " + schedule);
    static const std::map<std::string, std::string> names = {{"1F1B", "1f1b"},   {"ZB-H1", "zb-h1"},
                                                             {"ZB-H2", "zb-h2"}, {"ZB-1p", "zb-1p"},
                                                             {"ZB-2p", "zb-2p"}, {"1F1B-I", "interleaved"}};
    PipelineRequest request = sizes(known.p, known.m, schedule == "1F1B-I" ? known.layers_per_stage : 0);
    request.weight_part = std::llround(known.weight_part * 1e6);
    const std::int64_t v = std::max<std::int64_t>(1, request.chunks);
    const Played played = play(names.at(schedule), request,
                               times_of(ticks("T_F") / v, ticks("T_B") / v, ticks("T_W") / v, ticks("T_comm")));
    const double found = played.timeline.bubble_of_longest_span();
    if (schedule == "1F1B-I") {
      EXPECT_NEAR(found, rate, 0.004);
    } else if (schedule == "ZB-1p" || schedule == "ZB-2p") {
      EXPECT_LE(std::round(found * 1e4), std::round(rate * 1e4));
      const auto parts = activation_peaks(played.plan, played.timeline, {.weight_part = request.weight_part});
      EXPECT_LE(*std::max_element(parts.begin(), parts.end()),
                static_cast<double>(known.p * (schedule == "ZB-1p" ? 1 : 2)));
    } else {
      EXPECT_EQ(std::round(found * 1e4), std::round(rate * 1e4));
    }
  }
}

// One column of the tables, so that the check stands without the file.
TEST(PipelineSchedules, ZeroBubbleTable5OneColumn) {
  expect_table_5({"6.2B",
                  8,
                  64,
                  4,
                  32.0 / 74,
                  {{"T_F", 29.935}, {"T_B", 29.621}, {"T_W", 19.388}, {"T_comm", 0.535}},
                  {{"1F1B", 0.1091},
                   {"1F1B-I", 0.032},
                   {"ZB-H1", 0.0554},
                   {"ZB-H2", 0.0294},
                   {"ZB-1p", 0.0554},
                   {"ZB-2p", 0.001}}});
}

std::string setting(const std::string& setup, const std::string& key) {
  const std::size_t at = (";" + setup).find(";" + key + "=");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 1, end = setup.find(';', begin);
  return setup.substr(begin, end == std::string::npos ? end : end - begin);
}

// M_W / M_B = 32 / (34 + 5 a s / h) (the paper's appendix on activation memory).
TEST(PipelineSchedules, ZeroBubbleTable5) {
  const auto file = shared_data("published/pipeline.csv");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file.string();
  std::map<std::pair<std::string, std::int64_t>, ZeroBubbleCase> cases;
  for (const CsvRow& row : csv_rows(file)) {
    if (row.text("source").find("Zero Bubble") == std::string::npos) continue;
    const std::string& table = row.text("table_or_figure");
    if (table != "Table 5" && table != "Table 9") continue;
    const std::string& setup = row.text("setup");
    const auto number = [&](const char* key) { return std::stod(setting(setup, key)); };
    const std::string model = setting(setup, "model");
    ZeroBubbleCase& known = cases[{model, std::llround(number("m"))}];
    known.model = model;
    known.p = std::llround(number("pp"));
    known.m = std::llround(number("m"));
    known.layers_per_stage = (std::llround(number("l")) + 2) / known.p;
    known.weight_part = 32 / (34 + 5 * number("a") * number("s") / number("h"));
    const std::string& metric = row.text("metric");
    if (table == "Table 9")
      known.times[metric.substr(0, metric.find(' '))] = row.number("value");
    else
      known.rates[setting(setup, "schedule")] = row.number("value");
  }
  EXPECT_EQ(cases.size(), 12u);
  for (const auto& [key, known] : cases) {
    EXPECT_EQ(known.rates.size(), 6u);
    expect_table_5(known);
  }
}

// What sizes a schedule can't have, and the option at fault.
TEST(PipelineSchedules, ImpossibleSizes) {
  const auto place = [](const std::string& name, const PipelineRequest& request) -> std::string {
    try {
      build_schedule(name, request);
    } catch (const InputError& error) {
      return error.place();
    }
    return "none";
  };
  EXPECT_EQ(place("1f2b", sizes(4, 8)), "schedule");
  EXPECT_EQ(place("interleaved", sizes(4, 6)), "micro-batches");
  EXPECT_EQ(place("dualpipe", sizes(3, 12)), "stages");
  EXPECT_EQ(place("chimera", sizes(3, 12)), "stages");
  EXPECT_EQ(place("chimera", sizes(4, 7)), "micro-batches");
  EXPECT_EQ(place("dualpipe-v", sizes(4, 7)), "micro-batches");
  EXPECT_EQ(place("zb-v", sizes(4, 8, 3)), "chunks");
  EXPECT_EQ(place("hanayo", sizes(4, 8, 3)), "chunks");
  EXPECT_EQ(place("1f1b", sizes(4, 8, 2)), "chunks");
  EXPECT_EQ(place("chronos", sizes(4, 8, 1)), "chunks");
  EXPECT_EQ(place("1f1b", sizes(0, 8)), "stages");
  EXPECT_EQ(place("1f1b", sizes(4, 0)), "micro-batches");
  PipelineRequest request = sizes(4, 8, 2);
  request.recomputed_chunks = 3;
  EXPECT_EQ(place("chronos", request), "recompute");
  request = sizes(4, 8);
  request.slices = 2;
  EXPECT_EQ(place("slimpipe", request), "slices");
}

// Fewer micro-batches than stages, a single stage, one micro-batch: every schedule runs or says why not.
TEST(PipelineSchedules, SmallSizes) {
  for (const NamedSchedule& named : named_schedules()) {
    for (const auto& [p, m] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {1, 4}, {2, 1}, {2, 2}, {3, 2}, {3, 5}, {4, 1}, {4, 3}, {5, 7}, {8, 3}, {16, 5}}) {
      SCOPED_TRACE(std::string(named.name) + " p " + std::to_string(p) + " m " + std::to_string(m));
      try {
        const Played played = play(std::string(named.name), sizes(p, m), times_of(4, 3, 2, 1));
        EXPECT_GT(played.timeline.makespan, 0);
      } catch (const InputError& error) {
        EXPECT_TRUE(error.place() == "micro-batches" || error.place() == "stages" || error.place() == "schedule")
            << error.what();
      }
    }
  }
}

// Passes that take no time end at once, and nothing divides by zero.
TEST(PipelineSchedules, ZeroTimes) {
  const Played played = play("1f1b", sizes(4, 8), times_of(0, 0, 0));
  EXPECT_EQ(played.timeline.makespan, 0);
  EXPECT_EQ(played.timeline.bubble_of_makespan(), 0);
  EXPECT_EQ(played.worst_peak(), 4);
  EXPECT_EQ(play("zb-h1", sizes(4, 8), times_of(1, 1, 0)).timeline.makespan, 8 * 2 + 3 * 2);
}

// A sender that waits for its transfers takes longer: 7 micro-batches later every device has sent 2 per micro-batch.
TEST(PipelineSchedules, BlockingTransfers) {
  StageTimes times = times_of(10, 10, 10, 2);
  const Ticks overlapped = play("1f1b", sizes(4, 8), times).timeline.makespan;
  times.blocking_transfers = true;
  const Played blocked = play("1f1b", sizes(4, 8), times);
  EXPECT_GT(blocked.timeline.makespan, overlapped);
  EXPECT_EQ(blocked.timeline.work[0], 8 * (30 + 2));
  EXPECT_EQ(blocked.timeline.work[1], 8 * (30 + 4));
}

}  // namespace
}  // namespace spillway::planners
