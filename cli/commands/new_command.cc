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

namespace fs = std::filesystem;

// A model and a GPU that fit each other.
struct NewCall {
  std::string model = "llama-3.2-1b", machine = "h100-80gb-1gpu", output = "-", examples;
};

struct ExampleFile {
  std::string_view installed, in_source;
};

// What docs/tutorial/first-hour.md reads, by the names that they are installed under.
constexpr ExampleFile example_files[] = {
    {"examples/scenarios/llama3-8b-8k-h100.json", "cli/scenarios/llama3-8b-8k-h100.json"},
    {"examples/scenarios/gpt2-xl-1k-h100.json", "cli/scenarios/gpt2-xl-1k-h100.json"},
    {"examples/scenarios/gpt2-xl-32-h100.json", "cli/scenarios/gpt2-xl-32-h100.json"},
    {"examples/scenarios/ssdtrain-gpt-h12288.json", "cli/scenarios/ssdtrain-gpt-h12288.json"},
    {"examples/sweeps/llama2-7b-16xa100.json", "cli/sweeps/llama2-7b-16xa100.json"},
    {"examples/launch.sh", "tests/launch/data/megatron-llama3-8b.sh"},
    {"traces/data/gpt2-tiny-cpu/steps.json.gz", "traces/data/gpt2-tiny-cpu/steps.json.gz"},
    {"traces/data/ran-out/snapshot.pickle", "traces/data/ran-out/snapshot.pickle"},
};

fs::path name_of(const ExampleFile& file) { return fs::path(file.installed).filename(); }

fs::path bundled(const ExampleFile& file) {
  for (const std::string& place : data_places(file.installed, file.in_source))
    if (fs::exists(place)) return place;
  throw InputError(name_of(file).string(), "", "is not beside the program", "install spillway again");
}

// Into a folder that is new or empty; all of the files or none.
void write_examples(const std::string& folder) {
  std::vector<fs::path> sources;
  for (const ExampleFile& file : example_files) sources.push_back(bundled(file));
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder)))
    throw InputError(folder, "", "is there already", "name a new folder");
  const bool is_new = fs::create_directories(folder);
  std::vector<fs::path> written;
  try {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      written.push_back(fs::path(folder) / name_of(example_files[i]));
      fs::copy_file(sources[i], written.back());
    }
  } catch (const fs::filesystem_error& error) {
    std::error_code none;
    for (const fs::path& file : written) fs::remove(file, none);
    if (is_new) fs::remove(folder, none);
    throw InputError(folder, "", "can't be written: " + error.code().message(), "check the folder and its permissions");
  }
  std::printf("%zu files are in %s; begin with: spillway run llama3-8b-8k-h100.json\n", sources.size(), folder.c_str());
}

void write_new(const NewCall& request) {
  if (!request.examples.empty()) {
    const NewCall usual;
    if (request.model != usual.model || request.machine != usual.machine || request.output != usual.output)
      throw InputError("", "--examples", "the tutorial's files have their own models, machines and names",
                       "give the folder alone");
    return write_examples(request.examples);
  }
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
