#include "traces/formats/recording.h"

#include <array>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/read_file.h"
#include "traces/capture_fit.h"
#include "traces/formats/read.h"
#include "traces/step_times.h"
#include "traces/trace_link.h"

namespace spillway::traces {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "manifest.json";
constexpr std::uint64_t largest_manifest = 16U << 20U;

struct Manifest {
  std::string light = "light.json", full = "steps.json", graph = "graph.json", snapshot = "memory.pickle";
  std::vector<std::int64_t> unprofiled_ns;
};

void describe(Manifest& manifest, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-recording", .noun = "a recording's manifest"});
  fields::group(visitor, {.key = "files"}, [&] {
    for (const auto& file :
         {std::pair("kineto_light", &manifest.light), std::pair("kineto", &manifest.full),
          std::pair("execution_trace", &manifest.graph), std::pair("memory_snapshot", &manifest.snapshot)})
      fields::group(visitor, {.key = file.first}, [&] {
        fields::text(visitor, {.key = "name", .required = true}, *file.second);
        visitor.others();
      });
    visitor.others();
  });
  fields::group(visitor, {.key = "phases"}, [&] {
    fields::group(visitor, {.key = "unprofiled"}, [&] {
      visitor.integers({.key = "step_times_ns", .min = 0, .above_min = true, .even_empty = true},
                       manifest.unprofiled_ns);
      visitor.others();
    });
    visitor.others();
  });
  visitor.others();
}

// The file as it is called, or packed in another way. Empty: it isn't there.
std::string found_in(const std::string& folder, std::string name) {
  if (fs::path(name).filename() != name)
    throw InputError((fs::path(folder) / manifest_name).string(), "/files", "'" + name + "' is no file beside it",
                     "name files of the same folder");
  for (const char* packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.resize(name.size() - std::string_view(packed).size());
  for (const char* packed : {"", ".gz", ".zst"}) {
    const fs::path path = fs::path(folder) / (name + packed);
    if (std::error_code error; fs::is_regular_file(path, error)) return path.string();
  }
  return {};
}

std::optional<Manifest> manifest_of(const std::string& folder) {
  const std::string path = (fs::path(folder) / manifest_name).string();
  if (std::error_code error; !fs::is_regular_file(path, error)) return std::nullopt;
  const std::string text = read_file(path, largest_manifest);
  if (document_schema(text) != "spillway-recording") return std::nullopt;
  Manifest manifest;
  read_document(text, path, [&manifest](FieldVisitor& visitor) { describe(manifest, visitor); });
  return manifest;
}

// What the manifest names and nobody has.
void note_missing(Trace& trace, const std::string& what, const char* remedy) {
  trace.note("not_in_recording", what, remedy, false);
}

Trace with_graph(Trace trace, const std::string& graph, const ReadOptions& options) {
  if (graph.empty()) return trace;
  const Trace known = read_trace(graph, options);
  Trace unlinked = trace;
  try {
    return link_traces(std::move(trace), known);
  } catch (const InputError& error) {
    unlinked.note("graph_not_joined", graph + ": " + error.cause(),
                  "the ExecutionTrace is left out, and uses are inferred where they are needed", false);
    return unlinked;
  }
}

Trace with_light_times(Trace full, const std::string& light_file, const ReadOptions& options) {
  if (light_file.empty()) {
    note_missing(full, "light.json",
                 "without lightly profiled steps the times are those of the full profile, with the profiler in them");
    return full;
  }
  const Trace light = read_unfitted(light_file, options);
  StepMatch match;
  std::optional<Trace> timed = with_times_of(full, light, match);
  const std::string share = std::to_string(match.matched) + " of " + std::to_string(match.all) +
                            " calls and works of the fully profiled steps";
  if (!timed) {
    full.note("light_not_joined", share,
              "the light trace has too few of the full one's calls and works: its times are left out, and those that "
              "stand have the profiler in them",
              false);
    return full;
  }
  if (match.matched < match.all)
    timed->note("light_partly_joined", share, "the rest keeps its fully profiled duration", false);
  timed->provenance.insert(timed->provenance.end(), light.provenance.begin(), light.provenance.end());
  return std::move(*timed);
}

}  // namespace

bool is_recording(const std::string& path) {
  if (!is_folder(path)) return false;
  const std::string manifest = (fs::path(path) / manifest_name).string();
  if (std::error_code error; fs::is_regular_file(manifest, error) &&
                             fs::file_size(manifest, error) < largest_manifest &&
                             document_schema(read_file(manifest, largest_manifest)) == "spillway-recording")
    return true;
  const Manifest names;
  return !found_in(path, names.light).empty() || !found_in(path, names.full).empty();
}

Trace read_recording(const std::string& folder, const ReadOptions& options) {
  const Manifest manifest = manifest_of(folder).value_or(Manifest());
  const std::string light = found_in(folder, manifest.light), full = found_in(folder, manifest.full),
                    snapshot = found_in(folder, manifest.snapshot);
  Trace trace;
  if (!full.empty()) {
    trace = with_light_times(with_graph(read_unfitted(full, options), found_in(folder, manifest.graph), options), light,
                             options);
    fit_capture(trace);
  } else if (!light.empty()) {
    trace = read_trace(light, options);
    note_missing(trace, "steps.json", "without fully profiled steps nothing is known of memory and uses");
  } else if (!snapshot.empty()) {
    trace = read_trace(snapshot, options);
    note_missing(trace, "steps.json", "without profiled steps the allocator's history stands alone");
  } else {
    throw InputError(folder, "", "has no trace of a step",
                     "give a folder that spillway.torch.record() wrote, or the trace itself");
  }
  for (const std::int64_t ns : manifest.unprofiled_ns) trace.unprofiled_steps.push_back({nanoseconds(ns)});
  return trace;
}

}  // namespace spillway::traces
