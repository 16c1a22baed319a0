// The answer, the middle of the window. It only lays out one document (studies/answer): verdict, when and why; the ways
// to fit; memory over time with the way pointed at; what binds; what it rests on.
//
//   verdict, why, when                       step  tokens/s  peak
//   ways  | memory over time, phases, streams
//         | what binds   what it rests on
#pragma once

#include <QTimer>
#include <QWidget>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/workspace/outcome.h"
#include "gui/workspace/ways_search.h"

class QCheckBox;
class QComboBox;
class QFrame;
class QHBoxLayout;
class QLabel;
class QPushButton;
class QScrollArea;
class QSplitter;
class QVBoxLayout;

namespace spillway::gui {

class AnswerPicture;
class Legend;
class WayList;

class AnswerView : public QWidget {
 public:
  AnswerView();
  void set_theme(const Theme& theme);
  // Shows its figures at once; starts no search for ways.
  void show(const std::shared_ptr<const Outcome>& outcome);
  // The whole answer of the same step.
  void show_step(const studies::Answer& answer);
  // There is no more to be had.
  void show_undrawn();
  void show_helps(const Sensitivity& sensitivity, const Result& result);
  void set_stale(bool stale);
  // Searches for ways, if it has not yet.
  void search();
  void stop();
  [[nodiscard]] bool is_searching() const { return search_.is_running(); }
  // The document shown; null: nothing yet.
  [[nodiscard]] std::shared_ptr<const studies::Answer> document() const { return document_; }
  [[nodiscard]] WayList& ways() { return *ways_; }
  [[nodiscard]] AnswerPicture& picture() { return *picture_; }
  // "Which GPU?": in sight where the memory's limit is not known.
  [[nodiscard]] QPushButton& which_gpu() { return *gpu_; }
  // Text of the scenario that the way makes; of several, made one after the other.
  [[nodiscard]] std::string text_of(int way) const;
  [[nodiscard]] std::string text_of(const std::vector<int>& ways) const;

  std::function<void(const std::string&text, const std::string&name)> on_apply, on_variant;
  std::function<void(const std::string& profile)> on_gpu;  // chosen where no limit is known

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* make_band();
  QWidget* make_ways();
  QWidget* make_picture();
  void compose();
  void show_band();
  void show_ways();
  void show_cards();
  void show_preview(int way);
  void show_legend();
  void choose_stage(int stage);
  void fit_heights();
  void tone(QLabel* label, Token token) const;

  const Theme* theme_;
  ScenarioText scenario_;
  studies::Answer step_;
  std::shared_ptr<const studies::Answer> found_, listed_, document_;  // listed_: found_ as its rows are shown
  bool lists_own_ = false;                                            // the rows are of step_
  std::vector<std::vector<studies::WayOutline>> outlines_;            // by way; none: not yet
  bool lacks_limit_ = false;                                          // of memory that is known
  bool searchable_ = false, searched_ = false, stale_ = false;
  int pointed_ = -1;

  QFrame* band_ = nullptr;
  QLabel *heading_ = nullptr, *why_ = nullptr, *when_ = nullptr;
  QHBoxLayout* figures_ = nullptr;
  QLabel *ways_title_ = nullptr, *ways_state_ = nullptr, *search_words_ = nullptr;
  QPushButton *stop_ = nullptr, *combine_ = nullptr, *gpu_ = nullptr;
  QComboBox *goal_ = nullptr, *stages_ = nullptr;
  QCheckBox* numerics_ = nullptr;
  WayList* ways_ = nullptr;
  QScrollArea *ways_area_ = nullptr, *picture_area_ = nullptr;
  Legend* legend_ = nullptr;
  QLabel *preview_ = nullptr, *readout_ = nullptr, *picture_title_ = nullptr;
  AnswerPicture* picture_ = nullptr;
  QVBoxLayout *binds_ = nullptr, *rests_ = nullptr, *phases_ = nullptr;
  QWidget *phases_card_ = nullptr, *rests_card_ = nullptr;  // hidden where they say nothing
  QLabel* binds_title_ = nullptr;
  QSplitter* halves_ = nullptr;
  QTimer pointed_for_;
  WaysSearch search_;  // last: ends before what it speaks to
};

}  // namespace spillway::gui
