// SPDX-License-Identifier: MIT
// The interface by which a loader of weights reads changes to a model's features; feature_patch.hpp keeps them in a
// journal. It needs no JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/io/feature_rows.hpp"

namespace intaglio::io {

/// The kinds of changes of a feature.
enum class feature_edit : std::uint32_t { insert = 1, update = 2, remove = 3, restore = 4 };
/// The name of a kind of change.
constexpr std::string_view name(feature_edit edit) {
  return edit == feature_edit::insert   ? "insert"
         : edit == feature_edit::update ? "update"
         : edit == feature_edit::remove ? "remove"
                                        : "restore";
}

/// A feature that differs from the index; `insert` for one that the index does not have.
struct changed_feature {
  std::uint32_t layer = 0, feature = 0;
  feature_edit edit = feature_edit::update;
  friend bool operator==(const changed_feature&, const changed_feature&) = default;
};

/// The changed features of a model.
class feature_changes {
 public:
  virtual ~feature_changes() = default;
  /// @throws mismatch_error where they are of another model
  virtual void expect_model(const decoder_config& config) const = 0;
  /// All features that differ from the model, ordered by layer and feature.
  virtual std::vector<changed_feature> changed() const = 0;
  /// Reads the changed values of vectors [first, first + count) of a layer. @shape out: [count, hidden_size]
  virtual void read_f32(std::uint32_t layer, feature_vector which, std::uint64_t first, std::uint64_t count,
                        std::span<float> out) const = 0;
};

}  // namespace intaglio::io
