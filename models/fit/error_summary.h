// Relative errors of predictions, summed up.
#pragma once

#include <string>
#include <vector>

namespace spillway::models::fit {

struct ErrorSummary {
  std::size_t count = 0;
  double median = 0, mean = 0, p90 = 0;  // of |predicted / measured - 1|
  double standard = 0;                   // standard error that covers 68 % of the rows
};

class Errors {
 public:
  void add(double predicted, double measured);
  [[nodiscard]] ErrorSummary summary() const;  // zeros without rows

 private:
  std::vector<double> absolute_;
};

// "median 2.9 %, mean 4.0 %, p90 8.1 % of 1234 rows"
std::string to_text(const ErrorSummary& summary);

}  // namespace spillway::models::fit
