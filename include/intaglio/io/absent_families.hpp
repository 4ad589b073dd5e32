// SPDX-License-Identifier: MIT
// Families that people run and that this library does not compute. The table says what each one needs, so that its file
// is refused by one sentence. Facts: transformers' modeling files, llama.cpp's src/models.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <string>
#include <string_view>

#include "intaglio/core/error.hpp"
#include "intaglio/core/family.hpp"

namespace intaglio::io {

/// Names in config.json's model_type and GGUF's general.architecture, separated by spaces, and the missing part.
struct absent_family {
  std::string_view names, missing;
};
/// Families of models that the library does not compute.
inline constexpr auto absent_families = std::to_array<absent_family>({
    {"deepseek_v32 deepseek32 glm_moe_dsa glm-dsa", "latent attention (MLA) to positions that an index chooses"},
    {"longcat_flash", "two sublayers of latent attention (MLA) in a layer, and experts that do nothing"},
    {"minicpm3", "latent attention (MLA) beside factors of embedding, layers and logits"},
    {"llama4 llama4_text", "experts whose inputs are scaled, and attention in chunks"},
    {"phi-msft gptj plamo", "attention and FFN beside each other (a parallel residual)"},
    {"mpt bloom jais refact gpt_refact jina-bert-v2", "attention biased by distance (ALiBi)"},
    {"jina-bert-v3 xlm-roberta-flash", "rotation in an XLM-RoBERTa, with adapters by task"},
    {"hunyuan hunyuan_vl", "layers that share keys and values, or positions of images"},
    {"apertus1p5 apertus1p5_text", "a head with fewer rows than the embedding"},
    {"neo-bert", "RMSNorms in front of the sublayers of an encoder"},
    {"nomic-bert-moe", "experts in an encoder"},
    {"t5 t5encoder bart mbart whisper t5gemma", "an encoder in front of a decoder"},
    {"mamba mamba2 falcon_mamba rwkv6 rwkv7", "layers that are all recurrent, without attention"},
    {"jamba bamba", "Mamba in layers of other kinds"},
    {"mistral4", "queries scaled by their position"},
    {"gpt_neo distilbert", "tensors under names of their own"},
    {"opt", "ReLU in FFNs"},
    {"phimoe", "LayerNorms in a mixture of experts"},
    {"smallthinker", "a router in front of attention"},
    {"kimi_linear kimi-linear", "delta rules whose channels have a decay each, and latent attention (MLA)"},
    {"mimo_v2_flash mimo2 step3p5 step35", "layers with a window that have other heads than the others"},
    {"mpnet deberta-v2", "attention biased by relative positions"},
});

/// The error texts for a file of an unknown family. @return expected and found
[[gnu::cold]] inline std::array<std::string, 2> unknown_family(std::string_view stated,
                                                               std::string_view family::*member) {
  const std::string shown = "'" + printable(stated, 60) + "'";
  for (const absent_family& each : absent_families)
    for (std::string_view names = each.names; !names.empty();) {
      const std::string_view name = names.substr(0, names.find(' '));
      names.remove_prefix(name.size() == names.size() ? names.size() : name.size() + 1);
      if (name == stated)
        return {"a family that is computed here (docs/models.md)",
                shown + ", which needs " + std::string(each.missing)};
    }
  return {"one of: " + std::string(family_names(member).view()), shown};
}

}  // namespace intaglio::io
