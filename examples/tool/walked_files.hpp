// SPDX-License-Identifier: MIT
// What the walk commands open: a model, its plan, an index of it with its journal, and words.
#pragma once

#include "commands.hpp"
#include "console.hpp"
#include "engraved_models.hpp"
#include "model_file.hpp"

#include <intaglio/io/feature_index_build.hpp>
#include <intaglio/io/prompt.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/walked_model.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace intaglio::tool {

/// The files of a walk, opened and checked against each other.
struct walked_files {
  io::checkpoint_features source;
  cache_choice caches;  ///< those of the plan
  const engraved_model& plans;
  io::feature_index index;
  io::feature_patch patch;
  std::optional<io::tokenizer> words;

  /// @throws file_error, mismatch_error for an index of another model, interrupted
  walked_files(const model_options& model, const std::string& folder, bool writes)
      : source(open_model(model), codec_of(folder), 0), plans(engraved_model_of(source.model(), caches, model.codec)),
        index(opened(folder)), patch(index, index.path() / io::feature_patch::default_file, writes) {
    judge_codecs(source.model(), plans, model.codec);
    if (auto lines = index.differences(source.config()); !lines.empty())
      throw mismatch_error((index.path() / io::feature_index_file).string(), std::move(lines), {});
    for (std::uint32_t layer = 0; layer < index.layers(); ++layer) source.expect_agreement(index, layer);
    if (source.model().vocabulary()) words.emplace(*source.model().vocabulary(), source.config().vocab_size);
  }
  const io::checkpoint& model() const { return source.model(); }

  /// Ids of a text after the model's BOS, or of a list of ids. @throws argument_error: none, or too many for the
  /// context
  std::vector<std::uint32_t> ids(const std::optional<std::string>& text, const std::optional<std::string>& list) const {
    std::vector<std::int32_t> found;
    if (list) found = parse_ids(*list);
    else found = io::encode_prompt(open_tokenizer(model()), text.value_or("Once upon a time"));
    std::vector<std::uint32_t> out;
    for (const std::int32_t id : found) {
      if (static_cast<std::uint32_t>(id) >= source.config().vocab_size)
        throw argument_error("token", "a token of " + std::to_string(source.config().vocab_size), std::to_string(id));
      out.push_back(static_cast<std::uint32_t>(id));
    }
    if (out.empty() || out.size() > plans.cpu.context)
      throw argument_error("prompt", "1 to " + std::to_string(plans.cpu.context) + " tokens",
                           std::to_string(out.size()));
    return out;
  }
  /// A token's text as people read it; bytes that are no UTF-8 by themselves are U+FFFD.
  std::string piece(std::uint32_t token) const {
    if (!words) return "#" + std::to_string(token);
    std::string out;
    io::append_replacing_invalid(out, words->piece(static_cast<std::int32_t>(token)));
    return out;
  }

 private:
  static std::optional<dtype> codec_of(const std::string& folder) {
    const std::string codec = io::read_feature_manifest(platform::path_of(folder)).codec;
    return codec == "own" ? std::nullopt : io::feature_type_from_name(codec);
  }
  static io::feature_index opened(const std::string& folder) {
    progress_bar bar("checking");
    return io::feature_index::open(
        platform::path_of(folder), {.progress = [&](const io::file_progress& at) {
          bar.show(
              at.total_bytes == 0 ? 0 : static_cast<double>(at.bytes) / static_cast<double>(at.total_bytes),
              bytes_text(static_cast<double>(at.bytes)) + " of " + bytes_text(static_cast<double>(at.total_bytes)));
          graceful_stop::look();
        }});
  }
};

/// For what knows one FFN a layer. @throws argument_error for a mixture, which names the option and what there is
/// instead
inline void expect_one_ffn(const decoder_config& c, const char* option, const char* instead) {
  if (c.num_local_experts != 0)
    throw argument_error(option, std::string("a model with one FFN a layer; of a mixture ") + instead,
                         std::to_string(c.num_local_experts) + " experts a layer");
}

/// Features of a layer that a token's walk looks at, all of them: of a mixture those of its experts.
inline std::uint32_t features_of_token(const decoder_config& c) {
  return c.intermediate_size * std::max(1u, c.num_experts_per_tok);
}

inline std::uint32_t most_probable(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin());
}

/// The `count` largest, largest first.
inline std::vector<std::uint32_t> largest(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> out(values.size());
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  count = std::min(count, out.size());
  std::partial_sort(
      out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(),
      [&](std::uint32_t a, std::uint32_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  out.resize(count);
  return out;
}

/// Greedy continuation of the ids by `count` tokens, or until the model ends. @param choice nullptr: dense
inline std::vector<std::uint32_t> continued(const walked_files& files, runtime::walked_model& model,
                                            std::vector<std::uint32_t> ids, std::uint32_t count,
                                            const reference::walk_choice* choice) {
  model.restart();
  const std::size_t whole = std::min<std::size_t>(ids.size() + count, model.table().context);
  for (std::size_t i = 0; i < ids.size() && ids.size() < whole; ++i) {
    const std::uint32_t next = most_probable(model.feed(ids[i], choice));
    if (i + 1 != ids.size()) continue;
    if (files.words && files.words->is_end_of_generation(static_cast<std::int32_t>(next))) break;
    ids.push_back(next);
  }
  return ids;
}

}  // namespace intaglio::tool
