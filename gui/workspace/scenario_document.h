// The scenario that is being edited: its text, how it came about, and the way back.
//
// Every state is a scenario file's text. An edit is what --set does; undo gives back the very bytes before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace spillway::gui {

class ScenarioDocument {
 public:
  // A scenario file, or a trace, which becomes the scenario that replays it. Throws InputError.
  static ScenarioDocument open(const std::string& path);
  // file: what it counts as saved in; empty: nowhere yet. folder: what its paths are relative to.
  ScenarioDocument(std::string text, std::string file, std::string folder);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string name() const;  // for people and messages
  [[nodiscard]] bool is_changed() const { return text_ != saved_; }
  [[nodiscard]] const std::string& saved_text() const { return saved_; }  // as opened, or last saved
  [[nodiscard]] bool is_trace() const { return !value("trace").value_or("").empty(); }

  // The value of a key ("model.sequence"), as --set would take it.
  [[nodiscard]] std::optional<std::string> value(const std::string& key) const;
  // False when nothing changes. goes_on: a further value of the same drag; undone with the ones before in one step.
  bool set(const std::string& key, const std::string& value, bool goes_on = false);
  bool replace(const std::string& text);

  [[nodiscard]] bool can_undo() const { return !undone_to_.empty(); }
  // Steps made and not undone: where the document is on its way.
  [[nodiscard]] std::size_t steps() const { return steps_; }
  static constexpr std::size_t most_steps = 1'000;  // that can be undone
  bool undo();
  bool redo();

  // Throws InputError where it can't be written; then nothing changes. Paths are made to hold in the new folder.
  void save(const std::string& path);
  // As it is now is kept somewhere else, in a workspace's file.
  void mark_saved() { saved_ = text_; }

  // `spillway run FILE --set ...`, quoted for a shell. None when the changes can't be said with --set: save first.
  [[nodiscard]] std::optional<std::string> command() const;

 private:
  bool become(std::string text, const std::string& key, bool goes_on);

  std::string text_, file_, folder_, saved_;
  std::string on_disk_;  // what the file holds, for command(); empty: there is none
  std::vector<std::string> undone_to_, redone_to_;
  std::size_t steps_ = 0;
  std::string dragged_;  // key of the drag that goes on
};

}  // namespace spillway::gui
