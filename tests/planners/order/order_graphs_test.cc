// The training graphs of ROAM's evaluation: peaks of the program's order, of ours, and the layout of the ordered graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/byte_source.h"
#include "planners/layout/emulated_layout.h"
#include "planners/layout/layout_solver.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_check.h"
#include "planners/order/order_json.h"
#include "planners/order/order_solver.h"
#include "planners/order/order_trace.h"
#include "planners/order/roam.h"
#include "traces/formats/read.h"

namespace spillway::planners {
namespace {

constexpr double mebi = 1024.0 * 1024.0;
constexpr std::uint64_t largest = 1'000'000'000;

std::filesystem::path graphs() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::filesystem::path(root == nullptr ? "." : root) / "../shared/data/graphs";
}

// The rows of reference.csv, by column.
std::vector<std::map<std::string, std::string>> reference() {
  std::ifstream file(graphs() / "reference.csv");
  const auto cells = [](const std::string& line) {
    std::vector<std::string> result;
    std::stringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) result.push_back(cell);
    return result;
  };
  std::vector<std::map<std::string, std::string>> rows;
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = cells(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> row = cells(line);
    for (std::size_t i = rows.size(), k = 0; k < row.size() && k < header.size(); ++k) {
      if (k == 0) rows.emplace_back();
      rows[i][header[k]] = row[k];
    }
  }
  return rows;
}

std::string file_of(const std::map<std::string, std::string>& row) {
  const std::string& variant = row.at("graph_variant");
  std::string name = row.at("model") + "_" + row.at("batch") + "_train_";
  if (variant.find("param WAR") != std::string::npos) name += "pw_";
  name += variant.find("clone-before-in-place") != std::string::npos ? "canonhaz" : "canon";
  return (graphs() / (name + ".json.gz")).string();
}

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / mebi; }

TEST(OrderGraphs, NeverAboveRoamAndAtTheBoundWhereThatIsReachable) {
  const auto rows = reference();
  if (rows.empty()) GTEST_SKIP() << "no ../shared/data/graphs";
  for (const auto& row : rows) {
    const std::string file = file_of(row);
    SCOPED_TRACE(file);
    const OrderGraph graph = read_order_graph(ByteSource::open(file, largest).read_all(largest), file);
    const OrderResult result = solve_order(graph);
    const OrderVerdict verdict = check_order(graph, result.order);
    ASSERT_TRUE(verdict.legal()) << verdict.fault;
    EXPECT_EQ(verdict.peak_bytes, result.peak_bytes);
    EXPECT_NEAR(mib(result.program_order_peak_bytes), std::stod(row.at("pytorch_sim_MiB_here")), 0.2);
    EXPECT_GE(mib(result.peak_bytes) + 0.006, std::stod(row.at("forced_live_LB_MiB")));
    // What the reference reached, up to its rounding to 0.01 MiB; with parameters' hazards up to 0.05 %.
    const double slack = file.find("_pw_") == std::string::npos ? 1 : 1.0005;
    EXPECT_LE(mib(result.peak_bytes), slack * std::stod(row.at("proto_order_MiB")) + 0.006);
    if (row.at("model") != "mobilenet") {
      EXPECT_LE(mib(result.peak_bytes), std::stod(row.at("roam_ss_sim_MiB_published")) + 0.006);
    }
    if (row.at("proto_status") == "OPT(LB)") {
      EXPECT_TRUE(result.proven);
    }
    if (slack > 1) continue;
    // A layout of the ordered graph, with the constant below it, within 0.2 % of the peak.
    LayoutOptions options;
    options.effort = 600'000;  // as plan order has it
    const LayoutResult layout = solve_layout(buffers_of_order(graph, result.order), options);
    EXPECT_LE(static_cast<double>(layout.height + graph.constant_bytes),
              1.002 * static_cast<double>(result.peak_bytes));
    EXPECT_GE(layout.lower_bound, result.peak_bytes - graph.constant_bytes);
  }
}

OrderGraph graph_named(const std::string& name) {
  const std::string file = (graphs() / (name + "_train_canon.json.gz")).string();
  return read_order_graph(ByteSource::open(file, largest).read_all(largest), file);
}

// ROAM as published gives the peaks that its authors publish for one stream, on the graphs exported here: exactly, with
// the ratio their settings name for the model. BERT's orders come out 0.01 and 0.38 MiB lower. MobileNet is left out:
// theirs breaks hazards of in-place operators.
TEST(OrderGraphs, RoamReachesItsPublishedPeaks) {
  struct Row {
    std::string name;
    double ratio, published;  // MiB
    bool lower = false;
  };
  if (!std::filesystem::exists(graphs())) GTEST_SKIP() << "no ../shared/data/graphs";
  for (const Row& row : std::vector<Row>{{"alexnet_1", 1, 665.08},
                                         {"alexnet_32", 1, 665.08},
                                         {"vgg_1", 1, 1682.83},
                                         {"vgg_32", 50, 2044.71},
                                         {"mnasnet_1", 1, 34.37},
                                         {"mnasnet_32", 1, 790.91},
                                         {"efficientnet_1", 100, 108.43},
                                         {"efficientnet_32", 1, 2720.35},
                                         {"bert_1", 1, 915.02, true},
                                         {"bert_32", 1, 915.39, true},
                                         {"vit_1", 1, 482.96},
                                         {"vit_32", 500, 4670.29},
                                         {"gpt2xl_1", 1, 19242.57},
                                         {"gpt2xl_2", 1, 32468.32},
                                         {"gpt2xl_4", 1, 58994.82}}) {
    SCOPED_TRACE(row.name);
    const OrderGraph graph = graph_named(row.name);
    RoamOptions options;
    options.ratio = row.ratio;
    const RoamResult result = plan_roam(graph, options);
    EXPECT_TRUE(check_order(graph, result.order).legal());
    EXPECT_LE(mib(result.peak_bytes), row.published + 0.01);
    if (!row.lower) {
      EXPECT_GE(mib(result.peak_bytes), row.published - 0.01);
    }
    EXPECT_LE(static_cast<double>(result.height_bytes), 1.001 * static_cast<double>(result.peak_bytes));
    EXPECT_GE(result.height_bytes, result.peak_bytes);
  }
}

// ROAM's headline is against what PyTorch reserved for the program's order (its simulated peak over 1 less the largest
// fragmentation). Emulated, the same steps come within 18 % of that, in the middle 3 %; but for small networks at batch
// 1, whose largest fragmentation is of a moment when little is held. Our layouts of our orders lie below either
// allocator's reserved memory for them.
TEST(OrderGraphs, PyTorchReservesWhatRoamMeasured) {
  if (!std::filesystem::exists(graphs())) GTEST_SKIP() << "no ../shared/data/graphs";
  const std::vector<std::pair<std::string, double>> published{
      {"alexnet_1", 770.54},        {"alexnet_32", 797.85},    {"vgg_1", 1856.25},   {"vgg_32", 3658.02},
      {"mnasnet_32", 932.44},       {"mobilenet_32", 2731.39}, {"vit_1", 769.03},    {"vit_32", 4971.63},
      {"efficientnet_32", 3787.43}, {"bert_1", 1474.51},       {"bert_32", 1664.69}, {"gpt2xl_1", 27638.6},
      {"gpt2xl_2", 34215.2},        {"gpt2xl_4", 61197.3}};
  std::vector<double> apart;
  for (const auto& [name, measured] : published) {
    SCOPED_TRACE(name);
    const OrderGraph graph = graph_named(name);
    const EmulatedReserve reserved = emulated_reserve(buffers_of_order(graph, graph.program_order));
    apart.push_back(std::abs(mib(reserved.torch + graph.constant_bytes) / measured - 1));
    EXPECT_LT(apart.back(), 0.18);
    const OrderResult order = solve_order(graph);
    const std::vector<LayoutBuffer> buffers = buffers_of_order(graph, order.order);
    LayoutOptions options;
    options.effort = 600'000;
    EXPECT_LE(lay_out_step(buffers, options).height, emulated_reserve(buffers).least());
  }
  std::nth_element(apart.begin(), apart.begin() + 7, apart.end());
  EXPECT_LT(apart[7], 0.03);
}

// ROAM's fourteen graphs: what our orders, laid out, save of what PyTorch is published to reserve (ROAM: 35.7 %), of
// what it is emulated to reserve on the same graphs (27.8 %), and of MODeL's published peaks (32.0 %). Published:
// HuiyaoShu/ROAM 2a0e61f, results/pt_res.csv and MODeL_ms.csv.
TEST(OrderGraphs, SavesMoreThanRoamOfTheSameBaselines) {
  if (!std::filesystem::exists(graphs())) GTEST_SKIP() << "no ../shared/data/graphs";
  struct Published {
    const char* name;
    double torch, model;
  };
  const std::vector<Published> rows{
      {"alexnet_1", 770.54, 812.80},         {"alexnet_32", 797.85, 923.21},     {"vgg_1", 1856.25, 2148.39},
      {"vgg_32", 3658.02, 3590.41},          {"mnasnet_1", 189.37, 47.49},       {"mnasnet_32", 932.44, 795.60},
      {"mobilenet_1", 234.35, 80.06},        {"mobilenet_32", 2731.39, 1709.72}, {"efficientnet_1", 241.85, 252.43},
      {"efficientnet_32", 3787.43, 4253.59}, {"vit_1", 769.03, 586.41},          {"vit_32", 4971.63, 7162.62},
      {"bert_1", 1474.51, 3388.43},          {"bert_32", 1664.69, 3543.79}};
  double torch = 0, emulated = 0, model = 0;
  for (const Published& row : rows) {
    SCOPED_TRACE(row.name);
    const OrderGraph graph = graph_named(row.name);
    LayoutOptions options;
    options.effort = 600'000;
    const std::vector<LayoutBuffer> buffers = buffers_of_order(graph, solve_order(graph).order);
    const double ours = mib(lay_out_step(buffers, options).height + graph.constant_bytes);
    const std::int64_t reserved = emulated_reserve(buffers_of_order(graph, graph.program_order)).torch;
    torch += (1 - ours / row.torch) / static_cast<double>(rows.size());
    emulated += (1 - ours / mib(reserved + graph.constant_bytes)) / static_cast<double>(rows.size());
    model += (1 - ours / row.model) / static_cast<double>(rows.size());
  }
  EXPECT_NEAR(torch, 0.380, 0.001);
  EXPECT_NEAR(emulated, 0.311, 0.001);
  EXPECT_NEAR(model, 0.343, 0.001);
}

// ExecutionTraces of PyTorch: real programs, with writes in place. The order found keeps every hazard of the trace.
TEST(OrderGraphs, RealExecutionTraces) {
  const std::filesystem::path folder = graphs() / "../traces/param-et_replay";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/data/traces";
  for (const char* name : {"linear_et.json.gz", "resnet_et.json.gz"}) {
    SCOPED_TRACE(name);
    const Trace trace = read_trace((folder / name).string());
    const OrderGraph graph = order_graph_of(trace, name);
    ASSERT_GT(graph.operators.size(), 5U);
    EXPECT_EQ(broken_dependencies(graph, graph.program_order), 0U);
    const OrderResult result = solve_order(graph);
    EXPECT_TRUE(check_order(graph, result.order).legal());
    EXPECT_LE(result.peak_bytes, result.program_order_peak_bytes);
    EXPECT_GE(result.peak_bytes, result.lower_bound_bytes);
  }
}

}  // namespace
}  // namespace spillway::planners
