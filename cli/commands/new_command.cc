#include "cli/commands/new_command.h"

#include <memory>
#include <string>

#include "base/output_file.h"
#include "scenario/new_scenario.h"

namespace spillway::cli {
namespace {

// A model and a GPU that fit each other.
struct NewCall {
  std::string model = "llama-3.2-1b", machine = "h100-80gb-1gpu", output = "-";
};

void write_new(const NewCall& request) {
  const std::string text = new_scenario_text(request.model, request.machine);
  OutputFile out(request.output);
  out.write(text);
  out.commit();
}

}  // namespace

void add_new_command(Command& app) {
  const auto request = std::make_shared<NewCall>();
  Command* command = app.add_subcommand("new", "Write a scenario to start from, with comments");
  command
      ->add_option("MODEL", request->model,
                   "bundled, a Hugging Face id (spillway list models --all), or a file or folder")
      ->capture_default_str();
  command
      ->add_option("MACHINE", request->machine,
                   "16xh100, 4xrtx4090, a name of `spillway list machines` or gpus, or a file")
      ->capture_default_str();
  command->add_option("--output", request->output, "file to write; - for standard output")
      ->to_write()
      ->type_name("FILE")
      ->capture_default_str();
  command->callback([request] { write_new(*request); });
}

}  // namespace spillway::cli
