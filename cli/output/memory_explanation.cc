#include "cli/output/memory_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "cli/options/command_options.h"
#include "cli/options/text_page.h"
#include "reports/pictures/memory_svg.h"
#include "sim/pictures/memory_picture.h"
#include "sim/replay/peak_owners.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  const char* key;
  const char* words;
  Bytes bytes;
};

std::vector<Part> parts_of(const ReservedParts& parts) {
  return {{"requested_bytes", "asked for", parts.requested},
          {"rounding_bytes", "rounding to 512 bytes", parts.rounding},
          {"slack_bytes", "blocks larger than asked for, too small a rest to split", parts.slack},
          {"pending_bytes", "freed, but another stream may still use it", parts.pending},
          {"partly_used_large_bytes", "free pieces of large segments in use", parts.partly_used_large},
          {"partly_used_small_bytes", "free pieces of small segments in use", parts.partly_used_small},
          {"cached_large_bytes", "large segments, free as a whole", parts.cached_large},
          {"cached_small_bytes", "small segments, free as a whole", parts.cached_small}};
}

std::string share_text(Bytes part, Bytes whole) {
  const double fraction = whole > Bytes(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
  return percent_text(fraction);
}

void write_svg(const std::string& path, const std::string& svg) {
  if (!path.ends_with(".svg") && path != "-")
    throw InputError(path, "", "a picture's name does not end in .svg", "name it something.svg");
  OutputFile out(path);
  out.write(svg);
  out.commit();
}

}  // namespace

MemoryExplanation explain_memory(const Trace& trace, const AllocationStreamOptions& options) {
  return {parts_at_reserved_peak(trace, options), try_memory_knobs(trace, options)};
}

std::string reserved_parts_text(const MemoryExplanation& explanation) {
  const ReservedParts& parts = explanation.parts;
  constexpr double least = 0.0005;  // of what is reserved: not worth a row
  std::string text = fmt::format("\n  when most is reserved, {}\n", bytes_text(parts.reserved()));
  for (const Part& part : parts_of(parts))
    if (static_cast<double>(part.bytes.count()) > least * static_cast<double>(parts.reserved().count()))
      text += paragraph(fmt::format("    {:>12} {:>7}  {}", bytes_text(part.bytes),
                                    share_text(part.bytes, parts.reserved()), part.words),
                        page_width(), 26);
  return text;
}

std::string explanation_text(const MemoryExplanation& explanation) {
  std::string text = reserved_parts_text(explanation) + "\n  what would have reserved less then\n";
  std::size_t saving = 0, tried = 0;  // bounds are no settings
  for (const MemoryKnob& knob : explanation.knobs) {
    tried += knob.is_bound ? 0 : 1;
    saving += !knob.is_bound && knob.gain > Bytes(0) ? 1 : 0;
    if (knob.gain > Bytes(0))
      text += fmt::format("    {:>12}  {}{}\n", bytes_text(knob.gain), knob.name,
                          knob.is_bound ? ": a bound, no setting" : "");
  }
  return text + fmt::format("    {} of the {} settings and allocators that were tried would\n",
                            saving == 0 ? "none" : "no other", tried);
}

Json explanation_json(const MemoryExplanation& explanation) {
  Json parts;
  for (const Part& part : parts_of(explanation.parts)) parts[part.key] = part.bytes.count();
  parts["reserved_bytes"] = explanation.parts.reserved().count();
  Json document = {{"reserved_parts", std::move(parts)}};
  document["knobs"] = Json::array();
  for (const MemoryKnob& knob : explanation.knobs)
    document["knobs"].push_back({{"name", knob.name},
                                 {"allocator", knob.policy},
                                 {"settings", knob.settings},
                                 {"peak_reserved_bytes", knob.peak_reserved.count()},
                                 {"gain_bytes", knob.gain.count()},
                                 {"driver_calls", knob.driver_calls},
                                 {"is_bound", knob.is_bound}});
  return document;
}

std::string owners_text(const std::string& heading, const std::vector<PeakOwner>& owners, std::size_t most) {
  if (owners.empty()) return "";
  std::string text = "\n  " + heading + "\n";
  for (const PeakOwner& owner : largest_owners(owners, most))
    text += fmt::format("    {:>12}  {}\n", bytes_text(owner.bytes), owner.name);
  return text;
}

Json owners_json(const std::vector<PeakOwner>& owners) {
  Json list = Json::array();
  for (const PeakOwner& owner : owners) list.push_back({{"name", owner.name}, {"bytes", owner.bytes.count()}});
  return list;
}

void add_picture_options(Command& command, PictureFiles& files) {
  command.add_option("--curve", files.curve, "write what is allocated and reserved over time as a picture (.svg)")
      ->to_write()
      ->type_name("FILE");
  command.add_option("--map", files.map, "write the blocks' addresses over time as a picture (.svg)")
      ->to_write()
      ->type_name("FILE");
}

void write_pictures(const PictureFiles& files, const MemoryPicture& picture) {
  if (!files.curve.empty()) write_svg(files.curve, memory_curve_svg(picture));
  if (!files.map.empty()) write_svg(files.map, address_map_svg(picture));
}

void write_pictures(const PictureFiles& files, const Trace& trace, const AllocationStreamOptions& options,
                    const std::string& title, Bytes capacity) {
  if (!files.wanted()) return;
  AllocationStreamOptions run = options;
  run.keep_rows = run.keep_totals = true;
  run.repeat = false;
  const AllocationStreamResult result = replay_allocation_stream(trace, run);
  MemoryPicture picture = memory_picture(trace, result);
  const PoolStatistics& all = result.statistics.all();
  picture.title = title;
  picture.capacity = capacity;
  picture.subtitle = fmt::format("{} allocator{}: peak allocated {}, peak reserved {}, {} allocations", result.policy,
                                 run.pool.settings.empty() ? "" : " with " + run.pool.settings,
                                 bytes_text(Bytes(all.allocated_bytes.peak)),
                                 bytes_text(Bytes(all.reserved_bytes.peak)), result.allocations);
  write_pictures(files, picture);
}

void write_pictures(const PictureFiles& files, const LoadedScenario& loaded, ScenarioRun run) {
  take_replayed_order(loaded, run);
  MemoryPicture picture = step_memory_on(loaded, run, std::array{MemoryClock::gpu}).front();
  const MemoryResult& memory = run.result.memory;
  picture.subtitle = fmt::format("{} allocator: peak allocated {}, peak reserved {}", memory.allocator,
                                 bytes_text(memory.peak_allocated), bytes_text(memory.peak_reserved));
  write_pictures(files, picture);
}

}  // namespace spillway::cli
