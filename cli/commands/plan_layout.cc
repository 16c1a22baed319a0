#include "cli/commands/plan_layout.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/output_file.h"
#include "base/read_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "planners/layout/layout_csv.h"
#include "planners/layout/layout_solver.h"
#include "planners/layout/result_check.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t largest_file = 4'000'000'000;

struct LayoutRequest {
  std::string file, output;
  LayoutOptions options;
};

LayoutResult find_layout(const Context& context, const LayoutRequest& request, const LayoutTable& table) {
  const Progress progress(context);
  LayoutOptions options = request.options;
  std::int64_t shown = -1;
  options.progress = [&](std::int64_t height, std::int64_t lower_bound) {
    if (height == shown) return !is_interrupted();
    shown = height;
    return progress.show(fmt::format("height {}, at least {}", height, lower_bound));
  };
  return solve_layout(table.buffers, options);
}

double gap_of(const LayoutResult& result) {
  if (result.lower_bound == 0) return 0;
  return static_cast<double>(result.height - result.lower_bound) / static_cast<double>(result.lower_bound);
}

void print_layout(Context& context, const LayoutRequest& request, const LayoutResult& result, double seconds) {
  const std::int64_t capacity = request.options.capacity;
  if (context.json()) {
    Json document = json_document("spillway.plan_layout");
    document["buffers"] = result.offsets.size();
    document["height"] = result.height;
    document["lower_bound"] = result.lower_bound;
    document["proven"] = result.proven;
    document["gap"] = gap_of(result);
    document["capacity"] = capacity > 0 ? Json(capacity) : Json(nullptr);
    put_verdict(document, verdict_of(Bytes(result.height), Bytes(capacity)));
    document["fit_impossible"] = capacity > 0 && result.lower_bound > capacity;
    document["seconds"] = seconds;
    document["effort"] = result.effort;
    document["stopped"] = result.stopped;
    document["warnings"] = Json::array();
    print_json(document);
    return;
  }
  Table table({"figure", "value"});
  table.add({"buffers", std::to_string(result.offsets.size())});
  table.add({"height", std::to_string(result.height)});
  table.add({"lower bound", std::to_string(result.lower_bound)});
  table.add({"gap", fmt::format("{:.4f} %", 100 * gap_of(result))});
  table.add({"proven", result.proven ? "yes" : "no"});
  if (capacity > 0)
    table.add({"fits", result.fits(capacity)           ? "yes"
                       : result.lower_bound > capacity ? "no layout does"
                                                       : "none found"});
  table.add({"seconds", fmt::format("{:.3f}", seconds)});
  print(context, table);
}

void run_layout(Context& context, const LayoutRequest& request) {
  const Progress progress(context);
  const std::string text = read_file(request.file, largest_file, progress.callback("reading " + request.file));
  const LayoutTable table = read_layout_csv(text, request.file);
  const auto begin = std::chrono::steady_clock::now();
  const LayoutResult result = find_layout(context, request, table);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  check_result(table.buffers, result);
  if (!request.output.empty()) {
    OutputFile output(request.output);
    output.write(write_layout_csv(table, result.offsets));
    output.commit();
  }
  if (request.output != "-") print_layout(context, request, result, seconds);
  const std::int64_t capacity = request.options.capacity;
  if (capacity > 0 && !result.fits(capacity)) context.exit_code = exit_answer_is_no;
}

}  // namespace

void add_plan_layout(Command& group, Context& context) {
  Command* command = group.add_subcommand("layout", "Addresses for buffers with known lifetimes, as low as possible");
  const auto request = std::make_shared<LayoutRequest>();
  command->add_option("FILE", request->file, "buffers: a table id,lower,upper,size")->required();
  command
      ->add_option("--capacity", request->options.capacity,
                   "stop at the first layout this high, exit code 1 if none is found; as low as possible if not given")
      ->size_with_unit()
      ->check(positive_number())
      ->type_name("N");
  command->add_option("--output", request->output, "write the table with an offset column; - for standard output")
      ->to_write()
      ->type_name("FILE");
  command->add_option("--effort", request->options.effort, "placements of a buffer that are tried")
      ->check(positive_number())
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--seconds", request->options.seconds,
                   "stop after that time with the best so far, which then depends on the machine")
      ->amount(Dimension::time, "s")
      ->check(positive_number())
      ->type_name("S");
  command->add_option("--threads", request->options.threads, "threads, without effect on the answer; all if not given")
      ->check(positive_number())
      ->type_name("N");
  command->callback([&context, request] { run_layout(context, *request); });
}

}  // namespace spillway::cli
