// SPDX-License-Identifier: MIT
// Routers of a feature index: each layer has a partition of its features into experts, and a linear map of the gates'
// input that chooses a token's experts (docs/walk.md). It is a file beside the index; feature_router_build.hpp makes
// one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/number_text.hpp"
#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/feature_index.hpp"

namespace intaglio::io {

/// The router of a layer.
struct router_layer {
  std::vector<std::uint32_t> expert_of;  ///< [features]: the expert of each
  std::vector<float> bias;               ///< [experts]
  std::vector<float> weights;            ///< [experts, hidden_size]
  std::size_t experts() const { return bias.size(); }
};

/// An expert that a token has.
struct routed_expert {
  std::uint32_t expert = 0;
  float score = 0;  ///< weights . x + bias
  float share = 0;  ///< softmax over the scores of the chosen experts
};

/// The routers of all layers, checked against their index.
class feature_router {
 public:
  static constexpr std::string_view default_file = "router.bin";
  static constexpr std::uint32_t most_experts = 65'536;

  /// @throws argument_error for layers that are no routers of the index
  feature_router(const feature_index& index, std::vector<router_layer> layers)
      : layers_(std::move(layers)), header_(header_of(index)) {
    if (layers_.size() != index.layers())
      throw argument_error("router", std::to_string(index.layers()) + " layers", std::to_string(layers_.size()));
    for (std::uint32_t layer = 0; layer < layers_.size(); ++layer)
      if (const std::string fault = fault_of(layers_[layer], index.layer(layer).features, header_.hidden_size);
          !fault.empty())
        throw argument_error("router of layer " + std::to_string(layer),
                             "one of its " + std::to_string(index.layer(layer).features) + " features", fault);
  }

  /// @throws file_error: no router, one of another index, a file that is too short, too long or without its checksum,
  /// numbers that are not finite
  static feature_router open(const std::filesystem::path& path, const feature_index& index) {
    const mapped_file file(path);
    reader from{file};
    const header wanted = header_of(index);
    from.expect_header(wanted);
    std::vector<router_layer> layers;
    for (std::uint32_t layer = 0; layer < index.layers(); ++layer)
      layers.push_back(
          from.layer("router of layer " + std::to_string(layer), index.layer(layer).features, wanted.hidden_size));
    from.expect_checksum();
    for (std::uint32_t layer = 0; layer < layers.size(); ++layer)
      if (const std::string fault = fault_of(layers[layer], index.layer(layer).features, wanted.hidden_size);
          !fault.empty())
        from.refuse(sizeof(header), "router of layer " + std::to_string(layer),
                    "every expert with features, every feature with an expert, finite numbers", fault);
    return {index, std::move(layers)};
  }

  /// Replaces the file atomically and flushes it to the disk. @throws file_error
  void write(const std::filesystem::path& path) const {
    atomic_file file(path);
    std::uint32_t sum = 0;
    const auto put = [&](auto from) {
      const auto bytes = std::as_bytes(from);
      sum = crc32(bytes, sum);
      file.write(bytes);
    };
    put(std::span(&header_, 1));
    for (const router_layer& each : layers_) {
      const std::array<std::uint32_t, 2> sizes{static_cast<std::uint32_t>(each.experts()),
                                               static_cast<std::uint32_t>(each.expert_of.size())};
      put(std::span(sizes));
      put(std::span(each.expert_of));
      put(std::span(each.bias));
      put(std::span(each.weights));
    }
    file.write(std::as_bytes(std::span(&sum, 1)));
    file.commit();
  }

  std::uint32_t layers() const { return static_cast<std::uint32_t>(layers_.size()); }
  const router_layer& layer(std::uint32_t index) const {
    if (index >= layers())
      throw argument_error("layer", "a layer of " + std::to_string(layers()), std::to_string(index));
    return layers_[index];
  }

  /// The `count` experts (or all) with the largest scores for the input of a layer's gates: the largest first, the
  /// lowest first where several are equal. Sums are in double.
  /// @throws argument_error: an input of another width, or one that gives no finite scores
  std::vector<routed_expert> route(std::uint32_t layer_index, std::span<const float> x, std::size_t count) const {
    const router_layer& of = layer(layer_index);
    if (x.size() != header_.hidden_size)
      throw argument_error("router input", std::to_string(header_.hidden_size) + " values", std::to_string(x.size()));
    std::vector<routed_expert> out;
    for (std::uint32_t e = 0; e < of.experts(); ++e) {
      double sum = static_cast<double>(of.bias[e]);
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += static_cast<double>(of.weights[e * x.size() + i]) * static_cast<double>(x[i]);
      if (!std::isfinite(sum))
        throw argument_error("router input", "finite scores",
                             "none of expert " + std::to_string(e) + " of layer " + std::to_string(layer_index));
      out.push_back({e, static_cast<float>(sum), 0});
    }
    std::ranges::stable_sort(out, [](const routed_expert& a, const routed_expert& b) { return a.score > b.score; });
    out.resize((std::min)(count, out.size()));
    double whole = 0;
    for (const routed_expert& each : out)
      whole += std::exp(static_cast<double>(each.score) - static_cast<double>(out.front().score));
    for (routed_expert& each : out)
      each.share = static_cast<float>(
          std::exp(static_cast<double>(each.score) - static_cast<double>(out.front().score)) / whole);
    return out;
  }
  /// The features of some experts, in rising order. Features that the router does not know (inserted ones) belong to no
  /// expert and are always included.
  std::vector<std::uint32_t> features(std::uint32_t layer_index, std::span<const routed_expert> experts,
                                      std::size_t all_features) const {
    const router_layer& of = layer(layer_index);
    std::vector<char> taken(of.experts());
    for (const routed_expert& each : experts) taken[each.expert] = 1;
    std::vector<std::uint32_t> out;
    for (std::uint32_t f = 0; f < all_features; ++f)
      if (f >= of.expert_of.size() || taken[of.expert_of[f]] != 0) out.push_back(f);
    return out;
  }

 private:
  struct header {
    std::array<char, 8> magic{'I', 'N', 'T', 'R', 'O', 'U', 'T', '1'};
    std::uint32_t identity = 0, hidden_size = 0, layers = 0, zero = 0;
  };
  /// Reads a router's file from its beginning. Errors name the file and the offset.
  struct reader {
    const mapped_file& file;
    std::uint64_t at = 0;

    [[noreturn]] void refuse(std::uint64_t offset, std::string what, std::string expected = {},
                             std::string found = {}) const {
      throw file_error(file.path(), offset, std::move(what), std::move(expected), std::move(found));
    }
    void expect_left(std::uint64_t bytes, std::string_view what) const {
      if (file.size() - at < bytes)
        refuse(at, "the file ends inside the " + std::string(what), std::to_string(bytes) + " bytes more",
               std::to_string(file.size() - at));
    }
    template <class T, std::size_t Count>
    void read(std::span<T, Count> out, std::string_view what) {
      const auto bytes = std::as_writable_bytes(out);
      expect_left(bytes.size(), what);
      file.read(at, bytes);
      at += bytes.size();
    }

    void expect_header(const header& wanted) {
      header found;
      read(std::span(&found, 1), "header");
      if (found.magic != wanted.magic)
        refuse(0, "not a router of features", std::string(wanted.magic.data(), wanted.magic.size()),
               printable(std::string_view(found.magic.data(), found.magic.size())));
      if (found.identity != wanted.identity || found.hidden_size != wanted.hidden_size || found.layers != wanted.layers)
        refuse(8, "a router of another index", text_of(wanted), text_of(found));
    }
    static std::string text_of(const header& of) {
      return feature_json::hex8(of.identity) + ", hidden_size " + std::to_string(of.hidden_size) + ", " +
             std::to_string(of.layers) + " layers";
    }
    router_layer layer(const std::string& where, std::uint32_t features, std::uint32_t hidden_size) {
      const std::uint64_t start = at;
      std::array<std::uint32_t, 2> sizes{};
      read(std::span(sizes), where);
      if (sizes[1] != features)
        refuse(start + 4, where + ": features", std::to_string(features), std::to_string(sizes[1]));
      if (sizes[0] == 0 || sizes[0] > (std::min)(features, most_experts))
        refuse(start, where + ": experts", "1 to " + std::to_string((std::min)(features, most_experts)),
               std::to_string(sizes[0]));
      expect_left(4 * (std::uint64_t{features} + sizes[0] + std::uint64_t{sizes[0]} * hidden_size), where);
      router_layer out;
      out.expert_of.resize(features);
      out.bias.resize(sizes[0]);
      out.weights.resize(std::size_t{sizes[0]} * hidden_size);
      read(std::span(out.expert_of), where);
      read(std::span(out.bias), where);
      read(std::span(out.weights), where);
      return out;
    }
    /// Reads the checksum of everything before it, which ends the file.
    void expect_checksum() {
      const std::uint64_t end = at;
      std::uint32_t stated = 0, sum = 0;
      read(std::span(&stated, 1), "checksum");
      if (at != file.size()) refuse(at, "bytes after the checksum", "none", std::to_string(file.size() - at));
      std::vector<std::byte> part;
      for (std::uint64_t from = 0; from < end; from += part.size()) {
        part.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(end - from, std::uint64_t{1} << 18)));
        file.read(from, part);
        sum = crc32(part, sum);
      }
      if (sum != stated) refuse(end, "checksum", feature_json::hex8(stated), feature_json::hex8(sum));
    }
  };
  static header header_of(const feature_index& index) {
    header out;
    out.identity = index.identity();
    out.hidden_size = index.config().hidden_size;
    out.layers = index.layers();
    return out;
  }
  /// Why a router is invalid; empty where it is valid.
  static std::string fault_of(const router_layer& of, std::uint32_t features, std::uint32_t hidden_size) {
    if (of.expert_of.size() != features) return std::to_string(of.expert_of.size()) + " features";
    if (of.experts() == 0 || of.experts() > (std::min)(features, most_experts))
      return std::to_string(of.experts()) + " experts";
    if (of.weights.size() != of.experts() * hidden_size) return std::to_string(of.weights.size()) + " weights";
    std::vector<char> has(of.experts());
    for (const std::uint32_t expert : of.expert_of) {
      if (expert >= of.experts())
        return "a feature of expert " + std::to_string(expert) + ", of which there are " + std::to_string(of.experts());
      has[expert] = 1;
    }
    for (std::size_t e = 0; e < has.size(); ++e)
      if (has[e] == 0) return "expert " + std::to_string(e) + " without features";
    const auto sound = [](std::span<const float> values) {
      return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
    };
    return sound(of.bias) && sound(of.weights) ? std::string() : std::string("NaN or infinity");
  }

  std::vector<router_layer> layers_;
  header header_;
};

}  // namespace intaglio::io
