// SPDX-License-Identifier: MIT
// Published models that the tool plans when asked for, in any codec, beside those that it was engraved with.
#pragma once

#include "engraved_models.hpp"

#include <intaglio/core/dtype.hpp>
#include <intaglio/plan/profile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// The codec whose kernels take a type's blocks: Q4_1's for BCML1, whose values are the same; else the type itself.
dtype computed_in(dtype type);

/// The codecs that these can be planned for.
std::vector<dtype> known_codecs();
std::vector<std::string_view> known_models();

/// The batch that a model's plan gets, by config, profile and context.
using shape_rule = plan::batch_shape (*)(const decoder_config&, const plan::profile&, std::uint32_t);

/// Plans of a known model, made on the first call for it; nullptr for another name.
/// @param shape none: a session alone
/// @throws argument_error: a codec whose blocks do not divide the model's rows
const engraved_model* known_model(std::string_view name, dtype codec, shape_rule shape = nullptr);

/// The known model whose config is that of a file, in the codec that fits its matrices; nullptr where there is none.
const engraved_model* known_model_of(const io::checkpoint& file);

/// The codec that a file's matrices are engraved in, of the layers and of embedding and head: theirs, where they have
/// one in common that products are computed with. Of several the finest, so that nothing is held coarser than the file
/// has it; f16 where none is.
struct engraving_codecs {
  dtype layers = dtype::f16, embedding = dtype::f16, head = dtype::f16;
  bool mixed = false;  ///< the layers' matrices are of several codecs: some are encoded anew on loading
};
engraving_codecs codecs_of_file(const io::checkpoint& file);

/// The codec of a plan's layers; absent for ternary ones.
std::optional<dtype> layer_codec(const plan::table& of);

}  // namespace intaglio::tool
