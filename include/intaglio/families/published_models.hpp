// SPDX-License-Identifier: MIT
// The configs of published models by name, for tools that plan a model without its file.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <string_view>

#include "intaglio/core/family.hpp"
#include "intaglio/families/planned_family.hpp"

namespace intaglio::families {

/// A model's name and config.
struct published_model {
  std::string_view name;
  const decoder_config* config = nullptr;

  bool ternary() const { return is_ternary(*config); }
  /// How the device holds the model's matrices. @param codec of the layers; a ternary model uses its own table instead
  weight_types types(dtype codec) const {
    if (ternary()) return {dtype::i2_s, codec, codec};
    const dtype head = graph::head_type(codec, config->hidden_size);
    return {codec, head, head};
  }
};

/// The entry of a model whose weights may have any codec.
template <template <dtype> class Model>
constexpr published_model coded_entry() {
  return {Model<dtype::f16>::name, &Model<dtype::f16>::config};
}
/// The entry of a model.
template <class Model>
constexpr published_model entry_of() {
  return {Model::name, &Model::config};
}

/// The published models that the library names.
inline constexpr std::array published_models{
    entry_of<models::fable>(),
    entry_of<models::bitnet_2b_4t>(),
    entry_of<models::falcon3_1b_158<>>(),
    entry_of<models::falcon3_3b_158<>>(),
    entry_of<models::falcon3_7b_158<>>(),
    entry_of<models::falcon3_10b_158<>>(),
    entry_of<models::falcon_e_1b<>>(),
    entry_of<models::falcon_e_3b<>>(),
    entry_of<models::bitnet_embedding_06b<>>(),
    coded_entry<models::mistral_7b>(),
    coded_entry<models::mistral_7b_v01>(),
    coded_entry<models::mistral_7b_v03>(),
    coded_entry<models::mistral_nemo_12b>(),
    coded_entry<models::mistral_small_24b>(),
    coded_entry<models::llama_3_8b>(),
    coded_entry<models::llama_31_8b>(),
    coded_entry<models::llama_33_70b>(),
    coded_entry<models::llama_32_1b>(),
    coded_entry<models::llama_32_3b>(),
    coded_entry<models::tinyllama_11b>(),
    coded_entry<models::smollm2_135m>(),
    coded_entry<models::smollm2_360m>(),
    coded_entry<models::smollm2_17b>(),
    coded_entry<models::stories260k>(),
    coded_entry<models::gemma3_270m>(),
    coded_entry<models::gemma3_1b>(),
    coded_entry<models::gemma3_4b>(),
    coded_entry<models::gemma3_12b>(),
    coded_entry<models::gemma3_27b>(),
    coded_entry<models::mixtral_8x7b>(),
    coded_entry<models::mixtral_8x22b>(),
    coded_entry<models::qwen3_06b>(),
    coded_entry<models::qwen3_embedding_06b>(),
    coded_entry<models::qwen3_17b>(),
    coded_entry<models::qwen3_4b>(),
    coded_entry<models::qwen3_4b_2507>(),
    coded_entry<models::qwen3_8b>(),
    coded_entry<models::qwen3_14b>(),
    coded_entry<models::qwen3_32b>(),
    coded_entry<models::qwen3_30b_a3b>(),
    coded_entry<models::qwen3_30b_a3b_2507>(),
    coded_entry<models::qwen3_235b_a22b>(),
    coded_entry<models::qwen25_05b>(),
    coded_entry<models::qwen25_15b>(),
    coded_entry<models::qwen25_3b>(),
    coded_entry<models::qwen25_7b>(),
    coded_entry<models::qwen25_14b>(),
    coded_entry<models::qwen25_32b>(),
    coded_entry<models::qwen25_72b>(),
    coded_entry<models::smollm3_3b>(),
    coded_entry<models::granite_33_2b>(),
    coded_entry<models::granite_33_8b>(),
    coded_entry<models::granite_4_micro>(),
    coded_entry<models::granite_4_h_350m>(),
    coded_entry<models::granite_4_h_micro>(),
    coded_entry<models::granite_4_h_tiny>(),
    coded_entry<models::nemotron_h_8b>(),
    coded_entry<models::nemotron_nano_9b_v2>(),
    coded_entry<models::nemotron_nano_12b_v2>(),
    coded_entry<models::nemotron_3_nano>(),
    coded_entry<models::falcon_h1_05b>(),
    coded_entry<models::falcon_h1_15b>(),
    coded_entry<models::falcon_h1_3b>(),
    coded_entry<models::falcon_h1_7b>(),
    coded_entry<models::falcon_h1_34b>(),
    coded_entry<models::olmo2_1b>(),
    coded_entry<models::olmo2_7b>(),
    coded_entry<models::olmo2_13b>(),
    coded_entry<models::olmo2_32b>(),
    coded_entry<models::olmo3_7b>(),
    coded_entry<models::olmo3_32b>(),
    coded_entry<models::phi_4>(),
    coded_entry<models::phi_4_mini>(),
    coded_entry<models::phi_35_mini>(),
    coded_entry<models::qwen35_08b>(),
    coded_entry<models::qwen35_4b>(),
    coded_entry<models::qwen35_27b>(),
    coded_entry<models::qwen3next_80b_a3b>(),
    coded_entry<models::qwen35_35b_a3b>(),
    coded_entry<models::olmoe_1b_7b>(),
    coded_entry<models::gemma_2b>(),
    coded_entry<models::gemma_7b>(),
    coded_entry<models::seed_oss_36b>(),
    coded_entry<models::ernie45_03b>(),
    coded_entry<models::ernie45_21b_a3b>(),
    coded_entry<models::ernie45_300b_a47b>(),
    coded_entry<models::ministral3_8b>(),
    coded_entry<models::exaone4_12b>(),
    coded_entry<models::exaone4_32b>(),
    coded_entry<models::qwen15_moe_a27b>(),
    coded_entry<models::glm_4_9b>(),
    coded_entry<models::glm_4_9b_chat>(),
    coded_entry<models::exaone3_78b>(),
    coded_entry<models::exaone35_24b>(),
    coded_entry<models::exaone35_78b>(),
    coded_entry<models::exaone35_32b>(),
    coded_entry<models::internlm25_7b>(),
    coded_entry<models::internlm25_20b>(),
    coded_entry<models::deepseek_moe_16b>(),
    coded_entry<models::dots1_142b>(),
    coded_entry<models::trinity_nano>(),
    coded_entry<models::trinity_mini>(),
    coded_entry<models::ling_lite_15>(),
    coded_entry<models::ling_mini_20>(),
    coded_entry<models::minimax_m2>(),
    coded_entry<models::hunyuan_a13b>(),
    coded_entry<models::minicpm_1b>(),
    coded_entry<models::minicpm_2b>(),
    coded_entry<models::minicpm4_05b>(),
    coded_entry<models::xverse_7b>(),
    coded_entry<models::xverse_13b>(),
    coded_entry<models::apertus_8b>(),
    coded_entry<models::apertus_70b>(),
    coded_entry<models::baichuan_7b>(),
    coded_entry<models::orion_14b>(),
    coded_entry<models::glm_45_air>(),
    coded_entry<models::glm_45>(),
    coded_entry<models::hunyuan_05b>(),
    coded_entry<models::hunyuan_18b>(),
    coded_entry<models::hunyuan_4b>(),
    coded_entry<models::hunyuan_7b>(),
    coded_entry<models::lfm2_350m>(),
    coded_entry<models::lfm2_700m>(),
    coded_entry<models::lfm2_12b>(),
    coded_entry<models::lfm2_26b>(),
    coded_entry<models::lfm2_8b_a1b>(),
    coded_entry<models::gemma2_2b>(),
    coded_entry<models::gemma2_9b>(),
    coded_entry<models::gemma2_27b>(),
    coded_entry<models::gemma3n_e2b>(),
    coded_entry<models::gemma3n_e4b>(),
    coded_entry<models::gemma4_e2b>(),
    coded_entry<models::gemma4_e4b>(),
    coded_entry<models::gemma4_31b>(),
    coded_entry<models::gemma4_26b_a4b>(),
    coded_entry<models::gptoss_20b>(),
    coded_entry<models::gptoss_120b>(),
    coded_entry<models::embeddinggemma_300m>(),
    coded_entry<models::bge_small>(),
    coded_entry<models::bge_base>(),
    coded_entry<models::bge_large>(),
    coded_entry<models::minilm_l6>(),
    coded_entry<models::nomic_embed_v15>(),
    coded_entry<models::modernbert_base>(),
    coded_entry<models::modernbert_large>(),
    coded_entry<models::eurobert_210m>(),
    coded_entry<models::eurobert_610m>(),
    coded_entry<models::eurobert_21b>(),
    coded_entry<models::deepseek_v2_lite>(),
    coded_entry<models::moonlight_16b>(),
    coded_entry<models::deepseek_v2>(),
    coded_entry<models::deepseek_v3>(),
    coded_entry<models::glm_47_flash>(),
    coded_entry<models::command_r_35b>(),
    coded_entry<models::command_r_32b>(),
    coded_entry<models::aya_expanse_8b>(),
    coded_entry<models::command_r7b>(),
    coded_entry<models::command_a>(),
    coded_entry<models::starcoderbase_1b>(),
    coded_entry<models::starcoder_15b>(),
    coded_entry<models::starcoder2_3b>(),
    coded_entry<models::starcoder2_7b>(),
    coded_entry<models::starcoder2_15b>(),
    coded_entry<models::stablelm_3b>(),
    coded_entry<models::stablelm2_16b>(),
    coded_entry<models::minitron_4b>(),
    coded_entry<models::phi_2>(),
    coded_entry<models::phi_15>(),
    coded_entry<models::pythia_160m>(),
    coded_entry<models::pythia_14b>(),
    coded_entry<models::pythia_69b>(),
    coded_entry<models::falcon_7b>(),
    coded_entry<models::olmo_1b>(),
    coded_entry<models::olmo_7b>(),
    coded_entry<models::gpt2_124m>(),
    coded_entry<models::gpt2_15b>(),
    coded_entry<models::bge_m3>(),
    coded_entry<models::multilingual_e5_small>(),
    coded_entry<models::multilingual_e5_base>(),
    coded_entry<models::multilingual_e5_large>(),
    coded_entry<models::roberta_base>(),
    coded_entry<models::all_distilroberta>(),
};

/// The published model with this name; nullptr where there is none.
constexpr const published_model* find_published_model(std::string_view name) {
  for (const published_model& each : published_models)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace intaglio::families
