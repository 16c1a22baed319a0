// CostCases: given figures of a run, of an option, of a price in the tables of a procurement's book. An option costed
// again (other drives, an input moved) is costed by the same cells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "studies/procurement/formula_table.h"
#include "studies/procurement/procurement.h"

namespace spillway::studies {

class CostCases {
 public:
  // `request` must outlive it.
  explicit CostCases(const ProcurementRequest& request) : in_(request) {}

  // The table that all options share, and one of machines and one of drives, a case for each with a price; what follows
  // refers to their cells.
  void add_inputs(FormulaWorkbook& book);
  void add_prices(const std::vector<PricedOption>& options, FormulaWorkbook& book);
  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t machine_prices() const { return machine_prices_; }
  [[nodiscard]] std::size_t drive_prices() const { return drive_prices_; }

  // Run r of the programme as replayed, of run_fields().
  [[nodiscard]] FormulaCase run(const std::string& name, const RunReplay& run, std::size_t r) const;
  // An option with `count` of a drive per GPU (null: none), of cost_fields(). Its runs are `places` of `runs_table`.
  [[nodiscard]] FormulaCase option(const PricedOption& option, const NvmeProfile* drive, std::int64_t count,
                                   std::size_t runs_table, const std::vector<std::size_t>& places) const;

 private:
  // Switches of the replay's machine, for drives without a slot.
  [[nodiscard]] std::int64_t switches(const PricedOption& option, const NvmeProfile& drive, std::int64_t count) const;

  const ProcurementRequest& in_;
  std::size_t inputs_ = 0, machine_prices_ = 0, drive_prices_ = 0;  // tables of the book
  std::map<std::string, std::size_t> machine_place_, drive_place_;  // their cases
};

}  // namespace spillway::studies
