#include "launch/python_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "launch/launch_table.h"
#include "launch/python_calls.h"

namespace spillway::launch {
namespace {

// A class or function whose keywords are settings.
struct PythonClass {
  std::string_view call;  // the end of its name
  LaunchFormat format;
  std::string_view places;   // what arguments without a name are
  std::string_view renamed;  // pairs "keyword=setting"
  std::string_view says;     // a setting that the call itself is
  std::string_view only;     // the keywords that are settings, where not all are
};

constexpr std::string_view adapter_keywords =
    "r=lora_r target_modules=lora_target_modules bias=lora_bias task_type=lora_task_type "
    "modules_to_save=lora_modules_to_save init_lora_weights=lora_init layers_to_transform=lora_layers_to_transform "
    "rank_pattern=lora_rank_pattern inference_mode=lora_inference_mode fan_in_fan_out=lora_fan_in_fan_out";
constexpr std::string_view tokenizer_keywords = "max_length=tokenizer_max_length model_max_length=tokenizer_max_length";
constexpr std::array<PythonClass, 20> python_classes = {{
    {"TrainingArguments", LaunchFormat::python, "output_dir", "", "", ""},
    {"SFTConfig", LaunchFormat::python, "output_dir", "", "sftconfig", ""},
    {"SFTTrainer", LaunchFormat::python, "model", "model=model_name_or_path", "", "model max_seq_length packing"},
    {"DPOConfig", LaunchFormat::python, "output_dir", "", "dpoconfig", ""},
    {"DPOTrainer", LaunchFormat::python, "model", "model=model_name_or_path", "", "model"},
    {"KTOConfig", LaunchFormat::python, "output_dir", "", "ktoconfig", ""},
    {"KTOTrainer", LaunchFormat::python, "model", "model=model_name_or_path", "", "model"},
    {"GRPOConfig", LaunchFormat::python, "output_dir", "", "grpoconfig", ""},
    {"GRPOTrainer", LaunchFormat::python, "model", "model=model_name_or_path", "", "model"},
    {"AutoModelForCausalLM.from_pretrained", LaunchFormat::python, "model_name_or_path",
     "pretrained_model_name_or_path=model_name_or_path", "", ""},
    {"AutoLigerKernelForCausalLM.from_pretrained", LaunchFormat::python, "model_name_or_path",
     "pretrained_model_name_or_path=model_name_or_path", "use_liger_kernel", ""},
    {"AutoTokenizer.from_pretrained", LaunchFormat::python, "", tokenizer_keywords, "", "model_max_length"},
    {"tokenizer", LaunchFormat::python, "", tokenizer_keywords, "", "max_length"},
    {"BitsAndBytesConfig", LaunchFormat::python, "", "", "", ""},
    {"LoraConfig", LaunchFormat::python, "", adapter_keywords, "use_peft", ""},
    {".gradient_checkpointing_enable", LaunchFormat::python, "", "", "gradient_checkpointing_enable", ""},
    {"FastLanguageModel.from_pretrained", LaunchFormat::unsloth, "model_name max_seq_length", "", "", ""},
    {"FastLanguageModel.get_peft_model", LaunchFormat::unsloth, "model", "", "get_peft_model", ""},
    {"FastModel.from_pretrained", LaunchFormat::unsloth, "model_name max_seq_length", "", "", ""},
    {"FastModel.get_peft_model", LaunchFormat::unsloth, "model", "", "get_peft_model", ""},
}};

// What such calls train is not modelled.
struct OtherTraining {
  std::string_view call, cause;
};
constexpr std::string_view answers = "the model answers while it trains",
                           compares = "its loss has a second model's answers";
constexpr std::array<OtherTraining, 8> other_trainings = {{{"FastVisionModel.from_pretrained", "it sees images"},
                                                           {"PPOConfig", answers},
                                                           {"PPOTrainer", answers},
                                                           {"RLOOConfig", answers},
                                                           {"OnlineDPOConfig", answers},
                                                           {"ORPOConfig", compares},
                                                           {"CPOConfig", compares},
                                                           {"RewardConfig", compares}}};

bool names_call(std::string_view name, std::string_view call) {
  if (!name.ends_with(call)) return false;
  return name.size() == call.size() || call.front() == '.' || name[name.size() - call.size() - 1] == '.';
}

// The program's text with a place for each of its lines; of a program its lines themselves.
struct PythonText {
  std::string text;
  std::vector<std::string> places;

  [[nodiscard]] std::string place(std::int64_t line) const {
    if (places.empty()) return fmt::format("line {}", line);
    return places[std::min(static_cast<std::size_t>(line), places.size()) - 1];
  }
};

using Json = nlohmann::ordered_json;

// Empty: of another kind.
std::string code_of(const Json& cell) {
  std::string code;
  bool is_code = false;
  for (const auto& [key, value] : cell.items()) {
    if (key == "cell_type") is_code = value == "code";
    if (key != "source") continue;
    for (const Json& line : value)
      if (line.is_string()) code += line.get<std::string>();
  }
  return is_code ? code : "";
}

// Lines of magic and of the shell, and cells of another language, stay empty.
void add_cell(PythonText& made, const std::string& code, std::int64_t number, TextBudget& budget) {
  const bool is_other = code.starts_with("%%") && !code.starts_with("%%capture") && !code.starts_with("%%time");
  std::int64_t line = 0;
  bool goes_on = false;  // a line of the shell's, behind a backslash
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t end = std::min(code.find('\n', at), code.size());
    const std::size_t first = std::min(code.find_first_not_of(" \t", at), end);
    const bool is_magic = is_other || goes_on || (first < end && (code[first] == '%' || code[first] == '!'));
    goes_on = is_magic && end > at && code[end - 1] == '\\';
    if (!is_magic) made.text.append(code, at, end - at);
    made.text += "\n";
    made.places.push_back(fmt::format("cell {}, line {}", number, ++line));
    budget.spend(made.places.back().size() + 64, made.places.back());
    at = end + 1;
  }
}

// The code cells in order.
PythonText notebook_text(const std::string& text, TextBudget& budget) {
  PythonText made;
  const Json root = parse_document(text, budget.file());
  for (const auto& [key, cells] : root.items()) {
    std::int64_t number = 0;
    if (key != "cells") continue;
    for (const Json& cell : cells) add_cell(made, code_of(cell), ++number, budget);
  }
  return made;
}

bool has_word(std::string_view words, std::string_view wanted) {
  const std::vector<std::string> all = listed_words(words);
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

class PythonSettings {
 public:
  PythonSettings(PythonText text, const ShellValues& given, TextBudget& budget)
      : text_(std::move(text)), given_(given), budget_(budget) {}

  std::vector<LaunchSetting> take() {
    refuse_others();
    for (const PythonCall& call : python_calls(text_.text, given_, budget_)) {
      if (has_arguments_ && (call.name == "train" || names_call(call.name, ".train"))) break;  // what follows uses it
      for (const OtherTraining& each : other_trainings)
        if (names_call(call.name, each.call)) refuse(call, each);
      for (const PythonClass& each : python_classes)
        if (names_call(call.name, each.call)) read(call, each);
    }
    if (settings_.empty())
      throw InputError(budget_.file(), "", "it calls none of the classes that are read",
                       "give the command that starts it with its arguments; read are TrainingArguments, SFTConfig, "
                       "LoraConfig, from_pretrained and Unsloth's FastLanguageModel");
    return std::move(settings_);
  }

 private:
  [[noreturn]] void refuse(const PythonCall& call, const OtherTraining& other) const {
    throw InputError(budget_.file(), text_.place(call.line),
                     fmt::format("{}: {}, which is not modelled", call.name, other.cause),
                     "give a program that trains a decoder on texts, by SFTConfig, DPOConfig or TrainingArguments");
  }

  void refuse_others() const {
    const auto has = [&](std::string_view words) { return text_.text.find(words) != std::string::npos; };
    if (has("nemo.collections import llm") || has("nemo.collections.llm"))
      throw InputError(budget_.file(), "", "it is a recipe of NeMo 2, which is Python that another program has",
                       "give the same as flags of Megatron-LM, or of Megatron-Bridge's run_recipe.py");
    if (has("import jax") || has("import flax"))
      throw InputError(budget_.file(), "", "JAX programs are laid out in memory by XLA, which is not modelled",
                       "give its model's config.json: spillway fit config.json --on MACHINE");
  }

  void read(const PythonCall& call, const PythonClass& of) {
    if (!of.says.empty()) add(of, std::string(of.says), {.name = "", .value = "true", .line = call.line});
    has_arguments_ = has_arguments_ || of.call.ends_with("Arguments") || of.call.ends_with("Config");
    const std::vector<std::string> places = listed_words(of.places);
    std::size_t place = 0;
    for (const PythonArgument& argument : call.arguments) {
      std::string name = argument.name;
      if (name.empty() && place < places.size()) name = places[place++];
      if (name.empty() || (!of.only.empty() && !has_word(of.only, name))) continue;
      const bool may_be_elsewhere = name == "model" || of.renamed == tokenizer_keywords;
      if (may_be_elsewhere && (!argument.is_known || argument.is_null)) continue;
      add(of, renamed(of, name), argument);
    }
  }

  static std::string renamed(const PythonClass& of, const std::string& name) {
    constexpr std::string_view of_model = "model_init_kwargs.";  // from_pretrained's
    if (name.starts_with(of_model)) return name.substr(of_model.size());
    for (const std::string& pair : listed_words(of.renamed))
      if (pair.starts_with(name + "=")) return pair.substr(name.size() + 1);
    return name;
  }

  void add(const PythonClass& of, const std::string& name, const PythonArgument& argument) {
    LaunchSetting made{.format = of.format, .name = name, .shown = name, .value = argument.value};
    made.file = budget_.file();
    made.place = text_.place(argument.line);
    made.is_null = argument.is_null;
    if (!argument.is_known) made.unknown = argument.value;
    budget_.spend(letters_of(made), made.place);
    settings_.push_back(std::move(made));
  }

  PythonText text_;
  const ShellValues& given_;
  TextBudget& budget_;
  bool has_arguments_ = false;  // of the training
  std::vector<LaunchSetting> settings_;
};

}  // namespace

bool is_notebook(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && text.find("\"nbformat\"") != std::string_view::npos &&
         text.find("\"cells\"") != std::string_view::npos;
}

bool is_python(std::string_view text) {
  if (text.starts_with("#!")) return text.substr(0, text.find('\n')).find("python") != std::string_view::npos;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.front() == '#') continue;
    if (line.starts_with("\"\"\"") || line.starts_with("'''") || line.starts_with("import ")) return true;
    return line.starts_with("from ") && line.find(" import ") != std::string_view::npos;
  }
  return false;
}

std::vector<LaunchSetting> python_settings(const std::string& text, const ShellValues& given, TextBudget& budget) {
  PythonText program{.text = text, .places = {}};
  if (is_notebook(text)) program = notebook_text(text, budget);
  return PythonSettings(std::move(program), given, budget).take();
}

}  // namespace spillway::launch
