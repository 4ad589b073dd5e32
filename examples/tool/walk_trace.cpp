// SPDX-License-Identifier: MIT
// walk trace: which features fired, by token and layer.
#include "walk_page.hpp"
#include "walked_files.hpp"

#include <nlohmann/json.hpp>

namespace intaglio::tool {

void walk_trace(const walk_options& options) {
  using json = nlohmann::ordered_json;
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, options.base ? nullptr : &files.patch);
  reference::walk_choice choice{.active_only = !options.count};
  if (options.count) choice.count = *options.count;
  const auto ids = continued(files, model, files.ids(options.prompt, options.ids), options.tokens, &choice);

  std::vector<fired_feature> fired;
  std::vector<std::vector<float>> sizes;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>> downs;
  model.restart();
  for (const std::uint32_t id : ids) {
    const auto position = static_cast<std::uint32_t>(sizes.size());
    sizes.emplace_back();
    model.feed(id, &choice, [&](const reference::walked_ffn& of) {
      const std::size_t width = of.vectors.hidden_size;
      std::vector<float> adds(of.chosen.size());
      double square = 0;
      for (const float value : reference::accumulate_features(of.vectors, of.chosen, of.values)) square += static_cast<double>(value) * static_cast<double>(value);
      sizes.back().push_back(static_cast<float>(std::sqrt(square)));
      for (std::size_t i = 0; i < adds.size(); ++i) {
        double norm = 0;
        for (const float value : reference::walked_layer::row(of.vectors.down, of.chosen[i], width)) norm += static_cast<double>(value) * static_cast<double>(value);
        adds[i] = static_cast<float>(std::fabs(static_cast<double>(of.values[i])) * std::sqrt(norm));
      }
      for (const std::uint32_t i : largest(adds, options.top)) {
        if (adds[i] == 0) continue;
        fired.push_back({position, of.layer, of.chosen[i], of.scores[of.chosen[i]], adds[i]});
        const auto down = reference::walked_layer::row(of.vectors.down, of.chosen[i], width);
        const float sign = of.values[i] < 0 ? -1.f : 1.f;
        auto& kept = downs[{of.layer, of.chosen[i]}];
        if (kept.empty())
          for (const float value : down) kept.push_back(sign * value);
      }
    });
  }
  std::vector<std::vector<float>> rows;
  for (const auto& [at, down] : downs) rows.push_back(down);
  const auto logits = model.promoted(rows);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::string>> promoted;
  std::size_t next = 0;
  for (const auto& [at, down] : downs)
    for (const std::uint32_t token : largest(logits[next++], 5)) promoted[at].push_back(files.piece(token));
  std::vector<std::string> pieces;
  for (const std::uint32_t id : ids) pieces.push_back(files.piece(id));

  if (!options.html.empty()) {
    io::atomic_file file(options.html);
    const std::string page = trace_page(files.plans.name, pieces, sizes, fired, promoted);
    file.write(std::as_bytes(std::span(page)));
    file.commit();
    note("wrote " + printable(options.html, 240));
  }
  if (options.html.empty() || options.json) {
    json out{{"model", files.plans.name}, {"tokens", json::array()}, {"fired", json::array()}, {"promotes", json::array()}};
    for (std::size_t i = 0; i < ids.size(); ++i) out["tokens"].push_back({{"id", ids[i]}, {"piece", pieces[i]}, {"added_by_layer", sizes[i]}});
    for (const fired_feature& each : fired)
      out["fired"].push_back({{"token", each.position}, {"layer", each.layer}, {"feature", each.feature}, {"score", each.score}, {"contribution", each.contribution}});
    for (const auto& [at, tokens] : promoted) out["promotes"].push_back({{"layer", at.first}, {"feature", at.second}, {"tokens", tokens}});
    print_line(out.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

}  // namespace intaglio::tool
