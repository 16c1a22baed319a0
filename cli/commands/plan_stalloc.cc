#include "cli/commands/plan_stalloc.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/memory_device.h"
#include "cli/options/number_check.h"
#include "cli/options/setting_options.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "planners/stalloc/stalloc_plan.h"
#include "scenario/scenario_run.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/stalloc_plan_text.h"
#include "traces/formats/read.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, StallocAlgorithm> algorithms{{"best", StallocAlgorithm::best},
                                                         {"group", StallocAlgorithm::group},
                                                         {"split-and-fuse", StallocAlgorithm::split_and_fuse}};

struct StallocRequest {
  std::string file, output, algorithm = "best";
  std::vector<std::string> settings;  // of a scenario
  int device = -1;                    // -1: the first with memory events
  StallocOptions options;
};

// What is planned, and the stream its allocators are compared on.
struct Profiled {
  MemoryProfile profile;
  Trace stream;
  std::int16_t device = 0;
};

Profiled profiled(const Context& context, const StallocRequest& request) {
  const Progress progress(context);
  const auto callback = progress.callback("reading " + request.file);
  Profiled result;
  if (is_memory_log(request.file)) {
    const std::string text = read_file(request.file, largest_memory_log, callback);
    result.profile = read_memory_log(text, request.file);
    result.stream = stream_of(result.profile);
    return result;
  }
  if (is_scenario_file(request.file))
    result.stream = load(load_scenario(request.file, request.settings)).trace;
  else
    result.stream = read_trace(request.file, {.progress = callback});
  result.device = memory_device(result.stream, request.file, request.device);
  result.profile = profile_of(result.stream, result.device);
  return result;
}

AllocationStreamResult replay_planned(const Profiled& profiled, const std::string& policy, const StallocPlan& made) {
  AllocationStreamOptions options;
  options.pool.policy = policy;
  options.device = profiled.device;
  if (policy == planned_policy) {
    options.pool.plan = std::make_shared<const MemoryPlan>(made.plan);
    options.spaces = made.spaces;
  }
  return replay_allocation_stream(profiled.stream, options);
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 1;
}

struct Report {
  const StallocRequest& request;
  const MemoryProfile& profile;
  const StallocPlan& made;
  double seconds = 0;
  std::vector<AllocationStreamResult> replayed;  // the plan's first
};

Bytes reserved_by(const AllocationStreamResult& result) { return Bytes(result.statistics.all().reserved_bytes.peak); }

// What the plan reserves beyond what is alive at once, and where.
std::vector<std::string> reasons(const Report& report) {
  const PlanOutcome outcome = report.replayed.front().plan.value_or(PlanOutcome{});
  const StallocPlan& made = report.made;
  std::vector<std::string> reasons;
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) reasons.push_back(fmt::format("{} {}", count, what));
  };
  add(report.profile.before.size() - made.plan.before.size(), "blocks from before the first request have no place");
  add(outcome.dynamic_cached,
      fmt::format("of {} dynamic requests found no room in their spaces", outcome.dynamic_cached + outcome.reused));
  add(outcome.unplanned + outcome.size_mismatch + outcome.overlap, "other requests have no place");
  const Bytes beside = reserved_by(report.replayed.front()) - made.plan.pool;
  if (!reasons.empty())
    reasons.back() += fmt::format(": {} beside the pool, in the caching allocator", for_people(beside));
  if (made.plan.pool > made.lower_bound)
    reasons.push_back(
        fmt::format("the pool is {} above what is alive in it at once", for_people(made.plan.pool - made.lower_bound)));
  if (reasons.empty())
    reasons.push_back(fmt::format("{} of slots for requests of at most 512 bytes", for_people(beside)));
  return reasons;
}

// Where an allocator without a plan reserves less.
std::vector<std::string> stalloc_warnings(const Report& report) {
  const auto least = std::min_element(report.replayed.begin() + 1, report.replayed.end(),
                                      [](const auto& a, const auto& b) { return reserved_by(a) < reserved_by(b); });
  const Bytes planned = reserved_by(report.replayed.front());
  if (planned <= reserved_by(*least)) return {};
  return {fmt::format("reserves {} more than {} would: {}{}", for_people(planned - reserved_by(*least)), least->policy,
                      fmt::join(reasons(report), "; "),
                      report.request.algorithm == "best" ? "" : "; --algorithm best plans those too")};
}

void print_stalloc(Context& context, const Report& report) {
  const StallocPlan& made = report.made;
  const double gap = ratio(made.plan.pool.count(), made.lower_bound.count()) - 1;
  if (context.json()) {
    Json document = json_document("spillway.plan_stalloc");
    document["algorithm"] = report.request.algorithm;
    for (int c = 0; c < request_class_count; ++c)
      document["requests"][std::string(to_string(static_cast<RequestClass>(c)))] =
          made.requests[static_cast<std::size_t>(c)];
    document["pool_bytes"] = made.plan.pool.count();
    document["lower_bound_bytes"] = made.lower_bound.count();
    document["gap"] = gap;
    document["dynamic_spaces"] = made.plan.spaces.size();
    document["seconds"] = report.seconds;
    document["allocators"] = Json::array();
    for (const AllocationStreamResult& result : report.replayed) {
      const PoolStatistics& all = result.statistics.all();
      document["allocators"].push_back({{"allocator", result.policy},
                                        {"peak_allocated_bytes", all.allocated_bytes.peak},
                                        {"peak_reserved_bytes", all.reserved_bytes.peak},
                                        {"efficiency", ratio(all.allocated_bytes.peak, all.reserved_bytes.peak)}});
    }
    document["warnings"] = stalloc_warnings(report);
    print_json(document);
    return;
  }
  Table table({"figure", "value"});
  table.add({"algorithm", report.request.algorithm});
  for (int c = 0; c < request_class_count; ++c)
    table.add({fmt::format("{} requests", to_string(static_cast<RequestClass>(c))),
               std::to_string(made.requests[static_cast<std::size_t>(c)])});
  table.add({"pool bytes", std::to_string(made.plan.pool.count())});
  table.add({"lower bound", std::to_string(made.lower_bound.count())});
  table.add({"gap", fmt::format("{:.4f} %", 100 * gap)});
  table.add({"dynamic spaces", std::to_string(made.plan.spaces.size())});
  table.add({"seconds", fmt::format("{:.3f}", report.seconds)});
  for (const AllocationStreamResult& result : report.replayed) {
    const PoolStatistics& all = result.statistics.all();
    table.add({result.policy + ": peak reserved", std::to_string(all.reserved_bytes.peak)});
    table.add({result.policy + ": efficiency",
               fmt::format("{:.2f} %", 100 * ratio(all.allocated_bytes.peak, all.reserved_bytes.peak))});
  }
  print(context, table);
  for (const std::string& warning : stalloc_warnings(report)) warn(context, warning);
}

void write_plan(const std::string& path, const StallocPlan& made) {
  OutputFile output(path);
  output.write(path.ends_with(".json") ? memory_plan_json(made.plan) : stalloc_plan_text(made.plan, made.allocated));
  output.commit();
}

void run_stalloc(Context& context, StallocRequest& request) {
  request.options.algorithm = algorithms.at(request.algorithm);
  const Profiled input = profiled(context, request);
  const auto begin = std::chrono::steady_clock::now();
  const StallocPlan made = plan_stalloc(input.profile, request.options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!request.output.empty()) write_plan(request.output, made);
  if (request.output == "-") return;
  Report report{request, input.profile, made, seconds, {}};
  for (const std::string_view policy : {planned_policy, torch_policy, expandable_policy})
    report.replayed.push_back(replay_planned(input, std::string(policy), made));
  print_stalloc(context, report);
}

}  // namespace

void add_plan_stalloc(Command& group, Context& context) {
  Command* command =
      group.add_subcommand(std::string(stalloc_word), "Places for a step's requests, as STAlloc plans them, or better");
  const auto request = std::make_shared<StallocRequest>();
  command->add_option("FILE", request->file, "snapshot, trace with memory events, scenario, or STAlloc's mem_log")
      ->required();
  command->add_option("--algorithm", request->algorithm, "group and split-and-fuse are the published ones")
      ->choices(algorithms)
      ->capture_default_str()
      ->type_name("best|group|split-and-fuse");
  command
      ->add_option("--output", request->output,
                   "write the plan: in STAlloc's form, or with the dynamic spaces if it ends in .json; - for "
                   "standard output")
      ->to_write()
      ->type_name("FILE");
  add_setting_options(*command, request->settings);
  command->add_option("--device", request->device, "GPU; the first with memory events if not given")
      ->check(non_negative_number())
      ->type_name("N");
  command->add_option("--effort", request->options.effort, "how much best tries, in placements of a request")
      ->check(positive_number())
      ->type_name("N");
  command->add_option("--threads", request->options.threads, "threads, without effect on the plan; all if not given")
      ->check(positive_number())
      ->type_name("N");
  command->callback([&context, request] { run_stoppable([&] { run_stalloc(context, *request); }); });
}

}  // namespace spillway::cli
