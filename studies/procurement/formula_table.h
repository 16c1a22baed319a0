// FormulaTable: figures and the arithmetic between them, worked out here and again by a spreadsheet.
//
//                        case 1   case 2       a field is given (a number, or a sum of other cells times a factor)
//   gpus            -       256      512       or an expression over the fields above it, the same in every case
//   machines        -        32       64       ceil(gpus / gpus_per_machine)
//
// One description serves both: values() is what reports print, and report_xlsx writes the same expressions as formulas,
// with these values as what is shown before anything is recalculated.
// Expressions: + - * / ^ and ( ), ceil, floor, min, max, and names of fields.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/floors.h"

namespace spillway::studies {

struct FormulaField {
  std::string name;         // an identifier
  std::string label, unit;  // as shown
  std::string expression;   // empty: given, case by case
};

// A cell of a table of the same book.
struct FormulaCell {
  std::size_t table = 0, place = 0;  // place: of the case
  std::string field;
};

struct FormulaInput {
  double number = 0;               // without cells
  std::vector<FormulaCell> cells;  // their sum x factor
  double factor = 1;
};

struct FormulaCase {
  std::string name;
  std::map<std::string, FormulaInput> given;  // by field; all that have no expression
  std::map<std::string, std::string> notes;   // by field: where a number is from
};

struct FormulaTable {
  std::string sheet;    // a name of at most 31 characters without []:*?/\'
  std::string caption;  // what the sheet shows
  std::vector<FormulaField> fields;
  std::vector<FormulaCase> cases;
  std::vector<std::vector<double>> values;  // by case, then field

  [[nodiscard]] std::size_t index(const std::string& field) const;  // precondition: there is one
  [[nodiscard]] double value(std::size_t place, const std::string& field) const;
};

class FormulaWorkbook {
 public:
  // Works the table out; cells it links to belong to tables added before. Returns its number.
  // Precondition: every field without an expression is given in every case. Throws InputError for a bad expression.
  std::size_t add(FormulaTable table);
  [[nodiscard]] const std::vector<FormulaTable>& tables() const { return tables_; }
  [[nodiscard]] double value(const FormulaCell& cell) const;
  [[nodiscard]] double value(std::size_t table, std::size_t place, const std::string& field) const;

 private:
  std::vector<FormulaTable> tables_;
};

// Place of a field's cell of a case: rows below a caption and a row of headings, cases from the third column on.
inline constexpr std::size_t first_case_row = 3, first_case_column = 2;  // from 0
// "C7": the cell of a field in its own sheet; with `sheet`, "'Options'!C7".
std::string cell_address(const FormulaTable& table, std::size_t place, std::size_t field, bool sheet);
// "=ROUNDUP(C4/C5,0)": a field's formula; empty for a plain number.
std::string cell_formula(const FormulaWorkbook& book, std::size_t table, std::size_t place, std::size_t field);

}  // namespace spillway::studies
