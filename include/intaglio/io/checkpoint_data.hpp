// SPDX-License-Identifier: MIT
// An opened model, whatever form its files have: config, tensors under GGUF's names, vocabulary, and functions that
// read values. checkpoint.hpp opens all forms; checkpoint_gguf.hpp (without JSON) and checkpoint_hf.hpp open one form
// each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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
#include "intaglio/io/checkpoint_tensor.hpp"
#include "intaglio/io/codec_bcml1.hpp"
#include "intaglio/io/codec_ternary.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/packed_image.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/io/zip_archive.hpp"

namespace intaglio::io {

/// Reads rows as blocks of GGUF: the scale, then byte j with weights j and j + 16.
[[gnu::cold]] inline void read_split(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
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

/// Reads rows of heads that a file holds transposed, in blocks: each head that has some of the rows is decoded.
[[gnu::cold]] inline void read_transposed(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                                          std::span<std::byte> out) {
  const transposed_heads& of = *tensor.transposed;
  const std::uint64_t row = row_bytes(of.type, of.columns), columns = tensor.stored.columns;
  std::vector<std::byte> bytes(static_cast<std::size_t>(columns * row));
  std::vector<float> values(static_cast<std::size_t>(columns * of.columns));
  std::byte* to = out.data();
  for (std::uint64_t at = row0; at < row0 + count;) {
    const std::uint64_t head = at / of.columns, last = (std::min)((head + 1) * of.columns, row0 + count);
    tensor.stored.file->read(tensor.stored.offset + head * of.head_rows * row, bytes);
    decode_row(of.type, bytes, values);
    for (; at < last; ++at)
      for (std::uint64_t i = 0; i < columns; ++i, to += sizeof(std::uint16_t)) {
        const std::uint16_t half = f16_from_f32(values[static_cast<std::size_t>(i * of.columns + at % of.columns)]);
        std::memcpy(to, &half, sizeof half);
      }
  }
}

/// Reads rows that a file has in another form. @return whether it has
inline bool read_recoded(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                         std::span<std::byte> out) {
  if (tensor.split) read_split(tensor, row0, count, out);
  else if (tensor.transposed) read_transposed(tensor, row0, count, out);
  return tensor.split || tensor.transposed;
}

/// Whether a file has a ternary matrix whose rows do not follow one another: I2_S, or packed into bytes.
inline bool is_stored_ternary(const checkpoint_tensor& tensor) {
  return tensor.stored.type == dtype::i2_s || tensor.stored.type == dtype::u8;
}

/// Checks rows that a caller asks for: inside the tensor, with room for `row` values or bytes each.
inline void expect_rows(const stored_tensor& stored, std::uint64_t row0, std::uint64_t count, std::size_t room,
                        std::uint64_t row) {
  if (!range_inside(row0, count, stored.rows) || room != count * row)
    throw argument_error("rows", "rows inside 0.." + std::to_string(stored.rows) + " and room for their values",
                         std::to_string(row0) + " + " + std::to_string(count) + ", room for " + std::to_string(room));
}

/// An opened model. Movable. Several threads may read at once.
class checkpoint {
 public:
  /// Opens a GGUF file, a folder with one, a folder of Hugging Face's, Meta's or Mistral's form, or a file of weights
  /// in one; include intaglio/io/checkpoint.hpp. @throws file_error
  static checkpoint open(const std::filesystem::path& path, const checkpoint_options& options = {});
  /// Opens a GGUF file, or the first part of a split one; include intaglio/io/checkpoint_gguf.hpp. @throws file_error
  static checkpoint open_gguf(const std::filesystem::path& path, const checkpoint_options& options = {});
  /// Opens a GGUF file in memory, which must outlive the result; errors call it `name`.
  static checkpoint open_gguf(std::span<const std::byte> bytes, const std::string& name,
                              const checkpoint_options& options = {});
  /// Opens a GGUF file from an open file, which may still be arriving (file_arrival.hpp).
  static checkpoint open_gguf(mapped_file file, const checkpoint_options& options = {});
  /// Opens a folder of any form, or a file of weights in one; include intaglio/io/checkpoint_folder.hpp. @throws
  /// file_error
  static checkpoint open_folder(const std::filesystem::path& path, const checkpoint_options& options = {});
  /// Opens a folder with config.json and its weights; include intaglio/io/checkpoint_hf.hpp. @throws file_error
  static checkpoint open_hf(const std::filesystem::path& folder, const checkpoint_options& options = {});
  /// Opens a folder with params.json and consolidated.*.pth; include intaglio/io/checkpoint_original.hpp. @throws
  /// file_error
  static checkpoint open_original(const std::filesystem::path& folder, const checkpoint_options& options = {});
  /// Opens a file that `intaglio pack` wrote; include intaglio/io/checkpoint_packed.hpp. @throws file_error
  static checkpoint open_packed(const std::filesystem::path& path);
  /// Opens a packed file in memory, which must outlive the result; errors call it `name`. @throws file_error
  static checkpoint open_packed(std::span<const std::byte> bytes, const std::string& name);

  /// The file or folder that was opened.
  const std::string& path() const { return path_; }
  /// The model's config, read from the files.
  const decoder_config& config() const { return config_; }
  /// The architecture that the files state: general.architecture of a GGUF, or model_type of a config.json.
  const std::string& stated_architecture() const { return stated_architecture_; }
  /// Tensors of the model in the order of tensor_rules: embedding, layers, final norm, head. A packed file has none.
  const std::vector<checkpoint_tensor>& tensors() const { return tensors_; }
  /// The weights of a packed file in device layout; nullptr for any other form.
  const packed_image* packed() const { return packed_ ? &*packed_ : nullptr; }
  /// Whether the files state the context. Else config() has the context of the published models.
  bool states_context() const { return states_context_; }
  /// The pooling of the model's embeddings; absent where its files do not state it.
  std::optional<intaglio::pooling> pooling() const { return pooling_; }
  /// The vocabulary; absent where a folder has neither tokenizer.json nor tokenizer.model.
  const std::optional<io::vocabulary>& vocabulary() const { return vocabulary_; }
  /// The warnings, a line each, with the file in front.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The tensor with a name; null where the model has no such tensor.
  const checkpoint_tensor* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &tensors_[at->second];
  }
  /// The tensor with a name. @throws argument_error where the model has no such tensor
  const checkpoint_tensor& at(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr) throw argument_error("tensor", "a tensor of " + path_, printable(name, 70));
    return *found;
  }

  /// Reads rows [row0, row0 + count) as f32 [count, columns], with heads in NeoX order; ternary matrices as scale *
  /// code.
  /// @throws file_error for a value that is NaN or infinite
  void read_f32(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count, std::span<float> out) const {
    const stored_tensor& stored = tensor.stored;
    expect_rows(stored, row0, count, out.size(), stored.columns);
    if (tensor.rows_in_pairs == 0) return read_stored(tensor, row0, count, out);
    if (tensor.dimensions == 1) return read_turned(tensor, out);
    // One head at a time: its rows are together whatever the codec.
    const std::uint64_t head = tensor.rows_in_pairs;
    const auto columns = static_cast<std::size_t>(stored.columns);
    std::vector<float> values(static_cast<std::size_t>(head) * columns);
    for (std::uint64_t row = row0; row < row0 + count;) {
      const std::uint64_t first = row / head * head;
      read_stored(tensor, first, head, values);
      for (; row < (std::min)(first + head, row0 + count); ++row)
        std::copy_n(values.begin() +
                        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(tensor.file_row(row) - first) * columns),
                    columns, out.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row - row0) * columns));
    }
  }

  /// Copies the stored bytes of rows [row0, row0 + count), row_bytes(stored.type, columns) each, with heads in NeoX
  /// order.
  /// @throws argument_error for types whose rows do not follow one another (I2_S, BCML1, packed ternary)
  void read_rows(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                 std::span<std::byte> out) const {
    const stored_tensor& stored = tensor.stored;
    if (is_stored_ternary(tensor) || stored.type == dtype::bcml1 || !tensor.added.empty() || !tensor.factors.empty())
      throw argument_error("tensor", "rows that lie one after the other",
                           printable(stored.name, 70) + " as " + std::string(name(stored.type)));
    const std::uint64_t row = row_bytes(stored.type, stored.columns);
    expect_rows(stored, row0, count, out.size(), row);
    if (tensor.rows_in_pairs == 0) return read_bytes(tensor, row0, count, out);
    for (std::uint64_t i = 0; i < count; ++i)
      read_bytes(tensor, tensor.file_row(row0 + i), 1,
                 out.subspan(static_cast<std::size_t>(i * row), static_cast<std::size_t>(row)));
  }

  /// Reads rows [row0, row0 + count) of a BCML1 tensor as Q4_1 blocks with the same values, with heads in NeoX order.
  /// @throws argument_error: another type
  void read_bcml1_as_q4_1(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                          std::span<std::byte> out) const {
    const stored_tensor& stored = tensor.stored;
    if (stored.type != dtype::bcml1)
      throw argument_error("tensor", "bcml1", printable(stored.name, 70) + " as " + std::string(name(stored.type)));
    const std::uint64_t row_size = row_bytes(dtype::q4_1, stored.columns);
    expect_rows(stored, row0, count, out.size(), row_size);
    std::vector<std::byte> panel_bytes;
    std::uint64_t read = stored.rows;  // first row of the panel in the buffer
    for (std::uint64_t i = 0; i < count;) {
      const bool pairs = tensor.rows_in_pairs != 0;
      const std::uint64_t row = pairs ? tensor.file_row(row0 + i) : row0 + i,
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

  /// Codes and scale of a matrix of a ternary model. @throws file_error where the matrix cannot be read so
  ternary_tensor ternary(const checkpoint_tensor& tensor) const {
    if (!tensor.added.empty())
      throw file_error(tensor.stored.file->path(), tensor.stored.offset,
                       "tensor '" + printable(tensor.stored_name, 70) + "' with an adapter",
                       "a matrix that is computed in floats or blocks", "a ternary one");
    return ternary_tensor(tensor.stored,
                          {options_.layout, tensor.packed_scale.value_or(0.f), tensor.factor, tensor.rows_in_pairs});
  }

  /// Makes reads of a matrix add a product from now on. @throws argument_error where the model has no such tensor
  void add(std::string_view tensor, low_rank_addend product) {
    tensors_[static_cast<std::size_t>(&at(tensor) - tensors_.data())].added.push_back(std::move(product));
  }
  /// Adds a tensor to the model that has these bytes.
  void hold(checkpoint_tensor tensor, std::vector<std::byte> bytes) {
    const std::string& own = tensor.stored.name;
    held_.push_back(std::move(bytes));
    files_.push_back(std::make_unique<mapped_file>(mapped_file::from_memory(held_.back(), own)));
    tensor.stored.file = files_.back().get();
    tensor.stored.bytes = held_.back().size();
    by_name_.insert_or_assign(own, tensors_.size());
    tensors_.push_back(std::move(tensor));
  }
  /// Adds a warning.
  void note(std::string line) { warnings_.push_back(std::move(line)); }

  /// The differences between the file's config and an engraved one; empty where they agree.
  std::vector<std::string> differences(const decoder_config& engraved) const {
    decoder_config stated = config_;
    if (!states_context_) stated.max_position_embeddings = engraved.max_position_embeddings;
    return config_differences(engraved, stated);
  }

  /// A checksum in the files and the range of bytes that it covers. Only PyTorch's files have them.
  struct checksum {
    const mapped_file* file;  ///< the file, which the checkpoint keeps open
    zip_member member;        ///< the range of bytes and its CRC-32
  };
  /// All checksums that the files have.
  const std::vector<checksum>& checksums() const { return checksums_; }

  /// Checks that no file changed after it was opened.
  /// @throws file_error where one did
  void expect_unchanged() const {
    for (const auto& file : files_) file->expect_unchanged();
  }

 private:
  friend class checkpoint_builder;
  static constexpr std::uint64_t chunk_bytes = 1 << 20;

  checkpoint() = default;

  /// Copies stored rows in the order of the file.
  static void read_bytes(const checkpoint_tensor& tensor, std::uint64_t row0, std::uint64_t count,
                         std::span<std::byte> out) {
    const stored_tensor& stored = tensor.stored;
    if (read_recoded(tensor, row0, count, out)) return;
    if (tensor.pieces.empty()) stored.file->read(stored.offset + row0 * row_bytes(stored.type, stored.columns), out);
    else
      read_pieces(tensor.pieces, info(stored.type).block_bytes, stored.columns / info(stored.type).block_elements, row0,
                  count, out);
  }

  /// Reads a vector that has a value for each channel of a head.
  void read_turned(const checkpoint_tensor& tensor, std::span<float> out) const {
    std::vector<float> values(out.size());
    read_stored(tensor, 0, 1, values);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[static_cast<std::size_t>(tensor.file_row(i))];
  }

  /// Reads values in the order of the file.
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
      multiply_rows(tensor.factors, row0 + done, stored.columns, values);
      if (tensor.addend != 0.f)
        for (float& value : values) value += tensor.addend;
      if (tensor.xielu) xielu_factors(values);
      if (tensor.negative_exp)
        for (float& value : values) value = -std::exp(value);
      for (const low_rank_addend& each : tensor.added)
        for (std::uint64_t i = 0; i < some; ++i)
          each.add_row(row0 + done + i, values.subspan(static_cast<std::size_t>(i * stored.columns),
                                                       static_cast<std::size_t>(stored.columns)));
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

  /// Reads one panel at a time.
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
        file = piece.file, offset = piece.offset_of(r, c, layout.block_bytes);
    throw file_error(file->path(), offset, "tensor '" + printable(tensor.stored_name, 70) + "': value",
                     "a finite number", std::isnan(*bad) ? "NaN" : "infinity");
  }

  std::string path_, stated_architecture_;
  decoder_config config_;
  bool states_context_ = true;
  std::optional<intaglio::pooling> pooling_;
  std::vector<checksum> checksums_;
  checkpoint_options options_;
  std::vector<std::vector<std::byte>> held_;  ///< bytes of tensors that are in no file
  std::vector<std::unique_ptr<mapped_file>> files_;
  std::vector<checkpoint_tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::optional<io::vocabulary> vocabulary_;
  std::vector<std::string> warnings_;
  std::optional<packed_image> packed_;
};

}  // namespace intaglio::io
