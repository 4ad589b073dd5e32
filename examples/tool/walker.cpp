// SPDX-License-Identifier: MIT
#include "walker.hpp"

#include "walked_files.hpp"

#include <intaglio/platform/path_text.hpp>

#include <cmath>

namespace intaglio::tool {
namespace {

const std::string& made(const model_options& model, const std::string& index) {
  const std::filesystem::path folder = platform::path_of(index);
  if (std::filesystem::exists(folder / io::feature_index_file)) return index;
  io::checkpoint_features source(open_model(model), std::nullopt, std::uint64_t{64} << 20);
  io::feature_index_builder(source, "own", folder, {.progress = [](const auto&) { graceful_stop::look(); }}).run();
  return index;
}

}  // namespace

struct walker::parts {
  parts(const model_options& options, const std::string& folder)
      : files(options, made(options, folder), false), model(files.plans.cpu, files.model(), files.index, &files.patch) {
  }
  walked_files files;
  runtime::walked_model model;
};

walker::walker(const model_options& model, const std::string& index) : parts_(std::make_unique<parts>(model, index)) {}
walker::~walker() = default;

std::span<const float> walker::logits(std::span<const std::int32_t> ids, const std::optional<std::size_t>& features,
                                      const std::function<bool()>& stop) {
  reference::walk_choice choice{.active_only = !features};
  if (features) choice.count = *features;
  std::span<const float> out;
  parts_->model.restart();
  for (const std::int32_t id : ids) {
    if (stop()) return {};
    out = parts_->model.feed(static_cast<std::uint32_t>(id), &choice);
  }
  return out;
}

std::optional<walk_features> walker::trace(std::span<const std::int32_t> ids, std::size_t top,
                                           const std::function<bool()>& stop) {
  const reference::walk_choice choice{.active_only = true};
  const auto norm = [](std::span<const float> values) {
    double square = 0;
    for (const float value : values) square += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(square);
  };
  walk_features out;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>> downs;
  parts_->model.restart();
  for (const std::int32_t id : ids) {
    if (stop()) return std::nullopt;
    const auto position = static_cast<std::uint32_t>(out.added.size());
    out.added.emplace_back();
    parts_->model.feed(static_cast<std::uint32_t>(id), &choice, [&](const reference::walked_ffn& of) {
      out.added.back().push_back(
          static_cast<float>(norm(reference::accumulate_features(of.vectors, of.chosen, of.values))));
      const auto down = [&](std::uint32_t i) {
        return reference::walked_layer::row(of.vectors.down, of.chosen[i], of.vectors.hidden_size);
      };
      std::vector<float> adds(of.chosen.size());
      for (std::uint32_t i = 0; i < adds.size(); ++i)
        adds[i] = static_cast<float>(std::fabs(static_cast<double>(of.values[i])) * norm(down(i)));
      for (const std::uint32_t i : largest(adds, top)) {
        if (adds[i] == 0) continue;
        out.list.push_back({position, of.layer, of.chosen[i], of.scores[of.chosen[i]], adds[i]});
        auto& kept = downs[{of.layer, of.chosen[i]}];
        if (kept.empty())
          for (const float value : down(i)) kept.push_back(of.values[i] < 0 ? -value : value);
      }
    });
  }
  std::vector<std::vector<float>> rows;
  for (const auto& [at, down] : downs) rows.push_back(down);
  const auto promoted = parts_->model.promoted(rows);
  std::size_t next = 0;
  for (const auto& [at, down] : downs) out.promoted[at] = largest(promoted[next++], 5);
  return out;
}

}  // namespace intaglio::tool
