// Measured matrix products of NVIDIA's aiconfigurator tables, and which of them no fit may see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::models::fit {

struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  double seconds = 0;
};

// One of five parts of all shapes, by a hash of (m, n, k).
inline constexpr std::uint64_t fold_count = 5;
std::uint64_t fold_of(std::int64_t m, std::int64_t n, std::int64_t k);
// Part 0: kept out of every fit and table, used for the stated errors only.
bool held_out(std::int64_t m, std::int64_t n, std::int64_t k);

// Rows of one format ("bfloat16", "fp8") of a gemm_perf table, in its order; rows without a side or a time are left
// out.
std::vector<GemmRow> read_gemm_rows(const std::string& path, std::string_view format);

}  // namespace spillway::models::fit
