// SPDX-License-Identifier: MIT
// Rewrites a model in another codec, as GGUF or, in a float type, as safetensors. The new file appears whole or not at
// all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/bcml1_encode.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/conversion_loss.hpp"
#include "intaglio/io/file_progress.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/gguf_model_keys.hpp"
#include "intaglio/io/gguf_order.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/ordered_work.hpp"
#include "intaglio/io/rope_factors.hpp"
#include "intaglio/io/safetensors_writer.hpp"

namespace intaglio::io {

struct convert_options {
  /// The codec of the matrices: for BitNet i2_s tq1_0 tq2_0 f32 f16 bf16, else f32 f16 bf16, blocks that is_encodable
  /// names, bcml1; safetensors: f32 f16 bf16.
  dtype codec = dtype::i2_s;
  /// The codec of token embedding and head. By default that of the matrices, but f16 beside ternary ones and bcml1.
  std::optional<dtype> embedding = std::nullopt;
  i2s_layout layout = i2s_layout::block128;  ///< of I2_S tensors in the input; the output is always block128
  unsigned threads = 0;                      ///< that read and encode; 0: one for each of the machine's
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread
};

/// The tensors of one name in all layers ("ffn_up", "token_embd", ...) that went from one type to another.
struct converted_kind {
  std::string name;
  dtype from = dtype::f32, to = dtype::f32;
  std::size_t tensors = 0;
  conversion_loss loss;
};

/// What was written, and what it cost.
struct convert_report {
  std::uint64_t bytes = 0;            ///< of tensors
  std::vector<std::string> warnings;  ///< with the file in front
  std::vector<converted_kind> kinds;  ///< in the order of the first of each in the file
  conversion_loss loss;               ///< of all
};

/// The work of convert, in its steps. Every tensor has its rule: norms and factors stay f32; matrices get the codec;
/// embedding and head see convert_options; rows that are no whole blocks of a codec are written as f16, with a warning.
/// A tensor that has its type already is copied.
class model_converter {
 public:
  model_converter(const std::filesystem::path& in, const std::filesystem::path& out, const convert_options& options)
      : options_(options), model_(checkpoint::open(in, {options.layout})) {
    if (model_.packed() != nullptr)
      throw file_error(model_.path(), 0, "packed file",
                       "the model that it was packed from: its tensors are not here as they were", "weights of plans");
    const recurrence kind = family_of(model_.config().model_type).recurrent;
    if ((kind == recurrence::delta_net || kind == recurrence::mamba2) && out.extension() == ".safetensors")
      throw argument_error("output", "a .gguf for " + printable(model_.stated_architecture()), printable(out.string()));
    if ((model_.stated_architecture() == "xlm-roberta" || model_.stated_architecture() == "roberta") &&
        out.extension() == ".safetensors")
      throw argument_error(
          "output",
          "a .gguf for " + printable(model_.stated_architecture()) + ", whose first rows of positions are not read",
          printable(out.string()));
    if (kind == recurrence::delta_net) ordered_ = tensors_in_gguf_order(model_);
    report_.warnings = model_.warnings();
    if (out.extension() == ".safetensors" && model_.config().num_local_experts != 0)
      throw argument_error("output", "a .gguf for a mixture of experts, whose tensors hold all experts",
                           printable(out.string()));
    if (out.extension() == ".safetensors") safetensors_.emplace(out);
    else gguf_.emplace(out);
    check_codec();
    if (gguf_) write_keys(in);
    plan_tensors();
  }

  convert_report run() {
    gguf_ ? gguf_->begin() : safetensors_->begin();
    const unsigned threads = worker_threads(options_.threads);
    std::vector<place> places(threads == 1 ? 1 : 2 * std::size_t{threads});
    if (gguf_) write_rope_factors();
    ordered_work(
        threads, places.size(), chunks_.size(),
        [&](std::size_t item, std::size_t slot) { make(chunks_[item], places[slot]); },
        [&](std::size_t item, std::size_t slot) { take(chunks_[item], places[slot]); });
    report("");
    warn_rounded();
    model_.expect_unchanged();
    gguf_ ? gguf_->finish() : safetensors_->finish();
    return std::move(report_);
  }

 private:
  struct planned {
    const checkpoint_tensor* source;
    dtype type;
    std::size_t kind;                 ///< index into report_.kinds
    std::uint32_t rows_in_pairs = 0;  ///< of the output, as of checkpoint_tensor
    std::uint32_t rotary_dim = 0;     ///< likewise
    bool ternary = false;             ///< by codes and one scale
    float addend = 0.f;               ///< subtracted again on writing
    std::once_flag opened{};
    std::optional<ternary_tensor> codes{};  ///< once it is opened
  };
  /// Some rows of a tensor.
  struct chunk {
    planned* tensor;
    std::uint64_t row, rows;
  };
  /// What one thread works in.
  struct place {
    std::vector<std::byte> bytes, turned;
    std::vector<float> values, again;
    std::vector<std::int8_t> codes;
    conversion_loss loss;
  };
  static constexpr std::uint64_t chunk_elements = 1 << 18;

  bool bitnet() const { return is_ternary(model_.config()); }
  static bool is_float(dtype type) { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }
  static bool is_blocks(dtype type) {
    return is_encodable(type) && !is_float(type) && type != dtype::tq1_0 && type != dtype::tq2_0;
  }

  static std::string float_and_block_types() {
    std::string out = "f32 f16 bf16";
    for (const auto& row : dtype_table)
      if (is_blocks(row.type)) out.append(" ").append(row.name);
    return out;
  }

  void check_codec() const {
    const dtype codec = options_.codec;
    const bool ternary = codec == dtype::i2_s || codec == dtype::tq1_0 || codec == dtype::tq2_0;
    if (safetensors_ && !is_float(codec))
      throw argument_error("codec", "f32 f16 bf16 for safetensors", std::string(name(codec)));
    if (bitnet() ? !(ternary || is_float(codec)) : !(is_blocks(codec) || codec == dtype::bcml1 || is_float(codec)))
      throw argument_error(
          "codec", bitnet() ? "i2_s tq1_0 tq2_0 f32 f16 bf16 for a ternary model" : float_and_block_types() + " bcml1",
          std::string(name(codec)));
    if (codec == dtype::bcml1 && has_fused_matrices(family_of(model_.config().model_type)))
      throw argument_error("codec", "another than bcml1, whose panels hold no matrices one behind the other",
                           std::string(name(codec)));
    if (!options_.embedding) return;
    if (safetensors_ ? !is_float(*options_.embedding)
                     : !(is_blocks(*options_.embedding) || is_float(*options_.embedding)))
      throw argument_error("embedding", safetensors_ ? "f32 f16 bf16 for safetensors" : float_and_block_types(),
                           std::string(name(*options_.embedding)));
  }

  dtype target(const checkpoint_tensor& tensor) {
    switch (tensor.role) {
      case tensor_role::norm:
      case tensor_role::bias:
      case tensor_role::factor:
      case tensor_role::taps:
      case tensor_role::table:
        return dtype::f32;
      case tensor_role::embedding: {
        const bool apart = options_.codec == dtype::bcml1 || (bitnet() && !is_float(options_.codec));
        return whole_blocks(tensor, options_.embedding.value_or(apart ? dtype::f16 : options_.codec));
      }
      case tensor_role::matrix:
        break;
    }
    if (tensor.stored.name.ends_with(".ffn_gate_inp.weight") ||
        tensor.stored.name.ends_with(".ffn_gate_inp_shexp.weight"))
      return dtype::f32;  // a choice of experts is not for rounding, as llama-quantize has it
    return whole_blocks(tensor, options_.codec);
  }
  dtype whole_blocks(const checkpoint_tensor& tensor, dtype type) {
    if (tensor.stored.columns % info(type).block_elements == 0) return type;
    warn(tensor.stored.name + ": rows of " + std::to_string(tensor.stored.columns) + " are no whole blocks of " +
         std::string(name(type)) + ", written as f16");
    return dtype::f16;
  }

  static std::uint32_t file_type(dtype codec) {
    switch (codec) {  // llama.cpp's LLAMA_FTYPE; 40 is the BitNet fork's
      case dtype::f32:
        return 0;
      case dtype::f16:
        return 1;
      case dtype::q4_0:
        return 2;
      case dtype::q4_1:
        return 3;
      case dtype::q8_0:
        return 7;
      case dtype::q5_0:
        return 8;
      case dtype::q5_1:
        return 9;
      case dtype::q2_k:
        return 10;
      case dtype::q3_k:
        return 11;  // "small", as those below: no tensor of more bits
      case dtype::q4_k:
        return 14;
      case dtype::q5_k:
        return 16;
      case dtype::q6_k:
        return 18;
      case dtype::iq4_nl:
        return 25;
      case dtype::mxfp4:
        return 38;
      case dtype::bf16:
        return 32;
      case dtype::tq1_0:
        return 36;
      case dtype::tq2_0:
        return 37;
      case dtype::bcml1:
        return static_cast<std::uint32_t>(bcml1_ggml_type);
      default:
        return 40;
    }
  }

  void write_keys(const std::filesystem::path& in) {
    std::error_code ignored;
    if (std::filesystem::is_directory(in, ignored) || stands_for_folder(in)) {
      std::vector<std::string> unsaid;
      write_model_keys(*gguf_, model_, unsaid);
      for (const std::string& line : unsaid) warn(line);
    } else {
      const gguf file = gguf::open(in);
      for (const gguf_value& value : file.first().values())
        if (value.key != "general.file_type" && value.key != "general.alignment" && !value.key.starts_with("split."))
          gguf_->copy(file.first(), value);
      if (file.first().find("general.quantization_version") == nullptr)
        gguf_->set("general.quantization_version", std::uint32_t{2});
      if (model_.config().ternary && file.first().find(activation_type_key) == nullptr)
        gguf_->set(activation_type_key, name(model_.config().activation_type));
    }
    gguf_->set("general.file_type", file_type(options_.codec));
  }

  /// "blk.7.ffn_up.weight" is of the kind "ffn_up".
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
    plan_rope_factors();
    if (ordered_.empty())
      for (const checkpoint_tensor& tensor : model_.tensors()) plan_tensor(tensor);
    for (const checkpoint_tensor& tensor : ordered_) plan_tensor(tensor);
    progress_.total_tensors = plan_.size();
    report_.bytes = gguf_ ? gguf_->data_bytes() : safetensors_->data_bytes();
  }
  void plan_rope_factors() {
    for (const auto& [name, factors] : rope_factors()) {
      const std::uint64_t pairs = factors.size();
      gguf_->add_tensor(name, dtype::f32, {&pairs, 1});
    }
  }
  void plan_tensor(const checkpoint_tensor& tensor) {
    const stored_tensor& stored = tensor.stored;
    if (safetensors_ && stored.name.starts_with("rope_f")) return;  // config.json says it
    const dtype type = target(tensor);
    auto& planned_tensor = *plan_.emplace_back(std::make_unique<planned>());
    planned_tensor.source = &tensor;
    planned_tensor.type = type;
    planned_tensor.kind = kind_index(tensor, type);
    planned_tensor.ternary = tensor.role == tensor_role::matrix && bitnet();
    const bool turns = stored.name.ends_with(".attn_q.weight") || stored.name.ends_with(".attn_k.weight");
    if (gguf_) {
      if (turns && family_of(model_.config().model_type).gguf_rows_in_pairs)
        planned_tensor.rows_in_pairs = model_.config().head_dim;
      const auto whole = fused_into(model_.config(), stored);
      const std::uint64_t experts = tensor.dimensions == 3 ? model_.config().num_local_experts : 1;
      if (whole) {
        const std::array<std::uint64_t, 3> shape{stored.columns, whole->second / experts, experts};
        const std::uint64_t of = model_.config().num_local_experts;
        const std::array<std::uint64_t, 2> biases{stored.columns / (std::max<std::uint64_t>)(1, of), of};
        const std::array<std::uint64_t, 3> streams{stored.columns, stored.rows, whole->second / stored.rows};
        if (whole->first.starts_with("altup_")) gguf_->add_tensor(whole->first, type, streams);
        else if (stored.name.ends_with("_exps.bias")) gguf_->add_tensor(whole->first, type, biases);
        else if (const std::uint64_t rows = mamba2_rows(model_.config(), stored.name); rows != 0)
          gguf_->add_tensor(whole->first, type, std::array{stored.columns / rows, rows});
        else gguf_->add_tensor(whole->first, type, std::span(shape).first(tensor.dimensions));
      }
    } else {
      // Hugging Face's norms of Gemma hold w for 1 + w.
      if (tensor.role == tensor_role::norm)
        planned_tensor.addend = family_of(model_.config().model_type).hf_norm_addend;
      const auto whole = family_of(model_.config().model_type).streams
                             ? std::optional(std::pair(stored.name, stored.rows))
                             : fused_into(model_.config(), stored);
      if (whole) {
        if (tensor.role == tensor_role::taps) {  // a convolution of channels for themselves
          const std::array<std::uint64_t, 3> shape{stored.rows, 1, stored.columns};
          safetensors_->add_tensor(hf_name(whole->first, model_.config().model_type), type, shape);
        } else {
          const std::array<std::uint64_t, 2> shape{whole->second, stored.columns};
          safetensors_->add_tensor(hf_name(whole->first, model_.config().model_type), type,
                                   std::span(shape).last(tensor.dimensions));
        }
      }
    }
    if (turns && model_.config().rotary_dim != 0 && tensor.rows_in_pairs != 0) {
      planned_tensor.rows_in_pairs = model_.config().head_dim;
      planned_tensor.rotary_dim = model_.config().rotary_dim;
    }
    progress_.total_bytes += stored.bytes;
    // Panels and heads stay whole.
    const std::uint64_t unit = std::lcm(type == dtype::bcml1 ? bcml1_layout::panel_rows : 1,
                                        (std::max<std::uint64_t>)(1, planned_tensor.rows_in_pairs));
    const std::uint64_t step = (std::max<std::uint64_t>)(unit, chunk_elements / stored.columns / unit * unit);
    for (std::uint64_t row = 0; row < stored.rows; row += step)
      chunks_.push_back({&planned_tensor, row, (std::min)(step, stored.rows - row)});
  }

  /// Scalings that are tensors in GGUF, where the model has none of them.
  std::vector<std::pair<std::string, std::vector<float>>> rope_factors() const {
    const decoder_config& c = model_.config();
    std::vector<std::pair<std::string, std::vector<float>>> out;
    if (!gguf_) return out;
    if (c.rope_scaling.type == rope_type::llama3 && model_.find("rope_freqs.weight") == nullptr) {
      std::vector<float> factors(c.head_dim / 2);
      for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] = static_cast<float>(llama3_factor(c.rope_scaling, c.rope_theta, i, factors.size()));
      out.emplace_back("rope_freqs.weight", std::move(factors));
    }
    if (family_of(c.model_type).kinds_of_layers) {  // what does not turn is divided by a number so large that it stands
      std::vector<float> factors(c.head_dim_of(false) / 2, 1.f);
      if (const std::uint32_t turning = c.global_turning_pairs; turning != 0)
        std::fill(factors.begin() + turning, factors.end(), 1e30f);
      out.emplace_back("rope_freqs.weight", std::move(factors));
    }
    if (c.rope_scaling.type != rope_type::longrope || model_.find("rope_factors_long.weight") != nullptr) return out;
    const auto pairs = static_cast<std::ptrdiff_t>((c.rotary_dim != 0 ? c.rotary_dim : c.head_dim) / 2);
    const longrope_factors& both = c.rope_factors;
    out.emplace_back("rope_factors_long.weight",
                     std::vector<float>(both.long_factor.begin(), both.long_factor.begin() + pairs));
    out.emplace_back("rope_factors_short.weight",
                     std::vector<float>(both.short_factor.begin(), both.short_factor.begin() + pairs));
    return out;
  }
  void write_rope_factors() {
    for (const auto& [name, factors] : rope_factors()) gguf_->write(std::as_bytes(std::span(factors)));
  }

  [[noreturn]] static void refuse_range(const planned& tensor) {
    const stored_tensor& stored = tensor.source->stored;
    throw file_error(stored.file->path(), stored.offset, "tensor '" + printable(tensor.source->stored_name, 70) + "'",
                     "values that " + std::string(name(tensor.type)) + " can hold", "a larger one");
  }

  /// Reads and encodes; on any thread.
  void make(const chunk& part, place& in) {
    in.loss = {};
    if (part.tensor->ternary) return make_ternary(part, in);
    const planned& tensor = *part.tensor;
    const checkpoint_tensor& source = *tensor.source;
    const std::uint64_t columns = source.stored.columns;
    const bool panels = tensor.type == dtype::bcml1;
    const std::uint64_t size =
        panels ? bcml1_layout{part.rows, columns}.bytes() : part.rows * row_bytes(tensor.type, columns);
    in.bytes.resize(static_cast<std::size_t>(size));
    in.values.resize(static_cast<std::size_t>(part.rows * columns));
    in.again.resize(in.values.size());
    model_.read_f32(source, part.row, part.rows, in.values);
    const bool same = source.stored.type == tensor.type && source.addend == tensor.addend && !source.negative_exp;
    if (same && panels && source.rows_in_pairs == tensor.rows_in_pairs) {
      source.stored.file->read(
          source.stored.offset + part.row / bcml1_layout::panel_rows * (bcml1_layout{1, columns}.bytes()), in.bytes);
      return in.loss.add(in.values, in.values);
    }
    if (same && !panels) {
      model_.read_rows(source, part.row, part.rows, in.bytes);
      turn<std::byte>(tensor, in.bytes, in.turned, row_bytes(tensor.type, columns));
      return in.loss.add(in.values, in.values);
    }
    for (float& value : in.values) value -= tensor.addend;
    std::vector<float>& turned = in.again;
    turn<float>(tensor, in.values, turned, columns);
    if (panels) {
      const bcml1_layout layout{part.rows, columns};
      try {
        encode_bcml1(dtype::f32, std::as_bytes(std::span(in.values)), layout, in.bytes);
      } catch (const argument_error&) { refuse_range(tensor); }
      decode_bcml1(in.bytes, layout, 0, part.rows, in.again);
    } else {
      encode_row(tensor.type, in.values, in.bytes);
      decode_row(tensor.type, in.bytes, in.again);
      if (!codec_blocks::all_finite(in.again)) refuse_range(tensor);
    }
    in.loss.add(in.values, in.again);
  }

  /// From NeoX order to pairs, head by head. @param row length of a row in T
  template <class T>
  static void turn(const planned& tensor, std::vector<T>& rows, std::vector<T>& spare, std::uint64_t row) {
    const std::uint32_t head = tensor.rows_in_pairs, rotary = tensor.rotary_dim;
    if (head == 0) return;
    spare.resize(rows.size());
    const auto length = static_cast<std::size_t>(row);
    for (std::size_t i = 0; i < rows.size() / length; ++i)
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * length), length,
                  spare.begin() +
                      static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row_in_pairs(head, i, rotary)) * length));
    rows.swap(spare);
  }

  void make_ternary(const chunk& part, place& in) {
    planned& tensor = *part.tensor;
    const stored_tensor& stored = tensor.source->stored;
    std::call_once(tensor.opened, [&] { tensor.codes.emplace(model_.ternary(*tensor.source)); });
    const ternary_tensor& source = *tensor.codes;
    const float kept = kept_scale(tensor);
    in.codes.resize(static_cast<std::size_t>(part.rows * stored.columns));
    in.bytes.resize(static_cast<std::size_t>(part.rows * row_bytes(tensor.type, stored.columns)));
    source.rows(part.row, part.rows, in.codes);
    std::vector<std::int8_t> spare;
    turn<std::int8_t>(tensor, in.codes, spare, stored.columns);
    encode_ternary_rows(tensor.type, in.codes, source.scale(), in.bytes);
    const auto zeros = static_cast<std::uint64_t>(std::count(in.codes.begin(), in.codes.end(), std::int8_t{0}));
    const double apart = std::fabs(static_cast<double>(kept) - source.scale()),
                 some = static_cast<double>(in.codes.size() - zeros);
    in.loss.add(conversion_loss{in.codes.size(), zeros == in.codes.size() ? 0. : apart, some * apart * apart,
                                some * source.scale() * source.scale()});
  }
  /// The scale as the output's type keeps it.
  static float kept_scale(const planned& tensor) {
    const float scale = tensor.codes->scale();
    if (tensor.type != dtype::tq1_0 && tensor.type != dtype::tq2_0 && tensor.type != dtype::f16 &&
        tensor.type != dtype::bf16)
      return scale;
    const float kept =
        tensor.type == dtype::bf16 ? f32_from_bf16(bf16_from_f32(scale)) : f32_from_f16(f16_from_f32(scale));
    if (!(kept > 0.f) || !std::isfinite(kept))
      throw file_error(tensor.source->stored.file->path(), tensor.source->stored.offset,
                       "tensor '" + printable(tensor.source->stored_name, 70) + "': scale",
                       "one that " + std::string(name(tensor.type)) + " can hold", number_text(scale));
    return kept;
  }

  /// Writes, in order, and sums up; on the calling thread.
  void take(const chunk& part, const place& in) {
    planned& tensor = *part.tensor;
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
      if (kept_scale(tensor) != tensor.codes->scale()) ++rounded_scales_;
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
  std::deque<checkpoint_tensor> ordered_;  ///< in the place of the model's, where GGUF has them otherwise
  std::optional<gguf_writer> gguf_;
  std::optional<safetensors_writer> safetensors_;
  convert_report report_;
  std::vector<std::unique_ptr<planned>> plan_;
  std::vector<chunk> chunks_;
  file_progress progress_;
  std::uint64_t before_ = 0;  ///< bytes of the tensors that are done
  std::size_t rounded_scales_ = 0;
};

/// Reads `in` (whatever checkpoint::open does) and writes `out`: safetensors where its name ends so (the tensors alone,
/// under Hugging Face's names), else GGUF. Memory stays bounded whatever the size. Ternary codes, and tensors that have
/// their type already, stay as they are, bit for bit; a scale that f16 cannot hold exactly is rounded, with a warning.
/// @throws file_error for what is wrong with a file, argument_error for a codec that does not go with the model
inline convert_report convert(const std::filesystem::path& in, const std::filesystem::path& out,
                              const convert_options& options = {}) {
  return model_converter(in, out, options).run();
}

}  // namespace intaglio::io
