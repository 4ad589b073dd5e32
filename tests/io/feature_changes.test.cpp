// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_changes.hpp"

#include <type_traits>

using namespace intaglio::io;

// Journals hold the numbers (feature_patch.hpp), the tools print the names.
static_assert(static_cast<std::uint32_t>(feature_edit::insert) == 1 &&
              static_cast<std::uint32_t>(feature_edit::update) == 2);
static_assert(static_cast<std::uint32_t>(feature_edit::remove) == 3 &&
              static_cast<std::uint32_t>(feature_edit::restore) == 4);
static_assert(name(feature_edit::insert) == "insert" && name(feature_edit::update) == "update" &&
              name(feature_edit::remove) == "remove" && name(feature_edit::restore) == "restore");

static_assert(changed_feature{1, 2, feature_edit::remove} == changed_feature{1, 2, feature_edit::remove});
static_assert(changed_feature{1, 2, feature_edit::remove} != changed_feature{2, 2, feature_edit::remove});
static_assert(changed_feature{1, 2, feature_edit::remove} != changed_feature{1, 1, feature_edit::remove});
static_assert(changed_feature{1, 2, feature_edit::remove} != changed_feature{1, 2});

// Loaders of weights hold changes by their base.
static_assert(std::is_abstract_v<feature_changes> && std::has_virtual_destructor_v<feature_changes>);
