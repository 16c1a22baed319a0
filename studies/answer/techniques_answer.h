// The answer of `spillway techniques`: the plain step, and what each technique makes of it.
#pragma once

#include <string>

#include "studies/answer/answer.h"
#include "studies/candidates/compare_techniques.h"

namespace spillway::studies {

// Its ways are the rows behind the first, compared with that. Precondition: the first ran. with_pictures: replays it
// once more for its memory over time. Throws what load() does.
Answer techniques_answer(const BaseScenario& scenario, const TechniqueComparison& comparison, std::string command,
                         bool with_pictures);

}  // namespace spillway::studies
