// SPDX-License-Identifier: MIT
// The models that this build of the tool was engraved with. Which those are says the header INTAGLIO_ENGRAVED_HEADER
// (default_models.hpp, or what `intaglio engrave` wrote): a constant `engraved_models` of named_model entries.
#pragma once

#include <intaglio/plan/device_classes.hpp>
#include <intaglio/plan/planned.hpp>
#include <intaglio/plan/table.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace intaglio::io {
class checkpoint;
}

namespace intaglio::tool {

/// A model's plans, one for each kind of device.
struct engraved_model {
  std::string_view name;
  plan::table cpu, portable;
  /// For another profile, or with FFNs that decode walks or traces (docs/walk.md). Made when asked for. @throws
  /// argument_error: not of this model
  std::function<plan::planned(const plan::profile&, plan::ffn_form)> planned{};
  const decoder_config& config() const { return *cpu.config; }
  /// The plan for a device among the two, chosen as a session does.
  const plan::table& table(const plan::device_class& device) const;
};

std::span<const engraved_model> engraved_models();

/// A KV cache that is asked for.
struct cache_choice {
  std::uint32_t context = 0;                  ///< positions; 0: default_context, or as engraved
  std::optional<kernels::element> type = {};  ///< none: each profile's own
  std::uint32_t chunk = 0;                    ///< tokens of a prompt's chunk in plans for GPUs; 0: the profile's
  friend bool operator==(const cache_choice&, const cache_choice&) = default;
};

/// @param type a name of kernels::cache_codecs, or empty  @throws argument_error: another name
cache_choice cache_of(std::uint32_t context, std::string_view type);

/// Tokens of a prompt's chunk for a model over devices, of which --devices names one several times if its stages take
/// turns; 0: the profile's. With three stages on a device a pipeline fills so fast that longer chunks, whose products
/// are faster, pay (docs/lab/several_devices.md).
std::uint32_t chunk_of_stages(const std::vector<std::string>& devices);

/// An engraved model by its name, or a known one (known_models.hpp) in a codec.
/// @param codec its name, or empty: the engraved one, of known models q8_0
/// @throws argument_error listing the names that there are; one that the codec does not fit
const engraved_model& engraved_model_by_name(const std::string& name, const std::string& codec = {},
                                             const cache_choice& cache = {});

/// The engraved model whose config, codec and context a file has; nullptr where there is none.
/// @param codec of the layers, whatever the file's is; empty: the file's own
const engraved_model* engraved_for(const io::checkpoint& file, const cache_choice& cache = {},
                                   const std::string& codec = {});
/// The engraved model that a file matches, else plans made of the file's own config (known_models.hpp).
/// @throws argument_error: a shape that kernels do not take; a context beyond the model's own; a codec that there is
/// not
const engraved_model& engraved_model_of(const io::checkpoint& file, const cache_choice& cache = {},
                                        const std::string& codec = {});
/// "q4_k 3.61 GB, q6_k 0.76 GB; 4.29 GB a token": the codecs in which a plan computes, and what a token moves with an
/// empty cache.
std::string computed_text(const plan::table& of);
/// Checks which tensors the plans store in another codec than the file does. A change that keeps every value is a note.
/// Any other change is a warning if the user asked for a codec; otherwise it is refused.
/// @throws file_error
void judge_codecs(const io::checkpoint& file, const engraved_model& plans, const std::string& codec);

}  // namespace intaglio::tool
