// SPDX-License-Identifier: MIT
// Builds an opened model from the parts that the readers of each form find, and checks its list of tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/tensor_rules.hpp"

namespace intaglio::io {

/// Builds a checkpoint and checks its tensor list. The readers of each form use it.
class checkpoint_builder {
 public:
  checkpoint_builder(std::string path, const checkpoint_options& options) {
    out_.path_ = std::move(path);
    out_.options_ = options;
  }

  decoder_config& config() { return out_.config_; }
  std::string& stated_architecture() { return out_.stated_architecture_; }
  std::optional<io::vocabulary>& vocabulary() { return out_.vocabulary_; }
  std::optional<intaglio::pooling>& pooling() { return out_.pooling_; }
  /// Notes that the files do not state max_position_embeddings: the config's value is a guess, and an engraved model
  /// may have another.
  void context_unstated() { out_.states_context_ = false; }
  void checksums(const mapped_file* file, const std::vector<zip_member>& members) {
    for (const zip_member& member : members) out_.checksums_.push_back({file, member});
  }
  /// Adds a warning about the model, with its file or folder in front.
  void warn(std::string_view line) { add_warning(in_file(out_.path_, line)); }
  /// Adds a warning that already names its file.
  void add_warning(std::string line) { out_.warnings_.push_back(std::move(line)); }
  void fault(std::string line) { faults_.push_back(std::move(line)); }
  /// Notes that the config says that there are biases.
  void biases_stated() { biases_stated_ = true; }

  const mapped_file* adopt(mapped_file file) {
    return out_.files_.emplace_back(std::make_unique<mapped_file>(std::move(file))).get();
  }
  /// Keeps bytes that are in no file, for tensors of them. @param name what messages call them
  const mapped_file* hold(std::vector<std::byte> bytes, std::string name) {
    out_.held_.push_back(std::move(bytes));
    return adopt(mapped_file::from_memory(out_.held_.back(), std::move(name)));
  }
  /// Adds a tensor of the file under its GGUF name.
  void add(checkpoint_tensor tensor) {
    const std::string name = tensor.stored.name;
    if (const auto [at, added] = found_.try_emplace(name, std::move(tensor)); !added)
      fault("'" + printable(name, 70) + "' is there twice, as '" + printable(at->second.stored_name, 100) + "' too");
  }
  checkpoint_tensor* find(const std::string& name) {
    const auto at = found_.find(name);
    return at == found_.end() ? nullptr : &at->second;
  }

  /// Compares the tensors with those that the config requires. @throws file_error with all differences at once
  checkpoint finish() && {
    check_config(out_.config_, out_.path_);
    const std::vector<tensor_rule> rules = tensor_rules(out_.config_);
    if (family_of(out_.config_.model_type).plain_norms) add_ones(rules);
    std::size_t unread = 0;
    std::string first_unread;
    for (const tensor_rule& rule : rules) {
      const auto at = found_.find(rule.name);
      if (at == found_.end()) {
        if (!rule.optional) fault("missing: " + rule.name + " " + shape(rule.rows, rule.columns, rule.role));
        continue;
      }
      checkpoint_tensor tensor = std::move(at->second);
      found_.erase(at);
      tensor.role = rule.role;
      if (!judge(tensor, rule)) continue;
      if (rule.unused) {
        if (rule.name == "output.weight")
          warn(rule.name + " is ignored: the model's head is its embedding" +
               (is_alike(tensor, out_.tensors_) ? "" : ", which has other values"));
        else if (rule.name.starts_with("blk.") && unread++ == 0) first_unread = rule.name;
      } else if (rule.role == tensor_role::factor) apply_factor(tensor);
      else out_.tensors_.push_back(std::move(tensor));
    }
    if (unread != 0)
      warn(std::to_string(unread) +
           " tensors of layers that use another layer's keys and values are ignored, the first: " + first_unread);
    take_zero_biases(rules);
    for (const auto& [name, tensor] : found_) fault("not part of the model: " + printable(tensor.stored_name, 100));
    if (!faults_.empty()) refuse();
    for (std::size_t i = 0; i < out_.tensors_.size(); ++i) out_.by_name_.emplace(out_.tensors_[i].stored.name, i);
    return std::move(out_);
  }

  /// Finishes a checkpoint that has packed weights instead of tensors.
  checkpoint finish_packed(packed_image image) && {
    out_.packed_ = std::move(image);
    return std::move(out_);
  }

 private:
  /// Adds ones for the weights of norms that have none.
  void add_ones(const std::vector<tensor_rule>& rules) {
    static const std::vector<float> ones(static_cast<std::size_t>(config_limits::hidden_size), 1.f);
    const mapped_file* const file = adopt(mapped_file::from_memory(std::as_bytes(std::span(ones)), "ones"));
    for (const tensor_rule& rule : rules) {
      if (rule.role != tensor_role::norm) continue;
      checkpoint_tensor tensor;
      tensor.stored_name = rule.name;
      tensor.dimensions = 1;
      tensor.stored = {rule.name, dtype::f32, 1, rule.columns, file, 0, rule.columns * sizeof(float)};
      add(std::move(tensor));
    }
  }
  static std::string shape(std::uint64_t rows, std::uint64_t columns, tensor_role role) {
    return "[" + (is_vector(role) ? "" : std::to_string(rows) + ", ") + std::to_string(columns) + "]";
  }
  bool judge(const checkpoint_tensor& tensor, const tensor_rule& rule) {
    const stored_tensor& stored = tensor.stored;
    // A matrix of one row may come without that dimension (ffn_gate_inp_shexp of llama.cpp's converter).
    const bool one_row = rule.rows == 1 && rule.experts == 0 && tensor.dimensions == 1;
    const bool same = stored.rows == rule.rows && stored.columns == rule.columns &&
                      (one_row || tensor.dimensions == (is_vector(rule.role) ? 1u
                                                        : rule.experts != 0  ? 3u
                                                                             : 2u));
    const std::string name = printable(tensor.stored_name, 100);
    if (!same) {
      std::string found = tensor.dimensions == 1 ? "[" + std::to_string(stored.columns) + "]"
                                                 : shape(stored.rows, stored.columns, tensor_role::matrix);
      if (tensor.dimensions > 2) found += " of " + std::to_string(tensor.dimensions) + " dimensions";
      fault("shape of " + name + ": expected " + shape(rule.rows, rule.columns, rule.role) + ", found " + found);
    }
    if (is_ternary(out_.config_) && rule.role == tensor_role::matrix && !tensor.pieces.empty())
      fault("rows of " + name + ": expected one after the other, found strides");
    const bool typed = is_accepted(out_.config_, rule.role, stored.type);
    if (!typed)
      fault("type of " + name + ": expected " + accepted_types(out_.config_, rule.role) + ", found " +
            std::string(intaglio::name(stored.type)));
    return same && typed;
  }

  /// Whether a head's row in the middle is that of the embedding, the first of the tensors, or is not looked at.
  [[gnu::cold]] static bool is_alike(const checkpoint_tensor& head, const std::vector<checkpoint_tensor>& tensors) {
    const stored_tensor* const embedding = tensors.empty() ? nullptr : &tensors.front().stored;
    if (embedding == nullptr || embedding->name != "token_embd.weight" || embedding->type != head.stored.type ||
        !tensors.front().in_place() || !head.in_place())
      return true;
    std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(head.stored.type, head.stored.columns)));
    std::vector<std::byte> other(row.size());
    const std::uint64_t middle = head.stored.rows / 2 * row.size();
    head.stored.file->read(head.stored.offset + middle, row);
    embedding->file->read(embedding->offset + middle, other);
    return row == other;
  }

  /// Applies a factor: blk.N.*.scale belongs to the blk.N.*.weight just before it.
  void apply_factor(const checkpoint_tensor& tensor) {
    float factor = 0.f;
    tensor.stored.file->read(tensor.stored.offset, std::as_writable_bytes(std::span(&factor, 1)));
    if (!(factor > 0.f) || !std::isfinite(factor))
      throw file_error(tensor.stored.file->path(), tensor.stored.offset,
                       "tensor '" + printable(tensor.stored_name, 70) + "'", "a finite number above 0",
                       number_text(factor));
    const std::string owner =
        tensor.stored.name.substr(0, tensor.stored.name.size() - std::string_view("scale").size()) + "weight";
    if (!out_.tensors_.empty() && out_.tensors_.back().stored.name == owner) out_.tensors_.back().factor = factor;
    else fault("a factor without its matrix: " + printable(tensor.stored_name, 100));
  }

  /// Handles biases that the family does not have; llama.cpp and transformers add biases that a file has. Zeros change
  /// nothing and are left out with a warning; any other value is a difference.
  void take_zero_biases(const std::vector<tensor_rule>& rules) {
    constexpr std::string_view ending = ".bias";
    std::map<std::string, const tensor_rule*, std::less<>> owners;
    for (const tensor_rule& rule : rules) owners.emplace(rule.name, &rule);
    std::size_t zeros = 0;
    std::string first;
    for (auto at = found_.begin(); at != found_.end();) {
      const std::string& name = at->first;
      const auto owner =
          name.ends_with(ending) ? owners.find(name.substr(0, name.size() - ending.size()) + ".weight") : owners.end();
      if (owner == owners.end() || owner->second->role == tensor_role::factor) {
        ++at;
        continue;
      }
      const tensor_rule& rule = *owner->second;
      if (is_zero_bias(at->second, rule.role == tensor_role::norm ? rule.columns : rule.rows) && zeros++ == 0)
        first = printable(at->second.stored_name, 100);
      at = found_.erase(at);
    }
    if (zeros != 0)
      warn(std::to_string(zeros) + (zeros == 1 ? " bias is zeros and is" : " biases are zeros and are") +
           " left out, the first: " + first);
    else if (biases_stated_ && !has_qkv_biases(out_.config_))
      fault("the config states biases, of which the files have none");
  }
  /// @param size of the vector @return false after a fault
  bool is_zero_bias(const checkpoint_tensor& tensor, std::uint64_t size) {
    const stored_tensor& stored = tensor.stored;
    const std::string shown = "bias " + printable(tensor.stored_name, 100);
    if (tensor.dimensions != 1 || stored.columns != size ||
        !is_accepted(out_.config_, tensor_role::norm, stored.type) || !tensor.pieces.empty())
      return fault(shown + ": expected " + std::to_string(size) + " values of f32, f16 or bf16 in one row, found " +
                   std::to_string(stored.columns) + " of " + std::string(intaglio::name(stored.type))),
             false;
    std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(stored.type, size)));
    std::vector<float> values(static_cast<std::size_t>(size));
    stored.file->read(stored.offset, bytes);
    decode_row(stored.type, bytes, values);
    const auto other = std::find_if(values.begin(), values.end(), [](float value) { return value != 0.f; });
    if (other == values.end()) return true;
    return fault(shown + ": expected none, or zeros, found " + number_text(*other) + " as value " +
                 std::to_string(other - values.begin())),
           false;
  }

  [[noreturn]] void refuse() {
    const std::size_t count = faults_.size();
    const std::string text = "the tensors do not fit the model's config (" + std::to_string(count) +
                             (count == 1 ? " difference): " : " differences), the first: ") + faults_.front();
    throw file_error(out_.path_, std::nullopt, text, {}, {}, std::move(faults_));
  }

  checkpoint out_;
  std::map<std::string, checkpoint_tensor> found_;
  std::vector<std::string> faults_;
  bool biases_stated_ = false;
};

/// Takes a part of a tensor that a file holds with others.
using part_receiver = std::function<void(checkpoint_tensor)>;

}  // namespace intaglio::io
