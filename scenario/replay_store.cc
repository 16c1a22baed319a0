#include "scenario/replay_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "base/digest.h"
#include "base/field_writer.h"
#include "base/give_back.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "base/version.h"
#include "scenario/result_bytes.h"
#include "scenario/scenario_fields.h"

namespace spillway::scenario {
namespace {

namespace fs = std::filesystem;

constexpr int application_id = 0x5370726c;  // "Sprl", in the file's header
constexpr int wait_ms = 20'000;             // for another program's write
constexpr std::string_view format = "2";    // of records
constexpr const char* remedy = "name a store that --store made, or for a new one a file that isn't there";

struct Finish {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finish>;

void add_moved(MovedBytes& moved, OpKind kind, Bytes bytes) {
  if (kind == OpKind::copy_device_to_host) moved.to_host += bytes;
  if (kind == OpKind::copy_host_to_device) moved.from_host += bytes;
  if (kind == OpKind::storage_write) moved.to_drives += bytes;
  if (kind == OpKind::storage_read) moved.from_drives += bytes;
}

MovedBytes moved_of(const Trace& trace, const Result& result) {
  if (result.steps.empty()) return {};
  const StepResult& step = result.steps.back();
  std::map<std::uint16_t, MovedBytes> ranks;
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const Picos start = result.op_start[op];
    if (start == unknown_time || start < step.begin || start >= step.end) continue;
    const std::uint16_t rank = trace.lanes[index_of(trace.ops.lane[op])].rank;
    add_moved(ranks[rank], trace.ops.kind[op],
              trace.ops.bytes[op] * result.runs_of(OpId(static_cast<std::uint32_t>(op))));
  }
  MovedBytes most;
  for (const auto& [rank, moved] : ranks)
    if (moved.all() > most.all()) most = moved;
  return most;
}

// Of every profile and model there is, once per program: a replay depends on few of them, and nobody need say on which.
std::uint64_t library_digest() {
  static const std::uint64_t known = [] {
    Fnv1a hash;
    std::vector<std::string> folders = ProfileLibrary::standard_directories();
    for (const std::string& folder : model_directories()) folders.push_back(folder);
    for (const std::string& folder : folders) {
      std::error_code error;
      std::vector<fs::path> files;
      for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        if (at->path().extension() == ".json") files.push_back(at->path());
      std::sort(files.begin(), files.end());
      for (const fs::path& file : files) {
        hash.add(file.filename().string());
        hash.add(read_file_as_it_is(file.string()));
      }
    }
    return hash.value();
  }();
  return known;
}

// The files that the scenario's texts name, with those that JSON among them names in turn.
class NamedFiles {
 public:
  explicit NamedFiles(std::string folder) : folder_(std::move(folder)) {}
  void look(const std::string& text, const fs::path& folder) {
    if (text.empty() || text.size() > 4096) return;
    std::error_code error;
    const fs::path path = folder / text;
    if (!fs::is_regular_file(path, error) || !seen_.insert(fs::weakly_canonical(path, error).string()).second) return;
    const std::string content = read_file_as_it_is(path.string());
    hash_.add(content);
    if (path.extension() == ".json") look_into(content, path.parent_path());
  }
  void look_into(const std::string& json, const fs::path& folder) {
    for (std::size_t at = json.find('"'); at != std::string::npos; at = json.find('"', at)) {
      const std::size_t end = json.find('"', at + 1);
      if (end == std::string::npos) return;
      look(json.substr(at + 1, end - at - 1), folder);
      at = end + 1;
    }
  }
  void look_into(const std::string& json) { look_into(json, folder_); }
  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

 private:
  std::string folder_;
  std::set<std::string> seen_;
  Fnv1a hash_;
};

}  // namespace

std::string record_of(const KeptReplay& replay) {
  const std::array<std::int64_t, 6> numbers = {replay.gpus,
                                               replay.tokens_per_step,
                                               replay.moved.to_host.count(),
                                               replay.moved.from_host.count(),
                                               replay.moved.to_drives.count(),
                                               replay.moved.from_drives.count()};
  std::string bytes(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  bytes += bytes_of(replay.result);
  Fnv1a sum;
  sum.add(bytes);
  const std::uint64_t check = sum.value();
  return std::string(reinterpret_cast<const char*>(&check), sizeof check) + bytes;
}

std::optional<KeptReplay> replay_of(std::string_view record) {
  std::array<std::int64_t, 6> numbers{};
  std::uint64_t check = 0;
  if (record.size() < sizeof check + sizeof numbers) return std::nullopt;
  std::memcpy(&check, record.data(), sizeof check);
  record.remove_prefix(sizeof check);
  Fnv1a sum;
  sum.add(record);
  if (sum.value() != check) return std::nullopt;
  std::memcpy(numbers.data(), record.data(), sizeof numbers);
  std::optional<Result> result = result_of(record.substr(sizeof numbers));
  if (!result) return std::nullopt;
  KeptReplay replay;
  replay.result = std::move(*result);
  replay.gpus = numbers[0];
  replay.tokens_per_step = numbers[1];
  replay.moved = {Bytes(numbers[2]), Bytes(numbers[3]), Bytes(numbers[4]), Bytes(numbers[5])};
  return replay;
}

struct ReplayStore::Base {
  std::string path;
  sqlite3* base = nullptr;
  std::mutex mutex;

  ~Base() { sqlite3_close(base); }

  [[noreturn]] void fail(const std::string& cause) const { throw InputError(path, "", cause, remedy); }

  [[nodiscard]] Statement statement(const char* sql) const {
    sqlite3_stmt* made = nullptr;
    sqlite3_prepare_v2(base, sql, -1, &made, nullptr);
    return Statement(made);
  }
  [[nodiscard]] int number(const char* sql) const {
    const Statement asked = statement(sql);
    if (!asked || sqlite3_step(asked.get()) != SQLITE_ROW) fail("no store of results, so it is left as it is");
    return sqlite3_column_int(asked.get(), 0);
  }
  [[nodiscard]] bool does(const char* sql) const {
    return sqlite3_exec(base, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
};

ReplayStore::ReplayStore(const std::string& path) : base_(std::make_unique<Base>()) {
  base_->path = path;
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  if (is_there && !fs::is_regular_file(path, error)) base_->fail("is no regular file");
  const bool is_new = !is_there || fs::is_empty(path, error);
  if (!is_new) {  // a foreign file is not even opened for writing
    std::array<char, 72> header{};
    std::ifstream file(path, std::ios::binary);
    file.read(header.data(), header.size());
    std::uint32_t id = 0;
    for (int i = 0; i < 4; ++i) id = id << 8U | static_cast<unsigned char>(header[68 + static_cast<std::size_t>(i)]);
    if (!file || std::string_view(header.data(), 15) != "SQLite format 3" || id != application_id)
      base_->fail("no store of results, so it is left as it is");
  }
  if (sqlite3_open_v2(path.c_str(), &base_->base, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
                      nullptr) != SQLITE_OK)
    base_->fail(std::string("can't be opened: ") + sqlite3_errmsg(base_->base));
  sqlite3_busy_timeout(base_->base, wait_ms);
  // Another program may be making it: whoever comes second finds the table there.
  const std::string id = "pragma application_id = " + std::to_string(application_id);
  const bool is_made =
      !is_new || (base_->does("begin immediate") && base_->does(id.c_str()) &&
                  base_->does("create table if not exists replays (key integer primary key, record blob not null)") &&
                  base_->does("commit"));
  if (!is_made || base_->number("pragma application_id") != application_id ||
      base_->number("select count(*) from sqlite_master where name = 'replays'") != 1)
    base_->fail(std::string("can't be used: ") + sqlite3_errmsg(base_->base));
  static_cast<void>(base_->does("pragma journal_mode = wal"));
  static_cast<void>(base_->does("pragma synchronous = normal"));
}

ReplayStore::~ReplayStore() = default;

std::optional<KeptReplay> ReplayStore::find(std::uint64_t key) {
  ++asked_;
  const std::lock_guard lock(base_->mutex);
  const Statement asked = base_->statement("select record from replays where key = ?");
  if (!asked) return std::nullopt;
  sqlite3_bind_int64(asked.get(), 1, static_cast<sqlite3_int64>(key));
  if (sqlite3_step(asked.get()) != SQLITE_ROW) return std::nullopt;
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(asked.get(), 0));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(asked.get(), 0));
  std::optional<KeptReplay> replay = replay_of({bytes, bytes == nullptr ? 0 : size});
  if (replay) ++found_;
  return replay;
}

bool ReplayStore::has(std::uint64_t key) const {
  const std::lock_guard lock(base_->mutex);
  const Statement asked = base_->statement("select 1 from replays where key = ?");
  if (!asked) return false;
  sqlite3_bind_int64(asked.get(), 1, static_cast<sqlite3_int64>(key));
  return sqlite3_step(asked.get()) == SQLITE_ROW;
}

void ReplayStore::keep(std::uint64_t key, const KeptReplay& replay) {
  const std::string record = record_of(replay);
  const std::lock_guard lock(base_->mutex);
  const Statement insert = base_->statement("insert or replace into replays values (?, ?)");
  if (!insert) return;
  sqlite3_bind_int64(insert.get(), 1, static_cast<sqlite3_int64>(key));
  sqlite3_bind_blob(insert.get(), 2, record.data(), static_cast<int>(record.size()), SQLITE_STATIC);
  sqlite3_step(insert.get());
}

std::optional<std::uint64_t> replay_key(const Scenario& scenario, Detail detail) {
  if (scenario.model.empty()) return std::nullopt;
  Scenario told = scenario;
  told.title.clear();
  told.capacity.clear();  // questions about the step, no part of it
  told.procurement.clear();
  FieldWriter writer;
  describe(told, writer);
  const std::string text = writer.line();
  NamedFiles files(fs::path(scenario.path).parent_path().string());
  files.look_into(text);
  Digest digest;
  digest.add(format);
  digest.add(program_version());
  digest.add(program_commit());
  digest.add(library_digest());
  digest.add(text);
  digest.add(std::uint64_t{detail == Detail::figures});
  digest.add(files.value());
  return digest.value();
}

bool is_kept(const ReplayStore* store, const Scenario& scenario, Detail detail) {
  if (store == nullptr) return false;
  const std::optional<std::uint64_t> key = replay_key(scenario, detail);
  return key && store->has(*key);
}

static KeptReplay kept(BriefRun brief) {
  const LoadedScenario& made = brief.loaded;
  KeptReplay replay;
  replay.moved = moved_of(brief.run.trace(made), brief.run.result);
  replay.result = std::move(brief.run.result);
  give_back(replay.result.path);
  give_back(replay.result.op_start);
  give_back(replay.result.op_end);
  replay.result.op_runs = {};
  replay.result.folded_memory = nullptr;
  replay.gpus = made.scenario.model.empty() ? 1 : made.setup.gpus();
  replay.tokens_per_step = made.options.tokens_per_step;
  return replay;
}

KeptReplay kept_brief_replay(ReplayStore* store, const Scenario& scenario, Detail detail,
                             const std::function<BriefRun()>& run) {
  const std::optional<std::uint64_t> key = store != nullptr ? replay_key(scenario, detail) : std::nullopt;
  if (!key) return kept(run());
  if (std::optional<KeptReplay> known = store->find(*key)) {
    known->result.title = scenario.title;
    return *std::move(known);
  }
  KeptReplay replay = kept(run());
  store->keep(*key, replay);
  return replay;
}

}  // namespace spillway::scenario
