// Results of a GPU campaign (validation/gpu_campaign.sh): campaign.json and the packs beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "base/words.h"
#include "validation/published/error_statistics.h"

namespace spillway::validation {

enum class StepStatus : std::uint8_t { done, failed, skipped, stopped, left };
const Words& step_status_words();

struct CampaignStep {
  std::string name, phase;
  StepStatus status = StepStatus::left;
  double seconds = 0;
  std::string reason;         // why it isn't done; empty where it is
  bool from_earlier = false;  // done by a call that this one resumed
};

// One figure of one run: ns of a step time, bytes of a peak.
struct CampaignComparison {
  std::string case_name, metric, unit;
  std::optional<double> measured;
  std::optional<double> blind;       // predicted before the case ran, from a profile and the model's shape alone
  std::string blind_profile;         // that profile: "measured" or a bundled one's name
  std::optional<double> from_trace;  // predicted from a recorded step of the same model and batch
  // For the trainer, the part of `blind` that is measured times of its kernels, 0 to 1. For a run that moves data,
  // whether it was hidden or exposed as predicted.
  std::optional<double> measured_share;
  std::optional<bool> verdict_is_right;
};

// One program of allocations, as PyTorch's own caching allocator served it and as the simulator's serves it again:
// every address, segment and statistic of torch.cuda.memory_stats() (validation/allocator_checks.py).
struct AllocatorVerdict {
  std::string check;
  bool is_confirmed = false;
  std::vector<std::string> differences;
};

struct CampaignPack {
  std::string name;
  Bytes bytes;
  std::int64_t crc32 = 0;  // of the file's first `bytes`
};

struct CampaignResults {
  std::string program;  // what spillway --version said there; empty where it did not run
  std::vector<std::pair<std::string, std::string>> machine;
  bool is_finished = false;  // the last call came to its end
  std::vector<CampaignStep> steps;
  std::vector<CampaignComparison> comparisons;
  std::vector<AllocatorVerdict> allocator;
  std::vector<CampaignPack> packs;
  std::vector<std::pair<std::string, Bytes>> left_out;  // files that found no room in the packs
};

// Reads FOLDER/campaign.json and checks every pack that it names, by length and CRC-32 (ISO 3309). Throws InputError:
// no such file, cut off or not a campaign's, a pack that is missing, shorter than stated or of other bytes.
CampaignResults read_campaign(const std::string& folder);

// Errors of one column over all cases of a metric that were measured and predicted.
struct CampaignErrors {
  std::string metric, column;  // column: "blind" or "from_trace"
  ErrorStatistics errors;
};
std::vector<CampaignErrors> campaign_errors(const CampaignResults& results);

// Caveats on the trainer's errors; all 0: nothing was noted.
struct TrainerCaveats {
  double least_measured = 0, most_measured = 0;  // shares of its blind times
  int verdicts = 0, right = 0;                   // hidden or exposed, of the runs that move data
};
TrainerCaveats trainer_caveats(const CampaignResults& results);

}  // namespace spillway::validation
