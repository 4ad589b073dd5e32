// SPDX-License-Identifier: MIT
// index: a model's FFNs as feature-major files.
#include "commands.hpp"
#include "console.hpp"
#include "graph_search.hpp"
#include "model_file.hpp"

#include <intaglio/io/feature_index_build.hpp>
#include <intaglio/io/vindex.hpp>
#include <intaglio/platform/path_text.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

std::optional<dtype> index_codec(const std::string& text) {
  if (text == "own") return std::nullopt;
  const auto codec = dtype_from_name(text);
  if (!codec || (*codec != dtype::f32 && *codec != dtype::f16 && *codec != dtype::bf16))
    throw argument_error("--codec", "own, f32, f16 or bf16", "'" + printable(text, 40) + "'");
  return codec;
}

io::i2s_layout index_layout(const std::string& wanted) {
  return wanted == "block64" ? io::i2s_layout::block64
         : wanted == "rows4" ? io::i2s_layout::rows4
                             : io::i2s_layout::block128;
}

void print_larql_report(const index_options& options, const decoder_config& c) {
  if (options.json)
    print_line(json{{"out", options.out},
                    {"layers", c.num_hidden_layers},
                    {"features", c.intermediate_size},
                    {"hidden_size", c.hidden_size}}
                   .dump(-1, ' ', false, json::error_handler_t::replace));
  else
    print_line(printable(options.out, 240) + ": LARQL's layout, " + std::to_string(c.num_hidden_layers) +
               " layers of " + std::to_string(c.intermediate_size) + " features");
}

/// Makes the graphs over the gates of an index.
graph_report index_graphs(const index_options& options, const std::filesystem::path& out) {
  io::graph_parameters parameters;
  parameters.links = options.links.value_or(parameters.links);
  parameters.construction = options.construction.value_or(parameters.construction);
  parameters.search = options.search.value_or(parameters.search);
  progress_bar linking("linking");
  return build_graph(
      io::feature_index::open(out, {.contents = false}), parameters, options.threads,
      [&linking](const io::file_progress& at) {
        linking.show(at.total_bytes == 0 ? 0 : static_cast<double>(at.bytes) / static_cast<double>(at.total_bytes),
                     std::to_string(at.tensors) + " of " + std::to_string(at.total_tensors) + " layers");
      });
}

std::string index_type(const io::feature_manifest& of, io::feature_vector which) {
  return std::string(io::feature_type_name(of.layers.front()[which].type));
}

json index_json(const index_options& options, const io::feature_manifest& manifest,
                const io::feature_build_report& made, const std::optional<graph_report>& graph) {
  const decoder_config& c = manifest.config;
  json out{{"out", options.out},
           {"model_type", name(c.model_type)},
           {"layers", made.layers},
           {"kept_layers", made.kept},
           {"features", io::features_of_layer(c)},
           {"experts", std::max(1u, c.num_local_experts)},
           {"hidden_size", c.hidden_size},
           {"types",
            {{"gate", index_type(manifest, io::feature_vector::gate)},
             {"up", index_type(manifest, io::feature_vector::up)},
             {"down", index_type(manifest, io::feature_vector::down)}}},
           {"bytes", made.bytes}};
  if (graph) out["graph"] = {{"layers", graph->layers}, {"kept_layers", graph->kept}, {"bytes", graph->bytes}};
  return out;
}

void print_index(const index_options& options, const io::feature_manifest& manifest,
                 const io::feature_build_report& made, const std::optional<graph_report>& graph) {
  const decoder_config& c = manifest.config;
  print_line(printable(options.out, 240) + ": " + std::to_string(made.layers) + " layers of " +
             std::to_string(io::features_of_layer(c)) + " features" +
             (c.num_local_experts == 0 ? "" : " of " + std::to_string(c.num_local_experts) + " experts") + ", gate " +
             index_type(manifest, io::feature_vector::gate) + ", up " + index_type(manifest, io::feature_vector::up) +
             ", down " + index_type(manifest, io::feature_vector::down) + ", " +
             bytes_text(static_cast<double>(made.bytes)));
  if (graph)
    print_line("graph over the gates of " + std::to_string(graph->layers) + " layers, " +
               bytes_text(static_cast<double>(graph->bytes)) +
               (graph->kept == 0 ? "" : ", " + std::to_string(graph->kept) + " of which were there"));
}

}  // namespace

void index(const index_options& options) {
  const std::optional<dtype> codec = index_codec(options.codec);
  progress_bar bar("indexing");
  const auto progress = [&bar](const io::file_progress& at) {
    bar.show(at.total_bytes == 0 ? 0 : static_cast<double>(at.bytes) / static_cast<double>(at.total_bytes),
             bytes_text(static_cast<double>(at.bytes)) + " of " + bytes_text(static_cast<double>(at.total_bytes)) +
                 ", " + std::to_string(at.tensors / 3) + " of " + std::to_string(at.total_tensors / 3) + " layers");
  };
  const std::filesystem::path in = platform::path_of(options.in), out = platform::path_of(options.out);
  if (options.larql) {
    const io::feature_index index = io::feature_index::open(in, {.threads = options.threads});
    io::export_vindex(index, out, progress);
    bar.clear();
    print_larql_report(options, index.config());
    return;
  }
  naming_file(options.in, [&] {
    const bool vindex = io::is_vindex(in);
    if (vindex && codec) throw argument_error("--codec", "own, the types that LARQL's index has", options.codec);
    if (options.hnsw && !vindex)
      if (const std::uint32_t experts =
              io::checkpoint::open(in, {.layout = index_layout(options.i2s_layout)}).config().num_local_experts;
          experts != 0)
        throw argument_error(
            "--hnsw",
            "a model with one FFN a layer, since a mixture's tokens look at the gates of their own experts alone",
            std::to_string(experts) + " experts a layer");
    const io::feature_build_options build{
        .codec = codec, .layout = index_layout(options.i2s_layout), .threads = options.threads, .progress = progress};
    const io::feature_build_report made =
        vindex ? io::import_vindex(in, out, build) : io::build_feature_index(in, out, build);
    bar.clear();
    for (const auto& line : made.warnings) warn(line);
    const io::feature_manifest manifest = io::read_feature_manifest(out);
    std::optional<graph_report> graph;
    if (options.hnsw) graph = index_graphs(options, out);
    options.json
        ? print_line(index_json(options, manifest, made, graph).dump(-1, ' ', false, json::error_handler_t::replace))
        : print_index(options, manifest, made, graph);
    if (made.kept == made.layers) note("note: the index was whole already, and is this model's");
    else if (made.kept != 0)
      note("note: continued after " + std::to_string(made.kept) + (made.kept == 1 ? " layer" : " layers") +
           " that were there");
  });
}

}  // namespace intaglio::tool
