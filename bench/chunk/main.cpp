// SPDX-License-Identifier: MIT
// Time of matmul_chunk at the shapes of models, codec by codec, module by module, tile by tile, and of ternary_chunk
// where the codec is `ternary`: chains of products that wait for each other and read weights that no cache holds.
// Microseconds and TFLOP/s; the best tile's sum over a model's layers. usage: chunk [codec... [--model NAME]...
// [--tokens N] [--matrix] [--portable] [--statistics] [--compile] [--spirv FILE]... [--tile
// ROWSxTOKENS/SUBGROUPS]...]; the module by fragments unless said; `--compile` makes the pipelines alone, which a
// driver then has on disk
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/measuring.hpp"
#include "bench/product_shapes.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/shader/activation.hpp"

using namespace intaglio;

namespace {

using namespace bench::shapes;
struct model {
  const char* name;
  std::span<const product> products;
  int layers;
};
constexpr model models[] = {{"mistral_7b", mistral, 32}, {"gemma3_4b", gemma, 34}, {"llama_32_1b", llama, 16}},
                ternary_model{"bitnet_2b_4t", bitnet, 30};

struct tile {
  std::uint32_t rows, tokens, subgroups;
};

constexpr std::uint64_t part = std::uint64_t{2} << 30, weights = 3, random = std::uint64_t{64} << 20;

class chunk_products {
 public:
  chunk_products(const gpu::device& on, std::uint32_t tokens, bool compile)
      : compile_(compile), on_(on), tokens_(tokens), queue_(on), warm_(on),
        small_(on, std::uint64_t{compile ? 1u : 512u} << 20, gpu::placement::device_local, "vectors") {
    if (compile) return;
    for (std::uint64_t at = 0; at < weights; ++at)
      weights_.emplace_back(on, part, gpu::placement::device_local, "weights");
    // Random numbers, small ones as f16, whatever else they are: a card that meets its limit of power is slower with
    // these than with one number.
    const gpu::buffer some(on, random, gpu::placement::readback, "random numbers");
    std::mt19937 numbers(1);
    for (std::uint64_t at = 0; at < random; at += 4) {
      const std::uint32_t word = (static_cast<std::uint32_t>(numbers()) & 0x8fff8fffu) | 0x20002000u;
      std::memcpy(some.mapped().data() + at, &word, 4);
    }
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      const auto fill = [&](const gpu::buffer& each, std::uint64_t bytes) {
        for (std::uint64_t at = 0; at < bytes; at += random) to.copy(some, 0, each, at, random);
      };
      fill(small_, std::uint64_t{512} << 20);
      for (const auto& each : weights_) fill(each, part);
      to.full_barrier();
    });
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, 4 * kernels::state::position, 4, 5)
          .fill(small_, 4 * kernels::state::count, 4, tokens)
          .full_barrier();
    });
  }

  bool statistics = false;  ///< shows the driver's statistics of each pipeline

  /// Microseconds of one product. `type`: none of ternary weights. `spirv`: empty for the library's module.
  double time(const product& p, std::optional<kernels::codec> type, const tile& by, kernels::variant module,
              std::span<const std::byte> spirv) {
    const std::uint64_t bytes =
        type ? kernels::matmul_weight_bytes(*type, p.rows, p.columns) : std::uint64_t{p.rows} * p.columns / 4;
    const auto width = runtime::choose_subgroup(on_.limits());
    const auto& face = kernels::interface_of(kernels::kernel_of(module));
    std::vector<gpu::specialization> constants{{0, by.subgroups * width.size}};
    const auto set = [&](std::string_view name, auto value) {
      constants.push_back(
          {static_cast<std::uint32_t>(face.specialization_index(name)), static_cast<std::uint32_t>(value)});
    };
    set("columns", p.columns), set("rows", p.rows), set("epilogue", p.after), set("tile_rows", by.rows),
        set("tile_tokens", by.tokens), set("head_dim", 128), set("q_size", p.q), set("kv_size", p.kv),
        set("context", 4096), set("cache_element", 0), set("max_tokens", tokens_);
    if (type) set("codec", *type), set("ring", 0);
    const auto words =
        runtime::patched_module(runtime::modules_of<>(module), *shader::activation_function{activation::silu}, module);
    const gpu::pipeline pipeline(on_, {.name = "matmul_chunk",
                                       .spirv = spirv.empty() ? std::as_bytes(std::span(words)) : spirv,
                                       .constants = constants,
                                       .push_constant_bytes = face.push_bytes(),
                                       .required_subgroup_size = width.required,
                                       .keep_statistics = statistics});
    for (const std::string& each : pipeline.statistics()) std::printf("    %s\n", each.c_str());
    if (compile_) return 1;
    const std::uint64_t base = small_.address(), each = (bytes + 255) / 256 * 256, copies = part / each * weights;
    const double seconds = bench::chain_seconds(warm_, 8, 5, [&](gpu::recorder& to, std::uint32_t i) {
      const std::uint64_t copy = i % copies, of = copy % weights;
      std::vector<std::uint64_t> push = face.unbound_push();
      const auto bind = [&](std::string_view name, std::uint64_t to_) { push[face.push_index(name)] = to_; };
      bind("input", base + (std::uint64_t{64} << 20)), bind("factors", base + (std::uint64_t{1} << 20));
      bind("weight", weights_[of].address() + copy / weights * each);
      bind("output", base + (std::uint64_t{128} << 20)), bind("state", base);
      bind("keys", base + (std::uint64_t{320} << 20)), bind("values", base + (std::uint64_t{400} << 20));
      bind(type ? "rope" : "scales", base + (std::uint64_t{2} << 20));
      const std::uint32_t of_tokens = (tokens_ + by.tokens - 1) / by.tokens, of_rows = (p.rows + by.rows - 1) / by.rows;
      to.dispatch(pipeline, std::as_bytes(std::span(push)),
                  {type ? of_tokens : of_rows, type ? of_rows : of_tokens, 1});
    });
    return seconds / 8 * 1e6;
  }

 private:
  bool compile_;  // pipelines alone
  const gpu::device& on_;
  std::uint32_t tokens_;
  gpu::queue queue_;
  tool::warmth warm_;
  gpu::buffer small_;
  std::vector<gpu::buffer> weights_;
};

struct options {
  std::vector<std::optional<kernels::codec>> codecs;
  std::vector<std::string> models;
  std::vector<tile> tiles;
  std::vector<std::pair<std::string, std::vector<std::byte>>> modules;  ///< names and texts
  std::uint32_t tokens = 512;
  bool matrix = false, portable = false, statistics = false, compile = false;

  kernels::variant module(bool coded) const {
    using kernels::variant;
    if (portable) return coded ? variant::matmul_chunk : variant::ternary_chunk;
    if (!coded) return variant::ternary_chunk_fragments;
    return matrix ? variant::matmul_chunk_matrix : variant::matmul_chunk_fragments;
  }
};

options read(int count, char** arguments) {
  options out;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    std::vector<kernels::codec> named;
    if (word == "--tokens") out.tokens = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--matrix") out.matrix = true;
    else if (word == "--portable") out.portable = true;
    else if (word == "--statistics") out.statistics = true;
    else if (word == "--compile") out.compile = true;
    else if (word == "--model") out.models.push_back(arguments[++i]);
    else if (word == "--tile") {
      tile by{};
      std::sscanf(arguments[++i], "%ux%u/%u", &by.rows, &by.tokens, &by.subgroups);
      out.tiles.push_back(by);
    } else if (word == "--spirv") out.modules.emplace_back(arguments[i + 1], bench::module_in(arguments[i + 1])), ++i;
    else if (word == "ternary") out.codecs.push_back({});
    else if (bench::add_codec(word, named)) out.codecs.push_back(named[0]);
    else throw argument_error("chunk", "a codec or an option", word);
  }
  if (out.codecs.empty()) out.codecs = {kernels::codec::q4_0, kernels::codec::q8_0, kernels::codec::bf16};
  if (out.tiles.empty()) out.tiles = {{128, 128, 4}, {128, 64, 4}, {256, 64, 8}};
  if (out.modules.empty()) out.modules.emplace_back("", std::vector<std::byte>{});
  return out;
}

void measure(chunk_products& on, const options& how, const model& of, std::optional<kernels::codec> type) {
  if (!how.models.empty() && std::find(how.models.begin(), how.models.end(), of.name) == how.models.end()) return;
  const char* const codec = type ? kernels::info(*type).name.data() : "ternary";
  double sum = 0;
  for (const product& p : of.products) {
    double best = 1e9;
    std::string all;
    for (const auto& [name, spirv] : how.modules) {
      if (!name.empty()) all += " " + name.substr(name.rfind('/') + 1);
      for (const tile& by : how.tiles) {
        if (by.rows > p.rows) continue;
        double microseconds = 0;
        try {
          microseconds = on.time(p, type, by, how.module(type.has_value()), spirv);
        } catch (const intaglio::error& problem) {  // more shared memory than there is
          continue;
        }
        best = std::min(best, microseconds);
        char text[96];
        std::snprintf(text, sizeof text, "  %ux%u/%u %.1f", by.rows, by.tokens, by.subgroups, microseconds);
        all += text;
      }
    }
    sum += best * of.layers;
    std::printf("%-12s %-7s %-8s %7.1f us %6.1f TFLOP/s %s\n", of.name, codec, p.name, best,
                2e-6 * p.rows * p.columns * how.tokens / best, all.c_str());
    std::fflush(stdout);
  }
  std::printf("%-12s %-7s products of %u tokens: %.1f ms, %.0f tok/s without the rest\n", of.name, codec, how.tokens,
              sum / 1e3, 1e6 * how.tokens / sum);
}

}  // namespace

int main(int count, char** arguments) try {
  const options how = read(count, arguments);
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  chunk_products on(device, how.tokens, how.compile);
  on.statistics = how.statistics;
  for (const auto type : how.codecs) {
    if (!type) measure(on, how, ternary_model, type);
    else
      for (const model& of : models) measure(on, how, of, type);
  }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
