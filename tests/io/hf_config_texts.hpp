// SPDX-License-Identifier: MIT
// Texts of config.json for the tests of io/hf_config.hpp, and what reading them gives.
#pragma once

#include <string>

#include "files.hpp"
#include "intaglio/io/hf_config.hpp"

namespace hf_config_texts {

/// A sound config with more fields, or with others instead.
inline std::string bitnet_with(const std::string& fields) {
  return R"({"model_type":"bitnet","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
         R"("num_attention_heads":4,"vocab_size":1024,)"
         R"("max_position_embeddings":512,"rms_norm_eps":1e-5)" +
         (fields.empty() ? "" : "," + fields) + "}";
}
inline intaglio::io::hf_config read(const std::string& text) {
  const temporary_folder folder;
  return intaglio::io::read_hf_config(write_text(folder / "config.json", text));
}
inline std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}

/// A sound config of a family whose keys are Llama's, with more fields.
inline std::string of_family(const std::string& family, const std::string& fields) {
  return R"({"model_type":")" + family +
         R"(","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,"num_attention_heads":16,)"
         R"("vocab_size":1024,)"
         R"("max_position_embeddings":512,"rms_norm_eps":1e-5)" +
         (fields.empty() ? "" : "," + fields) + "}";
}

}  // namespace hf_config_texts
