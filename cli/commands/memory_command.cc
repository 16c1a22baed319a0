#include "cli/commands/memory_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/memory_device.h"
#include "cli/options/number_check.h"
#include "cli/output/answer_output.h"
#include "cli/output/diagnosis_report.h"
#include "cli/output/memory_explanation.h"
#include "cli/output/progress.h"
#include "cli/output/run_page.h"
#include "cli/output/table.h"
#include "hwprofiles/profile_library.h"
#include "planners/stalloc/stalloc_plan.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/devices/memory/request_lives.h"
#include "sim/replay/driver_times.h"
#include "sim/replay/memory_replay.h"
#include "studies/answer/snapshot_answer.h"
#include "studies/diagnosis/memory_diagnosis.h"
#include "traces/formats/read.h"
#include "traces/memory_doubt.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MemoryCall {
  std::string file, config, plan, requests, stacks, treemap, output;
  std::vector<std::string> allocators;  // NAME or NAME:SETTINGS; empty: torch
  std::int64_t capacity_bytes = 0;      // 0: unlimited
  int device = -1;                      // -1: the first with memory events
  bool explain = false;
  bool is_page = false;            // the answer first, the rest behind --verbose
  std::string command;             // of a page
  const Result* judged = nullptr;  // of a page: on the machine that is named
  PictureFiles pictures;           // of the first allocator
  [[nodiscard]] bool diagnoses() const { return explain || !stacks.empty() || !treemap.empty(); }
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

// "arena|gmlake|...", for --help.
std::string policy_names() {
  std::string names;
  for (const std::string_view name : memory_policies()) names += (names.empty() ? "" : "|") + std::string(name);
  return names;
}

bool follows_plan(const std::string& policy) { return policy == planned_policy || policy == arena_policy; }

// Settings of one allocator, after its name and a colon, win over those for all.
std::vector<MemoryPoolOptions> pools_of(const MemoryCall& request) {
  std::shared_ptr<const MemoryPlan> plan;
  if (!request.plan.empty()) {
    ByteSource source = ByteSource::open(request.plan, std::uint64_t{1} << 30);
    plan = std::make_shared<const MemoryPlan>(read_memory_plan(source));
  }
  std::vector<MemoryPoolOptions> pools;
  for (const std::string& text :
       request.allocators.empty() ? std::vector<std::string>{std::string(torch_policy)} : request.allocators) {
    MemoryPoolOptions& options = pools.emplace_back();
    const std::size_t colon = text.find(':');
    options.policy = text.substr(0, colon);
    const bool torch = options.policy.starts_with(torch_policy);
    if (colon != std::string::npos)
      options.settings = text.substr(colon + 1);
    else if (torch || request.allocators.size() < 2)
      options.settings = request.config;
    if (follows_plan(options.policy)) options.plan = plan;
    if (request.capacity_bytes > 0) options.device_memory = Bytes(request.capacity_bytes);
    static_cast<void>(make_memory_pool(options));  // a wrong option is told before a big file is read
  }
  const bool used = std::any_of(pools.begin(), pools.end(), [](const auto& pool) { return pool.plan != nullptr; });
  if (plan != nullptr && !used)
    throw InputError(request.plan, "", "no allocator follows the plan", "add --allocator planned or --allocator arena");
  return pools;
}

struct Replayed {
  std::string label;  // the allocator, with settings of its own if it was given any
  std::string settings;
  AllocationStreamResult result;
  std::string doubt;  // memory_doubt() of the record
};

struct Answer {
  std::vector<Replayed> results;
  std::optional<MemoryExplanation> explanation;  // of the first
  MemoryResult owners;                           // of it, with an explanation
  std::optional<MemoryDiagnosis> diagnosis;      // of the record
  std::optional<studies::Answer> page;           // of a snapshot that is explained
};

// Who holds what when most is allocated; the trace's ops need no times for that.
MemoryResult owners_of(const Trace& trace, const AllocationStreamOptions& options) {
  MemoryReplayOptions replay;
  replay.allocator = options.pool.policy;
  replay.settings = options.pool.settings;
  replay.plan = options.pool.plan;
  replay.device = options.device;
  return MemoryReplay(trace, replay).result(std::vector<Picos>(trace.memory_events.size(), Picos(0)));
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile out(path);
  out.write(text);
  out.commit();
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

MemoryDiagnosis diagnose(const Trace& trace, std::int16_t device, const MemoryCall& request) {
  MemoryDiagnosis diagnosis = diagnose_memory(trace, device);
  if (!request.stacks.empty()) write_file(request.stacks, folded_memory_stacks(diagnosis));
  if (!request.treemap.empty()) {
    if (!request.treemap.ends_with(".svg"))
      throw InputError(request.treemap, "--treemap", "a picture's name does not end in .svg", "name it something.svg");
    write_file(request.treemap, memory_treemap(diagnosis, file_name(request.file)));
  }
  return diagnosis;
}

// Of a trace, or of STAlloc's log, which `plan stalloc` reads too.
Trace stream_in(const MemoryCall& request, const Progress& progress) {
  const auto callback = progress.callback("reading " + request.file);
  if (is_memory_log(request.file))
    return stream_of(read_memory_log(read_file(request.file, largest_memory_log, callback), request.file));
  return read_trace(request.file, {.progress = callback, .keep_stacks = request.diagnoses()});
}

Answer replay(const Context& context, const MemoryCall& request) {
  const std::vector<MemoryPoolOptions> pools = pools_of(request);
  const Progress progress(context);
  const Trace trace = stream_in(request, progress);
  const std::int16_t device = memory_device(trace, request.file, request.device);
  require_addresses(trace, request.file);
  if (!request.requests.empty()) {
    OutputFile out(request.requests);
    out.write(request_lives_csv(request_lives(trace, device), lives_before(trace, device)));
    out.commit();
  }
  Answer answer;
  if (request.diagnoses()) answer.diagnosis = diagnose(trace, device, request);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    AllocationStreamOptions options;
    options.pool = pools[i];
    options.device = device;
    options.frees_by_limit = request.capacity_bytes > 0;
    if (pools[i].plan != nullptr) options.spaces = request_spaces(*pools[i].plan);
    if (i == 0) {
      write_pictures(request.pictures, trace, options, request.file, Bytes(request.capacity_bytes));
      if (request.explain) answer.explanation = explain_memory(trace, options);
      if (request.explain) answer.owners = owners_of(trace, options);
      if (request.is_page)
        answer.page = snapshot_answer(trace, device, *answer.diagnosis, answer.explanation->knobs,
                                      file_name(request.file), request.command, request.judged);
      if (!request.output.empty()) write_answer(*answer.page, request.output);
    }
    Replayed& replayed = answer.results.emplace_back();
    replayed.settings = pools[i].settings;
    replayed.result = replay_allocation_stream(trace, options);
    replayed.doubt = memory_doubt(trace);
    add_unusable(replayed.result.unusable_events + replayed.result.unusable_segments, replayed.doubt);
    const bool own = i < request.allocators.size() && request.allocators[i].find(':') != std::string::npos;
    replayed.label = own ? request.allocators[i] : replayed.result.policy;
  }
  return answer;
}

// What lived before the first event is there already, so it can be too much without any allocation failing.
Verdict replayed_verdict(const Replayed& replayed, const MemoryCall& request) {
  const AllocationStreamResult& result = replayed.result;
  if (result.out_of_memory > 0) return Verdict::does_not_fit;
  const Bytes peak(result.statistics.all().reserved_bytes.peak);
  return in_doubt(sim::verdict_of(peak, Bytes(request.capacity_bytes)), replayed.doubt);
}

std::vector<std::string> warnings_of(const Replayed& replayed, const MemoryCall& request) {
  const AllocationStreamResult& result = replayed.result;
  std::vector<std::string> warnings;
  if (result.plan) {
    const PlanOutcome& plan = *result.plan;
    const std::uint64_t missed = plan.size_mismatch + plan.overlap + plan.unplanned;
    if (missed > 0)
      warnings.push_back(
          fmt::format("{} of {} planned requests went to the caching allocator: {} of another size, {} "
                      "whose place was taken, {} without a place",
                      missed, missed + plan.placed, plan.size_mismatch, plan.overlap, plan.unplanned));
  }
  if (!replayed.doubt.empty()) warnings.push_back("the record of memory is in doubt: " + replayed.doubt);
  if (replayed_verdict(replayed, request) == Verdict::does_not_fit && !result.first_out_of_memory)
    warnings.push_back("the recorded state at the first event is larger than the capacity");
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) warnings.push_back(fmt::format("{} {}", count, what));
  };
  if (result.first_out_of_memory) warnings.push_back(describe(*result.first_out_of_memory));
  if (result.recorded.out_of_memory > 0 && request.capacity_bytes == 0 && !request.is_page)
    warnings.push_back(
        "the record ran out of memory: what it asked for then is replayed under --capacity alone; "
        "`spillway explain` says why it failed");
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

// Under the names of torch.cuda.memory_stats(): "allocation.all.current".
Json statistics_of(const MemoryStatistics& statistics) {
  Json document = Json::object();
  const auto put_one = [&document](const std::string& name, const Statistic& statistic) {
    document[name + ".current"] = statistic.current;
    document[name + ".peak"] = statistic.peak;
    document[name + ".allocated"] = statistic.allocated;
    document[name + ".freed"] = statistic.freed;
  };
  constexpr std::pair<PoolKind, const char*> kinds[] = {
      {PoolKind::all, "all"}, {PoolKind::large, "large_pool"}, {PoolKind::small, "small_pool"}};
  for (const auto& [kind, name] : kinds) {
    const PoolStatistics& pool = statistics.of(kind);
    const std::string suffix = std::string(".") + name;
    put_one("active" + suffix, pool.active);
    put_one("active_bytes" + suffix, pool.active_bytes);
    put_one("allocated_bytes" + suffix, pool.allocated_bytes);
    put_one("allocation" + suffix, pool.allocations);
    put_one("inactive_split" + suffix, pool.inactive_split);
    put_one("inactive_split_bytes" + suffix, pool.inactive_split_bytes);
    put_one("requested_bytes" + suffix, pool.requested_bytes);
    put_one("reserved_bytes" + suffix, pool.reserved_bytes);
    put_one("segment" + suffix, pool.segments);
  }
  put_one("oversize_allocations", statistics.oversize_allocations);
  put_one("oversize_segments", statistics.oversize_segments);
  document["num_alloc_retries"] = statistics.alloc_retries;
  document["num_ooms"] = statistics.ooms;
  document["num_sync_all_streams"] = statistics.sync_all_streams;
  document["num_device_alloc"] = statistics.device_mallocs;
  document["num_device_free"] = statistics.device_frees;
  return document;
}

Json driver_of(const DriverCost& cost) {
  return {{"device_mallocs", cost.device_mallocs},
          {"device_frees", cost.device_frees},
          {"synchronizations", cost.synchronizations},
          {"chunks_created", cost.chunks_created},
          {"chunks_released", cost.chunks_released},
          {"maps", cost.maps},
          {"unmaps", cost.unmaps},
          {"access_changes", cost.access_changes},
          {"reservations", cost.reservations}};
}

void put_policy(const AllocationStreamResult& result, Json& document) {
  if (result.policy == gmlake_policy) document["stitched_ranges"] = result.stitches;
  if (!result.plan) return;
  const PlanOutcome& plan = *result.plan;
  document["plan"] = {{"placed", plan.placed},
                      {"small", plan.small},
                      {"reused", plan.reused},
                      {"size_mismatch", plan.size_mismatch},
                      {"overlap", plan.overlap},
                      {"unplanned", plan.unplanned},
                      {"dynamic_cached", plan.dynamic_cached}};
}

void fill(const Replayed& replayed, const MemoryCall& request, Json& document) {
  const AllocationStreamResult& result = replayed.result;
  const PoolStatistics& all = result.statistics.all();
  document["allocator"] = result.policy;
  document["settings"] = replayed.settings;
  document["device"] = result.device;
  put_verdict(document, replayed_verdict(replayed, request));
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
  put_policy(result, document);
  document["driver_calls"] = driver_of(result.cost);
  document["memory_stats"] = statistics_of(result.statistics);
  document["warnings"] = warnings_of(replayed, request);
}

// The first allocator's figures are the document's own; with several, all of them are in "allocators".
Json document_of(const Answer& answer, const MemoryCall& request) {
  const std::vector<Replayed>& results = answer.results;
  Json document = json_document("spillway.memory");
  fill(results.front(), request, document);
  if (answer.explanation) {
    document.update(explanation_json(*answer.explanation));
    document["peak_owners"] = owners_json(answer.owners.owners);
    document["peak_owners_by_layer"] = owners_json(answer.owners.owners_by_layer);
    document["peak_owners_by_phase"] = owners_json(answer.owners.owners_by_phase);
  }
  if (answer.diagnosis) document["diagnosis"] = diagnosis_json(*answer.diagnosis);
  if (results.size() == 1) return document;
  Json& all = document["allocators"] = Json::array();
  for (const Replayed& result : results) fill(result, request, all.emplace_back(Json::object()));
  return document;
}

// Bytes as plain numbers for CSV.
std::string amount(const Context& context, Bytes bytes) {
  if (!context.rows_only()) return for_people(bytes);
  return bytes < Bytes(0) ? "" : std::to_string(bytes.count());
}

Table table_of(const Context& context, const std::vector<Replayed>& results) {
  std::vector<std::string> headings = {"figure"};
  for (const Replayed& replayed : results)
    headings.push_back((results.size() == 1 ? "replayed by " : "") + replayed.label);
  headings.emplace_back("recorded");
  Table table(headings);
  const auto add = [&](const std::string& name, auto cell, const std::string& recorded) {
    std::vector<std::string> row = {name};
    for (const Replayed& replayed : results) row.push_back(cell(replayed.result));
    row.push_back(recorded);
    table.add(row);
  };
  const auto peak = [&context](Statistic PoolStatistics::*which) {
    return [&context, which](const AllocationStreamResult& r) {
      return amount(context, Bytes((r.statistics.all().*which).peak));
    };
  };
  const auto matched = [](MatchCount AllocationStreamResult::*which) {
    return [which](const AllocationStreamResult& r) {
      return fmt::format("{} of {}", (r.*which).matched, (r.*which).total);
    };
  };
  const RecordedMemory& recorded = results.front().result.recorded;
  add("peak allocated", peak(&PoolStatistics::allocated_bytes), amount(context, recorded.peak_allocated));
  add("peak requested", peak(&PoolStatistics::requested_bytes), amount(context, recorded.peak_requested));
  add("peak reserved", peak(&PoolStatistics::reserved_bytes), amount(context, recorded.peak_reserved));
  const auto final_reserved = [&](const AllocationStreamResult& r) {
    return amount(context, Bytes(r.statistics.all().reserved_bytes.current));
  };
  add("final reserved", final_reserved, amount(context, recorded.final_reserved));
  add(
      "fragmentation", [](const auto& r) { return fmt::format("{:.4f}", r.fragmentation.by_allocated); }, "-");
  add(
      "segments allocated", [](const auto& r) { return std::to_string(r.segments_allocated); },
      std::to_string(results.front().result.segments.total));
  const auto driver_calls = [](const AllocationStreamResult& r) {
    const DriverCost& cost = r.cost;
    return std::to_string(cost.device_mallocs + cost.device_frees + cost.chunks_created + cost.chunks_released +
                          cost.maps + cost.unmaps);
  };
  add("driver calls", driver_calls, "-");
  // A capture seldom names its GPU, and the calls cost much the same on all.
  const DriverTimes times = driver_times(ProfileLibrary::standard().load_gpu("h100-sxm5-80gb"));
  add(
      "driver time on an H100", [&times](const auto& r) { return for_people(host_time(r.cost, times)); }, "-");
  add(
      "out of memory", [](const auto& r) { return std::to_string(r.out_of_memory); },
      std::to_string(recorded.out_of_memory));
  add("addresses matched", matched(&AllocationStreamResult::addresses), "-");
  add("segments matched", matched(&AllocationStreamResult::segments), "-");
  add("final blocks matched", matched(&AllocationStreamResult::final_blocks), "-");
  return table;
}

std::string agreement_words(const AllocationStreamResult& result) {
  return fmt::format("Recorded and replayed agree in {} of {} addresses, {} of {} segments.", result.addresses.matched,
                     result.addresses.total, result.segments.matched, result.segments.total);
}

void print_text(const Context& context, const Answer& answer) {
  const bool is_page = answer.page && !context.rows_only();
  if (is_page) print(snapshot_page(*answer.page, *answer.diagnosis, agreement_words(answer.results.front().result)));
  if (is_page && answer.page->answer == Verdict::unknown) print(which_gpu());
  const bool ran_out = is_page && answer.diagnosis->ran_out;  // the page says which settings would have served it
  if (is_page && !is_verbose())
    return print(ran_out ? "next: --verbose for all figures\n"
                         : "next: --verbose for all figures and what each setting would save\n");
  print(context, table_of(context, answer.results));
  if (answer.explanation && !context.rows_only())
    print(owners_text("at the peak, by what it is", answer.owners.owners, 12) +
          owners_text("by phase", answer.owners.owners_by_phase, 8) +
          owners_text("by layer", answer.owners.owners_by_layer, 8) +
          (is_page ? "" : diagnosis_text(*answer.diagnosis)) +
          (ran_out ? reserved_parts_text(*answer.explanation) : explanation_text(*answer.explanation)));
}

void run_memory(Context& context, const MemoryCall& request) {
  const Answer answer = replay(context, request);
  const std::vector<Replayed>& results = answer.results;
  for (const Replayed& replayed : results)
    for (const std::string& warning : warnings_of(replayed, request))
      warn(context, (results.size() == 1 ? "" : replayed.label + ": ") + warning);
  if (context.json())
    print_json(document_of(answer, request));
  else
    print_text(context, answer);
  const bool is_judged = request.judged != nullptr && answer.page;
  const Verdict verdict = is_judged ? answer.page->answer : replayed_verdict(results.front(), request);
  if (verdict == Verdict::does_not_fit) context.exit_code = exit_answer_is_no;
  if (verdict == Verdict::unknown && request.capacity_bytes > 0) context.exit_code = exit_not_known;
}

}  // namespace

void explain_snapshot(const std::string& file, std::string command, const std::string& output, const Result* judged,
                      Context& context) {
  MemoryCall request;
  request.file = file;
  request.output = output;
  request.command = std::move(command);
  request.judged = judged;
  request.explain = request.is_page = true;
  run_memory(context, request);
}

void add_memory_commands(Command& app, Context& context) {
  Command* command = app.add_subcommand("memory", "Replay a recorded stream of allocations through an allocator");
  const auto request = std::make_shared<MemoryCall>();
  command->add_option("FILE", request->file, "memory snapshot, trace with memory events, or STAlloc's mem_log")
      ->required();
  command
      ->add_option("--allocator", request->allocators,
                   "what serves the allocations; torch if not given. Several are compared side by side. Its settings "
                   "may follow a colon")
      ->type_name(policy_names())
      ->allow_extra_args(false);
  command->add_option("--alloc-conf,--config", request->config, "settings in PYTORCH_CUDA_ALLOC_CONF's spelling")
      ->type_name("KEY:VALUE,...");
  command->add_option("--plan", request->plan, "memory plan or layout that planned and arena follow")
      ->type_name("FILE");
  command
      ->add_option("--save-requests", request->requests,
                   "write the requests and their lifetimes as CSV, for `spillway plan layout`")
      ->to_write()
      ->type_name("FILE");
  command->add_flag(
      "--explain", request->explain,
      "also who owns the peak, what reserved memory is made of, and which setting or allocator would save "
      "some: each is tried");
  command
      ->add_option("--stacks", request->stacks,
                   "write who holds the memory as folded stacks, one a line with its bytes: input of flame graphs")
      ->to_write()
      ->type_name("FILE");
  command->add_option("--treemap", request->treemap, "write who holds the memory as a treemap (.svg)")
      ->to_write()
      ->type_name("FILE");
  add_picture_options(*command, request->pictures);
  command->add_option("--capacity", request->capacity_bytes, "device memory, e.g. 20GiB; unlimited if not given")
      ->size_with_unit()
      ->check(positive_number())
      ->type_name("BYTES");
  command->add_option("--device", request->device, "GPU number; the first with memory events if not given")
      ->check(non_negative_number())
      ->type_name("NUMBER");
  command->callback([&context, request] { run_stoppable([&] { run_memory(context, *request); }); });
}

}  // namespace spillway::cli
