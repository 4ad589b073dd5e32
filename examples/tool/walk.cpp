// SPDX-License-Identifier: MIT
// walk run, sweep and memory: a model's FFNs walked feature by feature on the CPU reference (docs/walk.md).
#include "walk_page.hpp"
#include "walk_report.hpp"

#include <intaglio/platform/facts.hpp>

#include <span>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

/// Logits after every token. @param choice nullptr: dense
std::vector<std::vector<float>> all_logits(runtime::walked_model& model, std::span<const std::uint32_t> ids,
                                           const reference::walk_choice* choice) {
  std::vector<std::vector<float>> out;
  model.restart();
  for (const std::uint32_t id : ids) {
    const auto row = model.feed(id, choice);
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}
runtime::walk_error error_of(const std::vector<std::vector<float>>& walked,
                             const std::vector<std::vector<float>>& dense) {
  runtime::walk_error out;
  for (std::size_t i = 0; i < dense.size(); ++i) out.add(walked[i], dense[i]);
  return out;
}

/// Gate, up or down, of a layer or of all its experts.
bool is_ffn_matrix(std::string_view name) {
  const std::string_view ends[] = {".weight", "_exps.weight"}, kinds[] = {"ffn_gate", "ffn_up", "ffn_down"};
  return std::ranges::any_of(kinds, [&](std::string_view kind) {
    return name.starts_with(kind) && std::ranges::find(ends, name.substr(kind.size())) != std::end(ends);
  });
}

/// The numbers of features that sweep walks: powers of two from 16 on, those between, and all.
std::vector<std::size_t> swept_counts(std::size_t features) {
  std::vector<std::size_t> out;
  for (std::size_t k = 16; k < features; k *= 2) {
    out.push_back(k);
    if (k * 3 / 2 < features) out.push_back(k * 3 / 2);
  }
  out.push_back(features);
  return out;
}

}  // namespace

void walk_run(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, journal(files, options));
  const auto ids = files.ids(options.prompt, options.ids);
  reference::walk_choice choice{.active_only = !options.count};
  if (options.count) choice.count = *options.count;
  const auto whole = continued(files, model, ids, options.tokens, &choice);
  const std::vector<std::int32_t> made(whole.begin() + static_cast<std::ptrdiff_t>(ids.size()), whole.end());
  std::string text;
  if (files.words)
    io::append_replacing_invalid(
        text, files.words->decode(std::vector<std::int32_t>(whole.begin(), whole.end()), {.skip_control = true}));
  if (options.json)
    return print_line(
        dumped_json(json{{"text", text}, {"ids", made}, {"changes", options.base ? 0 : files.patch.changes()}}));
  print_line(text);
}

void walk_sweep(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, journal(files, options));
  const decoder_config& c = files.source.config();
  const auto ids = continued(files, model, files.ids(options.prompt, options.ids), options.tokens, nullptr);
  const auto dense = all_logits(model, ids, nullptr);
  const std::size_t features = features_of_token(c);
  const std::vector<std::size_t> counts = swept_counts(features);
  std::vector<boundary_point> boundaries;
  std::vector<count_point> curve;
  progress_bar bar("sweeping");
  const double steps = static_cast<double>(counts.size()) + c.num_hidden_layers + 1;
  for (std::uint32_t first = 0; first <= c.num_hidden_layers; ++first) {
    bar.show(first / steps, "dense below layer " + std::to_string(first));
    const reference::walk_choice choice{.first_layer = first};
    boundaries.push_back({first, error_of(all_logits(model, ids, &choice), dense)});
  }
  for (const std::size_t k : counts) {
    bar.show((c.num_hidden_layers + 1. + static_cast<double>(curve.size())) / steps, std::to_string(k) + " features");
    const reference::walk_choice choice{.count = k};
    curve.push_back({k, error_of(all_logits(model, ids, &choice), dense)});
  }
  bar.clear();
  if (!options.html.empty()) {
    io::atomic_file file(platform::path_of(options.html));
    const std::string page = sweep_page(files.plans.name, ids.size(), features, boundaries, curve);
    file.write(std::as_bytes(std::span(page)));
    file.commit();
    note("wrote " + printable(options.html, 240));
  }
  if (options.json) {
    const auto figures = [](const runtime::walk_error& e) {
      return json{{"relative_error", e.relative()},
                  {"cosine", e.cosine},
                  {"top1_agreement", e.agreement()},
                  {"kl_nats", e.divergence}};
    };
    json out{{"tokens", ids.size()}, {"features", features}};
    for (const auto& each : boundaries)
      out["boundary"].push_back(json{{"first_walked_layer", each.first_layer}}),
          out["boundary"].back().update(figures(each.error));
    for (const auto& each : curve)
      out["count"].push_back(json{{"features", each.count}}), out["count"].back().update(figures(each.error));
    return print_line(dumped_json(out));
  }
  const auto cells = [](const std::string& first, const runtime::walk_error& e) {
    return aligned_row({first, std::to_string(e.same_top) + " of " + std::to_string(e.positions),
                        scientific_text(e.relative()), fixed(e.cosine, 6), scientific_text(e.divergence)});
  };
  print_line("full walk from layer B on, dense below, " + std::to_string(ids.size()) + " tokens");
  print_line(aligned_row({"B", "same top-1", "relative", "cosine", "KL (nats)"}));
  for (const auto& each : boundaries) print_line(cells(std::to_string(each.first_layer), each.error));
  print_line("sparse walk, the K features of a layer with the largest gate score");
  print_line(aligned_row({"K", "same top-1", "relative", "cosine", "KL (nats)"}));
  for (const auto& each : curve) print_line(cells(std::to_string(each.count), each.error));
}

void walk_memory(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  const plan::table& table = files.plans.cpu;
  const auto ids = files.ids(options.prompt, options.ids);
  const reference::walk_choice exact{.active_only = true};
  struct figures {
    double anonymous = 0, mapped = 0;
  };
  const auto now = [] {
    const platform::memory_use use = platform::memory_of_process();
    return figures{static_cast<double>(use.own), static_cast<double>(use.of_files)};
  };
  const figures before = now();
  const auto measured = [&](const reference::walk_choice* choice) {
    // Vectors are read from the mapped files a layer at a time and not kept.
    runtime::walked_model model(table, files.model(), files.index, journal(files, options), 0);
    std::vector<float> last;
    for (const std::uint32_t id : ids) {
      const auto logits = model.feed(id, choice);
      last.assign(logits.begin(), logits.end());
    }
    const figures at = now();
    return std::pair(figures{at.anonymous - before.anonymous, at.mapped}, last);
  };
  const auto [walked, walked_logits] = measured(&exact);
  const auto [dense, dense_logits] = measured(nullptr);
  runtime::walk_error error;
  error.add(walked_logits, dense_logits);
  double ffn = 0;
  for (const plan::weight& each : table.weights) {
    bool is_ffn = false;
    for (std::size_t i = 0; i < each.source_count; ++i) is_ffn = is_ffn || is_ffn_matrix(each.sources[i].view());
    const bool scales =
        each.layout == plan::weight_layout::ternary_scales || each.layout == plan::weight_layout::vector_f32;
    if (is_ffn && !scales)
      ffn += static_cast<double>(each.bytes) * (each.per_layer ? files.source.config().num_hidden_layers : 1);
  }
  const double all = static_cast<double>(table.weight_bytes());
  if (options.json)
    return print_line(dumped_json(json{{"index_bytes", files.index.bytes()},
                                       {"weights", {{"dense", all}, {"walk_only", all - ffn}}},
                                       {"process",
                                        {{"dense", {{"anonymous", dense.anonymous}, {"mapped", dense.mapped}}},
                                         {"walk_only", {{"anonymous", walked.anonymous}, {"mapped", walked.mapped}}}}},
                                       {"same_top1", error.same_top == 1},
                                       {"relative_error", error.relative()}}));
  print_line(aligned_row({"", "dense", "walk only"}));
  print_line(aligned_row({"weights", bytes_text(all), bytes_text(all - ffn)}) +
             "   of the plan, as they are in memory");
  print_line(aligned_row({"resident", bytes_text(dense.anonymous), bytes_text(walked.anonymous)}) +
             "   the process's own, beyond " + bytes_text(before.anonymous) + " before");
  print_line(aligned_row({"mapped", bytes_text(dense.mapped), bytes_text(walked.mapped)}) +
             "   pages of files that were touched, which the system takes back when it needs to");
  print_line("index " + bytes_text(static_cast<double>(files.index.bytes())) + ", mapped; last logits " +
             (error.relative() == 0 ? std::string("the same bits") : "apart by " + scientific_text(error.relative())));
}

}  // namespace intaglio::tool
