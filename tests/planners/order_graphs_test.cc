// The training graphs of ROAM's evaluation: peaks of the program's order, of ours, and the layout of the ordered graph.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "planners/layout/layout_solver.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_check.h"
#include "planners/order/order_json.h"
#include "planners/order/order_solver.h"
#include "traces/base/byte_source.h"

namespace spillway {
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
    options.effort = 2'000'000;
    const LayoutResult layout = solve_layout(buffers_of_order(graph, result.order), options);
    EXPECT_LE(static_cast<double>(layout.height + graph.constant_bytes),
              1.002 * static_cast<double>(result.peak_bytes));
    EXPECT_GE(layout.lower_bound, result.peak_bytes - graph.constant_bytes);
  }
}

}  // namespace
}  // namespace spillway
