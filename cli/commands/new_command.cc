#include "cli/commands/new_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "scenario/new_scenario.h"

namespace spillway::cli {
namespace {

// A model and a GPU that fit each other.
struct NewCall {
  std::string model = "llama-3.2-1b", machine = "h100-80gb-1gpu", output = "-", examples;
};

struct ExampleFile {
  std::string_view name, installed, in_source;
};

// What docs/tutorial/first-hour.md reads.
constexpr ExampleFile example_files[] = {
    {"llama3-8b-8k-h100.json", "examples/scenarios/llama3-8b-8k-h100.json", "cli/scenarios/llama3-8b-8k-h100.json"},
    {"gpt2-xl-1k-h100.json", "examples/scenarios/gpt2-xl-1k-h100.json", "cli/scenarios/gpt2-xl-1k-h100.json"},
    {"gpt2-xl-32-h100.json", "examples/scenarios/gpt2-xl-32-h100.json", "cli/scenarios/gpt2-xl-32-h100.json"},
    {"ssdtrain-gpt-h12288.json", "examples/scenarios/ssdtrain-gpt-h12288.json",
     "cli/scenarios/ssdtrain-gpt-h12288.json"},
    {"llama2-7b-16xa100.json", "examples/sweeps/llama2-7b-16xa100.json", "cli/sweeps/llama2-7b-16xa100.json"},
    {"launch.sh", "examples/launch.sh", "tests/launch/data/megatron-llama3-8b.sh"},
    {"steps.json.gz", "traces/data/gpt2-tiny-cpu/steps.json.gz", "traces/data/gpt2-tiny-cpu/steps.json.gz"},
    {"snapshot.pickle", "traces/data/ran-out/snapshot.pickle", "traces/data/ran-out/snapshot.pickle"},
};

std::filesystem::path bundled(const ExampleFile& file) {
  for (const std::string& place : data_places(file.installed, file.in_source))
    if (std::filesystem::exists(place)) return place;
  throw InputError(std::string(file.name), "", "is not beside the program", "install spillway again");
}

// Into a folder that is new or empty; none of the files where one is missing.
void write_examples(const std::string& folder) {
  std::vector<std::filesystem::path> sources;
  for (const ExampleFile& file : example_files) sources.push_back(bundled(file));
  if (std::filesystem::exists(folder) && (!std::filesystem::is_directory(folder) || !std::filesystem::is_empty(folder)))
    throw InputError(folder, "", "is there already", "name a new folder");
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < sources.size(); ++i)
    std::filesystem::copy_file(sources[i], std::filesystem::path(folder) / example_files[i].name);
  std::printf("%zu files are in %s; begin with: spillway run llama3-8b-8k-h100.json\n", sources.size(), folder.c_str());
}

void write_new(const NewCall& request) {
  if (!request.examples.empty()) return write_examples(request.examples);
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
  command
      ->add_option("--examples", request->examples,
                   "instead of a scenario: the files of the tutorial, into this new folder")
      ->type_name("FOLDER");
  command->callback([request] { write_new(*request); });
}

}  // namespace spillway::cli
