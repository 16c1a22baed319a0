#include "gui/workspace/variant.h"

#include <algorithm>

#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

constexpr const char* schema = "spillway-workspace";
constexpr const char* remedy = "open a workspace that spillway's window wrote";

const Words& axis_words() {
  static const Words words = {
      {"gpu_time", "the GPU's time"}, {"host_time", "the host's time"}, {"program_order", "program order"}};
  return words;
}

void describe(Note& note, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "axis", .about = "What it was written on."}, note.axis, axis_words());
  fields::integer(visitor,
                  {.key = "at",
                   .about = "Where on it, in picoseconds; in program order, after how many operations.",
                   .required = true},
                  note.at);
  fields::text(visitor, {.key = "text", .about = "What it says.", .required = true}, note.text);
}

void describe(StoredVariant& one, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "id", .about = "Its own number.", .required = true}, one.id);
  fields::integer(visitor,
                  {.key = "parent", .min = -1, .about = "Of whom it is a what-if; -1: of none.", .required = true},
                  one.parent);
  fields::text(visitor, {.key = "name", .about = "As people call it."}, one.name);
  fields::text(visitor, {.key = "file", .about = "What it was opened from, or saved in."}, one.file);
  fields::text(visitor, {.key = "folder", .about = "What its paths are relative to."}, one.folder);
  fields::text(visitor, {.key = "scenario", .about = "The scenario's text.", .required = true}, one.text);
  fields::text(visitor, {.key = "saved", .about = "The same as its file has it; not given: as it is here."}, one.saved);
  fields::list(visitor, {.key = "notes", .about = "Written on the canvas."}, one.notes,
               [&](Note& note) { describe(note, visitor); });
}

void describe(StoredWorkspace& workspace, FieldVisitor& visitor) {
  visitor.head({.schema = schema, .noun = "a workspace"});
  fields::integer(visitor, {.key = "current", .about = "The id of the variant at hand."}, workspace.current);
  fields::list(visitor,
               {.key = "variants", .about = "Parents before their children.", .required = true, .least_items = 1},
               workspace.variants, [&](StoredVariant& one) { describe(one, visitor); });
}

}  // namespace

std::string workspace_text(const StoredWorkspace& workspace) {
  StoredWorkspace copy = workspace;
  FieldWriter writer;
  describe(copy, writer);
  return writer.text();
}

bool is_workspace_text(const std::string& head) {
  return head.find('"' + std::string(schema) + '"') != std::string::npos;
}

StoredWorkspace parse_workspace(const std::string& text, const std::string& name) {
  StoredWorkspace workspace;
  read_document(
      text, name, [&](FieldVisitor& visitor) { describe(workspace, visitor); }, remedy);
  for (std::size_t i = 0; i < workspace.variants.size(); ++i) {
    StoredVariant& one = workspace.variants[i];
    const std::string place = "/variants/" + std::to_string(i);
    const auto is_before = [&](int id) {
      const auto end = workspace.variants.begin() + static_cast<std::ptrdiff_t>(i);
      return std::any_of(workspace.variants.begin(), end, [id](const StoredVariant& other) { return other.id == id; });
    };
    if (is_before(one.id)) throw InputError(name, place + "/id", "not its own number", remedy);
    if (one.parent >= 0 && !is_before(one.parent))
      throw InputError(name, place + "/parent", "no variant before it", remedy);
    static_cast<void>(parse_scenario(one.text, name + place, one.folder));
    if (one.saved.empty()) one.saved = one.text;  // not given: as it is here
    static_cast<void>(parse_scenario(one.saved, name + place + "/saved", one.folder));
  }
  return workspace;
}

std::string step_words(const std::string& before, const std::string& after) {
  const auto settings = settings_between(before, after);
  if (!settings || settings->empty()) return "edit";
  const std::string& first = settings->front();
  const std::string key = first.substr(0, first.find('='));
  std::string words =
      key + " " + setting_of(before, key).value_or("unset") + " to " + setting_of(after, key).value_or("unset");
  if (settings->size() > 1) words += ", " + std::to_string(settings->size() - 1) + " more";
  return words;
}

}  // namespace spillway::gui
