#include "gui/panels/answer_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "base/short_text.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/legend.h"
#include "hwprofiles/profile_library.h"
#include "sim/replay/verdict_words.h"

namespace spillway::gui {
namespace {

constexpr int hover_ms = 80;  // until a way's outline is drawn
constexpr int roomy = 860;    // logical pixels of height from which the cards are in sight below the picture
constexpr std::size_t most_inputs = 12;

QString answer_words(const std::string& text) { return QString::fromStdString(text); }

QLabel* text_label(int pixels, bool bold = false) {
  auto* const label = new QLabel;
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont font = label->font();
  font.setPixelSize(pixels);
  font.setBold(bold);
  label->setFont(font);
  return label;
}

void set_text(QLabel* label, const QString& text) {
  label->setText(text);
  label->setVisible(!text.isEmpty());
}

void clear(QLayout& layout) {
  while (QLayoutItem* const item = layout.takeAt(0)) {
    if (item->widget() != nullptr) {
      item->widget()->hide();
      item->widget()->deleteLater();
    }
    if (item->layout() != nullptr) clear(*item->layout());
    delete item;
  }
}

// A part of one, drawn.
class ShareBar : public QWidget {
 public:
  ShareBar(double share, const QColor& color) : share_(std::clamp(share, 0.0, 1.0)), color_(color) {
    setFixedSize(120, 8);
  }

 protected:
  void paintEvent(QPaintEvent* /*event*/) override {
    QPainter(this).fillRect(QRectF(0, 0, std::max(1.0, width() * share_), height()), color_);
  }

 private:
  double share_;
  QColor color_;
};

QScrollArea* scrolling(QWidget* content) {
  auto* const area = new QScrollArea;
  area->setFrameShape(QFrame::NoFrame);
  area->setWidgetResizable(true);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area->setFocusPolicy(Qt::NoFocus);
  area->setWidget(content);
  return area;
}

}  // namespace

AnswerView::AnswerView() : theme_(&light_theme()) {
  halves_ = new QSplitter(Qt::Horizontal);
  halves_->setChildrenCollapsible(false);
  halves_->addWidget(make_ways());
  halves_->addWidget(make_picture());
  halves_->setStretchFactor(0, 9);
  halves_->setStretchFactor(1, 16);
  halves_->setSizes({360, 640});
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(make_band());
  column->addWidget(halves_, 1);
  setFocusProxy(goal_);
  pointed_for_.setSingleShot(true);
  pointed_for_.setInterval(hover_ms);
  QObject::connect(&pointed_for_, &QTimer::timeout, this, [this] {
    const auto way = static_cast<std::size_t>(pointed_);
    if (pointed_ < 0 || way >= outlines_.size() || !outlines_[way].empty()) return;
    search_.outline(scenario_, way, document_->ways[way].edits);
  });
  search_.on_answer = [this](std::shared_ptr<const studies::Answer> answer) {
    found_ = std::move(answer);
    compose();
  };
  search_.on_outline = [this](std::size_t way, std::vector<studies::WayOutline> found) {
    if (way >= outlines_.size()) return;
    outlines_[way] = std::move(found);
    if (static_cast<int>(way) == pointed_) picture_->preview(&document_->ways[way], outlines_[way]);
  };
  search_.on_progress = [this](const std::string& what, std::size_t replays) {
    ways_state_->setText(tr("%1 (%2 replays)").arg(answer_words(what)).arg(replays));
  };
  search_.on_state = [this] { show_ways(); };
  ways_->on_tick = [this] {
    const std::size_t count = ways_->ticked().size();
    combine_->setText(tr("Combine %1").arg(count));
    combine_->setVisible(count > 1);
  };
  QObject::connect(combine_, &QPushButton::clicked, this, [this] {
    const std::vector<int> ticked = ways_->ticked();
    std::string name;
    for (const int way : ticked)
      name += (name.empty() ? "" : " + ") + document_->ways[static_cast<std::size_t>(way)].name;
    if (on_variant) on_variant(text_of(ticked), name);
  });
  ways_->on_point = [this](int way) { show_preview(way); };
  ways_->on_reveal = [this](QWidget& row) {
    QTimer::singleShot(0, &row, [this, &row] { ways_area_->ensureWidgetVisible(&row, 0, 8); });
  };
  ways_->on_apply = [this](int way, bool as_variant) {
    const std::string text = text_of(way), name = document_->ways[static_cast<std::size_t>(way)].name;
    const auto& then = as_variant ? on_variant : on_apply;
    if (then) then(text, name);
  };
  picture_->on_readout = [this](const QString& words) {
    readout_->setText(words);
    readout_->setToolTip(words);
  };
  picture_->on_stage = [this](int stage) { choose_stage(stage); };
}

QWidget* AnswerView::make_band() {
  band_ = new QFrame;
  band_->setObjectName("band");
  auto* const row = new QHBoxLayout(band_);
  row->setContentsMargins(14, 8, 14, 8);
  row->setSpacing(18);
  auto* const words = new QVBoxLayout;
  words->setSpacing(3);
  heading_ = text_label(20, true);
  heading_->setObjectName("heading");
  why_ = text_label(13);
  when_ = text_label(13);
  for (QLabel* const label : {heading_, why_, when_}) words->addWidget(label);
  gpu_ = new QPushButton(tr("Which GPU?"));
  gpu_->setToolTip(tr("The record does not say how much memory the GPU has: choose it, and see whether it fits"));
  gpu_->setVisible(false);
  auto* const menu = new QMenu(gpu_);
  for (const ProfileEntry& entry : ProfileLibrary::shared().list())
    if (entry.kind == ProfileKind::gpu)
      menu->addAction(QString::fromStdString(entry.title), this, [this, name = entry.name] {
        if (on_gpu) on_gpu(name);
      });
  gpu_->setMenu(menu);
  words->addWidget(gpu_, 0, Qt::AlignLeft);
  words->addStretch(1);
  row->addLayout(words, 1);
  figures_ = new QHBoxLayout;
  figures_->setSpacing(20);
  row->addLayout(figures_);
  return band_;
}

QWidget* AnswerView::make_ways() {
  auto* const whole = new QWidget;
  auto* const column = new QVBoxLayout(whole);
  column->setContentsMargins(14, 8, 6, 8);
  column->setSpacing(4);
  ways_title_ = text_label(14, true);
  ways_state_ = text_label(12);
  search_words_ = text_label(12);
  goal_ = new QComboBox;
  goal_->setAccessibleName(tr("Best is"));
  goal_->setToolTip(tr("Which of the set-ups that fit is best"));
  goal_->addItems({tr("Fastest"), tr("Cheapest"), tr("Longest SSD life"), tr("Least memory"), tr("Fewest GPUs"),
                   tr("Least change")});  // by FitGoal
  numerics_ = new QCheckBox(tr("Keep the numerics"));
  numerics_->setToolTip(tr("No other optimizer, no other precision, no update a step late"));
  stop_ = new QPushButton(tr("Stop"));
  stop_->setToolTip(tr("With the best so far"));
  auto* const line = new QHBoxLayout;
  line->setSpacing(8);
  line->addWidget(goal_);
  line->addWidget(numerics_);
  line->addStretch(1);
  combine_ = new QPushButton;
  combine_->setToolTip(
      tr("Makes the ticked set-ups together, as a variant; where two set a key, the later one's value"));
  combine_->setVisible(false);
  line->addWidget(combine_);
  line->addWidget(stop_);
  ways_ = new WayList;
  auto* const content = new QWidget;
  auto* const rows = new QVBoxLayout(content);
  rows->setContentsMargins(0, 2, 6, 2);
  rows->addWidget(ways_);
  rows->addWidget(search_words_);
  rows->addStretch(1);
  ways_area_ = scrolling(content);
  column->addWidget(ways_title_);
  column->addWidget(ways_state_);
  column->addLayout(line);
  column->addWidget(ways_area_, 1);
  whole->setMinimumWidth(360);
  const auto again = [this] {
    searched_ = false;
    search();
  };
  QObject::connect(goal_, &QComboBox::currentIndexChanged, this, again);
  QObject::connect(numerics_, &QCheckBox::toggled, this, again);
  QObject::connect(stop_, &QPushButton::clicked, this, [this] { search_.end_early(); });
  return whole;
}

QWidget* AnswerView::make_picture() {
  auto* const whole = new QWidget;
  auto* const column = new QVBoxLayout(whole);
  column->setContentsMargins(6, 8, 14, 8);
  column->setSpacing(4);
  picture_title_ = text_label(14, true);
  picture_title_->setText(tr("Memory over time"));
  picture_title_->setWordWrap(false);
  stages_ = new QComboBox;
  stages_->setAccessibleName(tr("The stage that memory is shown of"));
  stages_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  legend_ = new Legend;
  auto* const line = new QHBoxLayout;
  line->setSpacing(10);
  line->addWidget(picture_title_);
  line->addWidget(stages_);
  line->addWidget(legend_, 1);
  preview_ = new QLabel;
  preview_->setObjectName("preview");
  preview_->setTextFormat(Qt::PlainText);
  preview_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  picture_ = new AnswerPicture;
  readout_ = new QLabel;
  readout_->setTextFormat(Qt::PlainText);
  readout_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  const auto card = [](const QString& name) {
    auto* const frame = new QFrame;
    frame->setObjectName("card");
    auto* const inside = new QVBoxLayout(frame);
    inside->setContentsMargins(12, 8, 12, 8);
    inside->setSpacing(3);
    auto* const words = text_label(14, true);
    words->setText(name);
    inside->addWidget(words);
    auto* const rows = new QVBoxLayout;
    rows->setSpacing(2);
    inside->addLayout(rows);
    inside->addStretch(1);
    return std::pair(frame, rows);
  };
  const auto [binds, binds_rows] = card(tr("Bottleneck, and what would help"));
  const auto [rests, rests_rows] = card(tr("What the answer rests on"));
  const auto [phases, phases_rows] = card(tr("Parts of the step"));
  phases_card_ = phases;
  phases_ = phases_rows;
  binds_ = binds_rows;
  binds_title_ = binds->findChild<QLabel*>();
  rests_card_ = rests;
  rests_ = rests_rows;
  auto* const cards = new QHBoxLayout;
  cards->setSpacing(10);
  cards->addWidget(binds, 2);
  cards->addWidget(rests, 3);
  column->addLayout(line);
  column->addWidget(preview_);
  column->addWidget(picture_, 1);
  column->addWidget(readout_);
  column->addWidget(phases_card_);
  column->addLayout(cards);
  picture_area_ = scrolling(whole);
  QObject::connect(stages_, &QComboBox::currentIndexChanged, this, [this](int stage) { choose_stage(stage); });
  return picture_area_;
}

void AnswerView::tone(QLabel* label, Token token) const {
  QPalette palette = label->palette();
  palette.setColor(QPalette::WindowText, (*theme_)[token]);
  label->setPalette(palette);
}

void AnswerView::set_theme(const Theme& theme) {
  theme_ = &theme;
  const QString line = theme[Token::line].name();
  band_->setStyleSheet(QString("#band { background: %1; border: 0; border-bottom: 1px solid %2; }")
                           .arg(theme[Token::raised].name(), line));
  picture_area_->setStyleSheet(QString("#card { background: %1; border: 1px solid %2; border-radius: 6px; }"
                                       "#preview { border: 1px dashed %3; border-radius: 4px; padding: 2px 8px; }")
                                   .arg(theme[Token::raised].name(), line, theme[Token::control].name()));
  for (QLabel* const label : {when_, ways_state_, search_words_, readout_, static_cast<QLabel*>(legend_)})
    tone(label, Token::muted);
  picture_->set_theme(theme);
  ways_->set_theme(theme);
  if (document_ == nullptr) return;
  show_band();
  show_cards();
  show_legend();
  show_preview(pointed_);
}

void AnswerView::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  picture_->set_stale(stale);
  if (document_ != nullptr) show_band();
}

void AnswerView::show(const std::shared_ptr<const Outcome>& outcome) {
  search_.stop();
  scenario_ = outcome->scenario;
  searchable_ = outcome->trace().has(Capability::times);  // a snapshot's answer has its own
  const MemoryResult& memory = outcome->result().memory;
  lacks_limit_ = memory.known && !memory.on_host && memory.capacity <= Bytes(0);
  step_ = studies::run_answer(outcome->loaded, outcome->result(), {});
  found_ = nullptr;
  searched_ = false;
  picture_->set_stale(true);  // until its own is drawn
  compose();
}

void AnswerView::show_step(const studies::Answer& answer) {
  const std::vector<studies::AnswerHelp> helps = std::move(step_.helps);
  const std::vector<std::string> no_help = std::move(step_.no_help);
  step_ = answer;
  if (step_.helps.empty()) {
    step_.helps = helps;
    step_.no_help = no_help;
  }
  compose();
  picture_->set_stale(stale_);
  picture_->show(document_);
  picture_title_->setText(step_.drawn.empty() ? tr("Memory over time")
                                              : tr("Memory over time, %1").arg(answer_words(step_.drawn)));
  const QSignalBlocker quiet(stages_);
  stages_->clear();
  for (const studies::StageMemory& stage : document_->stages)
    stages_->addItem(QString("%1, %2").arg(answer_words(stage.name), answer_words(short_size(stage.peak_reserved))));
  stages_->setVisible(document_->stages.size() > 1);
  choose_stage(picture_->stage());
  show_preview(pointed_);
}

void AnswerView::show_undrawn() { show_step(studies::Answer(step_)); }

void AnswerView::show_helps(const Sensitivity& sensitivity, const Result& result) {
  step_.helps.clear();
  step_.no_help.clear();
  studies::add_helps(sensitivity.relaxations, result, step_);
  compose();
}

// One document: the step's, with the ways that were found.
void AnswerView::compose() {
  auto document = std::make_shared<studies::Answer>(step_);
  if (found_ != nullptr) studies::add_search(*found_, *document);
  document_ = std::move(document);
  const bool lists_own = found_ == nullptr && !step_.ways.empty();
  if (found_ != listed_ || lists_own || lists_own_) {  // else who is in the list stays there
    listed_ = found_;
    lists_own_ = lists_own;
    outlines_.assign(document_->ways.size(), {});
    ways_->show(document_);
    combine_->setVisible(false);
    show_preview(-1);
  }
  show_band();
  show_ways();
  show_cards();
}

void AnswerView::show_band() {
  set_text(heading_, answer_words(document_->heading));
  const Token told = document_->answer == Verdict::does_not_fit ? Token::bad
                     : document_->answer == Verdict::fits       ? Token::good
                                                                : Token::warn;
  tone(heading_, stale_ ? Token::muted : told);
  gpu_->setVisible(lacks_limit_ && document_->answer == Verdict::unknown);
  set_text(why_, answer_words(document_->why.sentence));
  QString when = answer_words(document_->when);
  if (!document_->hangs_on.empty()) {
    QStringList parts;
    for (const std::string& clause : document_->hangs_on) parts += answer_words(clause);
    when += (when.isEmpty() ? "" : "\n") + tr("Hangs on: %1.").arg(parts.join("; "));
  }
  set_text(when_, when);
  clear(*figures_);
  for (const studies::HeadFigure& figure : studies::head_figures(*document_)) {
    auto* const box = new QWidget;
    auto* const column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(1);
    QLabel* const parts[] = {text_label(12), text_label(17, true), text_label(12)};
    const std::string* const texts[] = {&figure.name, &figure.value, &figure.detail};
    for (std::size_t i = 0; i < 3; ++i) {
      parts[i]->setWordWrap(false);
      parts[i]->setText(answer_words(*texts[i]));
      tone(parts[i], i == 1 && !stale_ ? Token::text : Token::muted);
      column->addWidget(parts[i]);
    }
    column->addStretch(1);
    box->setAccessibleName(answer_words(figure.name + ": " + figure.value));
    figures_->addWidget(box);
  }
}

void AnswerView::show_ways() {
  const bool searching = search_.is_running();
  stop_->setVisible(searching);
  for (QWidget* const one : {static_cast<QWidget*>(goal_), static_cast<QWidget*>(numerics_)})
    one->setVisible(searchable_);
  if (found_ != nullptr || lists_own_) {
    ways_title_->setText(answer_words(document_->ways_heading));
    set_text(ways_state_, answer_words(document_->best + (document_->advice.empty() ? "" : ". " + document_->advice)));
  } else {
    ways_title_->setText(searching ? tr("Searching for set-ups…") : tr("Ways to fit"));
    if (!searching) set_text(ways_state_, answer_words(search_.trouble()));
    if (searching) ways_state_->setVisible(true);
  }
  set_text(search_words_, found_ != nullptr ? answer_words(document_->search) : QString());
}

void AnswerView::show_cards() {
  const auto line = [this](QVBoxLayout& card, const QString& text, Token token) {
    if (text.isEmpty()) return;
    auto* const label = text_label(12);
    label->setText(text);
    tone(label, token);
    card.addWidget(label);
  };
  const auto bars = [this](const auto& shares, double most, const char* sign) {
    for (const auto& share : shares) {
      auto* const row = new QHBoxLayout;
      auto* const name = text_label(12);
      name->setText(answer_words(share.name));
      auto* const part = text_label(12);
      part->setText(sign + answer_words(short_percent(share.fraction)));
      part->setWordWrap(false);
      part->setMinimumWidth(46);
      part->setAlignment(Qt::AlignRight);
      row->addWidget(name, 1);
      row->addWidget(new ShareBar(share.fraction / most, theme_->accent));
      row->addWidget(part);
      binds_->addLayout(row);
    }
  };
  binds_title_->setText(document_->held.empty() || document_->held == "at the peak"
                            ? tr("Bottleneck, and what would help")
                            : tr("What was alive"));
  clear(*binds_);
  if (!document_->shares.empty()) line(*binds_, answer_words(document_->binds), Token::muted);
  if (document_->helps.empty()) bars(document_->shares, 1, "");
  if (!document_->helps.empty()) bars(document_->helps, document_->helps.front().fraction, "\u2212");
  if (!document_->no_help.empty()) {
    QStringList names;
    for (const std::string& name : document_->no_help) names += answer_words(name);
    line(*binds_, tr("No gain: %1.").arg(names.join(", ")), Token::muted);
  }
  clear(*phases_);
  phases_card_->setVisible(!document_->phases.empty());
  for (const studies::AnswerPhase& phase : document_->phases)
    line(*phases_, answer_words(verdict_shape(phase.answer) + " " + phase.name + ": " + phase.words),
         phase.answer == Verdict::does_not_fit ? Token::bad : Token::text);
  clear(*rests_);
  rests_card_->setVisible(!document_->times.empty() || !document_->warnings.empty() || !document_->assumed.empty() ||
                          !document_->defaults.empty() || !document_->inputs.empty());
  if (!document_->times.empty()) line(*rests_, answer_words(document_->times), Token::muted);
  for (const std::string& warning : document_->warnings) line(*rests_, "▲ " + answer_words(warning), Token::text);
  for (const std::string& each : document_->assumed)
    line(*rests_, tr("assumed: %1").arg(answer_words(each)), Token::muted);
  for (const studies::AnswerDefault& each : document_->defaults)
    line(*rests_, tr("by default: %1").arg(answer_words(each.sentence)), Token::muted);
  std::size_t shown = 0;
  for (const InputProvenance& input : document_->inputs) {
    if (shown++ >= most_inputs) break;
    auto* const row = new QHBoxLayout;
    auto* const name = text_label(12);
    name->setText(answer_words(input.name) + "  " + answer_words(input.value));
    auto* const known = text_label(12);
    known->setWordWrap(false);
    known->setText(answer_words(input.provenance));
    known->setToolTip(answer_words(input.source));
    name->setToolTip(answer_words(input.source));
    tone(known, Token::muted);
    row->addWidget(name, 1);
    row->addWidget(known);
    rests_->addLayout(row);
  }
  if (document_->inputs.size() > most_inputs)
    line(*rests_, tr("%1 more: What if > What the figures rest on").arg(document_->inputs.size() - most_inputs),
         Token::muted);
}

void AnswerView::show_preview(int way) {
  pointed_ = way;
  const bool known = document_ != nullptr && way >= 0 && way < static_cast<int>(document_->ways.size());
  if (!known) {
    preview_->setText(document_ != nullptr && !document_->ways.empty()
                          ? tr("Point at a set-up: its memory is drawn over this one.")
                          : QString());
    tone(preview_, Token::muted);
    return picture_->preview(nullptr, {});
  }
  const auto index = static_cast<std::size_t>(way);
  const studies::AnswerWay& of = document_->ways[index];
  QStringList parts = {tr("step %1").arg(answer_words(of.figures.step))};
  if (of.figures.tokens != "-")
    parts += tr("tokens/s %1").arg(answer_words(of.figures.tokens).replace('-', QChar(0x2212)));
  parts += answer_words(studies::room_words(of.figures));
  if (!of.figures.binds.empty()) parts += tr("limited by: %1").arg(answer_words(of.figures.binds));
  parts += answer_words(of.name);  // last: it may have no room, and stands in the list
  preview_->setText(parts.join("   "));
  preview_->setToolTip(preview_->text());
  tone(preview_, Token::text);
  picture_->preview(&of, outlines_[index]);
  if (outlines_[index].empty() && !of.edits.empty()) pointed_for_.start();
}

void AnswerView::choose_stage(int stage) {
  picture_->choose_stage(stage);
  const QSignalBlocker quiet(stages_);
  stages_->setCurrentIndex(picture_->stage());
  show_legend();
  if (pointed_ >= 0) show_preview(pointed_);
}

void AnswerView::show_legend() { legend_->show_entries(picture_->legend()); }

void AnswerView::search() {
  if (searched_ || !searchable_) return;
  searched_ = true;
  found_ = nullptr;
  ways_state_->setText({});
  search_.start(scenario_, {static_cast<studies::FitGoal>(goal_->currentIndex()), numerics_->isChecked()});
}

void AnswerView::stop() {
  if (search_.is_running()) searched_ = false;
  search_.stop();
}

std::string AnswerView::text_of(int way) const { return text_of(std::vector<int>{way}); }

std::string AnswerView::text_of(const std::vector<int>& ways) const {
  std::string text = scenario_.text;
  for (const int way : ways) text = with_edits(std::move(text), document_->ways[static_cast<std::size_t>(way)].edits);
  return text;
}

// On a small screen the picture alone, the cards below it; on a larger one both.
void AnswerView::fit_heights() {
  constexpr int head = 112, cards = 210, least = 260;
  const int room = halves_->height();
  picture_->setMinimumHeight(std::max(least, room - head - (height() >= roomy ? cards : 0)));
}

void AnswerView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  QTimer::singleShot(0, this, [this] { fit_heights(); });
}

}  // namespace spillway::gui
