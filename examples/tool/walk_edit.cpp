// SPDX-License-Identifier: MIT
// walk edit: features inserted, replaced, removed and restored in an index's journal; fold: the journal in a dense
// checkpoint.
#include "walked_files.hpp"

#include <intaglio/io/fold.hpp>
#include <intaglio/io/fold_hf.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/association.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

/// {"gate": [...], "up": [...], "down": [...]}
std::array<std::vector<float>, 3> vectors_of(const std::string& path) {
  const std::string text = read_text(path);
  const nlohmann::json found = nlohmann::json::parse(text, nullptr, false);
  std::array<std::vector<float>, 3> out;
  for (const io::feature_vector which : io::feature_vectors) {
    const std::string key(io::name(which));
    const bool sound = found.is_object() && found.contains(key) && found[key].is_array() &&
                       std::ranges::all_of(found[key], [](const auto& value) { return value.is_number(); });
    if (!sound)
      throw file_error(path, std::nullopt, "vectors of a feature",
                       R"({"gate": [numbers], "up": [numbers], "down": [numbers]})",
                       found.is_discarded() ? "no JSON" : "no numbers under \"" + key + "\"");
    for (const auto& value : found[key]) out[static_cast<std::size_t>(which)].push_back(value.get<float>());
  }
  return out;
}

}  // namespace

void walk_edit(const walk_edit_options& options) {
  const bool lists = options.action == "list";
  walked_files files(options.model, options.index, !lists);
  if (!lists) {
    if (!options.layer) throw argument_error("--layer", "the layer of the feature", "none");
    const std::uint32_t layer = *options.layer;
    if (layer >= files.index.layers())
      throw argument_error("--layer", "a layer of " + std::to_string(files.index.layers()), std::to_string(layer));
    const bool inserts = options.action == "insert", has_vectors = inserts || options.action == "update";
    if (!inserts && !options.feature) throw argument_error("--feature", "the feature's number", "none");
    io::feature_change change{inserts                      ? io::feature_edit::insert
                              : options.action == "update" ? io::feature_edit::update
                              : options.action == "remove" ? io::feature_edit::remove
                                                           : io::feature_edit::restore,
                              layer,
                              options.feature.value_or(0),
                              {}};
    if (has_vectors && options.vectors.empty() == !(options.prompt && options.says))
      throw argument_error("vectors", "either --vectors FILE, or --prompt TEXT and --says TEXT", "neither or both");
    if (has_vectors && !options.vectors.empty()) change.vectors = vectors_of(options.vectors);
    if (has_vectors && options.vectors.empty()) {
      runtime::walked_model model(files.plans.cpu, files.model(), files.index, &files.patch);
      const auto ids = files.ids(options.prompt, std::nullopt);
      const auto says = open_tokenizer(files.model()).encode(*options.says);
      if (says.empty()) throw argument_error("--says", "a text of at least one token", "none");
      const std::uint32_t wanted = static_cast<std::uint32_t>(says.front());
      const auto inputs = runtime::gate_inputs(model, ids, layer);
      const auto whole = continued(files, model, ids, 1, nullptr);
      change.vectors = runtime::association(model, layer, inputs, wanted,
                                            whole.size() > ids.size() ? whole.back() : ids.back(), options.strength);
    }
    if (inserts && !options.feature) {
      change.feature = files.patch.next_feature(layer);
      // Where a norm has a weight for each feature a new one replaces the one that is heard best.
      if (change.feature == files.patch.features(layer) &&
          files.index.layer(layer)[io::feature_vector::gate].type == dtype::i2_s) {
        change.feature = runtime::loudest_feature(files.model(), layer);
        files.patch.apply({io::feature_edit::remove, layer, change.feature, {}});
        note("note: feature " + std::to_string(change.feature) + " was removed for it; `restore` brings it back");
      }
    }
    files.patch.apply(change);
  }
  const auto changed = files.patch.changed();
  if (options.json) {
    json out{{"changes", files.patch.changes()}, {"changed", json::array()}};
    for (const auto& each : changed)
      out["changed"].push_back({{"layer", each.layer}, {"feature", each.feature}, {"state", io::name(each.edit)}});
    return print_line(out.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  print_line(std::to_string(files.patch.changes()) + " changes in the journal, " + std::to_string(changed.size()) +
             " features unlike the index");
  for (const auto& each : changed)
    print_line("  layer " + std::to_string(each.layer) + ", feature " + std::to_string(each.feature) + ": " +
               (each.edit == io::feature_edit::insert   ? "inserted"
                : each.edit == io::feature_edit::remove ? "removed"
                                                        : "replaced"));
}

void fold(const fold_options& options) {
  const walked_files files({options.model, options.i2s_layout}, options.index, false);
  io::checkpoint_options layout;
  for (const auto each : {io::i2s_layout::block128, io::i2s_layout::block64, io::i2s_layout::rows4})
    if (io::name(each) == options.i2s_layout) layout.layout = each;
  progress_bar bar("folding");
  const auto progress = [&](const io::file_progress& at) {
    bar.show(at.total_tensors == 0 ? 0 : static_cast<double>(at.tensors) / static_cast<double>(at.total_tensors),
             at.tensor);
  };
  const std::filesystem::path model = io::model_at(platform::path_of(options.model));
  const std::filesystem::path out = platform::path_of(options.out);
  const io::fold_report made = std::filesystem::is_directory(model)
                                   ? io::fold_hf(model, files.patch, out, progress)
                                   : io::fold(model, files.patch, out, layout, progress);
  bar.clear();
  if (options.json)
    return print_line(json{
        {"out", options.out},
        {"layers", made.layers},
        {"intermediate_size", made.intermediate_size},
        {"bytes",
         made.bytes}}.dump(-1, ' ', false, json::error_handler_t::replace));
  print_line(printable(options.out, 240) + ": " + std::to_string(made.layers.size()) +
             (made.layers.size() == 1 ? " layer" : " layers") + " changed, " + std::to_string(made.intermediate_size) +
             " features a layer, " + bytes_text(static_cast<double>(made.bytes)));
}

}  // namespace intaglio::tool
