// SPDX-License-Identifier: MIT
// Opens a GGUF model as a checkpoint, with config and vocabulary from its keys. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_config.hpp"
#include "intaglio/io/gguf_vocabulary.hpp"
#include "intaglio/io/hf_names.hpp"

namespace intaglio::io {

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
  const std::vector<gguf_tensor> tensors = file.tensors();
  std::vector<const mapped_file*> files;
  for (gguf_part& part : std::move(file).release_parts())
    files.push_back(builder.adopt(std::move(part).release_file()));
  std::size_t drafts = 0;
  for (const gguf_tensor& tensor : tensors) {
    if (is_draft_name(tensor.name, "blk.", config.config().num_hidden_layers, config.draft_layers())) {
      ++drafts;
      continue;
    }
    checkpoint_tensor out;
    out.stored = {tensor.name,        tensor.type,   tensor.rows(), tensor.columns(),
                  files[tensor.part], tensor.offset, tensor.bytes};
    out.stored_name = tensor.name;
    out.dimensions = tensor.dimensions;
    if (out.dimensions == 2 && out.stored.rows == config.config().num_local_experts &&
        tensor.name.ends_with("_exps.bias")) {  // one behind the other
      out.dimensions = 1;
      out.stored.columns *= std::exchange(out.stored.rows, 1);
    }
    if (out.dimensions == 2 && out.stored.rows == mamba2_rows(config.config(), tensor.name)) {
      out.dimensions = 1;
      out.stored.columns *= std::exchange(out.stored.rows, 1);
    }
    add_parts(builder, std::move(out), [&](checkpoint_tensor& each) {
      const decoder_config& c = config.config();
      if (family_of(c.model_type).gguf_rows_in_pairs || c.rotary_dim != 0) each.rows_in_pairs = c.head_dim;
      each.rotary_dim = c.rotary_dim;
      each.neighbours = c.rotary_dim != 0 && family_of(c.model_type).gguf_rows_in_pairs;
    });
  }
  if (drafts != 0) builder.warn(draft_warning(drafts));
  return std::move(builder).finish();
}

inline checkpoint checkpoint::open_gguf(const std::filesystem::path& path, const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::open(path), options);
}
inline checkpoint checkpoint::open_gguf(mapped_file file, const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_file(std::move(file)), options);
}
inline checkpoint checkpoint::open_gguf(std::span<const std::byte> bytes, const std::string& name,
                                        const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_memory(bytes, name), options);
}

}  // namespace intaglio::io
