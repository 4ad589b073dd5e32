// SPDX-License-Identifier: MIT
// walk router: makes routers of an index, and walks the features of the experts that they choose.
#include "walked_files.hpp"

#include <intaglio/io/feature_router_build.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/routed_walk.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

std::filesystem::path file_of(const walk_router_options& options) {
  return options.file.empty() ? platform::path_of(options.index) / io::feature_router::default_file
                              : platform::path_of(options.file);
}

void build(const walk_router_options& options) {
  const io::feature_index index = io::feature_index::open(platform::path_of(options.index));
  progress_bar bar("building");
  const bool own = index.config().num_local_experts != 0;  // a mixture has experts and routers of its own
  const io::feature_router router =
      own ? io::mixture_router(index, open_model(options.model))
          : io::build_router(
                index,
                {.experts = options.experts,
                 .method = options.method == "contiguous" ? io::router_method::contiguous : io::router_method::clusters,
                 .rounds = options.rounds,
                 .progress = [&](std::uint32_t layers) {
                   bar.show(static_cast<double>(layers) / static_cast<double>(index.layers()),
                            std::to_string(layers) + " of " + std::to_string(index.layers()) + " layers");
                 }});
  bar.clear();
  router.write(file_of(options));
  std::size_t least = ~std::size_t{0}, most = 0;
  for (std::uint32_t layer = 0; layer < router.layers(); ++layer) {
    std::vector<std::size_t> sizes(router.layer(layer).experts());
    for (const std::uint32_t expert : router.layer(layer).expert_of) ++sizes[expert];
    least = std::min(least, *std::ranges::min_element(sizes)), most = std::max(most, *std::ranges::max_element(sizes));
  }
  if (options.json)
    return print_line(json{
        {"file", file_of(options).string()},
        {"layers", router.layers()},
        {"experts", router.layer(0).experts()},
        {"smallest", least},
        {"largest", most}}.dump(-1, ' ', false, json::error_handler_t::replace));
  print_line(std::to_string(router.layers()) + " layers of " + std::to_string(router.layer(0).experts()) +
             " experts with " + std::to_string(least) + " to " + std::to_string(most) +
             " features: " + printable(file_of(options).string(), 240));
}

void run(const walk_router_options& options) {
  const walked_files files(options.model, options.index, false);
  const io::feature_router router = io::feature_router::open(file_of(options), files.index);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, options.base ? nullptr : &files.patch);
  const auto ids = files.ids(options.prompt, options.ids);
  // The exact walk of squared ReLU is the full one; of other models all features of the experts.
  const bool active = files.source.config().hidden_act == activation::relu_squared;
  const auto routed = runtime::predict_with_router(model, router, ids, options.tokens, options.top_k, active);
  const reference::walk_choice full{.active_only = active};
  runtime::walk_error error;
  model.restart();
  std::span<const float> dense;
  for (const std::uint32_t id : std::span(routed.ids).first(routed.statistics.tokens)) dense = model.feed(id, &full);
  error.add(routed.logits, dense);

  std::string text;
  if (files.words)
    io::append_replacing_invalid(
        text,
        files.words->decode(std::vector<std::int32_t>(routed.ids.begin(), routed.ids.end()), {.skip_control = true}));
  if (options.json) {
    json out{{"text", text},
             {"ids", std::vector<std::uint32_t>(routed.ids.begin() + static_cast<std::ptrdiff_t>(ids.size()),
                                                routed.ids.end())},
             {"tokens", routed.statistics.tokens},
             {"features_walked", routed.statistics.walked()},
             {"last_logits",
              {{"relative_error", error.relative()},
               {"cosine", error.cosine},
               {"same_top1", error.same_top == 1},
               {"kl_nats", error.divergence}}},
             {"layers", json::array()}};
    for (const auto& layer : routed.statistics.layers)
      out["layers"].push_back({{"chosen", layer.chosen},
                               {"shares", layer.shares},
                               {"features", layer.features},
                               {"all_features", layer.all_features}});
    return print_line(out.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  print_line(text);
  char line[160];
  std::snprintf(line, sizeof line, "%.1f %% of the features walked; last logits: relative error %.2e, KL %.2e nats",
                100 * routed.statistics.walked(), error.relative(), error.divergence);
  print_line(line);
  print_line("       layer    features   experts by how many of " + std::to_string(routed.statistics.tokens) +
             " tokens had them");
  for (std::size_t layer = 0; layer < routed.statistics.layers.size(); ++layer) {
    const auto& of = routed.statistics.layers[layer];
    std::vector<std::uint32_t> order = largest(std::vector<float>(of.chosen.begin(), of.chosen.end()), 6);
    std::string experts;
    for (const std::uint32_t e : order)
      if (of.chosen[e] != 0) experts += "  " + std::to_string(e) + ": " + std::to_string(of.chosen[e]);
    std::snprintf(
        line, sizeof line, "%12zu%10.1f %%  ", layer,
        100 * static_cast<double>(of.features) / static_cast<double>(std::max<std::uint64_t>(of.all_features, 1)));
    print_line(line + experts);
  }
}

}  // namespace

void walk_router(const walk_router_options& options) { options.action == "build" ? build(options) : run(options); }

}  // namespace intaglio::tool
