#include "cli/memory_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/table.h"
#include "sim/devices/memory/allocation_stream.h"
#include "traces/base/input_error.h"
#include "traces/read.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string file, allocator = "torch", config;
  std::int64_t capacity_bytes = 0;  // 0: unlimited
  int device = -1;                  // -1: the first with memory events
};

// Frees find their blocks by address; a file without any says how much was held, not which block came back.
void require_addresses(const Trace& trace, const std::string& file) {
  const auto& events = trace.memory_events;
  if (std::any_of(events.begin(), events.end(), [](const MemoryEvent& event) { return event.address != Addr(0); }))
    return;
  throw InputError(
      file, "", "its memory events have no addresses, so they are no stream of allocations",
      "record with torch.cuda.memory._record_memory_history(), or with profile_memory=True and a chrome trace");
}

std::int16_t device_of(const Trace& trace, const Request& request) {
  const std::vector<std::int16_t> devices = memory_devices(trace);
  if (devices.empty())
    throw InputError(request.file, "", "holds no memory events of a GPU",
                     "record with profile_memory=True, or with torch.cuda.memory._record_memory_history()");
  if (request.device < 0) return devices.front();
  if (std::find(devices.begin(), devices.end(), request.device) == devices.end())
    throw InputError(request.file, "", fmt::format("device {} has no memory events", request.device),
                     fmt::format("use one of {}", fmt::join(devices, ", ")));
  return static_cast<std::int16_t>(request.device);
}

AllocationStreamResult replay(const Context& context, const Request& request) {
  AllocationStreamOptions options;
  options.pool.policy = request.allocator;
  options.pool.settings = request.config;
  if (request.capacity_bytes > 0) options.pool.device_memory = Bytes(request.capacity_bytes);
  static_cast<void>(make_memory_pool(options.pool));  // a wrong option is told before a big file is read
  const Progress progress(context);
  const Trace trace = read_trace(request.file, {.progress = progress.callback("reading " + request.file)});
  const std::int16_t device = device_of(trace, request);
  require_addresses(trace, request.file);
  options.device = device;
  return replay_allocation_stream(trace, options);
}

// What lived before the first event is there already, so it can be too much without any allocation failing.
bool fits(const AllocationStreamResult& result, const Request& request) {
  return result.out_of_memory == 0 &&
         (request.capacity_bytes == 0 || result.statistics.all().reserved_bytes.peak <= request.capacity_bytes);
}

std::vector<std::string> warnings_of(const AllocationStreamResult& result, const Request& request) {
  std::vector<std::string> warnings;
  if (!fits(result, request) && !result.first_out_of_memory)
    warnings.push_back("the recorded state at the first event is larger than the capacity");
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) warnings.push_back(fmt::format("{} {}", count, what));
  };
  if (result.first_out_of_memory) warnings.push_back(describe(*result.first_out_of_memory));
  add(result.ignored_frees, "frees of blocks never allocated were ignored");
  add(result.repeated_addresses, "addresses were allocated again without a free; the older block was freed");
  add(result.unusable_events, "events had impossible sizes and were left out");
  add(result.unusable_segments, "segments of the snapshot were empty or overlapping and were left out");
  add(result.ambiguous_blocks, "blocks from before the first event had to be given an assumed size");
  if (result.unexplained > Bytes(0))
    warnings.push_back(for_people(result.unexplained) + " were allocated before the first event, nobody knows where");
  return warnings;
}

void put(Json& document, const std::string& key, Bytes bytes) {
  document[key] = bytes < Bytes(0) ? Json(nullptr) : Json(bytes.count());
}

Json document_of(const AllocationStreamResult& result, const Request& request) {
  const PoolStatistics& all = result.statistics.all();
  Json document = json_document("spillway.memory");
  document["allocator"] = result.policy;
  document["device"] = result.device;
  document["fits"] = fits(result, request);
  document["peak_allocated_bytes"] = all.allocated_bytes.peak;
  document["peak_active_bytes"] = all.active_bytes.peak;
  document["peak_requested_bytes"] = all.requested_bytes.peak;
  document["peak_reserved_bytes"] = all.reserved_bytes.peak;
  document["final_reserved_bytes"] = all.reserved_bytes.current;
  document["initial_segments"] = result.initial_segments;
  document["segments_allocated"] = result.segments_allocated;
  document["allocations"] = result.allocations;
  document["frees"] = result.frees;
  document["out_of_memory"] = result.out_of_memory;
  document["fragmentation"] = result.fragmentation.by_allocated;
  document["fragmentation_by_active"] = result.fragmentation.by_active;
  Json& recorded = document["recorded"] = Json::object();
  put(recorded, "peak_reserved_bytes", result.recorded.peak_reserved);
  put(recorded, "final_reserved_bytes", result.recorded.final_reserved);
  put(recorded, "peak_allocated_bytes", result.recorded.peak_allocated);
  put(recorded, "peak_requested_bytes", result.recorded.peak_requested);
  recorded["out_of_memory"] = result.recorded.out_of_memory;
  const auto match = [&](const char* key, const MatchCount& count) {
    document[key] = {{"matched", count.matched}, {"total", count.total}};
  };
  match("addresses", result.addresses);
  match("segments", result.segments);
  match("final_blocks", result.final_blocks);
  document["warnings"] = warnings_of(result, request);
  return document;
}

// Bytes as plain numbers for CSV.
std::string amount(const Context& context, Bytes bytes) {
  if (!context.csv()) return for_people(bytes);
  return bytes < Bytes(0) ? "" : std::to_string(bytes.count());
}

Table table_of(const Context& context, const AllocationStreamResult& result) {
  const PoolStatistics& all = result.statistics.all();
  const RecordedMemory& recorded = result.recorded;
  const auto matched = [](const MatchCount& count) { return fmt::format("{} of {}", count.matched, count.total); };
  Table table({"figure", "replayed by " + result.policy, "recorded"});
  const auto add = [&](const std::string& name, std::int64_t replayed, Bytes record) {
    table.add({name, amount(context, Bytes(replayed)), amount(context, record)});
  };
  add("peak allocated", all.allocated_bytes.peak, recorded.peak_allocated);
  add("peak requested", all.requested_bytes.peak, recorded.peak_requested);
  add("peak reserved", all.reserved_bytes.peak, recorded.peak_reserved);
  add("final reserved", all.reserved_bytes.current, recorded.final_reserved);
  table.add({"fragmentation", fmt::format("{:.4f}", result.fragmentation.by_allocated), "-"});
  table.add({"segments allocated", std::to_string(result.segments_allocated), std::to_string(result.segments.total)});
  table.add({"out of memory", std::to_string(result.out_of_memory), std::to_string(recorded.out_of_memory)});
  table.add({"addresses matched", matched(result.addresses), "-"});
  table.add({"segments matched", matched(result.segments), "-"});
  table.add({"final blocks matched", matched(result.final_blocks), "-"});
  return table;
}

void run_memory(Context& context, const Request& request) {
  const AllocationStreamResult result = replay(context, request);
  for (const std::string& warning : warnings_of(result, request)) warn(context, warning);
  if (context.json())
    print_json(document_of(result, request));
  else
    print(context, table_of(context, result));
  if (!fits(result, request)) context.exit_code = exit_answer_is_no;
}

}  // namespace

void add_memory_commands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("memory", "Replay a recorded stream of allocations through an allocator");
  const auto request = std::make_shared<Request>();
  command->add_option("FILE", request->file, "memory snapshot or trace with memory events")->required();
  command->add_option("--allocator", request->allocator, "what serves the allocations; torch if not given")
      ->type_name("torch|ideal");
  command->add_option("--config", request->config, "settings in PYTORCH_CUDA_ALLOC_CONF's spelling")
      ->type_name("KEY:VALUE,...");
  command->add_option("--capacity", request->capacity_bytes, "device memory in bytes; unlimited if not given")
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
  command->add_option("--device", request->device, "GPU number; the first with memory events if not given")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER");
  command->callback([&context, request] { run_memory(context, *request); });
}

}  // namespace spillway
