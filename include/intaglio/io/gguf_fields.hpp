// SPDX-License-Identifier: MIT
// The keys of a GGUF file under its architecture, and the config that is read from them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/pooling.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_keys.hpp"
#include "intaglio/io/model_config.hpp"

namespace intaglio::io {

/// A GGUF file, and the config that is read from it.
class gguf_fields {
 public:
  explicit gguf_fields(const gguf& file) : file_(file) {}

  const decoder_config& config() const { return config_; }
  const std::string& stated_architecture() const { return architecture_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Number of layers after the last one that draft tokens and are not read.
  std::uint32_t draft_layers() const { return draft_layers_; }
  /// The pooling of embeddings; absent where the file does not state it.
  std::optional<intaglio::pooling> pooling() const { return pooling_; }

 protected:
  [[gnu::cold]] void not_used(std::initializer_list<std::string_view> tails, std::string_view why) {
    for (const std::string_view tail : tails)
      if (file_.first().find(key(tail)) != nullptr) warn("key '" + key(tail) + "' is not used: " + std::string(why));
  }

  std::string key(std::string_view tail) const { return architecture_ + "." + std::string(tail); }
  std::optional<std::uint32_t> value(std::string_view tail) const { return file_.number<std::uint32_t>(key(tail)); }
  std::optional<float> real(std::string_view tail) const { return file_.value<float>(key(tail)); }
  std::uint32_t required(std::string_view tail) const {
    const auto found = value(tail);
    if (!found) refuse(key(tail), "a number", "no such key");
    return *found;
  }
  /// A number that is equal for all layers; the file states it once, or once for each layer.
  std::optional<std::uint32_t> for_layers(std::string_view tail) const {
    const std::string name = key(tail);
    const gguf_value* stored = file_.first().find(name);
    if (stored == nullptr || stored->type != gguf_type::array) return value(tail);
    const std::vector<std::uint32_t> each = *file_.numbers<std::uint32_t>(name);
    if (each.size() != config_.num_hidden_layers || each.empty())
      refuse(name, std::to_string(config_.num_hidden_layers) + " numbers as " + key("block_count"),
             std::to_string(each.size()));
    const auto other = std::find_if(each.begin(), each.end(), [&](std::uint32_t n) { return n != each.front(); });
    if (other != each.end())
      refuse(name, "one number for all layers",
             std::to_string(each.front()) + " and, in layer " + std::to_string(other - each.begin()) + ", " +
                 std::to_string(*other));
    return each.front();
  }
  std::uint32_t required_for_layers(std::string_view tail) const {
    const auto found = for_layers(tail);
    if (!found) refuse(key(tail), "a number", "no such key");
    return *found;
  }
  /// Whether the file has one of these tensors.
  bool has_one_of(std::initializer_list<std::string_view> names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return file_.find_tensor(name) != nullptr; });
  }
  /// The number of tokens: a key's, or the rows of the embedding.
  std::uint32_t vocab_size() const {
    const gguf_tensor* embedding = file_.find_tensor("token_embd.weight");
    if (const auto stated = value("vocab_size")) return *stated;
    if (embedding == nullptr) refuse(key("vocab_size"), "a number", "no such key");
    if (embedding->rows() > config_limits::vocab_size)
      refuse("rows of token_embd.weight", "at most " + std::to_string(config_limits::vocab_size),
             std::to_string(embedding->rows()));
    return static_cast<std::uint32_t>(embedding->rows());
  }
  /// Whether the file has its embedding a second time as the head.
  bool head_is_embedding() const {
    const gguf_tensor *embedding = file_.find_tensor("token_embd.weight"), *head = file_.find_tensor("output.weight");
    if (embedding == nullptr || embedding->type != head->type || embedding->shape != head->shape) return false;
    std::vector<std::byte> one(std::size_t{1} << 20), other(one.size());
    for (std::uint64_t at = 0; at < head->bytes; at += one.size()) {
      const auto some = static_cast<std::size_t>((std::min<std::uint64_t>)(one.size(), head->bytes - at));
      file_.parts()[embedding->part].file().read(embedding->offset + at, std::span(one).first(some));
      file_.parts()[head->part].file().read(head->offset + at, std::span(other).first(some));
      if (!std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(some), other.begin())) return false;
    }
    return true;
  }
  void warn(const std::string& line) { warnings_.push_back(in_file(file_.path(), line)); }
  [[noreturn]] void refuse(std::string_view what, std::string expected, std::string found) const {
    const gguf_value* at = file_.first().find(what);
    throw file_error(file_.path(), at == nullptr ? std::nullopt : std::optional(at->offset),
                     "key '" + std::string(what) + "'", std::move(expected), std::move(found));
  }

  const gguf& file_;
  std::string architecture_;
  decoder_config config_;
  std::uint32_t draft_layers_ = 0;
  std::optional<intaglio::pooling> pooling_;
  std::vector<std::string> warnings_;
};

}  // namespace intaglio::io
