// SPDX-License-Identifier: MIT
// Rewrites a model in another codec, as GGUF or, in a float type, as safetensors. The new file appears as a whole or
// not at all.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/bare_names.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/convert_chunk.hpp"
#include "intaglio/io/convert_options.hpp"
#include "intaglio/io/convert_rules.hpp"
#include "intaglio/io/file_progress.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/gguf_model_keys.hpp"
#include "intaglio/io/gguf_order.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/ordered_work.hpp"
#include "intaglio/io/own_files.hpp"
#include "intaglio/io/safetensors_writer.hpp"
#include "intaglio/io/xielu_keys.hpp"

namespace intaglio::io {

/// The steps of convert: the keys, the plan of tensors (convert_rules.hpp), their rows on many threads
/// (convert_chunk.hpp), and the report. A tensor that already has its type is copied.
class model_converter {
 public:
  model_converter(const std::filesystem::path& in, const std::filesystem::path& out, const convert_options& options)
      : options_(options), model_(checkpoint::open(in, {options.layout})) {
    if (model_.packed() != nullptr)
      throw file_error(model_.path(), 0, "packed file",
                       "the model that it was packed from: its tensors are not here as they were", "weights of plans");
    expect_other_file(model_, out);
    if (out.extension() == ".safetensors") check_safetensors(out);
    if (has_gguf_order(family_of(model_.config().model_type))) ordered_ = tensors_in_gguf_order(model_);
    report_.warnings = model_.warnings();
    if (out.extension() == ".safetensors") safetensors_.emplace(out);
    else gguf_.emplace(out);
    rules_.emplace(options_, model_, safetensors_.has_value(), report_.warnings);
    rules_->check();
    if (gguf_) write_keys(model_at(in));
    plan_tensors();
  }

  model_converter(const model_converter&) = delete;
  model_converter& operator=(const model_converter&) = delete;

  convert_report run() {
    gguf_ ? gguf_->begin() : safetensors_->begin();
    const unsigned threads = worker_threads(options_.threads);
    std::vector<chunk_buffer> buffers(threads == 1 ? 1 : 2 * std::size_t{threads});
    if (gguf_)
      for (const auto& [name, factors] : gguf_rope_factors(model_)) gguf_->write(std::as_bytes(std::span(factors)));
    ordered_work(
        threads, buffers.size(), chunks_.size(),
        [&](std::size_t item, std::size_t slot) { encoder_.make(chunks_[item], buffers[slot]); },
        [&](std::size_t item, std::size_t slot) { take(chunks_[item], buffers[slot]); });
    report("");
    warn_rounded();
    model_.expect_unchanged();
    gguf_ ? gguf_->finish() : safetensors_->finish();
    return std::move(report_);
  }

 private:
  /// @error argument_error: a model that this library does not write as safetensors
  void check_safetensors(const std::filesystem::path& out) const {
    const recurrence kind = family_of(model_.config().model_type).recurrent;
    if (kind == recurrence::delta_net || kind == recurrence::mamba2)
      throw argument_error("output", "a .gguf for " + printable(model_.stated_architecture()), printable(out.string()));
    if (const renamed_tensors* row = renamed_row(model_.stated_architecture()); row != nullptr && !row->written)
      throw argument_error(
          "output",
          "a .gguf for " + printable(model_.stated_architecture()) + ", whose folders have q, k and v as one matrix",
          printable(out.string()));
    if (model_.stated_architecture() == "xlm-roberta" || model_.stated_architecture() == "roberta")
      throw argument_error(
          "output",
          "a .gguf for " + printable(model_.stated_architecture()) + ", whose first rows of positions are not read",
          printable(out.string()));
    if (model_.config().dense_features != 0)
      throw argument_error("output", "a .gguf for a model whose last products are in files of their own",
                           printable(out.string()));
    if (model_.config().num_local_experts != 0)
      throw argument_error("output", "a .gguf for a mixture of experts, whose tensors hold all experts",
                           printable(out.string()));
  }
  static constexpr std::uint64_t chunk_elements = 1 << 18;

  void write_keys(const std::filesystem::path& in) {
    std::error_code ignored;
    if (std::filesystem::is_directory(in, ignored) || stands_for_folder(in)) {
      std::vector<std::string> unsaid;
      write_model_keys(*gguf_, model_, unsaid);
      write_xielu(*gguf_, model_);
      for (const std::string& line : unsaid) warn(line);
    } else {
      const gguf file = gguf::open(in);
      for (const gguf_value& value : file.first().values())
        if (value.key != "general.file_type" && value.key != "general.alignment" && !value.key.starts_with("split.") &&
            !is_latent_width(value.key))
          gguf_->copy(file.first(), value);
      if (const decoder_config& c = model_.config(); c.kv_lora_rank != 0)
        write_latent_widths(*gguf_, c, gguf_architecture(c) + ".");
      if (file.first().find("general.quantization_version") == nullptr)
        gguf_->set("general.quantization_version", std::uint32_t{2});
      if (model_.config().ternary && file.first().find(activation_type_key) == nullptr)
        gguf_->set(activation_type_key, name(model_.config().activation_type));
    }
    if (const auto type = gguf_file_type(options_.codec)) gguf_->set("general.file_type", *type);
  }

  /// Whether the value of a key depends on how a file holds the matrices of latent attention.
  bool is_latent_width(std::string_view key) const {
    const std::string prefix = gguf_architecture(model_.config()) + ".";
    return model_.config().kv_lora_rank != 0 && key.starts_with(prefix) &&
           std::find(latent_width_keys.begin(), latent_width_keys.end(), key.substr(prefix.size())) !=
               latent_width_keys.end();
  }

  /// The kind of a tensor: "blk.7.ffn_up.weight" is of kind "ffn_up".
  static std::string kind_of(std::string_view tensor) {
    if (tensor.starts_with("blk.")) tensor.remove_prefix((std::min)(tensor.size(), tensor.find('.', 4) + 1));
    if (tensor.ends_with(".weight")) tensor.remove_suffix(7);
    return std::string(tensor);
  }
  std::size_t kind_index(const checkpoint_tensor& tensor, dtype to) {
    const std::string kind = kind_of(tensor.stored.name);
    const auto same = [&](const converted_kind& each) {
      return each.name == kind && each.from == tensor.stored.type && each.to == to;
    };
    const auto found = std::find_if(report_.kinds.begin(), report_.kinds.end(), same);
    if (found != report_.kinds.end()) return ++found->tensors, static_cast<std::size_t>(found - report_.kinds.begin());
    report_.kinds.push_back({kind, tensor.stored.type, to, 1, {}});
    return report_.kinds.size() - 1;
  }

  void plan_tensors() {
    if (gguf_)
      for (const auto& [name, factors] : gguf_rope_factors(model_)) {
        const std::uint64_t pairs = factors.size();
        gguf_->add_tensor(name, dtype::f32, {&pairs, 1});
      }
    if (ordered_.empty())
      for (const checkpoint_tensor& tensor : model_.tensors()) plan_tensor(tensor);
    for (const checkpoint_tensor& tensor : ordered_) plan_tensor(tensor);
    progress_.total_tensors = plan_.size();
    report_.bytes = gguf_ ? gguf_->data_bytes() : safetensors_->data_bytes();
  }
  /// Whether a tensor has a row or a value for each rotated channel.
  static bool is_turned(std::string_view name) {
    for (const std::string_view each : {".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"})
      if (name.ends_with(each)) return true;
    return false;
  }
  void plan_tensor(const checkpoint_tensor& tensor) {
    const stored_tensor& stored = tensor.stored;
    if (safetensors_ && stored.name.starts_with("rope_f")) return;  // config.json says it
    if (tensor.role == tensor_role::norm && family_of(model_.config().model_type).plain_norms) return;  // ones
    if (gguf_ && tensor.xielu) return;                                                                  // keys have it
    const dtype type = rules_->target(tensor);
    planned_tensor& to = *plan_.emplace_back(std::make_unique<planned_tensor>());
    to.source = &tensor;
    to.type = type;
    to.kind = kind_index(tensor, type);
    to.ternary = tensor.role == tensor_role::matrix && rules_->bitnet();
    const bool turns = is_turned(stored.name);
    gguf_ ? add_to_gguf(tensor, to, turns) : add_to_safetensors(tensor, to);
    if (!gguf_ && turns && family_of(model_.config().model_type).hf_rows_in_pairs)
      to.rows_in_pairs = model_.config().head_dim;
    if (model_.config().rotary_dim != 0 && tensor.rows_in_pairs != 0) {  // also norms of heads
      to.rows_in_pairs = model_.config().head_dim;
      to.rotary_dim = model_.config().rotary_dim;
      const family& of = family_of(model_.config().model_type);
      to.neighbours = gguf_ ? of.gguf_rows_in_pairs : of.hf_rows_in_pairs;
    }
    progress_.total_bytes += stored.bytes;
    // Panels and heads stay whole.
    const std::uint64_t unit =
        std::lcm(type == dtype::bcml1 ? bcml1_layout::panel_rows : 1, (std::max<std::uint64_t>)(1, to.rows_in_pairs));
    const std::uint64_t step = (std::max<std::uint64_t>)(unit, chunk_elements / stored.columns / unit * unit);
    for (std::uint64_t row = 0; row < stored.rows; row += step)
      chunks_.push_back({&to, row, (std::min)(step, stored.rows - row)});
  }

  /// Declares a tensor in the GGUF file, unless an earlier one includes it as part of a fused tensor.
  void add_to_gguf(const checkpoint_tensor& tensor, planned_tensor& to, bool turns) {
    const stored_tensor& stored = tensor.stored;
    const dtype type = to.type;
    if (turns && family_of(model_.config().model_type).gguf_rows_in_pairs) to.rows_in_pairs = model_.config().head_dim;
    auto whole = fused_into(model_.config(), stored);
    const decoder_config& c = model_.config();
    if (whole) whole->first = name_in_gguf(family_of(c.model_type), whole->first);
    const std::uint64_t experts = tensor.dimensions != 3         ? 1
                                  : is_latent_heads(stored.name) ? c.num_attention_heads
                                                                 : c.num_local_experts;
    if (whole) {
      const std::array<std::uint64_t, 3> shape{stored.columns, whole->second / experts, experts};
      const std::uint64_t of = model_.config().num_local_experts;
      const std::array<std::uint64_t, 2> biases{stored.columns / (std::max<std::uint64_t>)(1, of), of};
      const std::array<std::uint64_t, 3> streams{stored.columns, stored.rows, whole->second / stored.rows};
      if (whole->first.ends_with("attn_qkv.bias")) gguf_->add_tensor(whole->first, type, std::array{whole->second});
      else if (whole->first.starts_with("altup_")) gguf_->add_tensor(whole->first, type, streams);
      else if (stored.name.ends_with("_exps.bias")) gguf_->add_tensor(whole->first, type, biases);
      else if (const std::uint64_t rows = mamba2_rows(model_.config(), stored.name); rows != 0)
        gguf_->add_tensor(whole->first, type, std::array{stored.columns / rows, rows});
      else gguf_->add_tensor(whole->first, type, std::span(shape).first(tensor.dimensions));
    }
  }
  /// Declares a tensor in the safetensors file, unless an earlier one includes it.
  void add_to_safetensors(const checkpoint_tensor& tensor, planned_tensor& to) {
    const stored_tensor& stored = tensor.stored;
    const dtype type = to.type;
    if (tensor.xielu) return add_xielu(*safetensors_, stored.name);
    // Hugging Face's norms of Gemma hold w for 1 + w.
    if (tensor.role == tensor_role::norm) to.addend = family_of(model_.config().model_type).hf_norm_addend;
    const auto whole = family_of(model_.config().model_type).streams
                           ? std::optional(std::pair(stored.name, stored.rows))
                           : fused_into(model_.config(), stored);
    if (whole) {
      if (tensor.role == tensor_role::taps) {  // a convolution of each channel separately
        const std::array<std::uint64_t, 3> shape{stored.rows, 1, stored.columns};
        safetensors_->add_tensor(hf_name(whole->first, model_.config().model_type), type, shape);
      } else {
        const std::array<std::uint64_t, 2> shape{whole->second, stored.columns};
        const bool row = family_of(model_.config().model_type).moe_keys && stored.name.ends_with(".exp_probs_b.bias");
        safetensors_->add_tensor(hf_name(whole->first, model_.config().model_type), type,
                                 std::span(shape).last(row ? 2 : tensor.dimensions));
      }
    }
  }

  /// Writes chunks in order and sums up, on the calling thread.
  void take(const tensor_chunk& part, const chunk_buffer& in) {
    planned_tensor& tensor = *part.tensor;
    const stored_tensor& stored = tensor.source->stored;
    if (part.row == 0) report(stored.name);
    gguf_ ? gguf_->write(in.bytes) : safetensors_->write(in.bytes);
    report_.kinds[tensor.kind].loss.add(in.loss);
    report_.loss.add(in.loss);
    if (part.row + part.rows < stored.rows) {
      const double done = static_cast<double>(part.row + part.rows) / static_cast<double>(stored.rows);
      progress_.bytes = before_ + static_cast<std::uint64_t>(static_cast<double>(stored.bytes) * done);
      return report(stored.name);
    }
    if (tensor.ternary) {
      if (tensor.type == dtype::i2_s) gguf_->write(i2_s_tail(tensor.codes->scale()));
      if (chunk_encoder::kept_scale(tensor) != tensor.codes->scale()) ++rounded_scales_;
      tensor.codes.reset();
    }
    progress_.bytes = before_ += stored.bytes;
    report(stored.name);
    ++progress_.tensors;
  }
  void warn_rounded() {
    if (rounded_scales_ != 0)
      warn(std::to_string(rounded_scales_) + " scales were rounded to " + std::string(name(options_.codec)));
  }
  void warn(std::string_view line) { report_.warnings.push_back(in_file(model_.path(), line)); }
  void report(std::string_view tensor) {
    progress_.tensor = tensor;
    if (options_.progress) options_.progress(progress_);
  }

  convert_options options_;
  checkpoint model_;
  chunk_encoder encoder_{model_};
  std::deque<checkpoint_tensor> ordered_;  ///< replace the model's tensors where GGUF orders them otherwise
  std::optional<gguf_writer> gguf_;
  std::optional<safetensors_writer> safetensors_;
  convert_report report_;
  std::optional<conversion_rules> rules_;
  std::vector<std::unique_ptr<planned_tensor>> plan_;
  std::vector<tensor_chunk> chunks_;
  file_progress progress_;
  std::uint64_t before_ = 0;  ///< bytes of finished tensors
  std::size_t rounded_scales_ = 0;
};

/// Reads `in` (anything that checkpoint::open reads) and writes `out`. A name that ends in .safetensors gives
/// safetensors (only the tensors, under Hugging Face's names), any other name GGUF. Memory is bounded whatever the
/// size. Ternary codes, and tensors that already have their type, are copied bit for bit; a scale that f16 cannot hold
/// exactly is rounded, with a warning.
/// @throws file_error for what is wrong with a file, argument_error for a codec that does not go with the model
inline convert_report convert(const std::filesystem::path& in, const std::filesystem::path& out,
                              const convert_options& options = {}) {
  return model_converter(in, out, options).run();
}

}  // namespace intaglio::io
