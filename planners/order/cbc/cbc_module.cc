// The module with CBC (cbc_solver.cc).
#include <Cbc_C_Interface.h>

#include <memory>
#include <string>

#include "planners/order/integer_program.h"

namespace spillway::planners {
namespace {

IntegerProgramResult solve_with_cbc(const IntegerProgram& program, int node_limit, double gap) {
  const auto columns = static_cast<int>(program.columns()), rows = static_cast<int>(program.rows());
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> index;
  std::vector<double> value;
  for (const std::vector<IntegerProgram::Entry>& column : program.entries()) {
    for (const IntegerProgram::Entry& entry : column) {
      index.push_back(entry.row);
      value.push_back(entry.value);
    }
    starts.push_back(static_cast<CoinBigIndex>(index.size()));
  }
  const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(Cbc_newModel(), &Cbc_deleteModel);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "slog", "0");
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "threads", "0");
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", std::to_string(gap).c_str());
  Cbc_setParameter(model.get(), "maxNodes", std::to_string(node_limit).c_str());
  Cbc_loadProblem(model.get(), columns, rows, starts.data(), index.data(), value.data(), program.lower().data(),
                  program.upper().data(), program.cost().data(), program.row_lower().data(),
                  program.row_upper().data());
  Cbc_setObjSense(model.get(), 1);
  for (int c = 0; c < columns; ++c)
    if (program.is_integer(static_cast<std::size_t>(c))) Cbc_setInteger(model.get(), c);
  Cbc_solve(model.get());
  IntegerProgramResult result;
  const bool optimal = Cbc_isProvenOptimal(model.get()) != 0 && Cbc_isProvenInfeasible(model.get()) == 0;
  const double* solution = Cbc_bestSolution(model.get());
  // Without integer columns there is no integer solution to be the best one.
  if (solution == nullptr && optimal) solution = Cbc_getColSolution(model.get());
  if (solution == nullptr) return result;
  result.proven = optimal;
  result.objective = Cbc_getObjValue(model.get());
  result.values.assign(solution, solution + columns);
  return result;
}

}  // namespace
}  // namespace spillway::planners

extern "C" void spillway_solve_by_cbc(const spillway::planners::IntegerProgram& program, int node_limit, double gap,
                                      spillway::planners::IntegerProgramResult& result) {
  result = spillway::planners::solve_with_cbc(program, node_limit, gap);
}
