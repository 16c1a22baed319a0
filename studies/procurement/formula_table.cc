#include "studies/procurement/formula_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/input_error.h"
#include "studies/sweep/sweep_expression.h"

namespace spillway::studies {
namespace {

std::string column_name(std::size_t column) {
  std::string name;
  for (std::size_t left = column + 1; left > 0; left = (left - 1) / 26)
    name.insert(name.begin(), static_cast<char>('A' + (left - 1) % 26));
  return name;
}

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_of_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Position behind the parenthesis that closes the one at `open`.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) return at;
  }
  SPILLWAY_ASSERT(false);
}

// In a spreadsheet's words. ceil and floor round to 0 digits: no argument is negative here.
std::string translated(const FormulaTable& table, std::size_t place, const std::string& text) {
  std::string formula;
  for (std::size_t at = 0; at < text.size();) {
    if (!begins_name(text[at])) {
      if (text[at] != ' ') formula += text[at];
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_of_name(text[end])) ++end;
    const std::string name = text.substr(at, end - at);
    if (name == "ceil" || name == "floor") {
      const std::size_t close = closing(text, end);
      formula += (name == "ceil" ? "ROUNDUP(" : "ROUNDDOWN(") +
                 translated(table, place, text.substr(end + 1, close - end - 1)) + ",0)";
      end = close + 1;
    } else if (name == "min" || name == "max") {
      formula += name == "min" ? "MIN" : "MAX";
    } else {
      formula += cell_address(table, place, table.index(name), false);
    }
    at = end;
  }
  return formula;
}

}  // namespace

std::size_t FormulaTable::index(const std::string& field) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const FormulaField& each) { return each.name == field; });
  SPILLWAY_ASSERT(found != fields.end());
  return static_cast<std::size_t>(found - fields.begin());
}

double FormulaTable::value(std::size_t place, const std::string& field) const { return values.at(place)[index(field)]; }

double FormulaWorkbook::value(const FormulaCell& cell) const { return value(cell.table, cell.place, cell.field); }
double FormulaWorkbook::value(std::size_t table, std::size_t place, const std::string& field) const {
  return tables_.at(table).value(place, field);
}

std::size_t FormulaWorkbook::add(FormulaTable table) {
  std::vector<std::string> names;
  for (const FormulaField& field : table.fields) names.push_back(field.name);
  table.values.assign(table.cases.size(), std::vector<double>(table.fields.size(), 0));
  for (std::size_t f = 0; f < table.fields.size(); ++f) {
    const FormulaField& field = table.fields[f];
    if (field.expression.empty()) {
      for (std::size_t c = 0; c < table.cases.size(); ++c) {
        const auto given = table.cases[c].given.find(field.name);
        SPILLWAY_ASSERT(given != table.cases[c].given.end());
        double sum = 0;
        for (const FormulaCell& cell : given->second.cells) sum += value(cell);
        table.values[c][f] = given->second.cells.empty() ? given->second.number : sum * given->second.factor;
      }
      continue;
    }
    SweepExpression expression(field.expression, std::span(names).first(f), table.sheet, field.name);
    for (std::vector<double>& values : table.values) values[f] = expression.value(values);
  }
  tables_.push_back(std::move(table));
  return tables_.size() - 1;
}

std::string cell_address(const FormulaTable& table, std::size_t place, std::size_t field, bool sheet) {
  const std::string cell = column_name(first_case_column + place) + std::to_string(first_case_row + field + 1);
  return sheet ? "'" + table.sheet + "'!" + cell : cell;
}

std::string cell_formula(const FormulaWorkbook& book, std::size_t table, std::size_t place, std::size_t field) {
  const FormulaTable& in = book.tables().at(table);
  const FormulaField& what = in.fields.at(field);
  if (!what.expression.empty()) return "=" + translated(in, place, what.expression);
  const FormulaInput& given = in.cases.at(place).given.at(what.name);
  if (given.cells.empty()) return "";
  std::string sum;
  for (const FormulaCell& cell : given.cells) {
    const FormulaTable& from = book.tables().at(cell.table);
    sum += (sum.empty() ? "" : "+") + cell_address(from, cell.place, from.index(cell.field), true);
  }
  if (given.factor == 1) return "=" + sum;
  return fmt::format("=({})*{}", sum, given.factor);
}

}  // namespace spillway::studies
