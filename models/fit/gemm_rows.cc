#include "models/fit/gemm_rows.h"

#include <cmath>

#include "base/splitmix64.h"
#include "models/fit/csv_table.h"

namespace spillway::models::fit {

std::uint64_t fold_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::uint64_t prime = 1'000'003;
  std::uint64_t hash =
      (static_cast<std::uint64_t>(m) * prime + static_cast<std::uint64_t>(n)) * prime + static_cast<std::uint64_t>(k);
  hash ^= hash >> 29U;
  hash *= scramble_first;
  hash ^= hash >> 32U;
  return hash % fold_count;
}

bool held_out(std::int64_t m, std::int64_t n, std::int64_t k) { return fold_of(m, n, k) == 0; }

std::vector<GemmRow> read_gemm_rows(const std::string& path, std::string_view format) {
  const CsvTable table = CsvTable::read(path);
  const std::size_t type = table.column("gemm_dtype"), m = table.column("m"), n = table.column("n"),
                    k = table.column("k"), latency = table.column("latency");
  std::vector<GemmRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, type) != format) continue;
    const auto side = [&](std::size_t column) { return std::llround(table.number(i, column)); };
    const GemmRow row{side(m), side(n), side(k), table.number(i, latency) * 1e-3};
    if (row.m > 0 && row.n > 0 && row.k > 0 && row.seconds > 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace spillway::models::fit
