#include "studies/sweep/mpi/mpi_job.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

namespace mpi = boost::mpi;

// Each worker sends one greeting and gets, in the end, a batch that dismisses it; in between each batch is answered.
constexpr int greeting_tag = 1;  // digest and threads; nothing from one that has no sweep to do; or an error
constexpr int batch_tag = 2;     // kinds and numbers of tasks
constexpr int records_tag = 3;   // as many records; or an error
using Batch = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

// Not an empty one: Boost.MPI forms a reference to the first element of what it sends.
const Batch& dismissal() {
  static const Batch batch = {-1};
  return batch;
}

constexpr const char* error_mark = "error";

Texts error_texts(const std::exception& error) {
  if (const auto* input = dynamic_cast<const InputError*>(&error))
    return {error_mark, input->file(), input->place(), input->cause(), input->remedy()};
  return {error_mark, "", "", error.what(), "this is a fault of the program"};
}
bool is_error(const Texts& texts) { return texts.size() == 5 && texts.front() == error_mark; }
InputError error_of(int rank, const Texts& texts) {
  return {texts[1].empty() ? fmt::format("rank {}", rank) : texts[1], texts[2],
          fmt::format("{} (on rank {})", texts[3], rank), texts[4]};
}

// A rank as its machine knows it. Not every launcher ends the job when one of them dies.
struct RankProcess {
  std::string host, pid, began;

  static RankProcess own() {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::string pid = std::to_string(::getpid());
    return {host.data(), pid, began_of(pid).value_or("")};
  }
  // In clock ticks after the machine's start; none where the process is not there, or only its exit code is.
  static std::optional<std::string> began_of(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i)
      if (i == 3 && (field == "Z" || field == "X")) return std::nullopt;
    return fields ? std::optional(field) : std::nullopt;
  }
  [[nodiscard]] bool is_there() const { return began_of(pid) == began; }
};

// The job's processes, of which those on this machine can be watched.
class Ranks {
 public:
  explicit Ranks(const mpi::communicator& world) : world_(world) {
    const RankProcess own = RankProcess::own();
    std::vector<Texts> all;
    mpi::all_gather(world, Texts{own.host, own.pid, own.began}, all);
    for (const Texts& each : all) {
      const RankProcess process{each[0], each[1], each[2]};
      watched_.push_back(process.host == own.host && process.is_there() ? std::optional(process) : std::nullopt);
    }
  }
  [[nodiscard]] bool has_lost() const { return has_lost_; }

  // Throws InputError where a process that may send it has died, be it in the midst of it.
  template <class Content>
  Content receive(int source, int tag, int* from = nullptr) {
    const int sender = wait_for(source, [&] { return world_.iprobe(source, tag); }).source();
    auto content = std::make_unique<Content>();
    mpi::request request = world_.irecv(sender, tag, *content);
    try {
      wait_for(sender, [&] { return request.test(); });
    } catch (const InputError&) {
      static_cast<void>(content.release());  // the library may still write to it; the job ends
      throw;
    }
    if (from != nullptr) *from = sender;
    return std::move(*content);
  }

 private:
  // arrived: an optional status. Without spinning: ranks often share cores.
  template <class Arrived>
  mpi::status wait_for(int source, const Arrived& arrived) {
    constexpr int between_looks = 400;
    for (int turn = 1;; ++turn) {
      if (const auto status = arrived()) return *status;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      if (turn % between_looks != 0) continue;
      for (int rank = 0; rank < world_.size(); ++rank) {
        const auto& process = watched_[static_cast<std::size_t>(rank)];
        const bool may_send = source == mpi::any_source ? rank != world_.rank() : rank == source;
        if (!may_send || !process || process->is_there()) continue;
        if (const auto status = arrived()) return *status;
        has_lost_ = true;
        throw InputError(fmt::format("rank {}", rank), "", "has died",
                         "see what the launcher says of it; a sweep with --output goes on with --resume");
      }
    }
  }

  const mpi::communicator& world_;
  std::vector<std::optional<RankProcess>> watched_;
  bool has_lost_ = false;
};

Texts records_of(SweepWorkers& workers, const Batch& batch) {
  std::vector<SweepTask> tasks;
  for (std::size_t i = 0; i + 1 < batch.size(); i += 2) tasks.push_back({batch[i] != 0, batch[i + 1]});
  Texts records(tasks.size());
  workers.work(tasks, [&](std::size_t i, const std::string& record) {
    records[i] = record;
    return true;
  });
  return records;
}

class MpiWorkers : public SweepWorkers {
 public:
  // threads: by rank.
  MpiWorkers(const mpi::communicator& world, Ranks& ranks, std::vector<std::size_t> threads)
      : world_(world), ranks_(ranks), threads_(std::move(threads)) {}

  void work(std::span<const SweepTask> tasks, const Take& take) override {
    std::vector<std::pair<std::size_t, std::size_t>> given(threads_.size());  // first and end of each rank's batch
    std::size_t next = 0, busy = 0;
    bool goes_on = true;
    Texts failure;
    int failed = 0;
    const auto hand = [&](int rank) {
      if (!goes_on || next == tasks.size()) return;
      const std::size_t count = batch_size(tasks.size() - next, static_cast<std::size_t>(rank));
      Batch batch;
      for (std::size_t i = next; i < next + count; ++i) {
        batch.push_back(tasks[i].is_replay ? 1 : 0);
        batch.push_back(tasks[i].number);
      }
      world_.send(rank, batch_tag, batch);
      given[static_cast<std::size_t>(rank)] = {next, next + count};
      next += count;
      ++busy;
    };
    for (int rank = 1; rank < world_.size(); ++rank) hand(rank);
    while (busy > 0) {
      int rank = 0;
      const Texts records = ranks_.receive<Texts>(mpi::any_source, records_tag, &rank);
      --busy;
      const auto [first, end] = given[static_cast<std::size_t>(rank)];
      if (is_error(records)) {
        failure = records;
        failed = rank;
        goes_on = false;
      }
      SPILLWAY_ASSERT(!goes_on || records.size() == end - first);
      for (std::size_t i = first; i < end && goes_on; ++i) goes_on = take(i, records[i - first]);
      hand(rank);
    }
    if (!failure.empty()) throw error_of(failed, failure);
  }

 private:
  // A share of what is left, a few tasks per thread at most, so that little is lost when the job is ended.
  [[nodiscard]] std::size_t batch_size(std::size_t left, std::size_t rank) const {
    std::size_t all = 0;
    for (const std::size_t threads : threads_) all += threads;
    const std::size_t own = threads_[rank], share = left * own / (3 * std::max<std::size_t>(all, 1));
    return std::min(left, std::clamp(share, own, 8 * own));
  }

  const mpi::communicator& world_;
  Ranks& ranks_;
  std::vector<std::size_t> threads_;
};

}  // namespace

struct MpiJob::State {
  mpi::environment environment;
  mpi::communicator world;
  Ranks ranks{world};
  bool has_met = false;       // greetings were exchanged
  bool is_dismissed = false;  // a worker got its empty batch
  State(int& argc, char**& argv) : environment(argc, argv, mpi::threading::funneled, false) {}
};

MpiJob::MpiJob(int& argc, char**& argv) : state_(std::make_unique<State>(argc, argv)) {}

MpiJob::~MpiJob() {
  const mpi::communicator& world = state_->world;
  Ranks& ranks = state_->ranks;
  try {
    if (!leads() && !state_->has_met) world.send(0, greeting_tag, Texts());
    while (!leads() && !state_->is_dismissed && !ranks.has_lost())
      state_->is_dismissed = ranks.receive<Batch>(0, batch_tag) == dismissal();
    for (int rank = 1; leads() && rank < world.size() && !ranks.has_lost(); ++rank) {
      if (!state_->has_met) ranks.receive<Texts>(rank, greeting_tag);
      world.send(rank, batch_tag, dismissal());
    }
  } catch (const InputError&) {
  }
  if (ranks.has_lost()) mpi::environment::abort(2);  // the end of a job waits for all of its ranks
}

bool MpiJob::leads() const { return state_->world.rank() == 0; }

void MpiJob::serve(const std::function<SweepFile()>& load, std::size_t threads) {
  const mpi::communicator& world = state_->world;
  const oneapi::tbb::global_control control(oneapi::tbb::global_control::max_allowed_parallelism, threads);
  std::unique_ptr<SweepFile> file;
  Texts greeting;
  try {
    file = std::make_unique<SweepFile>(load());
    greeting = {fmt::format("{:016x}", file->digest), std::to_string(threads)};
  } catch (const std::exception& error) {
    greeting = error_texts(error);
  }
  state_->has_met = true;
  world.send(0, greeting_tag, greeting);
  if (!file) return;
  LocalWorkers workers(*file);
  for (;;) {
    const Batch batch = state_->ranks.receive<Batch>(0, batch_tag);
    state_->is_dismissed = batch == dismissal();
    if (state_->is_dismissed) return;
    Texts records;
    try {
      records = records_of(workers, batch);
    } catch (const std::exception& error) {
      records = error_texts(error);
    }
    world.send(0, records_tag, records);
  }
}

std::unique_ptr<SweepWorkers> MpiJob::workers(const SweepFile& file) {
  const mpi::communicator& world = state_->world;
  if (world.size() == 1) return std::make_unique<LocalWorkers>(file);
  std::vector<std::size_t> threads(1, 0);
  std::vector<Texts> greetings(1);
  for (int rank = 1; rank < world.size(); ++rank) greetings.push_back(state_->ranks.receive<Texts>(rank, greeting_tag));
  state_->has_met = true;
  for (int rank = 1; rank < world.size(); ++rank) {
    const Texts& greeting = greetings[static_cast<std::size_t>(rank)];
    if (is_error(greeting)) throw error_of(rank, greeting);
    if (greeting.size() != 2 || greeting[0] != fmt::format("{:016x}", file.digest))
      throw InputError(file.path, "", fmt::format("rank {} reads another sweep, or other profiles and models", rank),
                       "give all machines the same files");
    threads.push_back(std::max<std::size_t>(1, std::stoul(greeting[1])));
  }
  return std::make_unique<MpiWorkers>(world, state_->ranks, std::move(threads));
}

}  // namespace spillway::studies
