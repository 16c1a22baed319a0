#include "cli/commands/record_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/input_error.h"
#include "cli/options/command_options.h"
#include "traces/formats/read.h"
#include "validation/recorder/record.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

struct RecordCall {
  RecordOptions options;
  std::string output = "spillway-recording.json";
};

void tell(const Context& context, const Recording& recording, const std::string& file) {
  const Trace trace = read_trace(recording.file, {});
  std::size_t works = 0;
  for (const OpKind kind : trace.ops.kind) works += is_device_work(kind) ? 1 : 0;
  note(context,
       fmt::format("{}: {} works of the GPU, {} host calls, {} memory events; recording took {:.3f} ms", file, works,
                   trace.ops.size() - works, trace.memory_events.size(), to_seconds(recording.overhead) * 1e3));
  if (!recording.whole)
    warn(context, file + ": the program did not end in order; its last quarter of a second may be missing");
  if (recording.dropped > 0)
    warn(context, fmt::format("{}: {} records found no room and are missing", file, recording.dropped));
}

// Beside the output and nobody else's: what lies in it was recorded. Goes when it is empty.
class RecordingFolder {
 public:
  explicit RecordingFolder(const std::string& output) : path_(output + ".XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw InputError(output, "", std::string("can't be written: ") + std::strerror(errno),
                       "name a file in a folder that you may write to");
  }
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;
  ~RecordingFolder() {
    std::error_code error;
    if (!is_kept_) fs::remove_all(path_, error);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

// Never over a file that came there in the meantime; then the recordings stay in their folder.
void put_in_place(const Recording& recording, const std::string& file, RecordingFolder& folder) {
  if (::renameat2(AT_FDCWD, recording.file.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) == 0) return;
  int error = errno;
  if (error == EINVAL && !fs::exists(fs::symlink_status(file))) {  // a file system without such a rename
    if (::rename(recording.file.c_str(), file.c_str()) == 0) return;
    error = errno;
  }
  folder.keep();
  throw InputError(file, "",
                   error == EEXIST || error == EINVAL ? "came there while the program ran" : std::strerror(error),
                   "the recording is " + recording.file);
}

void check_new(const std::string& path) {
  if (fs::exists(fs::symlink_status(path)))
    throw InputError(path, "", "exists already", "name another file, or remove it");
}

// One process that used CUDA gives the file asked for; of several each gives one with its number.
void run_record(const RecordCall& request, Context& context) {
  check_new(request.output);
  RecordOptions options = request.options;
  RecordingFolder folder(request.output);
  options.files = folder.path() + "/recording";
  const RecordOutcome outcome = record(options);
  for (const Recording& recording : outcome.recordings) {
    const std::string process = recording.file.substr(recording.file.rfind('.'));
    const std::string file = outcome.recordings.size() == 1 ? request.output : request.output + process;
    try {
      tell(context, recording, file);
    } catch (const InputError& error) {  // of a file that was cut off before its first record, on a full disk
      throw InputError(file, "", "nothing of the program could be recorded: " + error.cause(), error.remedy());
    }
    put_in_place(recording, file, folder);
  }
  if (outcome.recordings.empty())
    throw InputError(options.command.front(), "",
                     fmt::format("used no CUDA (it ended with code {})", outcome.exit_code),
                     "record a program that uses the GPU, with a driver that finds the library: see its own messages");
  context.exit_code = outcome.exit_code;
}

}  // namespace

void add_record_commands(Command& app, Context& context) {
  const auto request = std::make_shared<RecordCall>();
  Command* command = app.add_subcommand("record", "Record the GPU work of a CUDA program and exit with its exit code");
  command->add_option("--output", request->output, "the trace: a file that does not exist (spillway-recording.json)")
      ->check({.name = "",
               .complaint =
                   [](const std::string& path) {
                     check_new(path);  // before what else may be wrong with such a link
                     return std::string();
                   }})
      ->to_write()
      ->type_name("FILE");
  command->add_option("COMMAND", request->options.command, "the program and its arguments, behind --")->required();
  command->callback([request, &context] { run_record(*request, context); });
}

}  // namespace spillway::cli
