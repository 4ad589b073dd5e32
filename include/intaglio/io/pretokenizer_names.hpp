// SPDX-License-Identifier: MIT
// The names of pre-tokenizers in GGUF files (tokenizer.ggml.pre), the facts that a name implies there, and the
// equivalent regular expressions of a tokenizer.json. Facts: llama.cpp's llama-vocab.cpp, published tokenizer.json.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/short_name.hpp"
#include "intaglio/io/pretokenizer.hpp"

namespace intaglio::io {
/// A name of tokenizer.ggml.pre, and the pre-tokenizer that it means.
struct pretokenizer_name {
  short_name<20> name;
  pretokenizer kind;
  bool ignore_merges = false;  ///< a piece that is a token is that token, whatever the merges say
  bool adds_bos = false;       ///< unless the file says otherwise
};

/// The accepted values of tokenizer.ggml.pre. Files are written with the first one of a kind with the same two flags.
inline constexpr auto pretokenizer_names = std::to_array<pretokenizer_name>({
    {"llama-bpe", pretokenizer::llama_bpe, true, true},
    {"llama3", pretokenizer::llama_bpe, true, true},
    {"llama-v3", pretokenizer::llama_bpe, true, true},
    {"falcon3", pretokenizer::llama_bpe, true, true},
    {"falcon_e", pretokenizer::llama_bpe, true, true},
    {"falcon-h1", pretokenizer::llama_bpe, true, true},
    {"pixtral", pretokenizer::llama_bpe, true, true},
    {"midm-2.0", pretokenizer::llama_bpe, true, true},
    {"lfm2", pretokenizer::llama_bpe, true, true},
    {"smaug-bpe", pretokenizer::llama_bpe},
    {"dbrx", pretokenizer::llama_bpe},
    {"chatglm-bpe", pretokenizer::llama_bpe},
    {"glm4", pretokenizer::llama_bpe},
    {"qwen2", pretokenizer::qwen2},
    {"deepseek-r1-qwen", pretokenizer::qwen2},
    {"stablelm2", pretokenizer::qwen2},
    {"hunyuan", pretokenizer::qwen2},
    {"solar-open", pretokenizer::qwen2},
    {"megrez", pretokenizer::qwen2},
    {"kormo", pretokenizer::qwen2},
    {"f2llmv2", pretokenizer::qwen2},
    {"grok-2", pretokenizer::qwen2},
    {"bailingmoe", pretokenizer::qwen2},
    {"bailingmoe2", pretokenizer::qwen2},
    {"llada-moe", pretokenizer::qwen2},
    {"qwen35", pretokenizer::qwen35},
    {"gpt-2", pretokenizer::gpt2},
    {"phi-2", pretokenizer::gpt2},
    {"mpt", pretokenizer::gpt2},
    {"olmo", pretokenizer::gpt2},
    {"jais", pretokenizer::gpt2},
    {"trillion", pretokenizer::gpt2},
    {"granite-docling", pretokenizer::gpt2},
    {"exaone4", pretokenizer::gpt2},
    {"gigachat", pretokenizer::gpt2},
    {"a.x-4.0", pretokenizer::gpt2},
    {"mellum", pretokenizer::gpt2},
    {"modern-bert", pretokenizer::gpt2},
    {"jina-es", pretokenizer::gpt2},
    {"roberta-bpe", pretokenizer::gpt2},
    {"jina-de", pretokenizer::gpt2},
    {"jina-v2-es", pretokenizer::gpt2},
    {"jina-v2-de", pretokenizer::gpt2},
    {"starcoder", pretokenizer::starcoder},
    {"refact", pretokenizer::starcoder},
    {"command-r", pretokenizer::starcoder},
    {"smollm", pretokenizer::starcoder},
    {"codeshell", pretokenizer::starcoder},
    {"exaone", pretokenizer::starcoder},
    {"minerva-7b", pretokenizer::starcoder},
    {"mellum2", pretokenizer::starcoder},
    {"default", pretokenizer::unnamed},
    {"falcon", pretokenizer::falcon},
    {"gpt-4o", pretokenizer::gpt4o},
    {"llama4", pretokenizer::gpt4o},
    {"kanana2", pretokenizer::gpt4o},
    {"talkie", pretokenizer::gpt4o},
    {"minimax-m2", pretokenizer::gpt4o},
    {"tekken", pretokenizer::tekken, true, true},
    {"deepseek-v3", pretokenizer::deepseek_v3},
    {"hunyuan-dense", pretokenizer::deepseek_v3},
    {"joyai-llm", pretokenizer::deepseek_v3},
    {"hy_v4", pretokenizer::deepseek_v3},
    {"deepseek-coder", pretokenizer::deepseek_coder},
    {"seed-coder", pretokenizer::seed_coder},
    {"minicpm5", pretokenizer::minicpm5, true},
    {"ufakzeka", pretokenizer::ufakzeka},
    {"deepseek-llm", pretokenizer::deepseek_llm},
    {"kimi-k2", pretokenizer::kimi_k2},
    {"afmoe", pretokenizer::afmoe},  // llama.cpp takes other numbers for digits, and joins runs of several scripts
});

/// The row with this name; null where there is none.
constexpr const pretokenizer_name* find_pretokenizer(std::string_view name) {
  for (const auto& entry : pretokenizer_names)
    if (entry.name == name) return &entry;
  return nullptr;
}

/// The name to write for a kind: one with that flag where there is one.
constexpr const pretokenizer_name& name_of(pretokenizer kind, std::optional<bool> ignore_merges = std::nullopt) {
  const pretokenizer_name* first = nullptr;
  for (const auto& entry : pretokenizer_names) {
    if (entry.kind != kind) continue;
    if (entry.ignore_merges == ignore_merges.value_or(entry.ignore_merges)) return entry;
    if (first == nullptr) first = &entry;
  }
  return *first;
}

namespace hf {

/// The expression of Llama 3; `digits` is its third branch.
inline std::string llama3_expression(std::string_view digits) {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + std::string(digits) +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}
/// The expression of o200k; `suffix` follows each of its two forms of words.
[[gnu::cold]] inline std::string o200k_expression(std::string_view suffix, std::string_view digits) {
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])",
                    prefix = R"([^\r\n\p{L}\p{N}]?)", end(suffix);
  return prefix + upper + "*" + lower + "+" + end + "|" + prefix + upper + "+" + lower + "*" + end + "|" +
         std::string(digits) + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}
inline constexpr std::string_view gpt2_expression =  ///< the expression of GPT-2
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view each_number = R"(\p{N})", three_numbers = R"(\p{N}{1,3})";  ///< branches for digits
/// The last expression of DeepSeek-V3.
inline constexpr std::string_view deepseek_expression =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

/// The expressions of a pre-tokenizer's Split steps, in order. Single digits are written as \p{N}, a ByteLevel step as
/// its expression.
struct split_expressions {
  pretokenizer kind;
  std::vector<std::string> steps;
};
/// Expressions of Split steps by which tokenizer.json is recognised.
[[gnu::cold]] inline const std::vector<split_expressions>& known_splits() {
  const std::string contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
  static const std::vector<split_expressions> out{
      {pretokenizer::llama_bpe, {llama3_expression(three_numbers)}},
      {pretokenizer::qwen2, {llama3_expression(each_number)}},
      {pretokenizer::qwen2,  // Ling's spelling
       {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
      {pretokenizer::qwen35,
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)"
        R"(\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {pretokenizer::gpt2, {std::string(gpt2_expression)}},
      {pretokenizer::starcoder, {std::string(each_number), std::string(gpt2_expression)}},
      {pretokenizer::gpt4o, {o200k_expression(contractions, three_numbers)}},
      {pretokenizer::tekken, {o200k_expression("", each_number)}},
      {pretokenizer::deepseek_v3,
       {std::string(three_numbers), "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", std::string(deepseek_expression)}},
      {pretokenizer::deepseek_coder,
       {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+",
        std::string(each_number)}},
      {pretokenizer::deepseek_llm,
       {"[\r\n]", R"(\s?[)" + cased_letter_class() + "]+",
        "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+", R"(\s+$)",
        "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", std::string(each_number)}},
      {pretokenizer::seed_coder,
       {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|"
        "\\s+(?!\\S)|\\s+"}},
      {pretokenizer::minicpm5, {std::string(three_numbers), llama3_expression(R"(\p{N}+)")}},
      {pretokenizer::afmoe,  // chunks of 510 digits from the right have the groups of three that the whole run has
       {R"(\p{Nd}{1,510}(?=(?>\p{Nd}{510})*(?:\P{Nd}|$))|\G\p{Nd}{510})", R"(\A\p{Nd}{1,2}(?=\p{Nd}{3}+\z))",
        R"(\A\p{Nd}{3}|\G\p{Nd}{3})",
        R"((?:[\u4E00-\u9FFF\u3040-\u309F\u30A0-\u30FF\u3400-\u4DBF\uf900-\uFAFF\uFF65-\uFF9F\u2F00-\u2FDF]+|)"
        R"([\u0E00-\u0E7F]+|[\u0E80-\u0EFF]+|[\u1780-\u17FF]+|[\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF]+|)"
        R"([\uAC00-\uD7AF\u1100-\u11FF]+))",
        std::string(deepseek_expression)}},
      {pretokenizer::ufakzeka,
       {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
  };
  return out;
}

}  // namespace hf

}  // namespace intaglio::io
