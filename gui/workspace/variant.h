// One named what-if of a workspace: a scenario, the steps that led to it, what it came to.
#pragma once

#include <QUndoStack>
#include <memory>
#include <string>
#include <vector>

#include "gui/canvas/note.h"
#include "gui/workspace/outcome.h"
#include "gui/workspace/scenario_document.h"
#include "gui/workspace/variant_figures.h"

namespace spillway::gui {

struct Variant {
  int id = 0, parent = -1;  // -1: a root, opened from somewhere
  std::string name;
  ScenarioDocument document;
  ReadRange range{};                                // of a trace
  QUndoStack history{};                             // its commands are the document's steps, with their names
  std::vector<Note> notes{};                        // on its step; kept by workspaces and the last session
  std::shared_ptr<const VariantFigures> figures{};  // of the last replay; null: none yet
  std::shared_ptr<const Outcome> outcome{};         // while it is small, and of the document's text
};

// A variant as a workspace's file has it.
struct StoredVariant {
  int id = 0, parent = -1;
  std::string name, file, folder, text, saved;
  std::vector<Note> notes{};
};
struct StoredWorkspace {
  int current = 0;
  std::vector<StoredVariant> variants;  // parents before their children
};
// JSON, "schema": "spillway-workspace".
std::string workspace_text(const StoredWorkspace& workspace);
// Throws InputError with file, place and remedy.
StoredWorkspace parse_workspace(const std::string& text, const std::string& name);
bool is_workspace_text(const std::string& head);

// "model.micro_batch 8 to 4"; of several changes the first, and how many more.
std::string step_words(const std::string& before, const std::string& after);

}  // namespace spillway::gui
