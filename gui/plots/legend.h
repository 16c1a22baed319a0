// Names beside their colours.
#pragma once

#include <QColor>
#include <QLabel>
#include <QString>
#include <utility>
#include <vector>

namespace spillway::gui {

// As many entries as two lines have room for, from the first; its tip has all.
class Legend : public QLabel {
 public:
  Legend();
  void show_entries(std::vector<std::pair<QColor, QString>> entries);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fit();
  std::vector<std::pair<QColor, QString>> entries_;
};

}  // namespace spillway::gui
