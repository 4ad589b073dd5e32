// SPDX-License-Identifier: MIT
// Time of matmul_chunk at the shapes of Mistral 7B and Gemma-3 4B, codec by codec, tile by tile: chains of products
// that wait for each other and read weights that no cache holds. Microseconds and TFLOP/s; the best tile's sum over a
// model's layers. usage: chunk [codec... [--tokens N] [--portable] [--statistics] [--spirv FILE] [--tile
// ROWSxTOKENS/SUBGROUPS]...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "bench/measuring.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/shader/activation.hpp"

using namespace intaglio;

namespace {

struct product {
  const char* name;
  std::uint32_t rows, columns;
  kernels::epilogue after;
  std::uint32_t q = 0, kv = 0;
};
using kernels::epilogue;
constexpr product mistral[] = {{"q+k+v", 6144, 4096, epilogue::rope_cache, 4096, 1024},
                               {"output", 4096, 4096, epilogue::add},
                               {"gate+up", 28672, 4096, epilogue::gated},
                               {"down", 4096, 14336, epilogue::add}};
constexpr product gemma[] = {{"q+k+v", 4096, 2560, epilogue::store},
                             {"output", 2560, 2048, epilogue::store},
                             {"gate+up", 20480, 2560, epilogue::gated},
                             {"down", 2560, 10240, epilogue::store}};

struct tile {
  std::uint32_t rows, tokens, subgroups;
};

constexpr std::uint64_t part = std::uint64_t{2} << 30, weights = 3;

class chunk_products {
 public:
  chunk_products(const gpu::device& on, std::uint32_t tokens, bool matrix, std::vector<std::byte> spirv)
      : on_(on), tokens_(tokens), matrix_(matrix), spirv_(std::move(spirv)), queue_(on), warm_(on),
        small_(on, std::uint64_t{512} << 20, gpu::placement::device_local, "vectors") {
    for (std::uint64_t at = 0; at < weights; ++at)
      weights_.emplace_back(on, part, gpu::placement::device_local, "weights");
    // Numbers of all sizes, as far as a fill has them: halves of 1 to 2.
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, 0, std::uint64_t{512} << 20, 0x3c003d55u);
      for (auto& each : weights_) to.fill(each, 0, part, 0x35a8b4a1u);
      to.full_barrier();
    });
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, 4 * kernels::state::position, 4, 5)
          .fill(small_, 4 * kernels::state::count, 4, tokens)
          .full_barrier();
    });
  }

  bool statistics = false;  ///< shows what the driver tells of each pipeline

  /// Microseconds of one product.
  double time(const product& p, kernels::codec type, const tile& by) {
    const std::uint64_t bytes = kernels::matmul_weight_bytes(type, p.rows, p.columns);
    const auto width = runtime::choose_subgroup(on_.limits());
    const auto& face = kernels::matmul_chunk_interface;
    std::vector<gpu::specialization> constants{{0, by.subgroups * width.size}};
    const auto set = [&](std::string_view name, auto value) {
      constants.push_back(
          {static_cast<std::uint32_t>(face.specialization_index(name)), static_cast<std::uint32_t>(value)});
    };
    set("columns", p.columns), set("rows", p.rows), set("codec", type), set("epilogue", p.after),
        set("tile_rows", by.rows), set("tile_tokens", by.tokens), set("head_dim", 128);
    set("q_size", p.q), set("kv_size", p.kv), set("context", 4096), set("ring", 0), set("cache_element", 0),
        set("max_tokens", tokens_);
    const kernels::variant module = matrix_ ? kernels::variant::matmul_chunk_matrix : kernels::variant::matmul_chunk;
    const auto words =
        runtime::patched_module(runtime::modules_of<>(module), *shader::activation_function{activation::silu}, module);
    const gpu::pipeline pipeline(
        on_, {.name = "matmul_chunk",
              .spirv = spirv_.empty() ? std::as_bytes(std::span(words)) : std::span<const std::byte>(spirv_),
              .constants = constants,
              .push_constant_bytes = face.push_bytes(),
              .required_subgroup_size = width.required,
              .keep_statistics = statistics});
    for (const std::string& each : pipeline.statistics()) std::printf("    %s\n", each.c_str());
    const std::uint64_t base = small_.address(), each = (bytes + 255) / 256 * 256, places = part / each * weights;
    const double seconds = bench::chain_seconds(warm_, 8, 5, [&](gpu::recorder& to, std::uint32_t i) {
      const std::uint64_t place = i % places, of = place % weights;
      const std::uint64_t push[] = {base + (std::uint64_t{64} << 20),
                                    base + (std::uint64_t{1} << 20),
                                    weights_[of].address() + place / weights * each,
                                    base + (std::uint64_t{128} << 20),
                                    base,
                                    base + (std::uint64_t{320} << 20),
                                    base + (std::uint64_t{400} << 20),
                                    base + (std::uint64_t{2} << 20)};
      to.dispatch(pipeline, std::as_bytes(std::span(push)),
                  {(tokens_ + by.tokens - 1) / by.tokens, (p.rows + by.rows - 1) / by.rows, 1});
    });
    return seconds / 8 * 1e6;
  }

 private:
  const gpu::device& on_;
  std::uint32_t tokens_;
  bool matrix_;
  std::vector<std::byte> spirv_;
  gpu::queue queue_;
  tool::warmth warm_;
  gpu::buffer small_;
  std::vector<gpu::buffer> weights_;
};

}  // namespace

int main(int count, char** arguments) try {
  std::vector<kernels::codec> codecs;
  std::vector<tile> tiles;
  std::vector<std::byte> spirv;
  std::uint32_t tokens = 512;
  bool matrix = true, statistics = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--tokens") tokens = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--portable") matrix = false;
    else if (word == "--statistics") statistics = true;
    else if (word == "--tile") {
      tile by{};
      std::sscanf(arguments[++i], "%ux%u/%u", &by.rows, &by.tokens, &by.subgroups);
      tiles.push_back(by);
    } else if (word == "--spirv") spirv = bench::module_in(arguments[++i]);
    else if (!bench::add_codec(word, codecs)) throw argument_error("chunk", "a codec or an option", word);
  }
  if (codecs.empty()) codecs = {kernels::codec::q4_0, kernels::codec::q8_0, kernels::codec::bf16};
  if (tiles.empty()) tiles = {{128, 128, 4}, {128, 64, 4}, {64, 64, 4}};
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  chunk_products on(device, tokens, matrix, spirv);
  on.statistics = statistics;
  for (const auto type : codecs)
    for (const auto& [model, products, layers] :
         {std::tuple{"Mistral 7B", std::span(mistral), 32}, std::tuple{"Gemma-3 4B", std::span(gemma), 34}}) {
      double sum = 0;
      for (const product& p : products) {
        double best = 1e9;
        std::string all;
        for (const tile& by : tiles) {
          const double microseconds = on.time(p, type, by);
          best = std::min(best, microseconds);
          char text[96];
          std::snprintf(text, sizeof text, "  %ux%u/%u %.0f", by.rows, by.tokens, by.subgroups, microseconds);
          all += text;
        }
        sum += best * layers;
        std::printf("%-10s %-5s %-8s %7.1f us %6.1f TFLOP/s %s\n", model, kernels::info(type).name.data(), p.name, best,
                    2e-6 * p.rows * p.columns * tokens / best, all.c_str());
        std::fflush(stdout);
      }
      std::printf("%-10s %-5s products of %u tokens: %.1f ms, %.0f tok/s without the rest\n", model,
                  kernels::info(type).name.data(), tokens, sum / 1e3, 1e6 * tokens / sum);
    }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
