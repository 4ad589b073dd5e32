// SPDX-License-Identifier: MIT
// Measured choices for a device and a plan (runtime/tune.hpp), stored on disk beside the compiled pipelines: a variant
// of the modules, and how products of decode are split over workgroups. They do not change results; without them only
// speed is lost.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/plan/product_shape.hpp"
#include "intaglio/platform/files.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::runtime {

/// Choices for one device that tuning found: the variant of the kernels and shapes of products.
struct tuning {
  std::string variant;  ///< plan::uses() of the class
  std::vector<plan::product_shape> shapes;
  friend bool operator==(const tuning&, const tuning&) = default;

  /// The text of a file: "variant NAME", then a line "product KEY SUBGROUPS GROUPS" for each product, numbers in
  /// decimal.
  std::string text() const {
    std::string out = "variant " + variant + "\n";
    for (const plan::product_shape& each : shapes)
      out += "product " + std::to_string(each.product) + " " + std::to_string(each.subgroups) + " " +
             std::to_string(each.groups) + "\n";
    return out;
  }
  static constexpr std::uint32_t most_subgroups = 32, most_groups = 65535;
  /// @return nothing if a line differs from the format of text()
  static std::optional<tuning> parsed(std::string_view from) {
    tuning out;
    const auto line = [&] {
      const std::string_view its = from.substr(0, from.find('\n'));
      from.remove_prefix((std::min)(from.size(), its.size() + 1));
      return its;
    };
    const std::string_view first = line();
    if (!first.starts_with("variant ")) return std::nullopt;
    out.variant = first.substr(8);
    while (!from.empty()) {
      std::string_view its = line();
      if (!its.starts_with("product")) return std::nullopt;
      its.remove_prefix(7);
      std::array<std::uint64_t, 3> numbers{};
      for (std::uint64_t& each : numbers) {
        if (!its.starts_with(' ')) return std::nullopt;
        its.remove_prefix(1);
        const auto end = std::from_chars(its.data(), its.data() + its.size(), each);
        if (end.ec != std::errc{}) return std::nullopt;
        its.remove_prefix(static_cast<std::size_t>(end.ptr - its.data()));
      }
      if (!its.empty() || numbers[1] == 0 || numbers[1] > most_subgroups || numbers[2] == 0 || numbers[2] > most_groups)
        return std::nullopt;
      out.shapes.push_back(
          {numbers[0], static_cast<std::uint32_t>(numbers[1]), static_cast<std::uint32_t>(numbers[2])});
    }
    return out;
  }
  std::uint64_t hash() const { return gpu::detail::checksum(text()); }
};

/// The path of a plan's tuning, beside the file of its pipelines; empty where nothing is stored.
inline std::string tuning_path(const gpu::pipeline_cache& beside) {
  constexpr std::string_view from = ".pipelines";
  if (!beside.path().ends_with(from)) return {};
  return beside.path().substr(0, beside.path().size() - from.size()) + ".tuning";
}
/// The tuning that is stored for this device, driver and plan, if any. @param warning set where a file cannot be used
[[gnu::cold]] inline std::optional<tuning> kept_tuning(const gpu::pipeline_cache& beside,
                                                       std::string* warning = nullptr) {
  const std::string path = tuning_path(beside);
  std::string content, text, nothing;
  if (path.empty()) return std::nullopt;
  std::string problem = gpu::detail::read_whole_file(path, content);
  if (problem.empty() && content.empty()) return std::nullopt;
  if (problem.empty()) problem = gpu::detail::unframe_cache(beside.key(), content, text, nothing);
  std::optional<tuning> out;
  if (problem.empty() && !(out = tuning::parsed(text))) problem = "its lines are not those of a tuning";
  if (!problem.empty() && warning != nullptr)
    *warning = "tuning " + printable(path, 240) + ": " + problem + "; it is ignored, `intaglio tune` measures anew";
  return out;
}
/// Replaces the file as a whole; readers see the old one or the new one. @return the error, or empty
inline std::string keep_tuning(const gpu::pipeline_cache& beside, const tuning& what) {
  const std::string path = tuning_path(beside);
  return path.empty() ? "there is no folder for it"
                      : gpu::detail::write_whole_file(path.substr(0, path.rfind('/')), path,
                                                      gpu::detail::frame_cache(beside.key(), what.text(), {}));
}
/// Removes the tuning of this device, driver and plan. @return whether there was a file
inline bool forget_tuning(const gpu::pipeline_cache& beside) {
  const std::string path = tuning_path(beside);
  return !path.empty() && platform::remove_file(platform::path_of(path));
}

}  // namespace intaglio::runtime
