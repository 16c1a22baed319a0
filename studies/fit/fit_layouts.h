// Every way to spread a step over GPUs: tensor, context, pipeline, data and expert parallelism, ZeRO stage, 1F1B plain
// and interleaved. One sequence at a time, nothing recomputed.
#pragma once

#include <cstdint>
#include <vector>

#include "studies/fit/fit_point.h"

namespace spillway::studies {

// Divisors of `whole`, ascending.
std::vector<std::int64_t> divisors(std::int64_t whole);

// Over exactly `gpus`, replicas following from the rest; what else the scenario says stays. Tensors are split within a
// machine; sequences into parts of 4,096 tokens and more; ZeRO 2 and 3 go without a pipeline. Some may turn out
// impossible (FitScreen). Precondition: subject.model.
std::vector<FitPoint> fit_layouts(const FitSubject& subject, const FitPoints& points, std::int64_t gpus);

// In how many ways tensor, context and pipeline parallelism split a sequence's work: 0 to 3.
int ways_split(const TrainingSetup& setup);
// Layouts that experienced people try first: work split in one way, experts counting as one, or by tensor parallelism
// that fills machines and a pipeline over them.
bool is_recipe(const FitSubject& subject, const TrainingSetup& setup);

// The same point with a factor of two moved from one kind of parallelism to another; sizes that don't divide are left
// out.
std::vector<FitPoint> neighbouring_layouts(const FitSubject& subject, const FitPoints& points, const FitPoint& point);

}  // namespace spillway::studies
