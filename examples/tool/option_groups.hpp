// SPDX-License-Identifier: MIT
// Options that several commands have.
#pragma once

#include "commands.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/kernels/cache_layout.hpp>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace intaglio::tool {

inline void add_model(CLI::App& to, model_options& model) {
  to.add_option("-m,--model", model.path,
                "GGUF file or folder, or a file's https address; without it: the embedded fable")
      ->type_name("MODEL")
      ->check([](const std::string& path) { return path.empty() ? "expected a model's path, found ''" : ""; });
  to.add_option_function<std::string>(
        "--hf", [&model](const std::string& name) { model.path = "hf:" + name; },
        "a model of the Hugging Face hub by its name, also -hf; QUANTISATION as its files name it, else Q4_K_M")
      ->type_name("OWNER/REPO[:QUANTISATION]")
      ->excludes("--model");
  to.add_option("--i2s-layout", model.i2s_layout, "order of the codes in I2_S tensors, which no file states")
      ->type_name("LAYOUT")
      ->check(CLI::IsMember({"block128", "block64", "rows4"}))
      ->default_str("block128");
}

inline void add_codec(CLI::App& to, model_options& model) {
  to.add_option("--codec", model.codec,
                "compute the layers' matrices in this codec where the file's is another, which changes their values; "
                "embedding\nand head stay as the file has them; default: the file's own")
      ->type_name("C");
}

inline void add_lora(CLI::App& to, model_options& model) {
  to.add_option(
        "--lora", model.lora,
        "LoRA adapter, a GGUF file that is merged into the GGUF model as it is loaded, scaled by SCALE; several "
        "are\nmerged one after the other")
      ->type_name("FILE[:SCALE]");
}

inline void add_budget(CLI::App& to, model_options& model) {
  to.add_option("--weight-budget", model.weight_budget,
                "device memory that weights may take (6GB, 900MB); FFNs of the last layers that do not fit are read\n"
                "from the host's memory across the bus, slower; the same text")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE");
}

inline void add_cache_type(CLI::App& to, std::string& type) {
  std::vector<std::string> names;
  for (const kernels::cache_codec& each : kernels::cache_codecs) names.emplace_back(each.name);
  to.add_option("--cache-type", type,
                "how the KV cache holds keys and values; by default f16, on CPU drivers f32. q8_0 takes 8.5 bits an "
                "element, q4_0\n4.5, of heads of 64 or 128 channels; decode is then a dispatch for each step")
      ->type_name("TYPE")
      ->check(CLI::IsMember(names));
}

/// Accepts numbers from 1. CLI11's own check names the largest double, of 309 digits, as the other end.
inline std::string counts_from_one(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size() && number != 0 && number <= UINT32_MAX
             ? std::string{}
             : "expected a number 1 .. 4294967295, found '" + printable(text, 40) + "'";
}

inline void add_context(CLI::App& to, model_options& model) {
  to.add_option("--context", model.context,
                "positions that the KV cache has room for, at most the model's own; by default those that a model was "
                "engraved\nwith, else as many as fit, up to 16,384")
      ->type_name("N")
      ->check(counts_from_one);
  add_cache_type(to, model.cache_type);
}

/// @param more what else the help says
inline void add_devices(CLI::App& to, model_options& model, const char* more = "") {
  to.add_option("--devices", model.devices,
                "cut the model over several devices: their numbers, UUIDs or parts of their names, with commas, in the "
                "order of the\nlayers" +
                    std::string(more))
      ->type_name("LIST")
      ->delimiter(',')
      ->excludes("--device");
  to.add_option("--cut", model.cut,
                "layers in front of each cut, with commas: 16 ends the first stage after layer 15; by default by the "
                "devices' memory\nand rates")
      ->type_name("LIST")
      ->delimiter(',');
}

inline void add_mpi(CLI::App& to, model_options& model) {
  to.add_flag(
        "--mpi", model.mpi,
        "cut the model over the ranks of MPI, each with its own device and the same file: mpirun -n 2 intaglio run "
        "--mpi; for hosts\nthat trust each other")
      ->excludes("--devices");
}

inline void add_sampling(CLI::App& to, sampling_flags& flags) {
  to.add_option("--temperature", flags.temperature, "0 takes the most probable token (the default)")->type_name("T");
  to.add_option("--top-k", flags.top_k, "draw from the K most probable tokens")->type_name("K");
  to.add_option("--top-p", flags.top_p, "draw from the most probable tokens that hold P of the probability together")
      ->type_name("P");
  to.add_option("--min-p", flags.min_p, "leave out tokens under P times the most probable one's probability")
      ->type_name("P");
  to.add_option("--repeat-penalty", flags.repeat_penalty,
                "make tokens of the last 64 positions less probable; 1 is off")
      ->type_name("R");
  to.add_option("--prompt-lookup", flags.prompt_lookup,
                "draft N tokens at once from what the text has said before: the same text, sooner where it repeats "
                "itself; 0 is off")
      ->type_name("N");
  to.add_option("--gpu-idle", flags.gpu_idle,
                "leave the device idle for this share of the time, 0 to 0.95: slower, cooler, and others get their "
                "turn; the same text")
      ->type_name("SHARE");
  to.add_option("--seed", flags.seed, "the same seed gives the same text; by default a random one, which is printed")
      ->type_name("N")
      ->check([](const std::string& text) {  // CLI11 takes a larger number for the largest
        std::uint64_t seed = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seed);
        return problem == std::errc{} && end == text.data() + text.size()
                   ? std::string{}
                   : "expected a number 0 .. 18446744073709551615, found '" + printable(text, 40) + "'";
      });
}

}  // namespace intaglio::tool
