// SPDX-License-Identifier: MIT
// walk trace: which features fired, by token and layer, as a walk of the CPU reference saw it or as a device reports.
#include "device_choice.hpp"
#include "walk_page.hpp"
#include "walked_files.hpp"

#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/device_class.hpp>
#include <intaglio/runtime/session_handle.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

double size_of(std::span<const float> vector) {
  double square = 0;
  for (const float value : vector) square += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(square);
}

/// Adds a layer's trace of a token: its features by contribution, the largest first.
void add_layer(traced_token& to, const reference::walked_ffn& of, std::size_t top) {
  std::vector<float> adds(of.chosen.size());
  for (std::size_t i = 0; i < adds.size(); ++i)
    adds[i] = static_cast<float>(
        std::fabs(static_cast<double>(of.values[i])) *
        size_of(reference::walked_layer::row(of.vectors.down, of.chosen[i], of.vectors.hidden_size)));
  to.sizes.push_back(static_cast<float>(size_of(adds)));
  auto& fired = to.layers.emplace_back();
  for (const std::uint32_t i : largest(adds, top))
    if (adds[i] != 0) fired.push_back({of.chosen[i], of.scores[of.chosen[i]], adds[i], of.values[i] < 0 ? -1.f : 1.f});
}

struct traced_text {
  std::vector<std::uint32_t> ids;
  trace_result trace;
};

traced_text trace_on_cpu(const walk_options& options, const walked_files& files, runtime::walked_model& model) {
  reference::walk_choice choice{.active_only = !options.count};
  if (options.count) choice.count = *options.count;
  traced_text out{continued(files, model, files.ids(options.prompt, options.ids), options.tokens, &choice), {}};
  model.restart();
  for (const std::uint32_t id : out.ids) {
    traced_token& token = out.trace.tokens.emplace_back();
    token.position = static_cast<std::uint32_t>(out.trace.tokens.size()) - 1;
    token.token = static_cast<std::int32_t>(id);
    model.feed(id, &choice, [&](const reference::walked_ffn& of) { add_layer(token, of, options.top); });
  }
  return out;
}

traced_text trace_on_device(const walk_options& options, const walked_files& files) {
  expect_one_ffn(files.source.config(), "--on-device",
                 "the walk on the CPU traces the features of a token's own experts");
  if (options.count) throw argument_error("--count", "all features on a device", std::to_string(*options.count));
  if (options.top == 0 || options.top > kernels::most_traced)
    throw argument_error("--top", "1 to " + std::to_string(kernels::most_traced) + " features on a device",
                         std::to_string(options.top));
  const gpu::device device = open_device(options.common);
  const plan::planned planned = files.plans.planned(
      files.plans.table(runtime::class_of(device)).is_for_cpus() ? plan::profiles::cpu : plan::profiles::portable,
      {.walk = false, .traced = options.top});
  const plan::table* const tables[] = {&planned.table()};
  basic_session session(device, tables, files.model(), {.patch = options.base ? nullptr : &files.patch});
  traced_text out;
  // Taken often enough that the ring never runs over.
  const std::size_t most = planned.table().trace.slot_count / 2;
  const auto take = [&] {
    for (traced_token& each : session.take_trace().tokens) out.trace.tokens.push_back(std::move(each));
  };
  const auto prompt = files.ids(options.prompt, options.ids);
  std::vector<std::int32_t> ids(prompt.begin(), prompt.end());
  for (std::size_t at = 0; at < ids.size(); at += most) {
    session.prefill(std::span(ids).subspan(at, std::min(most, ids.size() - at)), 1);
    take();
  }
  for (std::size_t left = options.tokens; left != 0 && session.position() < session.context();) {
    const auto step = static_cast<std::uint32_t>(std::min(left, most));
    const generation made = session.generate({.temperature = 0, .max_tokens = step});
    take();
    left -= made.ids.size();
    if (made.finish != finish_reason::length) break;
  }
  ids = session.history();
  // The last token waits for its successor, which may be any.
  if (session.position() < session.context()) session.prefill(std::vector<std::int32_t>{0}, 1);
  else ids.pop_back();
  take();
  if (files.words && ids.size() > prompt.size() && files.words->is_end_of_generation(ids.back())) ids.pop_back();
  out.ids.assign(ids.begin(), ids.end());
  out.trace.tokens.resize(std::min(out.trace.tokens.size(), ids.size()));
  require_no_messages(device);
  return out;
}

}  // namespace

void walk_trace(const walk_options& options) {
  using json = nlohmann::ordered_json;
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, options.base ? nullptr : &files.patch);
  const auto [ids, trace] = options.on_device ? trace_on_device(options, files) : trace_on_cpu(options, files, model);

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>> downs;
  for (const traced_token& token : trace.tokens)
    for (std::uint32_t layer = 0; layer < token.layers.size(); ++layer)
      for (const fired_feature& each : token.layers[layer])
        downs.try_emplace({layer, each.feature}, std::vector<float>{each.sign});
  std::vector<std::vector<float>> rows;
  for (const auto& [at, sign] : downs) {
    const reference::walked_layer vectors = model.vectors(at.first);
    auto& row = rows.emplace_back();
    for (const float value : reference::walked_layer::row(vectors.down, at.second, vectors.hidden_size))
      row.push_back(sign.front() * value);
  }
  const auto logits = model.promoted(rows);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::string>> promoted;
  std::size_t next = 0;
  for (const auto& [at, sign] : downs)
    for (const std::uint32_t token : largest(logits[next++], 5)) promoted[at].push_back(files.piece(token));
  std::vector<std::string> pieces;
  for (const std::uint32_t id : ids) pieces.push_back(files.piece(id));

  if (!options.html.empty()) {
    io::atomic_file file(platform::path_of(options.html));
    const std::string page = trace_page(files.plans.name, pieces, trace, promoted);
    file.write(std::as_bytes(std::span(page)));
    file.commit();
    note("wrote " + printable(options.html, 240));
  }
  if (options.html.empty() || options.json) {
    json out{
        {"model", files.plans.name}, {"tokens", json::array()}, {"fired", json::array()}, {"promotes", json::array()}};
    for (std::size_t i = 0; i < ids.size(); ++i)
      out["tokens"].push_back({{"id", ids[i]}, {"piece", pieces[i]}, {"added_by_layer", trace.tokens[i].sizes}});
    for (const traced_token& token : trace.tokens)
      for (std::size_t layer = 0; layer < token.layers.size(); ++layer)
        for (const fired_feature& each : token.layers[layer])
          out["fired"].push_back({{"token", token.position},
                                  {"layer", layer},
                                  {"feature", each.feature},
                                  {"score", each.score},
                                  {"contribution", each.contribution},
                                  {"sign", each.sign}});
    for (const auto& [at, tokens] : promoted)
      out["promotes"].push_back({{"layer", at.first}, {"feature", at.second}, {"tokens", tokens}});
    print_line(out.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

}  // namespace intaglio::tool
