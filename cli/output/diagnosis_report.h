// Diagnoses of recorded steps and of memory snapshots, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "studies/answer/answer.h"
#include "studies/diagnosis/memory_diagnosis.h"
#include "studies/diagnosis/step_diagnosis.h"

namespace spillway::cli {

// As deep as it was made: the short form has the largest rows alone, and no key for what was not worked out.
std::string diagnosis_text(const StepDiagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const StepDiagnosis& diagnosis);

std::string diagnosis_text(const MemoryDiagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const MemoryDiagnosis& diagnosis);
// The page of a snapshot: what ran out, who held it, what would have fitted; lines as of text_page.h. `answer`: of the
// diagnosis (studies/answer/snapshot_answer.h); `agreement`: how the replay compares with the record.
std::string snapshot_page(const studies::Answer& answer, const MemoryDiagnosis& diagnosis,
                          const std::string& agreement);
// By file, then by line of the program's own; `title` heads it.
std::string memory_treemap(const MemoryDiagnosis& diagnosis, const std::string& title);

}  // namespace spillway::cli
