#include "cli/commands/trace_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "traces/formats/chrome_writer.h"
#include "traces/formats/read.h"
#include "traces/formats/spillway_binary.h"
#include "traces/formats/spillway_json.h"
#include "traces/formats/torch_snapshot_writer.h"
#include "traces/formats/trace_part.h"
#include "traces/summary.h"
#include "traces/trace_link.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Files {
  std::string graph, input, output, to;
  std::optional<double> from_ms, until_ms;
};

Trace read(const Context& context, const std::string& file, bool keep_stacks = false) {
  const Progress progress(context);
  return read_trace(file, {.progress = progress.callback("reading " + file), .keep_stacks = keep_stacks});
}

std::string capability_text(const std::vector<Capability>& capabilities, const Trace& trace) {
  std::string text;
  for (const Capability capability : capabilities)
    text += (text.empty() ? "" : ", ") + std::string(to_string(capability)) +
            (trace.is_inferred(capability) ? " (inferred)" : "");
  return text.empty() ? "none" : text;
}

std::string warning_of(const Finding& finding) {
  return fmt::format("{}: {} row{}; {}", finding.kind, finding.count, finding.count == 1 ? "" : "s", finding.remedy);
}

Json info_document(const Trace& trace, const TraceSummary& summary) {
  Json document = json_document("spillway.trace_info");
  document["format"] = summary.format;
  document["capabilities"] = Json::array();
  document["inferred_capabilities"] = Json::array();
  for (const Capability capability : summary.capabilities) {
    document["capabilities"].push_back(to_string(capability));
    if (trace.is_inferred(capability)) document["inferred_capabilities"].push_back(to_string(capability));
  }
  document["events"] = summary.events;
  document["kernels"] = summary.kernels;
  document["ops"] = summary.ops;
  document["tensors"] = summary.tensors;
  document["memory_events"] = summary.memory_events;
  document["device_memory_events"] = summary.device_memory_events;
  document["peak_allocated_bytes"] =
      summary.peak_allocated_bytes < Bytes(0) ? Json() : Json(summary.peak_allocated_bytes.count());
  if (summary.peak_reserved_bytes >= Bytes(0)) document["peak_reserved_bytes"] = summary.peak_reserved_bytes.count();
  document["ranks"] = trace.rank_count;
  document["devices"] = Json::array();
  for (const Device& device : trace.devices) document["devices"].push_back(trace.strings.text(device.name));
  document["steps"] = Json::array();
  for (const StepSummary& step : summary.steps)
    document["steps"].push_back({{"name", step.name},
                                 {"duration_ns", whole_nanoseconds(step.duration)},
                                 {"gpu_busy_ns", whole_nanoseconds(step.gpu_busy)},
                                 {"gpu_work_ns", whole_nanoseconds(step.gpu_work)}});
  document["findings"] = Json::object();
  document["warnings"] = Json::array();
  for (const Finding& finding : summary.findings) {
    document["findings"][finding.kind] = finding.count;
    document["warnings"].push_back(warning_of(finding));
  }
  return document;
}

Table info_table(const Trace& trace, const TraceSummary& summary) {
  Table table({"property", "value"});
  table.add({"format", summary.format});
  table.add({"capabilities", capability_text(summary.capabilities, trace)});
  for (const Device& device : trace.devices)
    table.add({fmt::format("device {}.{}", device.rank, device.ordinal), std::string(trace.strings.text(device.name))});
  table.add({"events", std::to_string(summary.events)});
  table.add({"ops", std::to_string(summary.ops)});
  table.add({"kernels", std::to_string(summary.kernels)});
  table.add({"tensors", std::to_string(summary.tensors)});
  table.add({"memory events", std::to_string(summary.memory_events)});
  table.add({"peak allocated", for_people(summary.peak_allocated_bytes)});
  table.add({"peak reserved", for_people(summary.peak_reserved_bytes)});
  return table;
}

Table summary_steps(const TraceSummary& summary) {
  Table table({"step", "duration", "gpu busy", "gpu work"});
  for (const StepSummary& step : summary.steps)
    table.add({step.name, for_people(step.duration), for_people(step.gpu_busy), for_people(step.gpu_work)});
  return table;
}

// For spreadsheets: the same columns as the table, numbers in one unit each.
Table step_rows(const TraceSummary& summary) {
  Table table({"step", "duration_ns", "gpu_busy_ns", "gpu_work_ns"});
  for (const StepSummary& step : summary.steps)
    table.add({step.name, std::to_string(whole_nanoseconds(step.duration)),
               std::to_string(whole_nanoseconds(step.gpu_busy)), std::to_string(whole_nanoseconds(step.gpu_work))});
  return table;
}

void run_info(const Context& context, const std::string& file) {
  const Trace trace = read(context, file);
  const TraceSummary summary = summarize(trace);
  for (const Finding& finding : summary.findings) warn(context, warning_of(finding));
  if (context.json()) return print_json(info_document(trace, summary));
  if (context.rows_only()) return print(context, step_rows(summary));
  print(info_table(trace, summary).text());
  if (!summary.steps.empty()) print("\n" + summary_steps(summary).text());
}

Json check_document(const Trace& trace, std::uint64_t errors) {
  Json document = json_document("spillway.trace_check");
  document["sound"] = errors == 0;
  document["errors"] = errors;
  document["findings"] = Json::array();
  for (const Finding& finding : trace.findings)
    document["findings"].push_back({{"kind", finding.kind},
                                    {"error", finding.is_error},
                                    {"count", finding.count},
                                    {"remedy", finding.remedy},
                                    {"examples", finding.examples}});
  document["warnings"] = Json::array();
  return document;
}

void run_check(Context& context, const std::string& file) {
  const Trace trace = read(context, file);
  std::uint64_t errors = 0;
  Table table({"finding", "severity", "rows", "first", "remedy"});
  for (const Finding& finding : trace.findings) {
    errors += finding.is_error ? finding.count : 0;
    table.add({finding.kind, finding.is_error ? "error" : "note", std::to_string(finding.count),
               finding.examples.empty() ? "" : finding.examples.front(), finding.remedy});
  }
  if (context.json())
    print_json(check_document(trace, errors));
  else if (!table.empty() || context.rows_only())
    print(context, table);
  else
    print(file + ": sound\n");
  if (errors > 0) context.exit_code = exit_answer_is_no;
}

struct Writer {
  std::string_view name;
  std::string_view ending;  // of file names that mean this format
  void (*write)(const Trace&, OutputFile&);
};

// Longer endings before those they end with.
constexpr std::array<Writer, 5> writers = {{
    {"spillway-json", ".spillway.json", write_spillway_json},
    {"kineto", ".pt.trace.json", write_chrome_trace},
    {"chrome", ".json", write_chrome_trace},
    {"spillway", ".spillway", write_spillway_binary},
    {"torch-snapshot", ".pickle", write_torch_snapshot},
}};

std::string known_formats() {
  std::string text;
  for (const Writer& writer : writers) text += (text.empty() ? "" : "|") + std::string(writer.name);
  return text;
}

std::string known_endings() {
  std::string text;
  for (const Writer& writer : writers)
    text += (text.empty() ? "" : ", ") + std::string(writer.ending) + " (" + std::string(writer.name) + ")";
  return text;
}

const Writer& writer_for(const Files& files) {
  if (!files.to.empty()) {
    const auto* found =
        std::find_if(writers.begin(), writers.end(), [&](const Writer& w) { return w.name == files.to; });
    if (found != writers.end()) return *found;
    std::vector<std::string_view> names;
    for (const Writer& writer : writers) names.push_back(writer.name);
    throw InputError("--to", "", "no format is called '" + files.to + "'", suggest(files.to, names));
  }
  const auto* found =
      std::find_if(writers.begin(), writers.end(), [&](const Writer& w) { return files.output.ends_with(w.ending); });
  if (found == writers.end())
    throw InputError(files.output, "", "the name does not tell which format to write",
                     "say it with --to, or use one of the endings " + known_endings());
  return *found;
}

// Only what the target format is made of can be in its file.
void check_fit(const Context& context, const Trace& trace, const Writer& writer, const std::string& file) {
  if (writer.write == write_torch_snapshot) {
    const std::array needed = {Capability::memory};
    trace.require(needed, "writing a memory snapshot");
  }
  const auto undrawable = std::count(trace.ops.start.begin(), trace.ops.start.end(), unknown_time);
  if (writer.write == write_chrome_trace && undrawable > 0)
    warn(context,
         fmt::format("{}: {} of {} ops have no start time and are left out", file, undrawable, trace.ops.size()));
}

// The part of its time that was asked for.
Trace read_wanted(const Context& context, const Files& files, bool keep_stacks) {
  if (!files.from_ms && !files.until_ms) return read(context, files.input, keep_stacks);
  constexpr double without_end_ms = 1e12;
  const Progress progress(context);
  const TracePart part{files.from_ms.value_or(0) * 1e3, files.until_ms.value_or(without_end_ms) * 1e3};
  return read_trace_part(files.input, part, {.progress = progress.callback("reading " + files.input)});
}

void run_convert(const Context& context, const Files& files) {
  const Writer& writer = writer_for(files);
  Trace trace = read_wanted(context, files, writer.write == write_torch_snapshot);
  if (!files.graph.empty()) trace = link_traces(std::move(trace), read(context, files.graph));
  check_fit(context, trace, writer, files.input);
  OutputFile out(files.output);
  writer.write(trace, out);
  if (is_interrupted()) throw Cancelled{};
  out.commit();
  note(context, fmt::format("{} is {}: {} ops, {} memory events", files.output, writer.name, trace.ops.size(),
                            trace.memory_events.size()));
}

Command* add_file_command(Command& group, const std::string& name, const std::string& about, Files& files) {
  Command* command = group.add_subcommand(name, about);
  command->add_option("FILE", files.input, "trace file")->required();
  return command;
}

}  // namespace

void add_trace_commands(Command& app, Context& context) {
  Command* group = app.add_subcommand("trace", "Show, check, and convert traces");
  group->require_subcommand();
  const auto files = std::make_shared<Files>();
  add_file_command(*group, "info", "What a trace holds: capabilities, counts, peaks, steps", *files)
      ->callback([&context, files] { run_stoppable([&] { run_info(context, files->input); }); });
  add_file_command(*group, "check", "Rows that could not be used; exit code 1 if any was dropped", *files)
      ->callback([&context, files] { run_stoppable([&] { run_check(context, files->input); }); });
  Command* convert = add_file_command(*group, "convert", "Write a trace in another format", *files);
  convert->add_option("OUT", files->output, "file to write; - is standard output")->required()->to_write();
  convert->add_option("--to", files->to, "format to write; by OUT's ending if not given")->type_name(known_formats());
  convert
      ->add_option("--from-ms", files->from_ms, "of a Kineto trace: what begins then or later, from its first event on")
      ->type_name("MS");
  convert->add_option("--until-ms", files->until_ms, "of a Kineto trace: what begins before")->type_name("MS");
  convert
      ->add_option("--graph", files->graph,
                   "ExecutionTrace of the same run: its tensors, uses and dependencies join the times")
      ->type_name("FILE");
  convert->callback([&context, files] { run_stoppable([&] { run_convert(context, *files); }); });
}

}  // namespace spillway::cli
