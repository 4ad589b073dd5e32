// SPDX-License-Identifier: MIT
// Opens a GGUF model as a checkpoint, with config and vocabulary from its keys. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/bare_names.hpp"
#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_config.hpp"
#include "intaglio/io/gguf_vocabulary.hpp"
#include "intaglio/io/hf_names.hpp"
#include "intaglio/io/xielu_parameters.hpp"

namespace intaglio::io {

/// Whether a tensor gives keys and values of all heads at once, in a layer that has a tensor for each of them too.
[[gnu::cold]] inline bool is_joint_again(const decoder_config& c, const std::vector<gguf_tensor>& all,
                                         std::string_view name) {
  if (!family_of(c.model_type).latent || !name.ends_with("." + std::string(latent_keys_values))) return false;
  const std::string apart = std::string(name.substr(0, name.size() - latent_keys_values.size())) + "attn_k_b.weight";
  return std::any_of(all.begin(), all.end(), [&](const gguf_tensor& each) { return each.name == apart; });
}

/// Says that keys' matrices of latent attention are computed in another type than the file's.
[[gnu::cold]] inline void warn_of_transposed(checkpoint_builder& builder) {
  if (const checkpoint_tensor* const keys = builder.find("blk.0.attn_k_b.weight"); keys != nullptr && keys->transposed)
    builder.warn("keys of attn_kv_b, in blocks of " + std::string(name(keys->transposed->type)) +
                 " along the latent vector, are computed as f16; newer converters write attn_k_b and attn_v_b");
}

/// Turns an opened GGUF into a checkpoint.
[[gnu::cold]] inline checkpoint checkpoint_from_gguf(gguf file, const checkpoint_options& options) {
  checkpoint_builder builder(file.path(), options);
  const gguf_config config(file);
  builder.config() = config.config();
  builder.stated_architecture() = config.stated_architecture();
  builder.pooling() = config.pooling();
  for (const std::string& line : file.warnings()) builder.add_warning(line);
  for (const std::string& line : config.warnings()) builder.add_warning(line);
  if (const gguf_value* tokens = file.first().find("tokenizer.ggml.tokens");
      tokens != nullptr && tokens->count > config.config().vocab_size)
    throw file_error(file.path(), tokens->offset, "tokenizer.ggml.tokens has more tokens than the embedding has rows",
                     "at most " + std::to_string(config.config().vocab_size), std::to_string(tokens->count));
  builder.vocabulary() = gguf_vocabulary(file);
  if (config.config().hidden_act == activation::xielu) read_xielu(file, builder);
  const std::vector<gguf_tensor> tensors = file.tensors();
  std::vector<const mapped_file*> files;
  for (gguf_part& part : std::move(file).release_parts())
    files.push_back(builder.adopt(std::move(part).release_file()));
  std::size_t drafts = 0, joint = 0;
  for (const gguf_tensor& tensor : tensors) {
    if (is_draft_name(tensor.name, "blk.", config.config().num_hidden_layers, config.draft_layers())) {
      ++drafts;
      continue;
    }
    if (is_joint_again(config.config(), tensors, tensor.name)) {
      ++joint;
      continue;
    }
    checkpoint_tensor out;
    out.stored = {tensor.name,        tensor.type,   tensor.rows(), tensor.columns(),
                  files[tensor.part], tensor.offset, tensor.bytes};
    out.stored.name = name_with_ending(family_of(config.config().model_type), tensor.name);
    out.stored_name = tensor.name;
    out.dimensions = tensor.dimensions;
    const bool biases = out.stored.rows == config.config().num_local_experts && tensor.name.ends_with("_exps.bias");
    if (out.dimensions == 2 && (biases || out.stored.rows == mamba2_rows(config.config(), tensor.name))) {
      out.dimensions = 1;
      out.stored.columns *= std::exchange(out.stored.rows, 1);
    }
    if (config.config().kv_lora_rank != 0 && out.dimensions == 2 && is_latent_heads(tensor.name))
      out.dimensions = 3;  // some programs write the heads' matrices as one
    add_parts(builder, std::move(out), [&](checkpoint_tensor& each) {
      const decoder_config& c = config.config();
      if (family_of(c.model_type).latent) {
        each.rows_in_pairs = c.rotary_dim;
        return;
      }
      if (family_of(c.model_type).gguf_rows_in_pairs || c.rotary_dim != 0) each.rows_in_pairs = c.head_dim;
      each.rotary_dim = c.rotary_dim;
      each.neighbours = c.rotary_dim != 0 && family_of(c.model_type).gguf_rows_in_pairs;
    });
  }
  if (drafts != 0) builder.warn(draft_warning(drafts));
  if (joint != 0)
    builder.warn(std::to_string(joint) + " tensors attn_kv_b are not read: attn_k_b and attn_v_b are beside them");
  warn_of_transposed(builder);
  return std::move(builder).finish();
}

[[gnu::cold]] inline checkpoint checkpoint::open_gguf(const std::filesystem::path& path,
                                                      const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::open(path), options);
}
[[gnu::cold]] inline checkpoint checkpoint::open_gguf(mapped_file file, const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_file(std::move(file)), options);
}
[[gnu::cold]] inline checkpoint checkpoint::open_gguf(std::span<const std::byte> bytes, const std::string& name,
                                                      const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_memory(bytes, name), options);
}

}  // namespace intaglio::io
