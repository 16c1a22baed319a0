#include "cli/commands/check_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "cli/commands/check_recording.h"
#include "cli/options/command_options.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

// What Python runs: one error that says what is missing, else the package's command. Nothing of the current folder is
// imported.
constexpr const char* start = R"(
import sys
sys.path[:] = [place for place in sys.path if place]
import importlib
for name, what in (('torch', 'PyTorch'), ('spillway.torch', 'the package spillway')):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"error: --python {sys.executable}: can't import {what} ({error})\n"
              "  remedy: name the Python that has it, or pip install it there", file=sys.stderr)
        sys.exit(2)
from spillway.torch.__main__ import main
sys.exit(main(sys.argv[1:]))
)";

struct CheckCall {
  std::string model, machine, output, precision, device, python, recording;
  std::int64_t batch = 0, sequence = 0, layers = 0, steps = 0;  // 0: not given
};

// Of a checkout or a release the package lies beside the program; else the Python has it.
void lend_package() {
  for (const std::string& place : data_places("python", "python")) {
    if (!fs::exists(fs::path(place) / "spillway/__init__.py")) continue;
    const char* const known = std::getenv("PYTHONPATH");
    setenv("PYTHONPATH", (place + (known == nullptr ? "" : ":" + std::string(known))).c_str(), 1);
    return;
  }
}

std::vector<std::string> words_of_check(const CheckCall& call, const Context& context) {
  std::vector<std::string> arguments = {call.python, "-c", start, "check"};
  const auto option = [&arguments](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  const auto number = [](std::int64_t value) { return value > 0 ? std::to_string(value) : ""; };
  option("--model", call.model.empty() ? "gpt2-124m" : call.model);
  option("--precision", call.precision.empty() ? "bf16" : call.precision);
  option("--batch", number(call.batch > 0 ? call.batch : 8));
  option("--steps", number(call.steps > 0 ? call.steps : 3));
  option("--sequence", number(call.sequence));
  option("--layers", number(call.layers));
  option("--device", call.device);
  option("--on", call.machine);
  option("--output", call.output);
  if (context.json()) option("--format", "json");
  return arguments;
}

void run_steps(CheckCall call, const Context& context) {
  if (call.python.empty()) {
    const char* const named = std::getenv("SPILLWAY_PYTHON");
    call.python = named != nullptr && *named != '\0' ? named : "python3";
  }
  lend_package();
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error).string();
  if (!self.empty()) setenv("SPILLWAY", self.c_str(), 1);
  std::vector<std::string> arguments = words_of_check(call, context);
  std::vector<char*> raw;
  raw.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  execvp(call.python.c_str(), raw.data());
  throw InputError("--python", call.python, std::string("could not be started: ") + std::strerror(errno),
                   "name a Python that has PyTorch");
}

// A recording's step is what it is.
void run_recorded(const CheckCall& call, Context& context) {
  if (call.model.empty()) throw missing_argument("SCENARIO");
  if (!call.precision.empty() || !call.device.empty() || !call.python.empty() || call.batch > 0 || call.sequence > 0 ||
      call.layers > 0 || call.steps > 0)
    throw InputError("", "--from", "given beside what says which step to run",
                     "leave the others but --on and --output out");
  check_recording({call.recording, call.model, call.machine, call.output}, context);
}

}  // namespace

void add_check_command(Command& app, Context& context) {
  const auto call = std::make_shared<CheckCall>();
  Command* check =
      app.add_subcommand("check", "Three short steps by PyTorch on this machine beside their prediction; its profile");
  check->add_option(
      "MODEL", call->model,
      "what is trained, with random weights: tiny, gpt2-124m, gpt2-774m, llama-1b, bert-large (gpt2-124m); of --from "
      "the scenario or launch file of the recorded step");
  check
      ->add_option("--from", call->recording,
                   "run nothing: a recorded step, a trace or a folder of spillway.torch.record, beside the generated "
                   "one, kind of operator by kind")
      ->type_name("RECORDING");
  check
      ->add_option("--on", call->machine,
                   "the GPU as `spillway list gpus` calls it (the one that PyTorch sees; without one the processor, "
                   "which is measured)")
      ->type_name("GPU");
  check->add_option("--output", call->output, "write the corrected profile, for --on of every command: a new file")
      ->to_write()
      ->type_name("FILE");
  check->add_option("--batch", call->batch, "sequences of a step (8)")->check(positive_number())->type_name("N");
  check->add_option("--sequence", call->sequence, "tokens of a sequence (1024; bert-large 512)")
      ->amount(Dimension::sequence, "")
      ->check(positive_number())
      ->type_name("TOKENS");
  check->add_option("--layers", call->layers, "fewer than the model has")->check(positive_number())->type_name("N");
  check->add_option("--precision", call->precision, "bf16: weights and all; amp: autocast over fp32 weights; fp32")
      ->choices({"bf16", "amp", "fp32"})
      ->type_name("WORD");
  check->add_option("--steps", call->steps, "measured steps, three at least (3)")
      ->check(positive_number())
      ->type_name("N");
  check->add_option("--device", call->device, "as PyTorch names it (cuda, else cpu)")->type_name("NAME");
  check->add_option("--python", call->python, "a Python that has PyTorch ($SPILLWAY_PYTHON, else python3)")
      ->type_name("PROGRAM");
  check->callback([call, &context] {
    if (call->recording.empty()) return run_steps(*call, context);
    run_recorded(*call, context);
  });
}

}  // namespace spillway::cli
