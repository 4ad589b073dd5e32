// SPDX-License-Identifier: MIT
// The commands and what each takes from the command line. Plain structs, so that only main.cpp pays for the parser.
#pragma once

#include "model_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Options that every command takes.
struct common_options {
  std::string device;  ///< index, UUID or part of the name; empty: by rule
  bool validate = false;
  bool quiet = false, all = false;
};

struct inspect_options {
  std::string file;
  bool json = false, tensors = false;
};
struct check_options {
  std::string file;
  std::string i2s_layout = "block128";
};
struct tokenize_options {
  model_options model;
  std::optional<std::string> text, file;
  bool special = false, bos = false, json = false;
};
struct detokenize_options {
  model_options model;
  std::string ids;
  bool json = false;
};
struct logits_options {
  model_options model;
  std::string ids, out;
  bool hidden = false;
  std::uint32_t chunk = 0;
};
struct embed_command_options {
  model_options model;
  std::vector<std::string> texts;
  std::optional<std::string> file, ids;
  std::string pooling;  ///< empty: as the model's files say
  bool normalize = true;
  std::uint32_t chunk = 0;
};
/// The flags of sampling as the command line has them; the library checks them.
struct sampling_flags {
  std::optional<float> temperature, top_p, min_p, repeat_penalty;
  float gpu_idle = 0;
  std::optional<std::uint32_t> top_k;
  std::uint32_t prompt_lookup = 0;
  std::optional<std::uint64_t> seed;
};
struct run_options {
  model_options model;
  std::optional<std::string> prompt, file, ids, system;
  bool chat = false, plain = false, json = false;
  std::optional<std::uint32_t> tokens;
  std::uint32_t chunk = 0, tokens_per_submit = 0;
  sampling_flags sampling;
  std::vector<std::string> stop;
};
struct chat_options {
  model_options model;
  std::optional<std::string> system;
  std::optional<std::uint32_t> tokens;
  sampling_flags sampling;
};
struct plan_options {
  std::string name, codec, profile = "cpu", html, bench;
  std::string cache_type;       ///< of the KV cache; empty: the profile's own
  std::uint32_t positions = 0;  ///< of it; 0: as the model has them
  model_options over;           ///< of it devices and cut
  bool json = false;
};
struct bench_options {
  model_options model;
  std::string synthetic, codec, html, storage = "automatic";
  std::optional<double> relu_zeros;
  std::vector<std::string> ab;  ///< names of ab_pairs (bench_variants.hpp)
  std::uint32_t prompt = 512, tokens = 128, context = 0, runs = 3;
  std::uint32_t positions = 0;  ///< of the plan's cache; 0: as the model has them
  std::uint32_t chunk = 0;      ///< tokens of the prompt fed at once; 0: the plan's
  bool json = false;
};
struct tune_options {
  model_options model;
  std::string synthetic, codec;
  double trial_ms = 20;
  std::uint32_t turns = 5;
  bool forget = false, json = false;
};
struct convert_options {
  std::string in, out, codec, embedding;
  std::string i2s_layout = "block128";
  std::uint32_t threads = 0;
  bool json = false;
};
struct index_options {
  std::string in, out, codec = "own", i2s_layout = "block128";
  std::uint32_t threads = 0;
  bool larql = false;                                        ///< the input is an index, the output LARQL's
  bool hnsw = false;                                         ///< a graph over the gates too
  std::optional<std::uint32_t> links, construction, search;  ///< of the graph
  bool json = false;
};
/// The options of all walk commands; each command uses some of them.
struct walk_options {
  model_options model;
  std::string index;
  std::optional<std::string> prompt, ids;
  std::uint32_t tokens = 8, top = 10;
  std::optional<std::uint32_t> layer, count;
  std::string html;
  bool base = false;       ///< without the journal
  bool hnsw = false;       ///< by the graph over the gates
  bool each = false;       ///< after every token, not the last alone
  bool on_device = false;  ///< gates are scored on the device, or a trace is printed
  common_options common{};
  bool json = false;
};
struct walk_router_options {
  model_options model;
  std::string index, action, file;
  std::string method = "clusters";
  std::uint32_t experts = 16, rounds = 12, top_k = 4, tokens = 8;
  std::optional<std::string> prompt, ids;
  bool base = false, json = false;
};
struct walk_edit_options {
  model_options model;
  std::string index, action;
  std::optional<std::uint32_t> layer, feature;
  std::string vectors;                      ///< file with gate, up and down
  std::optional<std::string> prompt, says;  ///< or an association
  float strength = 8;
  bool json = false;
};
struct fold_options {
  std::string model, index, out;
  std::string i2s_layout = "block128";
  bool json = false;
};
struct pack_command_options {
  std::string file, out, codec;
  std::string i2s_layout = "block128";
  std::uint32_t threads = 0;
};
struct engrave_options {
  std::string file, directory, name, codec;
};
struct cache_options {
  std::string action;  ///< list or delete
  std::vector<std::string> which;
  bool all = false, json = false;
};
struct devices_options {
  bool json = false;
};
struct doctor_options {
  bool report = false;  ///< everything that a row of docs/devices.md is made of, as one JSON object
  bool json = false;
};

/// Each returns when its work is done, or throws: input_error and intaglio's exceptions.
void inspect(const inspect_options& options);
void check(const check_options& options);
void tokenize(const tokenize_options& options);
void detokenize(const detokenize_options& options);
void logits(const logits_options& options, const common_options& common);
void embed(const embed_command_options& options, const common_options& common);
void run(const run_options& options, const common_options& common);
void chat(const chat_options& options, const common_options& common);
void plan(const plan_options& options, const common_options& common);
void bench(const bench_options& options, const common_options& common);
void tune(const tune_options& options, const common_options& common);
/// The codecs that convert writes, for messages.
std::string converted_codecs();
void convert(const convert_options& options);
void index(const index_options& options);
void walk_run(const walk_options& options);
void walk_bench(const walk_options& options);
void walk_sweep(const walk_options& options);
void walk_memory(const walk_options& options);
void walk_knn(const walk_options& options);
void walk_trace(const walk_options& options);
void walk_edit(const walk_edit_options& options);
void walk_router(const walk_router_options& options);
void fold(const fold_options& options);
void pack(const pack_command_options& options);
void engrave(const engrave_options& options);
void cache(const cache_options& options);
void devices(const devices_options& options);
void doctor(const doctor_options& options, const common_options& common);
/// What bench --json prints, as text.
std::string bench_text(const bench_options& options, const common_options& common);

}  // namespace intaglio::tool
