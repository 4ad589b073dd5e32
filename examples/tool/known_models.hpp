// SPDX-License-Identifier: MIT
// Models that the tool plans when asked for, beside those that it was engraved with: files of any size of a known
// family, and published models by their names, in any codec.
#pragma once

#include "engraved_models.hpp"

#include <intaglio/core/dtype.hpp>
#include <intaglio/families/file_types.hpp>
#include <intaglio/families/planned_family.hpp>
#include <intaglio/plan/adapters.hpp>
#include <intaglio/plan/profile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// The codecs that these can be planned for.
std::vector<dtype> known_codecs();
/// The codecs in which a model of this name can be planned: of a ternary one those of its table.
std::vector<dtype> known_codecs(std::string_view model);
std::vector<std::string_view> known_models();

/// The batch that a model's plan gets, by config, profile, context and the number of sessions that was asked for.
struct shape_rule {
  plan::batch_shape (*of)(const decoder_config&, const plan::profile&, std::uint32_t context,
                          std::uint32_t slot_count) = nullptr;
  std::uint32_t slot_count = 0;  ///< 0: the rule's own number
  bool operator==(const shape_rule&) const = default;
};

/// Number of positions of a plan by default: the model's own, at most 16,384 (a cache of 131,072 takes 16 GB for a 7B).
std::uint32_t default_context(const decoder_config& config);

/// Plans of a config, made on the first call for it.
/// @param name how messages and tables name the model  @param shape none: a session alone
/// @param adapters room for those that sessions choose among
/// @throws argument_error: a shape or a codec that kernels do not take; a context beyond the model's own
const engraved_model& planned_model(const decoder_config& config, const families::weight_types& types,
                                    std::string_view name, const cache_choice& cache = {}, shape_rule shape = {},
                                    const plan::adapter_room& adapters = {});

/// Plans of a known model; nullptr for another name or codec.
/// @param codec of the layers, of a ternary model of its table; absent: q8_0, of a ternary model f16
/// @throws argument_error: a codec whose blocks do not divide the model's rows
const engraved_model* known_model(std::string_view name, std::optional<dtype> codec = {},
                                  const cache_choice& cache = {});
/// A known model in a mix of codecs ("q4_k_m", families/mixes.hpp); nullptr for another name or mix.
const engraved_model* known_mix(std::string_view name, std::string_view mix, const cache_choice& cache = {});

/// The codecs in which a file is computed.
/// @param codec of the layers, whatever the file's is; of a ternary model's table f16; empty: the file's own
/// @throws argument_error: a codec that there is not
families::weight_types computed_types(const io::checkpoint& file, const std::string& codec);

/// Plans of a file's model, by its own config, in those codecs.
/// @throws argument_error as above
const engraved_model& planned_model_of(const io::checkpoint& file, const cache_choice& cache = {},
                                       shape_rule shape = {}, const std::string& codec = {},
                                       const plan::adapter_room& adapters = {});

/// @throws argument_error: an encoder, whose texts have no next token
void require_decoder(const engraved_model& model);

/// The codec of a plan's layers; absent for ternary ones.
std::optional<dtype> layer_codec(const plan::table& of);

}  // namespace intaglio::tool
