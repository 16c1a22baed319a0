// A training programme to be bought for: what is trained by when, which machines and drives may be bought, how long
// they are kept.
//
//   "procurement": {                                        // in a scenario, or in a sweep
//     "tokens": 2e12, "deadline_days": 90,
//     "runs": [{"name": "8B", "tokens": 1e12, "set": {"model": {"name": "llama-3-8b"}}}, ...],   // instead of tokens
//     "machines": ["dgx-a100", "dgx-h100"], "gpus": [128, 256],
//     "techniques": ["keep", "full", "ssdtrain"],
//     "drives": ["micron-9550-max-6.4tb", ...], "drives_per_gpu": 8, "route": "gpudirect",
//     "period_months": 36, "utilisation": 0.9,
//     "used_percent": 0, "write_amplification": 1, "retention": "rated", "least_life_years": 3,
//     "tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [...], "micro_batch": [...],
//     "today": {"machine": "dgx-a100", "gpus": 32, "technique": "full"},
//     "shortlist": 6, "replays": 24, "prices": "prices.json", "used_prices": false
//   }
//
// In a scenario, every machine x GPUs x technique is an option, for which layouts and micro-batches are searched. In a
// sweep, its points are the options, the best one for each machine, GPUs and technique. Its points train one model on
// one sequence and one global batch. They say their own machines, GPUs, techniques and sizes, so those keys are
// refused. Runs follow each other on the whole fleet. `set` is merged into the scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/price_list.h"
#include "sim/devices/endurance.h"
#include "sim/devices/machine.h"
#include "studies/candidates/evaluate.h"
#include "studies/procurement/procurement_fields.h"

namespace spillway::studies {

struct ProgrammeRun {
  std::string name;
  double tokens = 0;
  std::string scenario;  // JSON
};

struct ProcurementRequest : ProcurementTerms {
  ReplayStore* store = nullptr;  // what replays are taken from and kept in
  std::string path, folder, title;
  std::string sweep;               // JSON of the sweep with the options as points; empty: the lists below make them
  std::vector<ProgrammeRun> runs;  // of a sweep: one, without a scenario
  std::vector<Candidate> techniques;
  struct Fleet {
    std::string machine;
    std::int64_t gpus = 0;
    Candidate technique;
  };
  std::optional<Fleet> today;            // that is there, to compare with; of a scenario
  std::vector<NvmeProfile> drives;       // candidates, those with rates and a rating
  std::vector<std::string> passed_over;  // drives of the library that state too little, by name
  EnduranceOptions endurance;
  double deadline_days = 0;     // 0: none
  double least_life_years = 0;  // of a drive by its rating as it stands (Endurance::low); 0: not asked
  std::int64_t replays = 24;
  PriceList prices;

  [[nodiscard]] double tokens() const;
  [[nodiscard]] double period_days() const { return period_months * 365 / 12; }
  // Days that the training may take: the deadline, and no more than the fleet is kept.
  [[nodiscard]] double days_there_are() const;
};

// `path`: a scenario or a sweep. said: by the command line, over what the file says. Defaults: the scenario's machine
// and its GPUs; techniques keep, selective, full and ssdtrain; all drives of the library for servers. Throws InputError
// (file, JSON pointer or flag).
ProcurementRequest read_procurement_request(const std::string& path, std::span<const std::string> settings,
                                            const ProcurementSection& said = unsaid<ProcurementSection>());

}  // namespace spillway::studies
