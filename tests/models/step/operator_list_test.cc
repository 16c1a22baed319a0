// A list of operators: what it may say, and the step that it is priced to.
#include "models/step/operator_list.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_error.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"

namespace spillway::models::operator_list {
namespace {

// A weight that stays, and in the step a product whose result is freed behind the kernel that reads it.
constexpr const char* tensors = R"([["weight", 2097152, "weight"], ["out", 1048576, "activation"]])";
constexpr const char* operators = R"([
    {"allocates": [0]},
    {"name": "mm", "phase": "forward", "allocates": [1], "reads": [0], "writes": [1], "kind": "gemm", "type": "bf16",
     "bytes": 4194304, "product": {"m": 512, "n": 1024, "k": 1024, "layout": "tn"}},
    {"name": "sum", "phase": "backward", "reads": [1], "frees": [1], "bytes": 1048576}])";

class Written {
 public:
  explicit Written(const std::string& rows, int first = 1)
      : path_(std::filesystem::path(testing::TempDir()) / "operators.json") {
    std::ofstream(path_) << R"({"schema": "spillway-operators", "version": 1, "first": )" << first << R"(, "tensors": )"
                         << tensors << R"(, "operators": )" << rows << "}";
  }
  ~Written() { std::filesystem::remove(path_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(OperatorList, IsPricedByTheCostModelOnItsMachine) {
  const Written file(operators);
  ASSERT_TRUE(is_operator_list(file.path()));
  const CostModel cost(example_profile());
  const Trace step = priced_step(read_operator_list(file.path()), cost);
  step.check_invariants();
  EXPECT_TRUE(is_priced(step));
  ASSERT_EQ(step.steps.size(), 1U);
  ASSERT_EQ(step.ops.size(), 4U);  // two launches, two kernels
  const KernelCost product{.kind = KernelClass::gemm,
                           .type = DataType::bf16,
                           .gemm = {.m = 512, .n = 1024, .k = 1024},
                           .flops = Flops(std::int64_t{2} * 512 * 1024 * 1024),
                           .bytes = Bytes(4194304)};
  EXPECT_EQ(step.ops.flops[1], product.flops);
  EXPECT_EQ(step.ops.duration[1], cost.duration(product).time);
  EXPECT_EQ(step.ops.phase[3], Phase::backward);
  ASSERT_EQ(step.edges.size(), 1U);  // the sum waits for the product
}

TEST(OperatorList, HoldsWhatIsAllocatedUntilItIsFreed) {
  const Written file(operators);
  const Trace step = priced_step(read_operator_list(file.path()), CostModel(example_profile()));
  const sim::Result result = sim::replay(step, example_profile(), sim::ReplayOptions());
  EXPECT_EQ(result.memory.peak_allocated, Bytes(2097152 + 1048576));
  std::int64_t live = 0;
  for (const MemoryEvent& event : step.memory_events)
    live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
  EXPECT_EQ(live, 2097152);
}

// Of what comes before the step only the allocations count.
TEST(OperatorList, HasNoKernelsBeforeItsStep) {
  const Written file(operators, 2);
  const Trace step = priced_step(read_operator_list(file.path()), CostModel(example_profile()));
  ASSERT_EQ(step.ops.size(), 2U);
  EXPECT_EQ(step.strings.text(step.ops.name[1]), "sum");
}

void expect_refused(const std::string& rows, const std::string& words, int first = 0) {
  const Written file(rows, first);
  try {
    static_cast<void>(read_operator_list(file.path()));
    ADD_FAILURE() << "read: " << rows;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_FALSE(error.remedy().empty());
  }
}

TEST(OperatorList, RefusesLivesThatCannotBe) {
  expect_refused(R"([{"allocates": [0]}, {"allocates": [0]}])", "/operators/1: tensor 0 is allocated twice");
  expect_refused(R"([{"name": "a", "reads": [0]}])", "tensor 0 is used while it isn't there");
  expect_refused(R"([{"allocates": [1], "frees": [1]}, {"frees": [1]}])", "tensor 1 is freed while it isn't there");
  expect_refused(R"([{"allocates": [7]}])", "there is no tensor 7");
  expect_refused(R"([{"allocates": [-1]}])", "/operators/0/allocates");
  expect_refused(R"([{"name": "a", "kind": "gemm", "product": {"m": 0}}])", "/operators/0/product/m");
  expect_refused(R"([{"name": "a", "kind": "magic"}])", "/operators/0/kind");
  expect_refused(R"([{"allocates": [0]}])", "/first", 5);
}

}  // namespace
}  // namespace spillway::models::operator_list
