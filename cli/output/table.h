// Results for people (aligned columns), for spreadsheets (CSV, RFC 4180), for documents (Markdown) and for scripts
// (JSON), on standard output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/short_text.h"
#include "base/units.h"
#include "cli/options/context.h"
#include "sim/replay/verdict.h"

namespace spillway::cli {

class Table {
 public:
  // keys: how many columns name a row.
  explicit Table(std::vector<std::string> headings, std::size_t keys = 1);
  // Precondition: as many cells as headings.
  void add(std::vector<std::string> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Columns two spaces apart; those with numbers only are flush right. Control characters are shown as '?'. Columns
  // that don't fit into `width` characters are made narrower where that is enough; else they stand below, each time
  // behind those that name the row. 0: as wide as they are.
  [[nodiscard]] std::string text(std::size_t width = 0) const;
  [[nodiscard]] std::string csv() const;
  [[nodiscard]] std::string markdown() const;

 private:
  std::vector<std::string> headings_;
  std::size_t keys_;
  std::vector<std::vector<std::string>> rows_;
};

void print(const std::string& text);
// As text, or as CSV or Markdown if the context says so.
void print(const Context& context, const Table& table);
// Indented; texts that are not UTF-8 are made so.
void print_json(const nlohmann::ordered_json& document);
// "schema" and "version" first, as every document of ours begins.
nlohmann::ordered_json json_document(const std::string& schema);
// Sets "fits" (true, false, null) and "verdict".
void put_verdict(nlohmann::ordered_json& document, Verdict verdict);
// Behind a name that is something else, so joined: ", tight"; "fit unknown"; "does not fit". Empty: it fits.
std::string verdict_note(Verdict verdict, std::string_view before = "", std::string_view after = "");

// "78.1 MiB"; "-" for a negative count, which stands for unknown.
std::string for_people(Bytes bytes);
// "12.345 ms", in the largest unit that keeps the number above 1; "-" if unknown.
std::string for_people(Picos time);
// "78.13", in GiB without the unit.
std::string gib(Bytes bytes, int decimals = 2);
// A number for JSON; null for what is infinite or unknown.
nlohmann::ordered_json number_or_null(double value);
nlohmann::ordered_json number_or_null(std::optional<double> value);

}  // namespace spillway::cli
