// The set-ups over layouts that a search looks at first, by their estimates.
//
//   layout -- fits? --> kept                                       --+
//     +-- no: kernels that hold less, layers recomputed,             +--> with more sequences at a time,
//         the optimizer and the weights on the CPU -- fits? -------> +    while that fits
#pragma once

#include <optional>
#include <vector>

#include "studies/fit/fit_moves.h"
#include "studies/fit/fit_proof.h"
#include "studies/fit/fit_prospects.h"

namespace spillway::studies {

class FitSpace {
 public:
  // All must outlive it. bounds: where all that is estimated is noted; null: nowhere. Precondition: subject.model.
  FitSpace(const FitSubject& subject, const FitPoints& points, const FitMoves& moves, FitProspects& prospects,
           FitBounds* bounds = nullptr)
      : subject_(subject), points_(points), moves_(moves), prospects_(prospects), bounds_(bounds) {}

  // Each layout is tried with everything kept and one sequence at a time. Kernels that hold less, recomputed layers,
  // and the optimizer and the weights on the CPU follow where that doesn't fit. More sequences at a time follow where
  // there is room. Sorted.
  std::vector<Prospect> over(std::vector<FitPoint> layouts);
  // Sorted. They are too large with everything kept, but not for their state alone.
  [[nodiscard]] const std::vector<Prospect>& too_large() const { return too_large_; }
  // FitProspects::estimated(), noted.
  std::vector<Prospect> estimated(std::vector<FitPoint> points);

 private:
  std::vector<Prospect> estimated_again(std::vector<Prospect> candidates);
  void keep_fitting(std::vector<Prospect>& from, std::vector<Prospect>& all) const;
  [[nodiscard]] std::vector<FitPoint> on_the_cpu(const std::vector<Prospect>& from, bool with_weights) const;
  void add_less(const std::vector<Prospect>& kept, std::vector<Prospect>& all);
  [[nodiscard]] std::optional<Prospect> between(const Prospect& none, const Prospect& full) const;
  void add_batches(std::vector<Prospect>& all);

  const FitSubject& subject_;
  const FitPoints& points_;
  const FitMoves& moves_;
  FitProspects& prospects_;
  FitBounds* bounds_;
  std::vector<Prospect> too_large_;
};

}  // namespace spillway::studies
