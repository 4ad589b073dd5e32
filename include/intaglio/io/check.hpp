// SPDX-License-Identifier: MIT
// Validates a model file completely: structure, config, tensor list, tokenizer, and every number. It needs no device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/io/tokenizer.hpp"

namespace intaglio::io {

/// One thing that is wrong (or odd). `text` names the file, the offset or key, what was expected and what was found.
struct check_finding {
  std::string text;
  std::optional<std::uint64_t> offset;
  std::vector<std::string> details;  ///< all problems, a line each, where `text` has room for the first only
};
/// What a check of a checkpoint found.
struct check_report {
  std::vector<check_finding> errors, warnings;
  std::size_t tensors = 0;   ///< tensors that were read to the end
  std::uint64_t values = 0;  ///< number of values in them; for a packed file the bytes of its weights
  bool packed = false;       ///< a packed file, whose weights have no values but bytes
  bool ok() const { return errors.empty(); }
};
/// Options of `check`.
struct check_options {
  i2s_layout layout = i2s_layout::block128;
  std::size_t most_errors = 100;  ///< the check stops at this number
  std::function<void(const file_progress&)> progress;
};

/// Reads every value of a tensor once. @throws file_error at the first bad value
inline void check_values(const checkpoint& model, const checkpoint_tensor& tensor) {
  const stored_tensor& stored = tensor.stored;
  const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 20) / stored.columns);
  std::vector<std::int8_t> codes;
  std::vector<float> values;
  std::optional<ternary_tensor> source;
  if (is_ternary(model.config()) && tensor.role == tensor_role::matrix) source = model.ternary(tensor);
  for (std::uint64_t row = 0; row < stored.rows; row += step) {
    const std::uint64_t some = (std::min)(step, stored.rows - row);
    if (source) {
      codes.resize(static_cast<std::size_t>(some * stored.columns));
      source->rows(row, some, codes);
    } else {
      values.resize(static_cast<std::size_t>(some * stored.columns));
      model.read_f32(tensor, row, some, values);
    }
  }
}

/// Reads every weight of a packed file and compares it with its checksums; also checks the padding between weights.
/// @throws file_error at the first fault; exceptions of `done(weight, copy)`, which is called after each copy
template <class Done>
void check_packed(const packed_image& image, Done&& done) {
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (const packed_weight& each : image.weights)
    for (std::uint32_t copy = 0; copy < each.copies; ++copy) {
      for (std::uint64_t at = 0; at < each.bytes; at += piece.size())
        image.read(
            each, copy, at,
            std::span(piece).first(static_cast<std::size_t>((std::min<std::uint64_t>)(piece.size(), each.bytes - at))));
      image.expect_padding(each, copy);
      done(each, copy);
    }
}

/// Reads every value of a tensor of safetensors or PyTorch's files, in the file's order.
/// @return false where its type or its strides are not supported  @throws file_error at a value that is not finite
inline bool check_bare_values(const folder_tensor& tensor, const mapped_file& file) {
  const bool real = tensor.type == dtype::f32 || tensor.type == dtype::f16 || tensor.type == dtype::bf16;
  if (!real) return false;
  if (!tensor.contiguous()) return false;
  constexpr std::uint64_t step = 1 << 18;
  const std::uint64_t element = info(*tensor.type).block_bytes, count = tensor.bytes / element;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (std::uint64_t at = 0; at < count; at += step) {
    values.resize(static_cast<std::size_t>((std::min)(step, count - at)));
    bytes.resize(values.size() * static_cast<std::size_t>(element));
    file.read(tensor.offset + at * element, bytes);
    decode_row(*tensor.type, bytes, values);
    const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (bad != values.end())
      throw file_error(file.path(), tensor.offset + (at + static_cast<std::uint64_t>(bad - values.begin())) * element,
                       "tensor '" + printable(tensor.name, 70) + "': value", "a finite number",
                       std::isnan(*bad) ? "NaN" : "infinity");
  }
  return true;
}

/// Checks a file of weights without a config beside it: its structure, its tensors' values and its checksums.
template <class File>
void check_bare(const std::filesystem::path& path, const check_options& options, check_report& report) {
  const auto note = [&](const file_error& problem) {
    report.errors.push_back({problem.what(), problem.offset(), problem.details()});
  };
  const auto warn = [&](const std::string& line) {
    report.warnings.push_back({in_file(path.string(), line), std::nullopt, {}});
  };
  try {
    const File opened{mapped_file(path)};
    warn("neither config.json nor params.json beside it: tensors are checked, not the model that they are of");
    std::size_t unread = 0;
    std::string first;
    for (const auto& tensor : opened.tensors()) {
      if (report.errors.size() >= options.most_errors) return;
      try {
        if (check_bare_values(tensor, opened.file())) {
          ++report.tensors;
          report.values += tensor.bytes / info(*tensor.type).block_bytes;
        } else if (unread++ == 0) {
          first = printable(tensor.name, 70) + " of " + std::string(tensor.stored_type);
        }
      } catch (const file_error& problem) { note(problem); }
    }
    if (unread != 0)
      warn("values of " + std::to_string(unread) + (unread == 1 ? " tensor are" : " tensors are") +
           " not read, the first: " + first);
    if constexpr (requires { opened.members(); })
      for (const zip_member& member : opened.members()) {
        try {
          check_member(opened.file(), member);
        } catch (const file_error& problem) { note(problem); }
      }
    opened.file().expect_unchanged();
  } catch (const file_error& problem) { note(problem); }
}

/// Checks a model of any form: a GGUF file, a folder, a file of PyTorch in a folder, or a packed file. Faults of the
/// model are no exceptions: they are the report.
inline check_report check(const std::filesystem::path& path, const check_options& options = {}) {
  check_report report;
  const auto note = [&](const file_error& problem) {
    report.errors.push_back({problem.what(), problem.offset(), problem.details()});
  };
  std::optional<checkpoint> opened;
  try {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored) && stands_for_folder(path) &&
        !has_model_config(folder_of(path))) {
      if (is_torch_file(path)) check_bare<torch_file>(path, options, report);
      else check_bare<safetensors_file>(path, options, report);
      return report;
    }
    opened = checkpoint::open(path, {options.layout});
  } catch (const file_error& problem) {
    note(problem);
    return report;
  }
  const checkpoint& model = *opened;
  for (const std::string& line : model.warnings()) report.warnings.push_back({line, std::nullopt, {}});
  if (model.vocabulary()) {
    try {
      const tokenizer text(*model.vocabulary(), model.config().vocab_size);
      for (const std::string& line : text.warnings())
        report.warnings.push_back({in_file(model.vocabulary()->source, line), std::nullopt, {}});
    } catch (const file_error& problem) { note(problem); }
  }
  file_progress progress;
  progress.total_tensors = model.tensors().size();
  for (const auto& tensor : model.tensors()) progress.total_bytes += tensor.stored.bytes;
  report.packed = model.packed() != nullptr;
  if (report.packed) {
    for (const packed_weight& each : model.packed()->weights)
      progress.total_tensors += each.copies, progress.total_bytes += each.copies * each.bytes;
    try {
      check_packed(*model.packed(), [&](const packed_weight& weight, std::uint32_t) {
        progress.tensor = weight.layout;
        ++progress.tensors;
        progress.bytes += weight.bytes;
        ++report.tensors;
        report.values += weight.bytes;
        if (options.progress) options.progress(progress);
      });
    } catch (const file_error& problem) { note(problem); }
  }
  for (const checkpoint_tensor& tensor : model.tensors()) {
    if (report.errors.size() >= options.most_errors) break;
    progress.tensor = tensor.stored.name;
    if (options.progress) options.progress(progress);
    try {
      check_values(model, tensor);
      ++report.tensors;
      report.values += tensor.stored.rows * tensor.stored.columns;
    } catch (const file_error& problem) { note(problem); }
    ++progress.tensors;
    progress.bytes += tensor.stored.bytes;
  }
  for (const checkpoint::checksum& sum : model.checksums()) {
    try {
      check_member(*sum.file, sum.member);
    } catch (const file_error& problem) { note(problem); }
  }
  try {
    model.expect_unchanged();
  } catch (const file_error& problem) { note(problem); }
  return report;
}

}  // namespace intaglio::io
