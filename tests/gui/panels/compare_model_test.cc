#include "gui/panels/compare_model.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

std::shared_ptr<VariantFigures> replayed(bool is_refused) {
  auto figures = std::make_shared<VariantFigures>();
  figures->verdict = "a verdict";
  figures->result.memory.known = true;
  figures->result.memory.peak_reserved = Bytes(1);
  figures->result.memory.capacity = Bytes(2);
  if (is_refused) figures->result.drives_refuse = "worn out";
  figures->kernels = {{"add", 1.0}, {"gemm", 8.0}, {"norm", 4.0}};
  return figures;
}

// The kernels' rows, by name and in their order.
std::vector<std::string> kernels_of(const CompareModel& model) {
  std::vector<std::string> names;
  for (int row = 0; row < model.rowCount(); ++row)
    if (!model.data(model.index(row, 1), CompareModel::bar_role).toList().isEmpty())
      names.push_back(model.data(model.index(row, 0)).toString().toStdString());
  return names;
}

int better(const CompareModel& model, const QString& name, int column) {
  for (int row = 0; row < model.rowCount(); ++row)
    if (model.data(model.index(row, 0)).toString() == name)
      return model.data(model.index(row, column), CompareModel::better_role).toInt();
  ADD_FAILURE() << "no row " << name.toStdString();
  return 0;
}

// Memory that fits is no good verdict where the drives don't do what is asked.
TEST(CompareModel, AVerdictThatDrivesRefuseIsNoGoodOne) {
  CompareModel model;
  model.show({{"fits", "{}", replayed(false)}, {"wears", "{}", replayed(true)}});
  EXPECT_EQ(better(model, "verdict", 1), 1);
  EXPECT_EQ(better(model, "verdict", 2), -1);
}

// Nothing to compare with: kernels by their time, and their bars on one scale.
TEST(CompareModel, OneVariantsKernelsAreSortedByTime) {
  auto kernel_tokens = replayed(false);
  for (const auto& [name, time] : kernel_tokens->kernels) kernel_tokens->kernel_tokens[name] = Token::forward;
  CompareModel model;
  model.show({{"alone", "{}", kernel_tokens}});
  EXPECT_EQ(kernels_of(model), (std::vector<std::string>{"gemm", "norm", "add"}));
  for (int row = 0; row < model.rowCount(); ++row) {
    const QVariantList bar = model.data(model.index(row, 1), CompareModel::bar_role).toList();
    if (bar.isEmpty()) continue;
    EXPECT_EQ(bar[2].toDouble(), 8.0);
  }
}

}  // namespace
}  // namespace spillway::gui
