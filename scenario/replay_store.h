// ReplayStore: results of replays in a file, by what they are results of, shared by all commands that replay many
// scenarios (`--store FILE`): sweeps, capacity, fit, techniques, reports.
//
// An SQLite database in WAL mode: several programs may use it at once, a program that is killed leaves it whole. A key
// is a digest, so nothing stale is taken for a result. It covers the program's version and commit, every profile and
// model there is, and the files that the scenario names. It covers all fields of the scenario but the title and the
// sections capacity and procurement, which ask about the step.
// Replays of captured traces are not kept.
//
//   KeptReplay replay = kept_brief_replay(&store, scenario, detail, [&] { return run_briefly(scenario, detail); });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "scenario/brief_run.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {

// Bytes that one GPU moves in a step, on the rank that moves most.
struct MovedBytes {
  Bytes to_host{}, from_host{};
  Bytes to_drives{}, from_drives{};
  [[nodiscard]] Bytes all() const { return to_host + from_host + to_drives + from_drives; }
};

struct KeptReplay {
  Result result;  // without path and times by op
  MovedBytes moved;
  std::int64_t gpus = 1;             // 1 for a capture
  std::int64_t tokens_per_step = 0;  // 0: unknown
};

// As bytes, and back; none: they are no replay. A store of results names the program's version beside them.
std::string record_of(const KeptReplay& replay);
std::optional<KeptReplay> replay_of(std::string_view record);

class ReplayStore {
 public:
  // Opens or creates. Throws InputError where it can't be, or is no store of results: it is then left as it is.
  explicit ReplayStore(const std::string& path);
  ~ReplayStore();
  ReplayStore(const ReplayStore&) = delete;
  ReplayStore& operator=(const ReplayStore&) = delete;

  // For any thread. A record that is broken is as if it weren't there. Nothing is kept when the disk is full or another
  // program holds the file for too long: what is asked is then replayed again next time.
  [[nodiscard]] std::optional<KeptReplay> find(std::uint64_t key);
  [[nodiscard]] bool has(std::uint64_t key) const;
  void keep(std::uint64_t key, const KeptReplay& replay);

  // Replays that were asked for, and those of them that the store had.
  [[nodiscard]] std::int64_t asked() const { return asked_; }
  [[nodiscard]] std::int64_t found() const { return found_; }

 private:
  struct Base;
  std::unique_ptr<Base> base_;
  std::atomic<std::int64_t> asked_ = 0, found_ = 0;
};

// By what a replay is kept, with Detail::figures or without; none: it is not kept.
std::optional<std::uint64_t> replay_key(const Scenario& scenario, Detail detail);

// Whether the store has it; null: none does. Counts as no question.
bool is_kept(const ReplayStore* store, const Scenario& scenario, Detail detail);

// From the store, else replayed and kept there; null: replayed. `run`: the scenario, replayed, folded or not; not
// called for what is there. Throws as it does.
KeptReplay kept_brief_replay(ReplayStore* store, const Scenario& scenario, Detail detail,
                             const std::function<BriefRun()>& run);

}  // namespace spillway::scenario
