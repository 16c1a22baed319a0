#include "models/spec/model_alias.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

struct Published {
  std::string_view shape, overrides;  // overrides: separated by blanks
  std::string_view ids;               // separated by blanks; those that differ by endings that fall away are one
};

// From the models' config.json; Step-3.7's tower as its card rounds it.
constexpr std::array<Published, 253> published = {{
    {"afm-4.5b", "", "arcee-ai/AFM-4.5B-Base arcee-ai/AFM-4.5B"},
    {"apertus-8b", "", "swiss-ai/Apertus-8B-2509 swiss-ai/Apertus-8B-Instruct-2509"},
    {"bamba-9b", "", "ibm-ai-platform/Bamba-9B-v1 ibm-ai-platform/Bamba-9B-v2"},
    {"bert-base", "", "google-bert/bert-base-uncased"},
    {"bert-large", "", "google-bert/bert-large-uncased"},
    {"bloom-7b1", "", "bigscience/bloom-7b1"},
    {"codegen-350m", "", "Salesforce/codegen-350M-mono Salesforce/codegen-350M-multi"},
    {"codellama-34b", "", "codellama/CodeLlama-34b-hf codellama/CodeLlama-34b-Python-hf"},
    {"command-a-111b", "", "CohereLabs/c4ai-command-a-03-2025"},
    {"command-r-35b", "", "CohereForAI/c4ai-command-r-v01"},
    {"command-r7b", "", "CohereForAI/c4ai-command-r7b-12-2024"},
    {"cwm-32b", "", "facebook/cwm"},
    {"dbrx-132b", "", "databricks/dbrx-base LnL-AI/dbrx-base-converted-v2"},
    {"deepseek-llm-7b", "", "deepseek-ai/deepseek-llm-7b-base"},
    {"deepseek-moe-16b", "", "deepseek-ai/deepseek-moe-16b-base"},
    {"deepseek-v2", "", "deepseek-ai/DeepSeek-V2 deepseek-ai/DeepSeek-V2.5"},
    {"deepseek-v2-lite", "", "deepseek-ai/DeepSeek-V2-Lite deepseek-ai/DeepSeek-Coder-V2-Lite-Base"},
    {"deepseek-v3", "",
     "deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-V3-0324 deepseek-ai/DeepSeek-V3.1 "
     "deepseek-ai/DeepSeek-V3.1-Terminus deepseek-ai/DeepSeek-R1 deepseek-ai/DeepSeek-R1-0528 "
     "deepseek-ai/DeepSeek-R1-Zero"},
    {"deepseek-v3.2", "", "deepseek-ai/DeepSeek-V3.2-Exp deepseek-ai/DeepSeek-V3.2 deepseek-ai/DeepSeek-V3.2-Speciale"},
    {"deepseek-v4-flash", "", "deepseek-ai/DeepSeek-V4-Flash"},
    {"deepseek-v4-pro", "", "deepseek-ai/DeepSeek-V4-Pro"},
    {"dots.llm1", "", "rednote-hilab/dots.llm1.base rednote-hilab/dots.llm1.inst"},
    {"ernie-4.5-21b-a3b", "", "baidu/ERNIE-4.5-21B-A3B-PT"},
    {"exaone-3.5-7.8b", "", "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct"},
    {"exaone-4.0-32b", "", "LGAI-EXAONE/EXAONE-4.0-32B"},
    {"falcon-40b", "", "tiiuae/falcon-40b"},
    {"falcon-7b", "", "tiiuae/falcon-7b"},
    {"falcon-h1-0.5b", "", "tiiuae/Falcon-H1-0.5B-Base"},
    {"falcon-h1-1.5b-deep", "", "tiiuae/Falcon-H1-1.5B-Deep-Base"},
    {"falcon-h1-34b", "", "tiiuae/Falcon-H1-34B-Base"},
    {"falcon-h1-3b", "", "tiiuae/Falcon-H1-3B-Base"},
    {"falcon-h1-7b", "", "tiiuae/Falcon-H1-7B-Base"},
    {"falcon3-10b", "", "tiiuae/Falcon3-10B-Base"},
    {"falcon3-1b", "", "tiiuae/Falcon3-1B-Base"},
    {"falcon3-3b", "", "tiiuae/Falcon3-3B-Base"},
    {"falcon3-7b", "", "tiiuae/Falcon3-7B-Base"},
    {"flan-t5-base", "", "google/flan-t5-base"},
    {"flan-t5-large", "", "google/flan-t5-large"},
    {"flan-t5-small", "", "google/flan-t5-small"},
    {"flan-t5-xl", "", "google/flan-t5-xl"},
    {"flan-t5-xxl", "", "google/flan-t5-xxl"},
    {"gemma-2-27b", "", "google/gemma-2-27b"},
    {"gemma-2-2b", "", "google/gemma-2-2b"},
    {"gemma-2-9b", "", "google/gemma-2-9b"},
    {"gemma-2b", "", "google/gemma-2b"},
    {"gemma-3-12b", "", "google/gemma-3-12b-pt"},
    {"gemma-3-1b", "", "google/gemma-3-1b-pt"},
    {"gemma-3-270m", "", "google/gemma-3-270m"},
    {"gemma-3-27b", "", "google/gemma-3-27b-pt"},
    {"gemma-3-4b", "", "google/gemma-3-4b-pt"},
    {"gemma-4-26b-a4b", "", "google/gemma-4-26B-A4B google/gemma-4-26B-A4B-it"},
    {"gemma-4-31b", "", "google/gemma-4-31B google/gemma-4-31B-it"},
    {"gemma-4-e2b", "", "google/gemma-4-E2B google/gemma-4-E2B-it"},
    {"gemma-7b", "", "google/gemma-7b google/codegemma-7b"},
    {"glm-4-32b", "", "THUDM/GLM-4-32B-0414 THUDM/GLM-4-32B-Base-0414"},
    {"glm-4-9b", "", "THUDM/GLM-4-9B-0414 THUDM/glm-4-9b-hf"},
    {"glm-4-9b-chat", "", "THUDM/glm-4-9b-chat"},
    {"glm-4.5", "", "zai-org/GLM-4.5 zai-org/GLM-4.6 zai-org/GLM-4.7"},
    {"glm-4.5-air", "", "zai-org/GLM-4.5-Air"},
    {"glm-4.5-air", "held_parameters=1098686976", "zai-org/GLM-4.5V"},
    {"glm-4.7-flash", "", "zai-org/GLM-4.7-Flash"},
    {"glm-5", "", "zai-org/GLM-5 zai-org/GLM-5.1 zai-org/GLM-5.2"},
    {"gpt-j-6b", "", "EleutherAI/gpt-j-6b"},
    {"gpt-neo-1.3b", "", "EleutherAI/gpt-neo-1.3B"},
    {"gpt-neox-20b", "", "EleutherAI/gpt-neox-20b"},
    {"gpt-oss-120b", "", "openai/gpt-oss-120b openai/gpt-oss-safeguard-120b"},
    {"gpt-oss-20b", "", "openai/gpt-oss-20b openai/gpt-oss-safeguard-20b"},
    {"gpt2-large", "", "openai-community/gpt2-large"},
    {"gpt2-medium", "", "openai-community/gpt2-medium"},
    {"gpt2-small", "", "openai-community/gpt2"},
    {"gpt2-xl", "", "openai-community/gpt2-xl"},
    {"granite-3.1-2b", "",
     "ibm-granite/granite-3.1-2b-base ibm-granite/granite-3.0-2b-base ibm-granite/granite-3.2-2b-instruct"},
    {"granite-3.1-2b", "vocabulary=49159", "ibm-granite/granite-3.3-2b-base"},
    {"granite-3.1-8b", "",
     "ibm-granite/granite-3.1-8b-base ibm-granite/granite-3.0-8b-base ibm-granite/granite-3.2-8b-instruct"},
    {"granite-3.1-8b", "vocabulary=49159", "ibm-granite/granite-3.3-8b-base"},
    {"granite-4.0-h-small", "", "ibm-granite/granite-4.0-h-small ibm-granite/granite-4.0-h-small-base"},
    {"granite-4.0-h-tiny", "", "ibm-granite/granite-4.0-h-tiny ibm-granite/granite-4.0-h-tiny-base"},
    {"granite-4.0-micro", "", "ibm-granite/granite-4.0-micro ibm-granite/granite-4.0-micro-base"},
    {"hunyuan-0.5b", "", "tencent/Hunyuan-0.5B-Instruct tencent/Hunyuan-0.5B-Pretrain"},
    {"hunyuan-7b", "", "tencent/Hunyuan-7B-Instruct tencent/Hunyuan-7B-Pretrain"},
    {"hunyuan-a13b", "", "tencent/Hunyuan-A13B-Instruct tencent/Hunyuan-A13B-Pretrain"},
    {"k-exaone-236b", "", "LGAI-EXAONE/K-EXAONE-236B-A23B"},
    {"jamba-1.5-large-398b", "", "ai21labs/AI21-Jamba-1.5-Large"},
    {"jamba-52b", "", "ai21labs/Jamba-v0.1 ai21labs/AI21-Jamba-1.5-Mini"},
    {"kimi-k2", "",
     "moonshotai/Kimi-K2-Base moonshotai/Kimi-K2-Instruct moonshotai/Kimi-K2-Instruct-0905 "
     "moonshotai/Kimi-K2-Thinking"},
    {"kimi-k2", "held_parameters=420401520", "moonshotai/Kimi-K2.5 moonshotai/Kimi-K2.6 moonshotai/Kimi-K2.7-Code"},
    {"kimi-k3", "", "moonshotai/Kimi-K3"},
    {"kimi-linear-48b-a3b", "", "moonshotai/Kimi-Linear-48B-A3B-Base moonshotai/Kimi-Linear-48B-A3B-Instruct"},
    {"lfm2-1.2b", "", "LiquidAI/LFM2-1.2B"},
    {"lfm2-350m", "", "LiquidAI/LFM2-350M"},
    {"lfm2-8b-a1b", "", "LiquidAI/LFM2-8B-A1B"},
    {"ling-mini-2.0", "", "inclusionAI/Ling-mini-2.0 inclusionAI/Ling-mini-base-2.0"},
    {"llama-13b", "", "huggyllama/llama-13b"},
    {"llama-2-13b", "", "meta-llama/Llama-2-13b-hf"},
    {"llama-2-13b", "vocabulary=32016", "codellama/CodeLlama-13b-hf"},
    {"llama-2-70b", "", "meta-llama/Llama-2-70b-hf"},
    {"llama-2-70b", "vocabulary=32016", "codellama/CodeLlama-70b-hf"},
    {"llama-2-7b", "", "meta-llama/Llama-2-7b-hf lmsys/vicuna-7b-v1.5"},
    {"llama-2-7b", "vocabulary=32064 tower=llava-clip", "llava-hf/llava-1.5-7b-hf"},
    {"llama-2-7b", "vocabulary=32016", "codellama/CodeLlama-7b-hf"},
    {"llama-3-70b", "", "meta-llama/Meta-Llama-3-70B"},
    {"llama-3-8b", "", "meta-llama/Meta-Llama-3-8B"},
    {"llama-3.1-405b", "", "meta-llama/Llama-3.1-405B"},
    {"llama-3.1-70b", "",
     "meta-llama/Llama-3.1-70B meta-llama/Llama-3.3-70B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-70B "
     "allenai/Llama-3.1-Tulu-3-70B NousResearch/Hermes-3-Llama-3.1-70B nvidia/Llama-3.1-Nemotron-70B-Instruct-HF "
     "deepcogito/cogito-v1-preview-llama-70B"},
    {"llama-3.1-8b", "",
     "meta-llama/Llama-3.1-8B deepseek-ai/DeepSeek-R1-Distill-Llama-8B NousResearch/Hermes-3-Llama-3.1-8B "
     "deepcogito/cogito-v1-preview-llama-8B neuralmagic/Sparse-Llama-3.1-8B-2of4"},
    {"llama-3.2-1b", "", "meta-llama/Llama-3.2-1B"},
    {"llama-3.2-3b", "", "meta-llama/Llama-3.2-3B deepcogito/cogito-v1-preview-llama-3B"},
    {"llama-3.3-nemotron-super-49b", "", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"},
    {"llama-30b", "", "huggyllama/llama-30b"},
    {"llama-4-maverick", "held_parameters=871932416", "meta-llama/Llama-4-Maverick-17B-128E"},
    {"llama-4-scout", "held_parameters=871932416", "meta-llama/Llama-4-Scout-17B-16E"},
    {"llama-65b", "", "huggyllama/llama-65b"},
    {"llama-7b", "", "huggyllama/llama-7b"},
    {"longcat-flash", "", "meituan-longcat/LongCat-Flash-Chat"},
    {"mamba-codestral-7b", "", "mistralai/Mamba-Codestral-7B-v0.1"},
    {"mimo-7b", "", "XiaomiMiMo/MiMo-7B-Base XiaomiMiMo/MiMo-7B-SFT XiaomiMiMo/MiMo-7B-RL XiaomiMiMo/MiMo-7B-RL-Zero"},
    {"mimo-v2-flash", "", "XiaomiMiMo/MiMo-V2-Flash"},
    {"minicpm3-4b", "", "openbmb/MiniCPM3-4B"},
    {"minimax-m2", "", "MiniMaxAI/MiniMax-M2 MiniMaxAI/MiniMax-M2.5 MiniMaxAI/MiniMax-M2.7"},
    {"minimax-m3", "", "MiniMaxAI/MiniMax-M3"},
    {"minimax-text-01", "",
     "MiniMaxAI/MiniMax-Text-01 MiniMaxAI/MiniMax-Text-01-hf MiniMaxAI/MiniMax-M1-40k MiniMaxAI/MiniMax-M1-80k"},
    {"ministral-3-14b", "",
     "mistralai/Ministral-3-14B-Base-2512 mistralai/Ministral-3-14B-Instruct-2512 "
     "mistralai/Ministral-3-14B-Reasoning-2512"},
    {"ministral-3-3b", "",
     "mistralai/Ministral-3-3B-Base-2512 mistralai/Ministral-3-3B-Instruct-2512 "
     "mistralai/Ministral-3-3B-Reasoning-2512"},
    {"ministral-3-8b", "",
     "mistralai/Ministral-3-8B-Base-2512 mistralai/Ministral-3-8B-Instruct-2512 "
     "mistralai/Ministral-3-8B-Reasoning-2512"},
    {"ministral-8b", "", "mistralai/Ministral-8B-Instruct-2410"},
    {"mistral-7b", "",
     "mistralai/Mistral-7B-v0.1 mistralai/Mistral-7B-Instruct-v0.1 HuggingFaceH4/zephyr-7b-beta "
     "HuggingFaceH4/zephyr-7b-alpha"},
    {"mistral-7b", "attention_window=0", "mistralai/Mistral-7B-Instruct-v0.2"},
    {"mistral-7b", "vocabulary=32768 attention_window=0",
     "mistralai/Mistral-7B-v0.3 mistralai/Mistral-7B-Instruct-v0.3"},
    {"mistral-large-123b", "", "mistralai/Mistral-Large-Instruct-2407 mistralai/Mistral-Large-Instruct-2411"},
    {"mistral-nemo-12b", "", "mistralai/Mistral-Nemo-Base-2407 mistralai/Mistral-Nemo-Instruct-2407"},
    {"mistral-nemo-12b", "held_parameters=434957312", "mistral-community/pixtral-12b"},
    {"mistral-small-24b", "",
     "mistralai/Mistral-Small-24B-Base-2501 mistralai/Mistral-Small-24B-Instruct-2501 "
     "mistralai/Magistral-Small-2506 mistralai/Magistral-Small-2507 mistralai/Devstral-Small-2505 "
     "mistralai/Devstral-Small-2507"},
    {"mistral-small-24b", "tower=mistral3",
     "mistralai/Mistral-Small-3.1-24B-Base-2503 mistralai/Mistral-Small-3.1-24B-Instruct-2503 "
     "mistralai/Mistral-Small-3.2-24B-Instruct-2506 mistralai/Magistral-Small-2509"},
    {"mixtral-8x22b", "", "mistralai/Mixtral-8x22B-Instruct-v0.1"},
    {"mixtral-8x22b", "vocabulary=32000", "mistralai/Mixtral-8x22B-v0.1"},
    {"mixtral-8x7b", "", "mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1"},
    {"modernbert-base", "", "answerdotai/ModernBERT-base"},
    {"moonlight-16b-a3b", "", "moonshotai/Moonlight-16B-A3B"},
    {"moonlight-16b-a3b", "tower=kimi-vl", "moonshotai/Kimi-VL-A3B-Instruct moonshotai/Kimi-VL-A3B-Thinking"},
    {"mpt-30b", "", "mosaicml/mpt-30b"},
    {"mpt-7b", "", "mosaicml/mpt-7b"},
    {"nemotron-3-nano-30b-a3b", "",
     "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-Base-BF16 nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 "
     "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"},
    {"nemotron-3-super-120b-a12b", "", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"},
    {"nemotron-3-ultra-550b-a55b", "", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"},
    {"nemotron-h-56b", "", "nvidia/Nemotron-H-56B-Base-8K"},
    {"nemotron-mini-4b", "", "nvidia/Nemotron-Mini-4B-Instruct"},
    {"nemotron-nano-9b-v2", "", "nvidia/NVIDIA-Nemotron-Nano-9B-v2 nvidia/NVIDIA-Nemotron-Nano-9B-v2-Base"},
    {"olmo-2-13b", "", "allenai/OLMo-2-1124-13B"},
    {"olmo-2-1b", "", "allenai/OLMo-2-0425-1B"},
    {"olmo-2-32b", "", "allenai/OLMo-2-0325-32B"},
    {"olmo-2-7b", "", "allenai/OLMo-2-1124-7B"},
    {"olmo-3-32b", "", "allenai/Olmo-3-1125-32B allenai/Olmo-3-32B-Think"},
    {"olmo-3-7b", "",
     "allenai/Olmo-3-1025-7B allenai/Olmo-3-7B-Instruct allenai/Olmo-3-7B-Instruct-SFT allenai/Olmo-3-7B-Think"},
    {"olmo-7b", "", "allenai/OLMo-7B-hf"},
    {"olmoe-1b-7b", "", "allenai/OLMoE-1B-7B-0924"},
    {"open-llama-3b", "", "openlm-research/open_llama_3b openlm-research/open_llama_3b_v2"},
    {"opt-1.3b", "", "facebook/opt-1.3b"},
    {"opt-125m", "", "facebook/opt-125m"},
    {"opt-13b", "", "facebook/opt-13b"},
    {"opt-350m", "", "facebook/opt-350m"},
    {"opt-2.7b", "", "facebook/opt-2.7b"},
    {"opt-30b", "", "facebook/opt-30b"},
    {"opt-6.7b", "", "facebook/opt-6.7b"},
    {"opt-66b", "", "facebook/opt-66b"},
    {"phi-1.5", "", "microsoft/phi-1_5"},
    {"phi-2", "", "microsoft/phi-2"},
    {"phi-3-medium", "", "microsoft/Phi-3-medium-4k-instruct"},
    {"phi-3-medium", "attention_window=0", "microsoft/Phi-3-medium-128k-instruct"},
    {"phi-3-mini", "", "microsoft/Phi-3-mini-4k-instruct"},
    {"phi-3-mini", "attention_window=0", "microsoft/Phi-3-mini-128k-instruct microsoft/Phi-3.5-mini-instruct"},
    {"phi-3.5-moe", "", "microsoft/Phi-3.5-MoE-instruct"},
    {"phi-4", "", "microsoft/phi-4 microsoft/Phi-4-reasoning microsoft/Phi-4-reasoning-plus"},
    {"phi-4-mini", "", "microsoft/Phi-4-mini-instruct microsoft/Phi-4-mini-reasoning"},
    {"pythia-1.4b", "", "EleutherAI/pythia-1.4b"},
    {"pythia-12b", "", "EleutherAI/pythia-12b"},
    {"pythia-160m", "", "EleutherAI/pythia-160m"},
    {"pythia-1b", "", "EleutherAI/pythia-1b"},
    {"pythia-2.8b", "", "EleutherAI/pythia-2.8b"},
    {"pythia-410m", "", "EleutherAI/pythia-410m"},
    {"pythia-6.9b", "", "EleutherAI/pythia-6.9b"},
    {"pythia-70m", "", "EleutherAI/pythia-70m"},
    {"qwen-7b", "", "Qwen/Qwen-7B"},
    {"qwen1.5-14b", "", "Qwen/Qwen1.5-14B"},
    {"qwen1.5-32b", "", "Qwen/Qwen1.5-32B"},
    {"qwen1.5-7b", "", "Qwen/Qwen1.5-7B"},
    {"qwen1.5-moe-a2.7b", "", "Qwen/Qwen1.5-MoE-A2.7B"},
    {"qwen2-57b-a14b", "", "Qwen/Qwen2-57B-A14B"},
    {"qwen2.5-0.5b", "", "Qwen/Qwen2.5-0.5B Qwen/Qwen2-0.5B Qwen/Qwen2.5-Coder-0.5B"},
    {"qwen2.5-1.5b", "", "Qwen/Qwen2.5-1.5B Qwen/Qwen2-1.5B Qwen/Qwen2.5-Coder-1.5B Qwen/Qwen2.5-Math-1.5B"},
    {"qwen2.5-1.5b", "tower=qwen2-vl", "Qwen/Qwen2-VL-2B-Instruct"},
    {"qwen2.5-1.5b", "tied_embeddings=false", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"},
    {"qwen2.5-14b", "",
     "Qwen/Qwen2.5-14B Qwen/Qwen2.5-14B-Instruct-1M Qwen/Qwen2.5-Coder-14B "
     "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B deepcogito/cogito-v1-preview-qwen-14B "
     "agentica-org/DeepCoder-14B-Preview"},
    {"qwen2.5-32b", "",
     "Qwen/Qwen2.5-32B Qwen/Qwen2.5-Coder-32B Qwen/QwQ-32B Qwen/QwQ-32B-Preview "
     "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B open-thoughts/OpenThinker-32B simplescaling/s1-32B "
     "simplescaling/s1.1-32B NovaSky-AI/Sky-T1-32B-Preview deepcogito/cogito-v1-preview-qwen-32B"},
    {"qwen2.5-32b", "tower=qwen2.5-vl-3456", "Qwen/Qwen2.5-VL-32B-Instruct"},
    {"qwen2.5-3b", "", "Qwen/Qwen2.5-3B Qwen/Qwen2.5-Coder-3B"},
    {"qwen2.5-3b", "tower=qwen2.5-vl", "Qwen/Qwen2.5-VL-3B-Instruct"},
    {"qwen2.5-72b", "", "Qwen/Qwen2.5-72B Qwen/Qwen2-72B Qwen/Qwen2.5-Math-72B"},
    {"qwen2.5-72b", "tower=qwen2-vl", "Qwen/Qwen2-VL-72B-Instruct"},
    {"qwen2.5-72b", "tower=qwen2.5-vl-3456", "Qwen/Qwen2.5-VL-72B-Instruct"},
    {"qwen2.5-7b", "",
     "Qwen/Qwen2.5-7B Qwen/Qwen2-7B Qwen/Qwen2.5-7B-Instruct-1M Qwen/Qwen2.5-Coder-7B Qwen/Qwen2.5-Math-7B "
     "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"},
    {"qwen2.5-7b", "tower=qwen2-vl", "Qwen/Qwen2-VL-7B-Instruct"},
    {"qwen2.5-7b", "tower=qwen2.5-vl", "Qwen/Qwen2.5-VL-7B-Instruct"},
    {"qwen2.5-7b", "held_parameters=307630080", "OpenGVLab/InternVL3-8B"},
    {"qwen3-0.6b", "", "Qwen/Qwen3-0.6B"},
    {"qwen3-1.7b", "", "Qwen/Qwen3-1.7B"},
    {"qwen3-1.7b", "tower=qwen3-vl-small", "Qwen/Qwen3-VL-2B-Instruct Qwen/Qwen3-VL-2B-Thinking"},
    {"qwen3-14b", "", "Qwen/Qwen3-14B"},
    {"qwen3-235b-a22b", "",
     "Qwen/Qwen3-235B-A22B Qwen/Qwen3-235B-A22B-Instruct-2507 Qwen/Qwen3-235B-A22B-Thinking-2507"},
    {"qwen3-235b-a22b", "tower=qwen3-vl", "Qwen/Qwen3-VL-235B-A22B-Instruct Qwen/Qwen3-VL-235B-A22B-Thinking"},
    {"qwen3-30b-a3b", "",
     "Qwen/Qwen3-30B-A3B Qwen/Qwen3-30B-A3B-Instruct-2507 Qwen/Qwen3-30B-A3B-Thinking-2507 "
     "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
    {"qwen3-30b-a3b", "tower=qwen3-vl", "Qwen/Qwen3-VL-30B-A3B-Instruct Qwen/Qwen3-VL-30B-A3B-Thinking"},
    {"qwen3-32b", "", "Qwen/Qwen3-32B"},
    {"qwen3-32b", "tower=qwen3-vl", "Qwen/Qwen3-VL-32B-Instruct Qwen/Qwen3-VL-32B-Thinking"},
    {"qwen3-4b", "", "Qwen/Qwen3-4B Qwen/Qwen3-4B-Instruct-2507 Qwen/Qwen3-4B-Thinking-2507"},
    {"qwen3-4b", "tower=qwen3-vl-small", "Qwen/Qwen3-VL-4B-Instruct Qwen/Qwen3-VL-4B-Thinking"},
    {"qwen3-8b", "", "Qwen/Qwen3-8B deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"},
    {"qwen3-8b", "tower=qwen3-vl", "Qwen/Qwen3-VL-8B-Instruct Qwen/Qwen3-VL-8B-Thinking"},
    {"qwen3-coder-480b-a35b", "", "Qwen/Qwen3-Coder-480B-A35B-Instruct"},
    {"qwen3-next-80b-a3b", "", "Qwen/Qwen3-Next-80B-A3B-Instruct Qwen/Qwen3-Next-80B-A3B-Thinking"},
    {"qwen3.5-0.8b", "", "Qwen/Qwen3.5-0.8B Qwen/Qwen3.5-0.8B-Base"},
    {"qwen3.5-122b-a10b", "", "Qwen/Qwen3.5-122B-A10B"},
    {"qwen3.5-27b", "", "Qwen/Qwen3.5-27B Qwen/Qwen3.6-27B"},
    {"qwen3.5-2b", "", "Qwen/Qwen3.5-2B Qwen/Qwen3.5-2B-Base"},
    {"qwen3.5-35b-a3b", "", "Qwen/Qwen3.5-35B-A3B Qwen/Qwen3.6-35B-A3B"},
    {"qwen3.5-397b-a17b", "", "Qwen/Qwen3.5-397B-A17B"},
    {"qwen3.5-4b", "", "Qwen/Qwen3.5-4B Qwen/Qwen3.5-4B-Base"},
    {"qwen3.5-9b", "", "Qwen/Qwen3.5-9B Qwen/Qwen3.5-9B-Base"},
    {"roberta-base", "", "FacebookAI/roberta-base"},
    {"roberta-large", "", "FacebookAI/roberta-large"},
    {"seed-oss-36b", "", "ByteDance-Seed/Seed-OSS-36B-Base ByteDance-Seed/Seed-OSS-36B-Instruct"},
    {"smollm2-1.7b", "", "HuggingFaceTB/SmolLM2-1.7B"},
    {"smollm2-135m", "", "HuggingFaceTB/SmolLM2-135M"},
    {"smollm2-360m", "", "HuggingFaceTB/SmolLM2-360M"},
    {"smollm3-3b", "", "HuggingFaceTB/SmolLM3-3B"},
    {"solar-10.7b", "", "upstage/SOLAR-10.7B-v1.0 upstage/SOLAR-10.7B-Instruct-v1.0"},
    {"solar-open-100b", "", "upstage/Solar-Open-100B"},
    {"stablelm-2-1.6b", "", "stabilityai/stablelm-2-1_6b"},
    {"starcoder-15b", "", "bigcode/starcoder bigcode/starcoderbase"},
    {"starcoder2-3b", "", "bigcode/starcoder2-3b"},
    {"starcoder2-7b", "", "bigcode/starcoder2-7b"},
    {"step-3.5-flash", "", "stepfun-ai/Step-3.5-Flash"},
    {"step-3.5-flash", "held_parameters=1800000000", "stepfun-ai/Step-3.7-Flash"},
    {"t5-11b", "", "google-t5/t5-11b"},
    {"t5-3b", "", "google-t5/t5-3b"},
    {"t5-base", "", "google-t5/t5-base"},
    {"t5-large", "", "google-t5/t5-large"},
    {"t5-small", "", "google-t5/t5-small"},
    {"tinyllama-1.1b", "", "TinyLlama/TinyLlama-1.1B-Chat-v1.0 TinyLlama/TinyLlama_v1.1"},
    {"trinity-mini", "", "arcee-ai/Trinity-Mini"},
    {"xlm-roberta-base", "", "FacebookAI/xlm-roberta-base"},
    {"yi-34b", "", "01-ai/Yi-34B 01-ai/Yi-34B-200K 01-ai/Yi-1.5-34B"},
    {"yi-6b", "", "01-ai/Yi-6B 01-ai/Yi-6B-200K 01-ai/Yi-1.5-6B"},
    {"yi-9b", "", "01-ai/Yi-9B 01-ai/Yi-9B-200K 01-ai/Yi-1.5-9B"},
}};

constexpr std::array<std::string_view, 9> same_shape = {"-instruct", "-chat",    "-base",        "-it",        "-pt",
                                                        "-hf",       "-deduped", "-dequantized", "-linearized"};
// As plain_name() leaves them.
constexpr std::array<std::string_view, 3> nf4_endings = {"-unsloth-bnb4bit", "-bnb4bit", "-bnb-nf4"};
constexpr std::array<std::string_view, 2> wide_endings = {"-bf16", "-fp16"};
constexpr std::array<std::string_view, 4> narrow_endings = {"-fp8-dynamic", "-fp8", "-nvfp4", "-mxfp4"};
constexpr std::array<std::string_view, 11> inference_endings = {
    "-gguf", "-awq", "-gptq", "-gptq-int4", "-gptq-int8", "-exl2", "-mlx", "-marlin", "-w4a16", "-w8a8", "-onnx"};

template <std::size_t count>
bool take_ending(std::string& name, const std::array<std::string_view, count>& endings) {
  for (const std::string_view ending : endings) {
    if (!name.ends_with(ending)) continue;
    name.erase(name.size() - ending.size());
    return true;
  }
  return false;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Without its owner, in small letters, with one kind of separator.
std::string plain_name(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string plain;
  for (const char c : name) {
    const bool separates = c == '_' || c == '.' || c == ' ' || c == '-';
    plain += separates ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (std::size_t i = 1; i + 1 < plain.size(); ++i)
    if (plain[i] == '-' && is_letter(plain[i - 1]) && is_digit(plain[i + 1])) plain.erase(i, 1);
  return plain;
}

std::vector<std::string> split_at_blanks(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// By plain names, and by these without the endings that leave the shape ("llama-3-3-70b").
const std::map<std::string, const Published*>& published_by_name() {
  static const auto made = [] {
    std::map<std::string, const Published*> rows;
    for (const Published& row : published)
      for (const std::string& id : split_at_blanks(row.ids)) {
        std::string name = plain_name(id);
        take_ending(name, wide_endings);
        do rows.emplace(name, &row);
        while (name != plain_name(row.shape) && take_ending(name, same_shape));
      }
    return rows;
  }();
  return made;
}

// The model that a plain name is, with no ending taken.
std::optional<ModelAlias> known(const std::string& plain) {
  for (const std::string& name : bundled_models())
    if (plain_name(name) == plain) return ModelAlias{.shape = name};
  const auto found = published_by_name().find(plain);
  if (found == published_by_name().end()) return std::nullopt;
  return ModelAlias{.shape = std::string(found->second->shape), .overrides = split_at_blanks(found->second->overrides)};
}

}  // namespace

std::optional<ModelAlias> find_alias(std::string_view name) {
  if (name.starts_with("hf:")) name.remove_prefix(3);
  std::string plain = plain_name(name);
  take_ending(plain, wide_endings);
  const bool is_nf4 = take_ending(plain, nf4_endings);
  const bool is_narrow = !is_nf4 && take_ending(plain, narrow_endings);
  take_ending(plain, wide_endings);
  constexpr std::string_view by_meta = "meta-";
  if (plain.starts_with(by_meta)) plain.erase(0, by_meta.size());
  do {
    if (auto alias = known(plain)) {
      alias->id = name;
      alias->is_nf4 = is_nf4;
      alias->is_narrow = is_narrow;
      return alias;
    }
  } while (take_ending(plain, same_shape));
  return std::nullopt;
}

std::vector<std::string> published_ids(std::string_view shape) {
  std::vector<std::string> ids;
  for (const Published& row : published)
    if (row.shape == shape)
      for (std::string& id : split_at_blanks(row.ids)) ids.push_back(std::move(id));
  return ids;
}

bool is_inference_format(std::string_view name) {
  std::string plain = plain_name(name);
  return take_ending(plain, inference_endings);
}

}  // namespace spillway::models
