// SPDX-License-Identifier: MIT
// What a model file says about its tokenizer, as it says it: loaders fill this struct, io::tokenizer judges it.
// Names follow the tokenizer.ggml.* keys of GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace intaglio::io {

/// Kind of a token; numbers as in SentencePiece's ModelProto and GGUF's tokenizer.ggml.token_type.
enum class token_type : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// The tokenizer part of a model file, not yet validated. An absent optional means that the file does not say.
struct vocabulary {
  std::string source;  ///< file that the errors name
  std::string
      architecture;   ///< general.architecture, or model_type of a config.json: "bitnet-b1.58", "llama", "gemma3", ...
  std::string model;  ///< tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" is SentencePiece-style BPE
  std::optional<std::string> pre_tokenizer;  ///< tokenizer.ggml.pre

  std::vector<std::string> tokens;        ///< byte-level BPE: in the printable byte alphabet, as in the file
  std::vector<float> scores;              ///< empty, or one for each token (needed by "llama" without merges)
  std::vector<std::int32_t> token_types;  ///< empty (all normal), or one for each token: numbers of io::token_type
  std::vector<std::string> merges;  ///< "left right", the strongest first; the first space from position 1 separates

  std::optional<std::int64_t> bos_id, eos_id, eot_id, unknown_id, padding_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  std::optional<bool>
      space_prefix_once;  ///< only Hugging Face files: a space goes before the start of the text, unless one is there
  std::optional<bool> ignore_merges;  ///< only Hugging Face files say it; otherwise it follows from the pre-tokenizer
  std::optional<std::string> chat_template;  ///< tokenizer.chat_template: Jinja text, recognised and never executed
};

}  // namespace intaglio::io
