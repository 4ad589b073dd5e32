// SPDX-License-Identifier: MIT
// Reads a GGUF file's vocabulary from its tokenizer keys. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/gguf.hpp"
#include "intaglio/io/named_templates.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Adds the rules of Phi-3's special tokens, which include the white space after them. No key says so: llama.cpp
/// recognises the model by its name.
inline void add_phi3_rules(std::string name, vocabulary& out) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return;
  for (std::size_t id = 0; id < out.tokens.size() && id < out.token_types.size(); ++id) {
    const auto type = static_cast<token_type>(out.token_types[id]);
    const std::string& text = out.tokens[id];
    const bool special = type == token_type::control || type == token_type::user_defined;
    if (special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>")
      out.added.push_back({.id = static_cast<std::int64_t>(id), .rstrip = true});
  }
}

/// Reads the keys of WordPiece: tokens around a text under other names, with llama.cpp's defaults, and its normaliser.
[[gnu::cold]] inline void read_bert(const gguf& file, vocabulary& out) {
  const auto id = [&](const char* key) { return file.number<std::int64_t>(std::string("tokenizer.ggml.") + key); };
  const auto flag = [&](const char* key) { return file.value<bool>(std::string("tokenizer.ggml.") + key); };
  if (const auto begin = id("cls_token_id")) out.bos_id = begin;
  if (const auto end = id("seperator_token_id")) out.eos_id = end;
  for (const auto& [to, absent] : {std::pair{&out.bos_id, 101}, {&out.eos_id, 102}, {&out.unknown_id, 100}})
    if (!*to) *to = absent;
  out.add_bos = out.add_bos.value_or(true);
  out.add_eos = flag("add_sep_token").value_or(out.add_eos.value_or(true));
  out.lowercase = flag("normalizer.lowercase"), out.strip_accents = flag("normalizer.strip_accents");
}

/// Reads the keys of Unigram: the map of its normaliser, as signed or unsigned bytes, and llama.cpp's defaults.
[[gnu::cold]] inline void read_unigram(const gguf& file, vocabulary& out) {
  const std::string key = "tokenizer.ggml.precompiled_charsmap";
  const auto take = [&](const auto& bytes) {
    for (const auto byte : bytes) out.charsmap.push_back(static_cast<char>(byte));
  };
  const gguf_value* const found = file.first().find(key);
  if (found != nullptr && found->element == gguf_type::i8) take(*file.array<std::int8_t>(key));
  else if (found != nullptr) take(*file.array<std::uint8_t>(key));
  if (!out.eos_id) out.eos_id = 1;
  if (!out.unknown_id) out.unknown_id = 2;
  out.add_bos = out.add_bos.value_or(false), out.add_eos = out.add_eos.value_or(true);
  out.doubles_separator = true;  // as in XLM-RoBERTa; no key states it
}

/// Reads the chat templates: the default one, and those whose names follow the key.
[[gnu::cold]] inline void read_templates(const gguf& file, vocabulary& out) {
  constexpr std::string_view key = "tokenizer.chat_template", prefix = "tokenizer.chat_template.";
  std::vector<named_template> all;
  if (auto usual = file.value<std::string>(key)) all.push_back({"default", std::move(*usual)});
  for (const gguf_value& each : file.first().values())
    if (each.key.starts_with(prefix))
      all.push_back({std::string(each.key.substr(prefix.size())), *file.value<std::string>(each.key)});
  if (!all.empty()) out.chat_template = united_templates(all, "", out.warnings);
}

/// Keys that begin with "tokenizer.ggml." and are read, or say nothing about the tokens of a text.
inline constexpr std::string_view gguf_tokenizer_keys[] = {
    "model",
    "pre",
    "tokens",
    "token_type",
    "token_type_count",
    "scores",
    "merges",
    "bos_token_id",
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
    "unknown_token_id",
    "padding_token_id",
    "cls_token_id",
    "seperator_token_id",  // llama.cpp's spelling
    "mask_token_id",
    "add_bos_token",
    "add_eos_token",
    "add_sep_token",
    "add_space_prefix",
    "remove_extra_whitespaces",
    "precompiled_charsmap",
    "normalizer.lowercase",
    "normalizer.strip_accents",
    // Tokens around a gap, which programs know by their texts.
    "fim_pre_token_id",
    "fim_suf_token_id",
    "fim_mid_token_id",
    "fim_pad_token_id",
    "fim_rep_token_id",
    "fim_sep_token_id",
    "prefix_token_id",
    "suffix_token_id",
    "middle_token_id",
};

/// Warns of keys that begin with "tokenizer." and are not used.
[[gnu::cold]] inline void judge_tokenizer_keys(const gguf& file, vocabulary& out) {
  constexpr std::string_view prefix = "tokenizer.", own = "tokenizer.ggml.";
  constexpr std::size_t most = 16;
  std::size_t unknown = 0;
  const auto reads = [](std::string_view tail) {
    return std::find(std::begin(gguf_tokenizer_keys), std::end(gguf_tokenizer_keys), tail) !=
           std::end(gguf_tokenizer_keys);
  };
  for (const gguf_value& each : file.first().values()) {
    const std::string_view key = each.key;
    if (!key.starts_with(prefix) || key.starts_with("tokenizer.chat_template") || key == "tokenizer.huggingface.json" ||
        (key.starts_with(own) && reads(key.substr(own.size()))))
      continue;
    if (key == "tokenizer.ggml.suppress_tokens")
      out.warnings.push_back("key '" + each.key + "' is not used: llama.cpp never takes these " +
                             std::to_string(each.count) + " tokens");
    else if (++unknown <= most) out.warnings.push_back("key '" + printable(key, 100) + "' is unknown and not read");
  }
  if (unknown > most)
    out.warnings.push_back("and " + std::to_string(unknown - most) + " more keys of the tokenizer are not read");
}

/// Reads the tokenizer.* keys, with llama.cpp's defaults for absent keys. @throws file_error for a key of another type
[[gnu::cold]] inline vocabulary gguf_vocabulary(const gguf& file) {
  vocabulary out;
  out.source = file.path();
  out.architecture = file.value<std::string>("general.architecture").value_or("");
  out.model = file.value<std::string>("tokenizer.ggml.model").value_or("");
  out.pre_tokenizer = file.value<std::string>("tokenizer.ggml.pre");
  out.tokens = file.array<std::string>("tokenizer.ggml.tokens").value_or(std::vector<std::string>{});
  out.scores = file.array<float>("tokenizer.ggml.scores").value_or(std::vector<float>{});
  out.token_types = file.array<std::int32_t>("tokenizer.ggml.token_type").value_or(std::vector<std::int32_t>{});
  out.merges = file.array<std::string>("tokenizer.ggml.merges").value_or(std::vector<std::string>{});
  const auto id = [&](std::string_view key) -> std::optional<std::int64_t> {
    return file.number<std::int64_t>("tokenizer.ggml." + std::string(key));
  };
  out.bos_id = id("bos_token_id");
  out.eos_id = id("eos_token_id");
  out.eot_id = id("eot_token_id");
  out.eom_id = id("eom_token_id");
  out.unknown_id = id("unknown_token_id");
  out.padding_id = id("padding_token_id");
  for (const std::uint32_t end :
       file.array<std::uint32_t>(std::string(end_ids_key)).value_or(std::vector<std::uint32_t>{}))
    out.end_ids.push_back(end);
  out.add_bos = file.value<bool>("tokenizer.ggml.add_bos_token");
  out.add_eos = file.value<bool>("tokenizer.ggml.add_eos_token");
  out.add_space_prefix = file.value<bool>("tokenizer.ggml.add_space_prefix");
  out.remove_extra_whitespaces = file.value<bool>("tokenizer.ggml.remove_extra_whitespaces");
  read_templates(file, out);
  judge_tokenizer_keys(file, out);
  if (out.model == "gemma4") {  // merges in their order, as in tokenizer.json; the scores have no meaning
    out.model = "llama";
    out.scores.clear();
  } else if (out.model == "bert") {
    read_bert(file, out);
  } else if (out.model == "t5") {
    read_unigram(file, out);
  } else if (out.model == "llama" && out.tokens.size() > 2) {  // llama.cpp's defaults for this kind of vocabulary
    if (!out.unknown_id) out.unknown_id = 0;
    if (!out.bos_id) out.bos_id = 1;
    if (!out.eos_id) out.eos_id = 2;
  }
  if (out.pre_tokenizer == "roberta-bpe") out.doubles_separator = true;
  add_phi3_rules(file.value<std::string>("general.name").value_or(""), out);
  return out;
}

}  // namespace intaglio::io
