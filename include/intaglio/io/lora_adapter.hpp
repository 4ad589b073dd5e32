// SPDX-License-Identifier: MIT
// LoRA adapters as GGUF files (llama.cpp's convert_lora_to_gguf.py). They are merged into a GGUF model as its tensors
// are read, w + scale * alpha / rank * b a, or held beside it (adapter_set.hpp). Source: Hu et al. 2021; llama.cpp,
// src/llama-adapter.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/number_text.hpp"
#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// An adapter's file, whose tensors are matched to those of a model.
class lora_adapter {
 public:
  /// @throws file_error: an invalid GGUF, no adapter, or an adapter of another kind
  explicit lora_adapter(const std::filesystem::path& path) : file_(gguf::open(path)) {
    expect_text("general.type", "adapter");
    expect_text("adapter.type", "lora");
    if (file_.first().find("adapter.alora.invocation_tokens") != nullptr)
      refuse("adapter.alora.invocation_tokens", "nothing: adapters are merged for all tokens", "tokens");
    const auto alpha = file_.number<float>("adapter.lora.alpha");
    if (!alpha || !std::isfinite(*alpha))
      refuse("adapter.lora.alpha", "a finite number", alpha ? number_text(*alpha) : "none");
    alpha_ = *alpha;
  }

  /// Makes a model's tensors be read with the adapter added, scaled by `scale`. Every tensor of the adapter is used.
  /// @throws file_error: a tensor that has none in the model, another shape, or a matrix that cannot be added to; the
  /// model is then unchanged
  void merge_into(checkpoint& model, float scale) const {
    auto all = products_for(model, true);
    std::map<dtype, loss> coded;
    for (auto& [name, product] : all) {
      product.factor *= scale;
      const checkpoint_tensor& to = model.at(name);
      if (info(to.stored.type).block_elements > 1) coded[to.stored.type].add(model, to, product);
      model.add(name, std::move(product));
    }
    for (const auto& [type, each] : coded) model.note(file_.path() + ": " + each.text(type));
  }

  /// The product and factor that the adapter adds to each matrix, by the model's names.
  /// @param merged whether the product becomes part of the matrices; else they are unchanged, and every layer may have
  /// one
  /// @throws file_error as merge_into
  std::vector<std::pair<std::string, low_rank_addend>> products_for(const checkpoint& model, bool merged) const {
    const auto architecture = file_.value<std::string>("general.architecture");
    if (architecture != model.stated_architecture())
      refuse("general.architecture", "'" + printable(model.stated_architecture(), 40) + "', the model's",
             architecture ? "'" + printable(*architecture, 40) + "'" : "none");
    std::vector<std::pair<std::string, low_rank_addend>> all;
    for (const gguf_tensor& each : file_.tensors()) {
      if (each.name.ends_with(ending_a)) all.push_back(product_of(model, each, merged));
      else if (!each.name.ends_with(ending_b) || partner_of(each, ending_b, ending_a) == nullptr)
        refuse(each, "the tensor's name with .lora_a, and with .lora_b", "that name alone");
    }
    return all;
  }

  const std::string& path() const { return file_.path(); }

 private:
  static constexpr std::string_view ending_a = ".lora_a", ending_b = ".lora_b";

  /// The loss when a changed matrix is encoded again, estimated from some rows.
  struct loss {
    std::size_t tensors = 0;
    double change = 0, error = 0;  ///< sums of squares
    void add(const checkpoint& model, const checkpoint_tensor& of, const low_rank_addend& product) {
      constexpr std::uint64_t looked_at = 8;
      const auto columns = static_cast<std::size_t>(of.stored.columns);
      std::vector<float> values(columns), decoded(columns), before(columns);
      std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(of.stored.type, columns)));
      const std::uint64_t step = (std::max<std::uint64_t>)(of.stored.rows / looked_at, 1);
      for (std::uint64_t row = 0; row < of.stored.rows; row += step) {
        model.read_f32(of, row, 1, before);
        values = before;
        product.add_row(row, values);
        encode_row(of.stored.type, values, bytes);
        decode_row(of.stored.type, bytes, decoded);
        for (std::size_t i = 0; i < columns; ++i) {
          const double made = double{values[i]} - double{before[i]}, off = double{decoded[i]} - double{values[i]};
          change += made * made, error += off * off;
        }
      }
      ++tensors;
    }
    std::string text(dtype type) const {
      return std::to_string(tensors) + " matrices of " + std::string(name(type)) +
             " are decoded, added to and encoded anew; rounding is " +
             (change > 0 ? number_text(static_cast<float>(std::round(1000 * std::sqrt(error / change)) / 1000)) : "0") +
             " of the change (root mean square of some rows)";
    }
  };

  [[noreturn]] void refuse(std::string_view key, std::string expected, std::string found) const {
    const gguf_value* const at = file_.first().find(key);
    throw file_error(file_.path(), at != nullptr ? std::optional(at->offset) : std::nullopt, std::string(key),
                     std::move(expected), std::move(found));
  }
  [[noreturn]] void refuse(const gguf_tensor& of, std::string expected, std::string found) const {
    throw file_error(file_.path(), of.info_offset, "tensor '" + printable(of.name, 70) + "'", std::move(expected),
                     std::move(found));
  }
  void expect_text(std::string_view key, const std::string& wanted) const {
    const auto found = file_.value<std::string>(key);
    if (found != wanted)
      refuse(key, "'" + wanted + "'", found ? "'" + printable(*found, 40) + "'" : "none: this is no LoRA adapter");
  }
  const gguf_tensor* partner_of(const gguf_tensor& of, std::string_view its, std::string_view other) const {
    return file_.find_tensor(of.name.substr(0, of.name.size() - its.size()) + std::string(other));
  }

  std::pair<std::string, low_rank_addend> product_of(const checkpoint& model, const gguf_tensor& a, bool merged) const {
    const std::string name = a.name.substr(0, a.name.size() - ending_a.size());
    const gguf_tensor* const b = partner_of(a, ending_a, ending_b);
    if (b == nullptr) refuse(a, name + ".lora_b beside it", "none");
    if (family_of(model.config().model_type).latent)  // matrices are parts of those that the adapter was made for
      refuse(a, "an adapter of a model without latent attention (MLA)", "one for " + model.stated_architecture());
    const checkpoint_tensor* const to = model.find(name);
    if (to == nullptr) refuse(a, "a tensor of the model " + printable(model.path(), 120), "none of that name");
    if (model.config().projection_norm_eps != 0)  // an adapter's branch reads what is in front of that norm
      refuse(a, "an adapter of a model whose matrices have no norms of their own", "one that has them");
    expect_matrix(a, *to, merged);
    const stored_tensor& its = to->stored;
    if (a.dimensions != 2 || b->dimensions != 2 || a.columns() != its.columns || b->rows() != its.rows ||
        a.rows() != b->columns())
      refuse(a, "[" + std::to_string(its.columns) + ", rank], and .lora_b [rank, " + std::to_string(its.rows) + "]",
             shape_text(a) + " and " + shape_text(*b));
    low_rank_addend out;
    out.rank = a.rows();
    out.factor = alpha_ != 0 ? alpha_ / static_cast<float>(out.rank) : 1.f;  // llama.cpp treats 0 the same way
    out.a = values_of(a), out.b = values_of(*b);
    return {name, std::move(out)};
  }
  void expect_matrix(const gguf_tensor& a, const checkpoint_tensor& to, bool merged) const {
    if (to.stored.name == "token_embd.weight")
      refuse(a, "an adapter of other matrices than the embedding", "the embedding's");
    if (to.stored_name != to.stored.name || !to.pieces.empty() || to.split || to.dimensions != 2 || is_vector(to.role))
      refuse(a, "a matrix of a GGUF model that has it as one tensor of two dimensions",
             "'" + printable(to.stored_name, 70) + "'");
    if (!merged && !to.stored.name.starts_with("blk."))
      refuse(a, "an adapter of the layers' matrices, which requests can choose; others can be merged (--lora)",
             "another matrix");
    const dtype type = to.stored.type;
    if (!merged && type != dtype::tq1_0 && type != dtype::tq2_0 && type != dtype::i2_s) return;
    if (!is_encodable(type) || type == dtype::tq1_0 || type == dtype::tq2_0)
      refuse(a, "a matrix of one of the codecs that can be encoded anew: " + encodable_types(),
             std::string(intaglio::name(type)));
  }
  std::shared_ptr<const std::vector<float>> values_of(const gguf_tensor& of) const {
    const mapped_file& file = file_.parts()[of.part].file();
    if (!is_encodable(of.type)) refuse(of, "one of " + encodable_types(), std::string(intaglio::name(of.type)));
    std::vector<std::byte> bytes(static_cast<std::size_t>(of.bytes));
    file.read(of.offset, bytes);
    auto out = std::make_shared<std::vector<float>>(static_cast<std::size_t>(of.rows() * of.columns()));
    decode_row(of.type, bytes, *out);
    if (const auto bad = std::find_if(out->begin(), out->end(), [](float each) { return !std::isfinite(each); });
        bad != out->end())
      throw file_error(file.path(), of.offset,
                       "tensor '" + printable(of.name, 70) + "': value " + std::to_string(bad - out->begin()),
                       "a finite number", std::isnan(*bad) ? "NaN" : "infinity");
    return out;
  }

  gguf file_;
  float alpha_ = 0;
};

/// An adapter as options name it: FILE, or FILE:SCALE.
struct lora_choice {
  std::filesystem::path file;
  float scale = 1;
  /// @error argument_error: no file, or a scale that is no finite number
  explicit lora_choice(const std::string& text) {
    const auto colon = text.rfind(':');
    const auto number =
        colon == std::string::npos ? std::nullopt : number_of_text(std::string_view(text).substr(colon + 1));
    if (number) scale = static_cast<float>(*number);
    file = platform::path_of(number ? text.substr(0, colon) : text);
    if (file.empty() || !std::isfinite(scale))
      throw argument_error("--lora", "FILE or FILE:SCALE, the scale a finite number", "'" + printable(text, 100) + "'");
  }
};

}  // namespace intaglio::io
