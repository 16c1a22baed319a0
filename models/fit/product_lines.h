// Corrections of products that were measured, for products of the same m and n.
//
// Residuals after tables and scales go together along k for one m and n, because these decide which tiles a library
// takes; between neighbouring m or n they do not. In the H100 table of aiconfigurator (models/fit/gemm_rows.h)
// residuals of one m and n correlate by 0.4 to 0.6 within an octave of k. Residuals of neighbouring m correlate by less
// than 0.1. Residuals are therefore smoothed along k (a Gaussian process: Rasmussen and Williams, "Gaussian Processes
// for Machine Learning", 2006, section 2.2) with
//
//   covariance = sigma_c^2 (shared exp(-octaves^2 / 2 length^2) + (1 - shared) [same point]) + noise^2 [same point]
//
// where sigma_c is that of the line's own residuals, shrunk towards that of its class of sizes, less the noise. So a
// line that differs no more than its noise changes nothing, and far from what was measured the tables stand.
#pragma once

#include <array>
#include <vector>

#include "models/fit/point_times.h"

namespace spillway::models::fit {

// From the bf16 products of the allowed classes that are not of the fold left out (gemm_rows.h; 0: those held out of
// all fits); `times`: without lines.
std::vector<ProductLine> fit_product_lines(const std::vector<GpuPoint>& points, const PointTimes& times,
                                           const std::array<bool, product_class_count>& allowed,
                                           std::uint64_t left_out_fold, const Origin& origin);

}  // namespace spillway::models::fit
