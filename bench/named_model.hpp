// SPDX-License-Identifier: MIT
// A published model by its name and its matrices' codec, as benches are asked for one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/families/mixes.hpp"
#include "intaglio/families/published_models.hpp"
#include "intaglio/plan/planned.hpp"

namespace intaglio::bench {

/// "mistral_7b q8_0", "mistral_7b q4_k_m"; of a name alone, q8_0: BitNet's embedding and head are in f16.
class named_model {
 public:
  /// @error argument_error: no published model has the name, no codec or mix the second word
  explicit named_model(const std::string& word) {
    const std::string name = word.substr(0, word.find(' '));
    const families::published_model* const found = families::find_published_model(name);
    if (found == nullptr) throw argument_error("name", "a published model's", "'" + name + "'");
    model_ = *found;
    const std::string codec =
        name.size() == word.size() ? found->ternary() ? "f16" : "q8_0" : word.substr(name.size() + 1);
    if (const auto type = dtype_from_name(codec)) types_ = found->types(*type);
    else if (const auto mix = families::mix_of(*found->config, codec)) types_ = *mix;
    else throw argument_error("codec", "one of matrices, or a mix", "'" + codec + "'");
  }

  const decoder_config& config() const { return *model_.config; }
  /// @param context positions of the cache, at most the model's
  plan::planned planned(const plan::profile& target, std::uint32_t context, const plan::batch_shape& shape = {}) const {
    return families::planned_of(config(), types_, model_.name, target,
                                (std::min)(context, config().max_position_embeddings), shape);
  }

 private:
  families::published_model model_;
  families::weight_types types_;
};

}  // namespace intaglio::bench
