// SPDX-License-Identifier: MIT
// A model walked on the CPU over its index of features, by plain calls: for programs that stay, such as the server.
#pragma once

#include "model_file.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace intaglio::tool {

/// Which features fired for some tokens.
struct walk_features {
  struct fired {
    std::uint32_t position, layer, feature;
    float score;         ///< of the gate
    float contribution;  ///< norm of what it adds to the stream
  };
  std::vector<std::vector<float>> added;  ///< [tokens][layers]: norm of what the layer's FFN adds
  std::vector<fired> list;                ///< by position and layer, the largest contribution first
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
      promoted;  ///< tokens by (layer, feature)
};

/// Used by one thread at a time.
class walker {
 public:
  /// @param index folder of the index; made there where there is none yet
  /// @throws file_error, mismatch_error for an index of another model
  walker(const model_options& model, const std::string& index);
  ~walker();
  walker(const walker&) = delete;
  walker& operator=(const walker&) = delete;

  /// Logits after the tokens, [vocab_size], until the next call; empty where `stop` said so between two tokens.
  /// @param features of each layer, those with the largest scores; absent: all that the gate lets through, which is the
  /// dense result
  /// @throws argument_error: more than the context; an FFN that cannot be walked
  std::span<const float> logits(std::span<const std::int32_t> ids, const std::optional<std::size_t>& features,
                                const std::function<bool()>& stop);
  /// @param top features a token and layer  @return nothing where `stop` said so  @throws as logits()
  std::optional<walk_features> trace(std::span<const std::int32_t> ids, std::size_t top,
                                     const std::function<bool()>& stop);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace intaglio::tool
