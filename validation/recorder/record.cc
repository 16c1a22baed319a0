#include "validation/recorder/record.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "hwprofiles/calibrate/cuda_libraries.h"

namespace spillway::validation {
namespace {

namespace fs = std::filesystem;

constexpr int cannot_start = 127;

// A number behind a key of the recording's tail; 0 when it is not there.
std::int64_t number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.rfind(key);
  if (at == std::string_view::npos) return 0;
  const std::string number(text.substr(at + key.size(), 24));
  return std::strtoll(number.c_str(), nullptr, 10);
}

[[noreturn]] void run_program(const RecordOptions& options, const std::string& library, int report) {
  std::signal(SIGINT, SIG_DFL);  // what this process ignores, a program would too
  setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
  setenv("SPILLWAY_RECORD_FILE", options.files.c_str(), 1);
#ifdef SPILLWAY_HAS_INJECTION
  if (const auto cupti = hwprofiles::cuda_library_files(SPILLWAY_CUPTI); !cupti.empty())
    setenv("SPILLWAY_RECORD_CUPTI", cupti.front().c_str(), 1);  // where the program's own loader finds none
#endif
  std::vector<char*> arguments;
  for (const std::string& word : options.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int error = errno;
  if (::write(report, &error, sizeof error) < 0) _exit(cannot_start);
  _exit(cannot_start);
}

// Starts the program; what keeps it from starting comes through a pipe that closes when it has.
pid_t start(const RecordOptions& options, const std::string& library) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw InputError("", "", std::string("no pipe: ") + std::strerror(errno), "close some files");
  const pid_t program = fork();
  if (program < 0) throw InputError("", "", std::string("no process: ") + std::strerror(errno), "end some programs");
  if (program == 0) run_program(options, library, ends[1]);
  ::close(ends[1]);
  int error = 0;
  const ssize_t got = ::read(ends[0], &error, sizeof error);
  ::close(ends[0]);
  if (got <= 0) return program;
  waitpid(program, nullptr, 0);
  throw InputError(options.command.front(), "", std::string("can't be started: ") + std::strerror(error),
                   "name a program on PATH, or by its path");
}

std::atomic<pid_t> recorded_program = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free, "read from a signal handler");

void pass_on(int signal) {
  if (const pid_t program = recorded_program; program > 0) ::kill(program, signal);
}

// What asks this process to end is asked of the program, whose recording is then whole.
class PassedOn {
 public:
  PassedOn() : before_{std::signal(SIGTERM, pass_on), std::signal(SIGHUP, pass_on)} {}
  ~PassedOn() {
    std::signal(SIGTERM, before_[0]);
    std::signal(SIGHUP, before_[1]);
    recorded_program = 0;
  }
  PassedOn(const PassedOn&) = delete;
  PassedOn& operator=(const PassedOn&) = delete;

 private:
  std::array<void (*)(int), 2> before_;
};

}  // namespace

std::string injection_library() {
  const char* named = std::getenv("SPILLWAY_CUDA_INJECTION");
  std::vector<std::string> places;
  if (named != nullptr) places.emplace_back(named);
#ifdef SPILLWAY_HAS_INJECTION
  for (std::string& place : module_places("libspillway_inject.so", "validation")) places.push_back(std::move(place));
#endif
  for (const std::string& place : places)
    if (std::error_code error; fs::is_regular_file(place, error)) return fs::absolute(place);
  if (places.empty())
    throw InputError("CUDA", "", "this spillway was built without it",
                     "install the CUDA toolkit with CUPTI, then `meson setup --reconfigure` and build again");
  throw InputError(places.back(), "", "the recording library is not there", "name it in SPILLWAY_CUDA_INJECTION");
}

Recording inspect_recording(const std::string& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) throw InputError(file, "", "can't be read", "check its permissions");
  const std::streamoff size = stream.tellg(), tail = std::min<std::streamoff>(size, 256);
  std::string text(static_cast<std::size_t>(tail), '\0');
  stream.seekg(size - tail);
  stream.read(text.data(), tail);
  Recording recording{file, text.find("\"spillwayRecorder\"") != std::string::npos, {}, 0};
  if (!recording.whole) return recording;
  recording.overhead = nanoseconds(number_behind(text, "\"overhead_ns\":"));
  recording.dropped = number_behind(text, "\"dropped\":");
  return recording;
}

RecordOutcome record(const RecordOptions& options) {
  SPILLWAY_ASSERT(!options.command.empty());
  const std::string library = injection_library();
  // The terminal sends interrupts to the program as well; this outlives it.
  const auto before = std::signal(SIGINT, SIG_IGN);
  const PassedOn passed_on;
  RecordOutcome outcome;
  int status = 0;
  try {
    const pid_t program = start(options, library);
    recorded_program = program;
    while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
  } catch (...) {
    std::signal(SIGINT, before);
    throw;
  }
  std::signal(SIGINT, before);
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const fs::path stem(options.files);
  const std::string prefix = stem.filename().string() + ".";
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(stem.has_parent_path() ? stem.parent_path() : fs::path(".")))
    if (entry.symlink_status().type() == fs::file_type::regular && entry.path().filename().string().starts_with(prefix))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) outcome.recordings.push_back(inspect_recording(file));
  return outcome;
}

}  // namespace spillway::validation
