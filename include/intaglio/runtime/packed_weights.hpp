// SPDX-License-Identifier: MIT
// Reads the bytes of a plan's weights from a packed file: finds them by their identity (plan/weight_identity.hpp),
// compares them with their checksums, and copies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/packed_image.hpp"
#include "intaglio/plan/weight_identity.hpp"

namespace intaglio::runtime {

/// The weight of a packed file that matches a weight of a plan; nullptr where the file has none.
inline const io::packed_weight* find_packed(const io::packed_image& in, const plan::weight& wanted,
                                            const plan::table& of) {
  const io::packed_weight* const found = in.find(plan::identity(wanted, of));
  return found != nullptr && found->bytes == wanted.bytes && found->copies == of.copies(wanted) ? found : nullptr;
}

/// Whether a packed file has every weight of a plan in its layout.
inline bool holds_weights(const io::packed_image& in, const plan::table& of) {
  if (in.layout_version != plan::weight_layout_version) return false;
  for (const plan::weight& each : of.weights)
    if (find_packed(in, each, of) == nullptr) return false;
  return true;
}

/// Reads weights of a plan from a packed file. The image must outlive it. Its const functions may be called from
/// several threads.
class packed_weights {
 public:
  /// The table must outlive it too. @error file_error: the file has another version of the layouts, or lacks a weight
  /// in the plan's layout
  packed_weights(const io::packed_image& from, const plan::table& of) : from_(&from), table_(&of) {
    if (from.layout_version != plan::weight_layout_version)
      throw file_error(from.file->path(), 12, "version of the weights' layouts (pack the model again)",
                       std::to_string(plan::weight_layout_version), std::to_string(from.layout_version));
    for (const plan::weight& each : of.weights) {
      slots_.push_back(find_packed(from, each, of));
      if (slots_.back() == nullptr) refuse(from, each, of);
    }
  }

  const io::packed_weight& of(std::uint32_t slot) const { return *slots_[slot]; }

  /// Reads bytes [begin, begin + out.size()) of a weight of the plan and checks them. @error file_error: a checksum
  /// that differs, a truncated file
  void fill(std::uint32_t slot, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    from_->read(*slots_[slot], table_->copy_of(table_->weights[slot], layer), begin, out);
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(const io::packed_image& from, const plan::weight& wanted,
                                             const plan::table& of) {
    const std::string words = plan::identity(wanted, of);
    const auto tensors = [](std::string_view text) { return text.substr(0, text.find(": ")); };
    std::string found = "no such tensors";
    for (const io::packed_weight& each : from.weights)
      if (tensors(each.layout) == tensors(words))
        found = "'" + printable(each.layout, 200) + "', " + std::to_string(each.copies) + " times " +
                std::to_string(each.bytes) + " bytes";
    throw file_error(
        from.file->path(), from.index_offset,
        "a weight for the plan '" + std::string(of.profile) + "' (pack the model with this program)",
        "'" + words + "', " + std::to_string(of.copies(wanted)) + " times " + std::to_string(wanted.bytes) + " bytes",
        found);
  }

  const io::packed_image* from_;
  const plan::table* table_;
  std::vector<const io::packed_weight*> slots_;
};

}  // namespace intaglio::runtime
