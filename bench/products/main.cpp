// SPDX-License-Identifier: MIT
// Time of matmul at the shapes of Mistral 7B and Gemma-3 4B, codec by codec, as chains in which each product waits for
// the one before and reads weights that no cache holds: bytes, microseconds, and the share of a streaming read in the
// same run. usage: products [codec... [--subgroups N] [--groups N] [--tokens N] [--spirv FILE] [--statistics]
// [--start]]: start measures 528 rows of each
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "bench/measuring.hpp"
#include "examples/tool/stream_read.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
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
  kernels::prologue before;
  kernels::epilogue after;
  std::uint32_t q = 0, kv = 0;
};
using kernels::epilogue, kernels::prologue;
constexpr product mistral[] = {{"q+k+v", 6144, 4096, prologue::norm, epilogue::rope_cache, 4096, 1024},
                               {"output", 4096, 4096, prologue::plain, epilogue::add},
                               {"gate+up", 28672, 4096, prologue::norm, epilogue::gated},
                               {"down", 4096, 14336, prologue::plain, epilogue::add},
                               {"head", 32000, 4096, prologue::norm, epilogue::store}};
constexpr product gemma[] = {{"q+k+v", 4096, 2560, prologue::norm, epilogue::store},
                             {"output", 2560, 2048, prologue::plain, epilogue::store},
                             {"gate+up", 20480, 2560, prologue::norm, epilogue::gated},
                             {"down", 2560, 10240, prologue::plain, epilogue::store},
                             {"head", 262144, 2560, prologue::norm, epilogue::store}};

struct options {
  std::uint32_t subgroups = 8, groups = 0, tokens = 1;
  bool statistics = false, start = false;
  std::vector<std::byte> spirv;
};

constexpr std::uint64_t room = std::uint64_t{6} << 30, part = std::uint64_t{2} << 30;

class token_products {
 public:
  token_products(const gpu::device& on, options how)
      : on_(on), how_(std::move(how)), queue_(on), warm_(on),
        small_(on, 64u << 20, gpu::placement::device_local, "vectors") {
    for (std::uint64_t at = 0; at < room; at += part)
      weights_.emplace_back(on, part, gpu::placement::device_local, "weights");
    const std::uint32_t position = 5;
    bench::run_once(on_, queue_, [&](gpu::recorder& to) { to.fill(small_, 0, 64u << 20, 0x3c003c00u).full_barrier(); });
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, 4 * kernels::state::position, 4, position)
          .fill(small_, 4 * kernels::state::count, 4, how_.tokens)
          .full_barrier();
    });
  }

  /// Seconds of one link of a chain: what a chain three times as long takes more. A timestamp after each dispatch
  /// would be waited for.
  template <class Record>
  double chain(std::uint32_t length, const Record& record) {
    const double one = run(length, record);
    return (run(3 * length, record) - one) / (2 * length);
  }
  template <class Record>
  double run(std::uint32_t length, const Record& record) {
    gpu::recorder to(on_, "chain");
    warm_.warm(to);  // the same for every length
    for (std::uint32_t i = 0; i < length; ++i) {
      record(to, i);
      to.barrier();
    }
    const gpu::recording commands = to.finish();
    std::vector<double> times;
    for (int turn = 0; turn < 7; ++turn) {
      const auto start = std::chrono::steady_clock::now();
      bench::run(queue_, commands);
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return bench::median(std::move(times));
  }

  /// Bytes and microseconds of one product.
  std::pair<double, double> time(const product& p, kernels::codec type, std::uint32_t subgroups, std::uint32_t most) {
    const std::uint64_t bytes = kernels::matmul_weight_bytes(type, p.rows, p.columns);
    const auto width = runtime::choose_subgroup(on_.limits());
    const auto& face = kernels::matmul_interface;
    std::vector<gpu::specialization> constants{{0, subgroups * width.size}};
    const auto set = [&](std::string_view name, auto value) {
      constants.push_back(
          {static_cast<std::uint32_t>(face.specialization_index(name)), static_cast<std::uint32_t>(value)});
    };
    const std::uint64_t staged = kernels::matmul_staged_bytes(type, p.columns, how_.tokens);
    set("columns", p.columns), set("rows", p.rows), set("codec", type), set("prologue", p.before),
        set("epilogue", p.after), set("tile_tokens", how_.tokens);
    constants.push_back(
        {static_cast<std::uint32_t>(face.specialization_index("eps")), std::bit_cast<std::uint32_t>(1e-5f)});
    set("staged", staged + subgroups * 64 + 256 <= on_.limits().max_shared_memory_bytes), set("head_dim", 128),
        set("q_size", p.q), set("kv_size", p.kv), set("context", 4096), set("ring", 0), set("cache_element", 0);
    set("subgroup_width", width.size);
    const auto words =
        runtime::patched_module(runtime::modules_of<>(kernels::variant::matmul),
                                *shader::activation_function{activation::silu}, kernels::variant::matmul);
    std::vector<std::byte> module(std::as_bytes(std::span(words)).begin(), std::as_bytes(std::span(words)).end());
    if (!how_.spirv.empty()) module = how_.spirv;
    if (std::pair key(p.name + std::to_string(p.rows), std::pair(type, subgroups)); key != made_) {
      made_ = key;
      pipeline_ = gpu::pipeline(on_, {.name = "matmul",
                                      .spirv = module,
                                      .constants = constants,
                                      .push_constant_bytes = face.push_bytes(),
                                      .required_subgroup_size = width.required,
                                      .keep_statistics = how_.statistics});
      for (const std::string& line : pipeline_.statistics()) std::printf("    %s\n", line.c_str());
    }
    const std::uint32_t wanted = ((p.rows + 3) / 4 + subgroups - 1) / subgroups,
                        groups = most == 0 ? wanted : std::min((p.rows + 3) / 4, most);
    const std::uint64_t base = small_.address(), each = (bytes + 255) / 256 * 256,
                        copies = part / each * weights_.size();
    const std::uint32_t length = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(2'000'000'000u / bytes, 4, 100));
    const double seconds = chain(length, [&](gpu::recorder& to, std::uint32_t i) {
      const std::uint64_t copy = i % copies, of = copy % weights_.size();
      // input and output by turns, as in a chain of layers
      const std::uint64_t x = base + ((i % 2 != 0 ? 4u : 8u) << 20), y = base + ((i % 2 != 0 ? 8u : 4u) << 20);
      const std::uint64_t push[] = {x,
                                    base + (2u << 20),
                                    weights_[of].address() + copy / weights_.size() * each,
                                    y,
                                    base,
                                    base + (40u << 20),
                                    base + (50u << 20),
                                    base + (3u << 20),
                                    base,
                                    0,  // no gates are kept, nor first tokens
                                    0};
      to.dispatch(pipeline_, std::as_bytes(std::span(push)), {groups, 1, 1});
    });
    return {static_cast<double>(bytes), seconds * 1e6};
  }

 private:
  const gpu::device& on_;
  options how_;
  gpu::queue queue_;
  tool::warmth warm_;
  gpu::buffer small_;
  std::vector<gpu::buffer> weights_;
  std::pair<std::string, std::pair<kernels::codec, std::uint32_t>> made_;  // what the pipeline is for
  gpu::pipeline pipeline_;
};

}  // namespace

int main(int count, char** arguments) try {
  std::vector<kernels::codec> codecs;
  options how;
  std::vector<std::uint32_t> widths, mosts;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto number = [&] { return static_cast<std::uint32_t>(std::atoi(arguments[++i])); };
    if (word == "--subgroups") widths.push_back(number());
    else if (word == "--groups") mosts.push_back(number());
    else if (word == "--tokens") how.tokens = number();
    else if (word == "--statistics") how.statistics = true;
    else if (word == "--start") how.start = true;
    else if (word == "--spirv") how.spirv = bench::module_in(arguments[++i]);
    else if (!bench::add_codec(word, codecs)) throw argument_error("products", "a codec or an option", word);
  }
  if (codecs.empty()) codecs = {kernels::codec::q4_0, kernels::codec::q8_0, kernels::codec::bf16};
  if (widths.empty()) widths = {8};
  if (mosts.empty()) mosts = {0};
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  token_products on(device, how);
  const double rate = tool::stream_read_rate(device);
  std::printf("streaming read: %.0f GB/s\n", rate / 1e9);
  for (const auto type : codecs)
    for (const auto& [model, products, layers] :
         {std::tuple{"Mistral 7B", std::span(mistral), 32}, std::tuple{"Gemma-3 4B", std::span(gemma), 34}}) {
      double best_sum = 0, bytes_sum = 0;
      for (product p : products) {
        const bool head = p.rows >= 32000;
        if (how.start) p.rows = 528;
        double best = 1e9, bytes = 0;
        std::string all;
        for (const std::uint32_t width : widths)
          for (const std::uint32_t most : mosts) {
            const auto [moved, microseconds] = on.time(p, type, width, most);
            bytes = moved;
            best = std::min(best, microseconds);
            char text[64];
            std::snprintf(text, sizeof text, " %ux%u:%.1f", width, most, microseconds);
            all += text;
          }
        best_sum += best * (head ? 1 : layers);
        bytes_sum += bytes * (head ? 1 : layers);
        std::printf("%-10s %-5s %-8s %8.2f MB %8.2f us %5.1f %% of streaming %s\n", model,
                    kernels::info(type).name.data(), p.name, bytes / 1e6, best, bytes / best / rate * 1e8,
                    widths.size() * mosts.size() > 1 ? all.c_str() : "");
      }
      std::printf("%-10s %-5s products of a token: %.0f us, %.1f %% of streaming, %.0f tok/s without attention\n",
                  model, kernels::info(type).name.data(), best_sum, bytes_sum / best_sum / rate * 1e8, 1e6 / best_sum);
    }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
