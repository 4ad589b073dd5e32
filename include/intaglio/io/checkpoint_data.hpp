// SPDX-License-Identifier: MIT
// An opened model, whatever form its files have: config, tensors under GGUF's names, vocabulary, and reading of values.
// checkpoint.hpp opens both forms; checkpoint_gguf.hpp and checkpoint_hf.hpp one each (the former without JSON).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/pooling.hpp"
#include "intaglio/io/checkpoint_options.hpp"
#include "intaglio/io/codec_bcml1.hpp"
#include "intaglio/io/codec_ternary.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/packed_image.hpp"
#include "intaglio/io/tensor_pieces.hpp"
#include "intaglio/io/tensor_rules.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/io/zip_archive.hpp"

namespace intaglio::io {

/// MXFP4 whose scales lie apart from the codes, as transformers writes it: byte j of a block has weights 2j and 2j + 1.
struct split_mxfp4 {
  const mapped_file* scales = nullptr;
  std::uint64_t scales_offset = 0;       ///< a byte for each block
  std::uint64_t row0 = 0, row_step = 1;  ///< the file's row of the tensor's first, and of neighbours' distance
};

/// A tensor of the model. `stored.name` is GGUF's name, `stored_name` the file's; stored.type is u8 for Hugging Face's
/// packed matrices.
struct checkpoint_tensor {
  stored_tensor stored;
  std::string stored_name;
  std::uint32_t dimensions = 2;  ///< 1 for a vector
  tensor_role role = tensor_role::matrix;
  std::optional<float> packed_scale;  ///< multiplier of a packed matrix
  float factor = 1.f;                 ///< further multiplier of a ternary matrix
  float addend = 0.f;         ///< added to every value on reading (Gemma's norms in Hugging Face form hold w for 1 + w)
  bool negative_exp = false;  ///< every value x is read as -exp(x) (A_log of delta rules in Hugging Face form)
  std::uint32_t rows_in_pairs = 0;   ///< head_dim where rows 2i and 2i + 1 of a head turn together (RoPE of Meta's
                                     ///< files, GGUF llama); reading undoes it
  std::uint32_t rotary_dim = 0;      ///< with rows_in_pairs: only so many rows of a head turn, the first, i with i +
                                     ///< rotary_dim / 2; reading puts each pair's rows head_dim / 2 apart
  std::vector<tensor_piece> pieces;  ///< where the rows do not simply follow one another from stored.offset: floats
                                     ///< with strides, or in several files

  std::optional<split_mxfp4> split;  ///< stored.type is mxfp4, stored.offset that of the codes

  /// True where the rows lie from stored.offset on in the order in which they are read.
  bool in_place() const { return pieces.empty() && rows_in_pairs == 0 && !split; }
};

/// Movable. Reading may happen from several threads at once.
class checkpoint {
 public:
  /// A GGUF file, a folder of Hugging Face's, Meta's or Mistral's form, or a file of weights in one; include
  /// intaglio/io/checkpoint.hpp.
  /// @throws file_error
  static checkpoint open(const std::filesystem::path& path, const checkpoint_options& options = {});
  /// A GGUF file, or the first part of a split one; include intaglio/io/checkpoint_gguf.hpp. @throws file_error
  static checkpoint open_gguf(const std::filesystem::path& path, const checkpoint_options& options = {});
  /// A GGUF file in memory, which must outlive the result; errors call it `name`.
  static checkpoint open_gguf(std::span<const std::byte> bytes, const std::string& name,
                              const checkpoint_options& options = {});
  /// A GGUF file that is open, and may still arrive (file_arrival.hpp).
  static checkpoint open_gguf(mapped_file file, const checkpoint_options& options = {});
  /// A folder with config.json and safetensors or pytorch_model.bin; include intaglio/io/checkpoint_hf.hpp. @throws
  /// file_error
  static checkpoint open_hf(const std::filesystem::path& folder, const checkpoint_options& options = {});
  /// A folder with params.json and consolidated.*.pth; include intaglio/io/checkpoint_original.hpp. @throws file_error
  static checkpoint open_original(const std::filesystem::path& folder, const checkpoint_options& options = {});
  /// A file that `intaglio pack` wrote; include intaglio/io/checkpoint_packed.hpp. @throws file_error
  static checkpoint open_packed(const std::filesystem::path& path);
  /// The same in memory, which must outlive the result; errors call it `name`.
  static checkpoint open_packed(std::span<const std::byte> bytes, const std::string& name);

  /// The file or folder that was opened.
  const std::string& path() const { return path_; }
  const decoder_config& config() const { return config_; }
  /// general.architecture of a GGUF, model_type of a config.json.
  const std::string& stated_architecture() const { return stated_architecture_; }
  /// Tensors of the model in the order of tensor_rules: embedding, layers, final norm, head.
  /// None in a packed file.
  const std::vector<checkpoint_tensor>& tensors() const { return tensors_; }
  /// The weights of a packed file, as the device wants them; nullptr for any other form.
  const packed_image* packed() const { return packed_ ? &*packed_ : nullptr; }
  bool states_context() const { return states_context_; }
  /// How the model's embeddings are pooled; absent where its files do not say.
  std::optional<intaglio::pooling> pooling() const { return pooling_; }
  /// Absent where a folder has neither tokenizer.json nor tokenizer.model.
  const std::optional<io::vocabulary>& vocabulary() const { return vocabulary_; }
  /// A line each, with the file that it is about in front.
  const std::vector<std::string>& warnings() const { return warnings_; }

  const checkpoint_tensor* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &tensors_[at->second];
  }
  /// @throws argument_error where the model has no such tensor
  const checkpoint_tensor& at(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr) throw argument_error("tensor", "a tensor of " + path_, printable(name, 70));
    return *found;
  }

  /// Values of rows [row0, row0 + count) as f32 [count, columns], heads in NeoX order; ternary matrices as scale *
  /// code.
  /// @throws file_error for a value that is NaN or infinite
  void read_f32(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count, std::span<float> out) const {
    const stored_tensor& stored = tensor.stored;
    expect_rows(stored, row0, count, out.size(), stored.columns);
    if (tensor.rows_in_pairs == 0) return read_stored(tensor, row0, count, out);
    if (tensor.dimensions == 1) return read_turned(tensor, out);
    // A head at a time: its rows lie together whatever the codec.
    const std::uint64_t head = tensor.rows_in_pairs;
    const auto columns = static_cast<std::size_t>(stored.columns);
    std::vector<float> values(static_cast<std::size_t>(head) * columns);
    for (std::uint64_t row = row0; row < row0 + count;) {
      const std::uint64_t first = row / head * head;
      read_stored(tensor, first, head, values);
      for (; row < (std::min)(first + head, row0 + count); ++row)
        std::copy_n(values.begin() +
                        static_cast<std::ptrdiff_t>(
                            static_cast<std::size_t>(row_in_pairs(head, row, tensor.rotary_dim) - first) * columns),
                    columns, out.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row - row0) * columns));
    }
  }

  /// The stored bytes of rows [row0, row0 + count), row_bytes(stored.type, columns) each, heads in NeoX order.
  /// @throws argument_error for types whose rows do not lie one after the other (I2_S, BCML1, packed ternary)
  void read_rows(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                 std::span<std::byte> out) const {
    const stored_tensor& stored = tensor.stored;
    if (is_stored_ternary(tensor) || stored.type == dtype::bcml1)
      throw argument_error("tensor", "rows that lie one after the other",
                           printable(stored.name, 70) + " as " + std::string(name(stored.type)));
    const std::uint64_t row = row_bytes(stored.type, stored.columns);
    expect_rows(stored, row0, count, out.size(), row);
    if (tensor.rows_in_pairs == 0) return read_bytes(tensor, row0, count, out);
    for (std::uint64_t i = 0; i < count; ++i)
      read_bytes(tensor, row_in_pairs(tensor.rows_in_pairs, row0 + i, tensor.rotary_dim), 1,
                 out.subspan(static_cast<std::size_t>(i * row), static_cast<std::size_t>(row)));
  }

  /// Rows [row0, row0 + count) of a BCML1 tensor as Q4_1 blocks of the same values, heads in NeoX order.
  /// @throws argument_error: another type
  void read_bcml1_as_q4_1(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                          std::span<std::byte> out) const {
    const stored_tensor& stored = tensor.stored;
    if (stored.type != dtype::bcml1)
      throw argument_error("tensor", "bcml1", printable(stored.name, 70) + " as " + std::string(name(stored.type)));
    const std::uint64_t row_size = row_bytes(dtype::q4_1, stored.columns);
    expect_rows(stored, row0, count, out.size(), row_size);
    std::vector<std::byte> panel_bytes;
    std::uint64_t read = stored.rows;  // first row of the panel that is there
    for (std::uint64_t i = 0; i < count;) {
      const bool pairs = tensor.rows_in_pairs != 0;
      const std::uint64_t row = pairs ? row_in_pairs(tensor.rows_in_pairs, row0 + i, tensor.rotary_dim) : row0 + i,
                          first = row / bcml1_layout::panel_rows * bcml1_layout::panel_rows;
      const bcml1_layout panel{(std::min)(bcml1_layout::panel_rows, stored.rows - first), stored.columns};
      if (first != read) {
        panel_bytes.resize(static_cast<std::size_t>(panel.bytes()));
        stored.file->read(stored.offset + first / bcml1_layout::panel_rows * panel.bytes(), panel_bytes);
        read = first;
      }
      const std::uint64_t some = pairs ? 1 : (std::min)(count - i, first + panel.rows - row);
      bcml1_as_q4_1(panel_bytes, panel, row - first, some,
                    out.subspan(static_cast<std::size_t>(i * row_size), static_cast<std::size_t>(some * row_size)));
      i += some;
    }
  }

  /// Codes and scale of a matrix of a ternary model. @throws file_error where they cannot be had
  ternary_tensor ternary(const checkpoint_tensor& tensor) const {
    return ternary_tensor(tensor.stored,
                          {options_.layout, tensor.packed_scale.value_or(0.f), tensor.factor, tensor.rows_in_pairs});
  }

  /// How the file's config differs from an engraved one; empty where they agree.
  std::vector<std::string> differences(const decoder_config& engraved) const {
    decoder_config stated = config_;
    if (!states_context_) stated.max_position_embeddings = engraved.max_position_embeddings;
    return config_differences(engraved, stated);
  }

  /// Checksums that the files keep of their bytes, each with a range to be read: none but in PyTorch's files.
  struct checksum {
    const mapped_file* file;
    zip_member member;
  };
  const std::vector<checksum>& checksums() const { return checksums_; }

  /// @throws file_error where one of the files changed since it was opened
  void expect_unchanged() const {
    for (const auto& file : files_) file->expect_unchanged();
  }

 private:
  friend class checkpoint_builder;
  static constexpr std::uint64_t chunk_bytes = 1 << 20;

  checkpoint() = default;

  static bool is_stored_ternary(const checkpoint_tensor& tensor) {
    return tensor.stored.type == dtype::i2_s || tensor.stored.type == dtype::u8;
  }

  static void expect_rows(const stored_tensor& stored, std::uint64_t row0, std::uint64_t count, std::size_t room,
                          std::uint64_t row) {
    if (!range_inside(row0, count, stored.rows) || room != count * row)
      throw argument_error("rows", "rows inside 0.." + std::to_string(stored.rows) + " and room for their values",
                           std::to_string(row0) + " + " + std::to_string(count) + ", room for " + std::to_string(room));
  }

  /// Rows as blocks of GGUF: the scale, then byte j with weights j and j + 16.
  [[gnu::cold]] static void read_split(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                                       std::span<std::byte> out) {
    const stored_tensor& stored = tensor.stored;
    const std::uint64_t blocks = stored.columns / 32;
    std::vector<std::byte> codes(static_cast<std::size_t>(16 * blocks)), scales(static_cast<std::size_t>(blocks));
    std::byte* to = out.data();
    for (std::uint64_t row = row0; row < row0 + count; ++row) {
      const std::uint64_t at = tensor.split->row0 + row * tensor.split->row_step;
      stored.file->read(stored.offset + at * codes.size(), codes);
      tensor.split->scales->read(tensor.split->scales_offset + at * blocks, scales);
      for (std::size_t b = 0; b < scales.size(); ++b) {
        *to++ = scales[b];
        const auto code = [&](std::size_t i) {
          const std::byte both = codes[16 * b + i / 2];
          return i % 2 == 0 ? both & std::byte{15} : both >> 4;
        };
        for (std::size_t j = 0; j < 16; ++j) *to++ = code(j) | code(j + 16) << 4;
      }
    }
  }

  /// Stored rows in the order of the file.
  static void read_bytes(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                         std::span<std::byte> out) {
    const stored_tensor& stored = tensor.stored;
    if (tensor.split) read_split(tensor, row0, count, out);
    else if (tensor.pieces.empty())
      stored.file->read(stored.offset + row0 * row_bytes(stored.type, stored.columns), out);
    else
      read_pieces(tensor.pieces, info(stored.type).block_bytes, stored.columns / info(stored.type).block_elements, row0,
                  count, out);
  }

  /// A vector with a value a channel of a head.
  void read_turned(const checkpoint_tensor& tensor, std::span<float> out) const {
    std::vector<float> values(out.size());
    read_stored(tensor, 0, 1, values);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = values[static_cast<std::size_t>(row_in_pairs(tensor.rows_in_pairs, i, tensor.rotary_dim))];
  }

  /// Values in the order of the file.
  void read_stored(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                   std::span<float> out) const {
    const stored_tensor& stored = tensor.stored;
    if (is_stored_ternary(tensor)) return read_codes_as_f32(tensor, row0, count, out);
    if (stored.type == dtype::bcml1) return read_panels(tensor, row0, count, out);
    const std::uint64_t row = row_bytes(stored.type, stored.columns),
                        step = (std::max<std::uint64_t>)(1, chunk_bytes / row);
    std::vector<std::byte> bytes;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t some = (std::min)(step, count - done);
      bytes.resize(static_cast<std::size_t>(some * row));
      read_bytes(tensor, row0 + done, some, bytes);
      const auto values =
          out.subspan(static_cast<std::size_t>(done * stored.columns), static_cast<std::size_t>(some * stored.columns));
      decode_row(stored.type, bytes, values);
      expect_finite(tensor, row0 + done, values);
      if (tensor.addend != 0.f)
        for (float& value : values) value += tensor.addend;
      if (tensor.negative_exp)
        for (float& value : values) value = -std::exp(value);
      done += some;
    }
  }

  void read_codes_as_f32(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                         std::span<float> out) const {
    const ternary_tensor source = ternary(tensor);
    std::vector<std::int8_t> codes(static_cast<std::size_t>(tensor.stored.columns));
    for (std::uint64_t row = 0; row < count; ++row) {
      source.rows(row0 + row, 1, codes);
      for (std::size_t i = 0; i < codes.size(); ++i)
        out[static_cast<std::size_t>(row) * codes.size() + i] = static_cast<float>(codes[i]) * source.scale();
    }
  }

  /// A panel at a time.
  void read_panels(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                   std::span<float> out) const {
    const stored_tensor& stored = tensor.stored;
    std::vector<std::byte> bytes;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t row = row0 + done, first = row / bcml1_layout::panel_rows * bcml1_layout::panel_rows;
      const bcml1_layout panel{(std::min)(bcml1_layout::panel_rows, stored.rows - first), stored.columns};
      const std::uint64_t some = (std::min)(count - done, first + panel.rows - row),
                          at = first / bcml1_layout::panel_rows * panel.bytes();
      bytes.resize(static_cast<std::size_t>(panel.bytes()));
      stored.file->read(stored.offset + at, bytes);
      const auto values =
          out.subspan(static_cast<std::size_t>(done * stored.columns), static_cast<std::size_t>(some * stored.columns));
      decode_bcml1(bytes, panel, row - first, some, values);
      for (const float value : values)
        if (!std::isfinite(value))
          throw file_error(stored.file->path(), stored.offset + at,
                           "tensor '" + printable(tensor.stored_name, 70) + "': value in the panel of rows from " +
                               std::to_string(first),
                           "a finite number", std::isnan(value) ? "NaN" : "infinity");
      done += some;
    }
  }

  /// @param row of the first value, in the order of the file
  static void expect_finite(const checkpoint_tensor& tensor, std::uint64_t row, std::span<const float> values) {
    bool finite = true;
    for (const float value : values) finite &= std::isfinite(value);
    if (finite) return;
    const stored_tensor& stored = tensor.stored;
    const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    const auto at = static_cast<std::uint64_t>(bad - values.begin());
    const auto& layout = info(stored.type);
    const mapped_file* file = stored.file;
    std::uint64_t offset = stored.offset + (row * stored.columns + at) / layout.block_elements * layout.block_bytes;
    for (const tensor_piece& piece : tensor.pieces)
      if (const std::uint64_t r = row + at / stored.columns, c = at % stored.columns / layout.block_elements;
          piece.holds(r, c))
        file = piece.file, offset = piece.place_of(r, c, layout.block_bytes);
    throw file_error(file->path(), offset, "tensor '" + printable(tensor.stored_name, 70) + "': value",
                     "a finite number", std::isnan(*bad) ? "NaN" : "infinity");
  }

  std::string path_, stated_architecture_;
  decoder_config config_;
  bool states_context_ = true;
  std::optional<intaglio::pooling> pooling_;
  std::vector<checksum> checksums_;
  checkpoint_options options_;
  std::vector<std::unique_ptr<mapped_file>> files_;
  std::vector<checkpoint_tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::optional<io::vocabulary> vocabulary_;
  std::vector<std::string> warnings_;
  std::optional<packed_image> packed_;
};

/// Puts a checkpoint together and judges its tensor list; used by the readers of each form.
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
  /// The files do not say max_position_embeddings: the config's is a guess, and an engraved model may have another.
  void context_unstated() { out_.states_context_ = false; }
  void checksums(const mapped_file* file, const std::vector<zip_member>& members) {
    for (const zip_member& member : members) out_.checksums_.push_back({file, member});
  }
  /// Of the model; its file or folder is put in front.
  void warn(std::string_view line) { add_warning(in_file(out_.path_, line)); }
  /// A line that names its file already.
  void add_warning(std::string line) { out_.warnings_.push_back(std::move(line)); }
  void fault(std::string line) { faults_.push_back(std::move(line)); }
  /// The config says that there are biases.
  void biases_stated() { biases_stated_ = true; }

  const mapped_file* adopt(mapped_file file) {
    return out_.files_.emplace_back(std::make_unique<mapped_file>(std::move(file))).get();
  }
  /// A tensor of the file under its GGUF name.
  void add(checkpoint_tensor tensor) {
    const std::string name = tensor.stored.name;
    if (const auto [at, added] = found_.try_emplace(name, std::move(tensor)); !added)
      fault("'" + printable(name, 70) + "' is there twice, as '" + printable(at->second.stored_name, 100) + "' too");
  }
  checkpoint_tensor* find(const std::string& name) {
    const auto at = found_.find(name);
    return at == found_.end() ? nullptr : &at->second;
  }

  /// Compares the tensors with what the config asks for. @throws file_error with all differences at once
  checkpoint finish() && {
    check_config(out_.config_, out_.path_);
    const std::vector<tensor_rule> rules = tensor_rules(out_.config_);
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
        if (rule.name == "output.weight") warn(rule.name + " is ignored: the model's head is its embedding");
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

  /// A checkpoint whose weights need no tensors.
  checkpoint finish_packed(packed_image image) && {
    out_.packed_ = std::move(image);
    return std::move(out_);
  }

 private:
  static std::string shape(std::uint64_t rows, std::uint64_t columns, tensor_role role) {
    return "[" + (is_vector(role) ? "" : std::to_string(rows) + ", ") + std::to_string(columns) + "]";
  }
  bool judge(const checkpoint_tensor& tensor, const tensor_rule& rule) {
    const stored_tensor& stored = tensor.stored;
    const bool same = stored.rows == rule.rows && stored.columns == rule.columns &&
                      tensor.dimensions == (is_vector(rule.role) ? 1u
                                            : rule.experts != 0  ? 3u
                                                                 : 2u);
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

  /// blk.N.*.scale belongs to the blk.N.*.weight just before it.
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

  /// Biases that the family does not have; llama.cpp and transformers add those that a file has. Zeros change nothing
  /// and are left out, with a warning; any other value is a difference.
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
    else if (biases_stated_ && !family_of(out_.config_.model_type).qkv_biases)
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

}  // namespace intaglio::io
