// SPDX-License-Identifier: MIT
// Opens a folder in Meta's or Mistral's own form as a checkpoint: params.json, consolidated.NN.pth, tokenizer.model.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/original_names.hpp"
#include "intaglio/io/params_json.hpp"
#include "intaglio/io/torch_file.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// Joins the tensors of consolidated.*.pth, which were split for tensor parallelism. Matrices are split by rows or by
/// columns, whichever gives the shape that the config requires; every shard has all vectors.
class original_tensor_collector {
 public:
  original_tensor_collector(checkpoint_builder& builder, const decoder_config& config)
      : builder_(builder), config_(config) {}

  /// Adds shards, in their order.
  void add(const torch_file& shard, const mapped_file* file) {
    for (const torch_tensor& tensor : shard.tensors()) {
      if (is_rotary_table(tensor.name)) continue;
      if (const auto expert = expert_of_original(tensor.name); expert && config_.num_local_experts != 0) {
        if (expert->number < config_.num_local_experts)
          experts_[expert->gguf][expert->number].push_back({&tensor, file});
        else builder_.fault("not part of the model: " + printable(tensor.name, 100));
      } else if (const auto name = gguf_name_of_original(tensor.name)) found_[*name].push_back({&tensor, file});
      else builder_.fault("not part of the model: " + printable(tensor.name, 100));
    }
    ++shards_;
  }

  void finish() {
    std::map<std::string, const tensor_rule*, std::less<>> rules;
    const std::vector<tensor_rule> all = tensor_rules(config_);
    for (const tensor_rule& rule : all) rules.emplace(rule.name, &rule);
    for (const auto& [name, parts] : found_) {
      const auto rule = rules.find(name);
      if (auto joined = join(name, parts, rule == rules.end() ? 0 : rule->second->rows,
                             rule == rules.end() ? 0 : rule->second->columns))
        builder_.add(std::move(*joined));
    }
    for (const auto& [name, matrices] : experts_) add_experts(name, matrices);
  }

 private:
  struct part {
    const torch_tensor* tensor;
    const mapped_file* file;
  };

  /// Joins each expert's matrix of a layer, then all of them into one tensor.
  [[gnu::cold]] void add_experts(const std::string& name, const std::map<std::uint32_t, std::vector<part>>& matrices) {
    if (matrices.size() != config_.num_local_experts)
      return builder_.fault("experts of " + printable(name, 100) + ": expected " +
                            std::to_string(config_.num_local_experts) + ", found " + std::to_string(matrices.size()));
    const bool down = name.ends_with("ffn_down_exps.weight");
    const std::uint64_t rows = down ? config_.hidden_size : config_.intermediate_size,
                        columns = down ? config_.intermediate_size : config_.hidden_size;
    std::optional<checkpoint_tensor> all;
    for (const auto& [number, parts] : matrices) {
      auto one = join(name, parts, rows, columns);
      if (!one) return;
      const std::string shown = printable(parts.front().tensor->name, 100);
      if (one->dimensions != 2 || one->stored.rows != rows || one->stored.columns != columns)
        return builder_.fault("shape of " + shown + ": expected [" + std::to_string(rows) + ", " +
                              std::to_string(columns) + "], found [" + std::to_string(one->stored.rows) + ", " +
                              std::to_string(one->stored.columns) + "]");
      if (all && one->stored.type != all->stored.type)
        return builder_.fault("type of " + shown + ": expected that of the other experts, " +
                              std::string(intaglio::name(all->stored.type)) + ", found " +
                              std::string(intaglio::name(one->stored.type)));
      if (one->pieces.empty())
        one->pieces.push_back({.file = parts.front().file,
                               .offset = one->stored.offset,
                               .rows = rows,
                               .columns = columns,
                               .row_stride = columns});
      for (tensor_piece& piece : one->pieces) piece.row0 += number * rows;
      if (!all) {
        all = std::move(one);
        all->stored_name = name;
        all->dimensions = 3;
        all->stored.rows = rows * config_.num_local_experts;
        all->stored.bytes *= config_.num_local_experts;
      } else {
        all->pieces.insert(all->pieces.end(), one->pieces.begin(), one->pieces.end());
      }
    }
    builder_.add(std::move(*all));
  }

  /// @param wanted_rows, wanted_columns of the whole matrix, which say how it was split; 0: not known
  [[gnu::cold]] std::optional<checkpoint_tensor> join(const std::string& name, const std::vector<part>& parts,
                                                      std::uint64_t wanted_rows, std::uint64_t wanted_columns) {
    const auto fault = [&](const std::string& what) -> std::optional<checkpoint_tensor> {
      builder_.fault(what);
      return std::nullopt;
    };
    const torch_tensor& first = *parts.front().tensor;
    const std::string shown = printable(first.name, 100);
    if (!first.type)
      return fault("type of " + shown + ": found " + std::string(first.stored_type) + ", which is not read");
    if (first.shape.empty() || first.shape.size() > 2 || first.bytes == 0)
      return fault("shape of " + shown + ": expected 1 or 2 dimensions above 0, found " + shape_text(first.shape));
    if (parts.size() != shards_)
      return fault(shown + ": expected in each of " + std::to_string(shards_) + " shards, found in " +
                   std::to_string(parts.size()));
    for (const part& each : parts)
      if (each.tensor->shape != first.shape || each.tensor->type != first.type)
        return fault(shown + ": expected alike in all shards, found " + shape_text(first.shape) + " and " +
                     shape_text(each.tensor->shape) + " of " + std::string(each.tensor->stored_type));
    checkpoint_tensor out;
    out.stored_name = first.name;
    out.dimensions = static_cast<std::uint32_t>(first.shape.size());
    const bool matrix = out.dimensions == 2;
    std::uint64_t rows = matrix ? first.shape[0] : 1, columns = first.shape.back();
    if (parts.size() == 1 || !matrix) {
      for (const part& each : parts)
        if (!same_values(parts.front(), each))
          return fault(shown + ": expected the same values in all shards, found others in " +
                       printable(each.file->path(), 100));
      out.pieces = pieces_of(first, parts.front().file);
    } else {
      const std::uint64_t count = parts.size();
      const bool by_columns = wanted_rows == rows && wanted_columns == columns * count;
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto& [tensor, file] = parts[static_cast<std::size_t>(i)];
        out.pieces.push_back({file, tensor->offset, by_columns ? 0 : i * rows, rows, by_columns ? i * columns : 0,
                              columns, tensor->strides[0], tensor->strides[1]});
      }
      (by_columns ? columns : rows) *= count;
    }
    out.stored = {
        name, *first.type, rows, columns, parts.front().file, first.offset, rows * columns * first.element_bytes};
    if (name.ends_with(".attn_q.weight") || name.ends_with(".attn_k.weight")) out.rows_in_pairs = config_.head_dim;
    return out;
  }

  static bool same_values(const part& a, const part& b) {
    if (a.tensor == b.tensor) return true;
    if (!a.tensor->contiguous() || !b.tensor->contiguous()) return false;
    std::vector<std::byte> one(static_cast<std::size_t>((std::min<std::uint64_t>)(a.tensor->bytes, 1 << 20))),
        other(one.size());
    for (std::uint64_t at = 0; at < a.tensor->bytes; at += one.size()) {
      const auto some = static_cast<std::size_t>((std::min<std::uint64_t>)(one.size(), a.tensor->bytes - at));
      a.file->read(a.tensor->offset + at, std::span(one).first(some));
      b.file->read(b.tensor->offset + at, std::span(other).first(some));
      if (!std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(some), other.begin())) return false;
    }
    return true;
  }

  checkpoint_builder& builder_;
  const decoder_config& config_;
  std::map<std::string, std::vector<part>> found_;
  std::map<std::string, std::map<std::uint32_t, std::vector<part>>> experts_;  ///< by GGUF's name and number
  std::size_t shards_ = 0;
};

/// The files consolidated.00.pth, consolidated.01.pth, ... of a folder. @throws file_error: none, or one is missing
[[gnu::cold]] inline std::vector<std::filesystem::path> consolidated_files(const std::filesystem::path& folder) {
  constexpr std::size_t most = 64;
  const auto numbered = [&](std::size_t i) {
    return folder / platform::path_of("consolidated." + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".pth");
  };
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  while (out.size() < most && std::filesystem::exists(numbered(out.size()), ignored))
    out.push_back(numbered(out.size()));
  if (out.empty() && std::filesystem::exists(folder / "consolidated.pth", ignored))
    out.push_back(folder / "consolidated.pth");
  std::size_t all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("consolidated.") && name.ends_with(".pth")) ++all;
  }
  if (out.empty())
    throw file_error(folder.string(), std::nullopt, "no weights in this folder", "consolidated.00.pth",
                     all == 0 ? "none" : "others");
  if (out.size() != all)
    throw file_error(folder.string(), std::nullopt, "shards are missing",
                     std::to_string(all) + " from consolidated.00.pth on",
                     printable(out.back().filename().string(), 60) + " is the last in order");
  return out;
}

/// Rows of the embedding in all shards, for a file that leaves vocab_size to the tokenizer.
inline std::uint64_t embedding_rows(const std::vector<torch_file>& shards, std::uint32_t hidden_size) {
  for (const torch_tensor& tensor : shards.front().tensors())
    if (tensor.name == "tok_embeddings.weight" && tensor.shape.size() == 2)
      return tensor.shape[1] == hidden_size ? tensor.shape[0] * shards.size() : tensor.shape[0];
  return 0;
}

[[gnu::cold]] inline checkpoint checkpoint::open_original(const std::filesystem::path& folder,
                                                          const checkpoint_options& options) {
  checkpoint_builder builder(folder.string(), options);
  original_params params = read_params_json(folder / "params.json");
  for (const std::string& line : params.warnings) builder.add_warning(line);
  std::vector<torch_file> shards;
  for (const auto& path : consolidated_files(folder)) shards.emplace_back(mapped_file(path));
  decoder_config& config = params.config;
  if (!params.states_vocabulary) {
    const std::uint64_t rows = embedding_rows(shards, config.hidden_size);
    if (rows == 0 || rows > config_limits::vocab_size)
      throw file_error((folder / "params.json").string(), std::nullopt,
                       "vocab_size, or the rows of tok_embeddings.weight",
                       "1 to " + std::to_string(config_limits::vocab_size), std::to_string(rows));
    config.vocab_size = static_cast<std::uint32_t>(rows);
  }
  const auto& first = shards.front().tensors();
  const bool has_head =
      std::any_of(first.begin(), first.end(), [](const auto& tensor) { return tensor.name == "output.weight"; });
  config.tie_word_embeddings = params.tied.value_or(!has_head);
  check_config(config, (folder / "params.json").string());
  builder.config() = config;
  builder.stated_architecture() = "llama";
  if (!params.states_context) builder.context_unstated();
  original_tensor_collector collector(builder, config);
  std::vector<const mapped_file*> files;
  for (torch_file& shard : shards) {
    files.push_back(builder.adopt(std::move(shard).release_file()));  // its lists stay valid
    builder.checksums(files.back(), shard.members());
  }
  for (std::size_t i = 0; i < shards.size(); ++i) collector.add(shards[i], files[i]);
  collector.finish();
  read_folder_vocabulary(folder, builder);
  return std::move(builder).finish();
}

}  // namespace intaglio::io
