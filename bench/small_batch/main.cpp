// SPDX-License-Identifier: MIT
// matmul_batch: compares its form by cooperative matrices with the form by dot products, bit by bit, over codecs and
// odd shapes; and the time of both at the shapes of Mistral 7B and Gemma-3 4B, as chains of products that wait for each
// other and read weights that no cache holds.
// usage: small_batch [codec... [--check] [--tokens N]... [--tile ROWSxSUBGROUPS]... [--spirv FILE]... [--only-files]
// [--statistics] [--only PRODUCT]]; a FILE stands beside the module with matrices
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/measuring.hpp"
#include "bench/product_shapes.hpp"
#include "examples/tool/stream_read.hpp"
#include "intaglio/core/float16.hpp"
#include "intaglio/core/joining_thread.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "intaglio/shader/activation.hpp"

using namespace intaglio;

namespace {

using kernels::codec;
using namespace bench::shapes;

struct form {
  std::uint32_t rows = 0, subgroups = 4, tokens = 8;  ///< of a tile; rows 0: dot products
  std::size_t module = 0;
};
struct options {
  std::vector<codec> codecs;
  std::vector<std::uint32_t> tokens;
  std::vector<form> tiles;
  std::vector<std::vector<std::byte>> modules;
  bool check = false, statistics = false, only_files = false;
  std::string only;
};

constexpr std::uint64_t part = std::uint64_t{2} << 30, weight_parts = 2, megabyte = 1u << 20;

class rows_products {
 public:
  rows_products(const gpu::device& on, options how)
      : on_(on), how_(std::move(how)), queue_(on), warm_(on), transfer_(on),
        small_(on, 512 * megabyte, gpu::placement::device_local, "vectors"),
        read_(on, 16 * megabyte, gpu::placement::readback, "results") {
    for (std::uint64_t at = 0; at < weight_parts; ++at)
      weights_.emplace_back(on, how_.check ? 16 * megabyte : part, gpu::placement::device_local, "weights");
  }

  gpu::pipeline pipeline(const product& p, codec type, const form& by) const {
    const auto width = runtime::choose_subgroup(on_.limits());
    const auto& face = kernels::matmul_batch_interface;
    const std::uint32_t lanes = by.rows == 0 ? width.size : 32;
    std::vector<gpu::specialization> constants{{0, by.subgroups * lanes}};
    const auto set = [&](std::string_view name, auto value) {
      constants.push_back(
          {static_cast<std::uint32_t>(face.specialization_index(name)), static_cast<std::uint32_t>(value)});
    };
    set("columns", p.columns), set("rows", p.rows), set("codec", type), set("epilogue", p.after),
        set("tile_tokens", by.tokens), set("tile_rows", by.rows == 0 ? 4 * by.subgroups : by.rows),
        set("head_dim", 128);
    set("q_size", p.q), set("kv_size", p.kv), set("context", 4096), set("cache_element", 0),
        set("subgroup_width", lanes), set("slot_words", 0), set("page_size", 0);
    const kernels::variant module =
        by.rows != 0 ? kernels::variant::matmul_batch_tiled : kernels::variant::matmul_batch;
    auto words =
        runtime::patched_module(runtime::modules_of<>(module), *shader::activation_function{activation::silu}, module);
    if (by.rows != 0 && by.module != 0) {
      const auto& bytes = how_.modules[by.module - 1];
      words.resize(bytes.size() / 4);
      std::memcpy(words.data(), bytes.data(), bytes.size());
      words = kernels::splicer(words, *shader::activation_function{activation::silu}).spliced();
    }
    gpu::pipeline out(on_, {.name = "matmul_batch",
                            .spirv = std::as_bytes(std::span(words)),
                            .constants = constants,
                            .push_constant_bytes = face.push_bytes(),
                            .required_subgroup_size = width.required,
                            .keep_statistics = how_.statistics});
    return out;
  }
  static std::array<std::uint32_t, 3> grid(const product& p, const form& by, std::uint32_t tokens) {
    const std::uint32_t rows = by.rows == 0 ? 4 * by.subgroups : by.rows;
    return {(p.rows + rows - 1) / rows, (tokens + by.tokens - 1) / by.tokens, 1};
  }
  static form dots(std::uint32_t rows, std::uint32_t tokens) {
    std::uint32_t tile = std::min(8u, tokens);
    while (tile % 4 == 0 && rows / 4 * ((tokens + tile - 1) / tile) < 2112) tile /= 2;
    return {0, 4, tile};
  }

  std::vector<std::uint64_t> push(std::uint64_t weight, const form& by) const {
    const std::uint64_t base = small_.address();
    return {base + (by.rows == 0 ? x_at : tiled_at),
            weight,
            base + y_at,
            base,
            base + keys_at,
            base + values_at,
            base + rope_at,
            base};
  }
  void tokens(std::uint32_t count) {
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, 4 * kernels::state::position, 4, 5)
          .fill(small_, 4 * kernels::state::count, 4, count)
          .full_barrier();
    });
  }

  /// Random rows of a codec, with factors of all sizes.
  std::vector<std::uint32_t> rows_of(codec type, std::uint32_t rows, std::uint32_t columns) {
    const kernels::codec_info& block = kernels::info(type);
    std::vector<std::byte> source(kernels::file_row_bytes(type, columns) * rows);
    for (std::byte& each : source) each = static_cast<std::byte>(runtime::next_random(random_) >> 56);
    codecs::with_codec(block.type, [&]<class C>() {
      for (std::size_t at = 0; at < source.size(); at += block.block_bytes) {
        const float largest = static_cast<float>(runtime::next_random(random_) >> 40) * 0x1p-24f + 0.01f;
        codecs::scale_block<C>(reinterpret_cast<std::uint8_t*>(source.data() + at), largest);
      }
    });
    std::vector<std::uint32_t> out(static_cast<std::size_t>(kernels::matmul_weight_bytes(type, rows, columns) / 4));
    const std::array<std::span<const std::byte>, 1> sources{source};
    kernels::repack_matmul(type, kernels::row_order::plain(rows), sources, columns, 0,
                           std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// x of tokens, whose blocks have sizes of their own; one has a number that is none.
  void make_x(std::uint32_t columns, std::uint32_t count) {
    std::vector<float> x(std::size_t{columns} * count);
    float size = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % 32 == 0) size = std::ldexp(1.0f, static_cast<int>(runtime::next_random(random_) >> 59) - 20);
      x[i] = (static_cast<float>(runtime::next_random(random_) >> 40) * 0x1p-23f - 1.0f) * size;
    }
    transfer_.upload(small_, plain_at, std::as_bytes(std::span(x)));
    const auto width = runtime::choose_subgroup(on_.limits());
    const auto& face = kernels::fixed_interface;
    tokens(count);
    for (const std::uint32_t tiled : {0u, 1u}) {
      std::vector<gpu::specialization> constants{{0, 8 * width.size}};
      const auto set = [&](std::string_view name, std::uint32_t value) {
        constants.push_back({static_cast<std::uint32_t>(face.specialization_index(name)), value});
      };
      set("width", columns), set("prologue", 0), set("eps", 0), set("subgroup_width", width.size), set("tiled", tiled);
      const gpu::pipeline fixed(on_, {.name = "fixed",
                                      .spirv = runtime::modules_of<>(kernels::variant::fixed),
                                      .constants = constants,
                                      .push_constant_bytes = face.push_bytes(),
                                      .required_subgroup_size = width.required});
      const std::uint64_t base = small_.address(),
                          to_push[] = {base + plain_at, base + plain_at, base + (tiled != 0 ? tiled_at : x_at), base};
      bench::run_once(on_, queue_, [&](gpu::recorder& to) {
        to.dispatch(fixed, std::as_bytes(std::span(to_push)), {1, count, 1});
      });
    }
  }
  std::vector<std::uint32_t> result(const product& p, const form& by, const gpu::pipeline& pipe, std::uint32_t count) {
    const std::uint64_t words = std::uint64_t{p.rows} * count;
    const auto pushed = push(weights_[0].address(), by);
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      to.fill(small_, y_at, 4 * words, 0x3f000000u)
          .fill(small_, keys_at, megabyte, 0)
          .fill(small_, values_at, megabyte, 0)
          .full_barrier();
      to.dispatch(pipe, std::as_bytes(std::span(pushed)), grid(p, by, count)).full_barrier();
      to.copy(small_, y_at, read_, 0, 4 * words)
          .copy(small_, keys_at, read_, 4 * words, megabyte)
          .copy(small_, values_at, read_, 4 * words + megabyte, megabyte)
          .full_barrier();
    });
    std::vector<std::uint32_t> out(static_cast<std::size_t>(words + megabyte / 2));
    std::memcpy(out.data(), read_.mapped().data(), out.size() * 4);
    return out;
  }

  /// Whether the form gives the bits of dot products for a codec.
  bool same(codec type, std::size_t module) {
    bool good = true;
    std::uint32_t which = 0;
    const product shapes[] = {{"odd", 52, kernels::column_step(type) > 32 ? 768u : 352u, epilogue::store},
                              {"odd", 100, 2560, epilogue::add},
                              {"turned", 768, 4096, epilogue::rope_cache, 512, 128},
                              {"gated", 72, 4096, epilogue::gated},
                              {"long", 132, 14336, epilogue::store}};
    for (const product& p : shapes) {
      const auto words = rows_of(type, p.rows, p.columns);
      transfer_.upload(weights_[0], 0, std::as_bytes(std::span(words)));
      make_x(p.columns, 32);
      const form first = dots(p.rows, 32);
      const gpu::pipeline expects = pipeline(p, type, first);
      for (form by : how_.tiles) {
        if (by.module != module || (how_.tiles.size() > 3 && which++ % 2 != 0)) continue;
        const gpu::pipeline pipe = pipeline(p, type, by);
        for (const std::uint32_t count : {1u, 7u, 8u, 17u, 32u}) {
          tokens(count);
          const auto expected = result(p, first, expects, count), found = result(p, by, pipe, count);
          if (expected == found) continue;
          std::size_t differ = 0, at = 0;
          for (std::size_t i = 0; i < expected.size(); ++i)
            if (expected[i] != found[i] && differ++ == 0) at = i;
          std::printf("WRONG: %s %s %ux%u, tile %ux%u/%u, %u tokens: %zu differ, first %zu: %08x, expected %08x\n",
                      kernels::info(type).name.data(), p.name, p.rows, p.columns, by.rows, by.tokens, by.subgroups,
                      count, differ, at, found[at], expected[at]);
          good = false;
        }
      }
    }
    return good;
  }

  /// Microseconds of one product.
  double time(const product& p, codec type, const form& by, std::uint32_t count, const gpu::pipeline& pipe) {
    const std::uint64_t bytes = kernels::matmul_weight_bytes(type, p.rows, p.columns), each = (bytes + 255) / 256 * 256,
                        copies = part / each * weight_parts;
    constexpr std::uint32_t length = 16;
    const double seconds = bench::chain_seconds(warm_, length, 3, [&](gpu::recorder& to, std::uint32_t i) {
      const std::uint64_t copy = (turn_ + i) % copies, of = copy % weight_parts;
      const auto pushed = push(weights_[of].address() + copy / weight_parts * each, by);
      to.dispatch(pipe, std::as_bytes(std::span(pushed)), grid(p, by, count));
    });
    turn_ += length;
    return seconds / length * 1e6;
  }
  void fill_weights() {
    bench::run_once(on_, queue_, [&](gpu::recorder& to) {
      for (auto& each : weights_) to.fill(each, 0, part, 0x15a814a1u);
      to.full_barrier();
    });
  }

 private:
  static constexpr std::uint64_t x_at = 64 * megabyte, y_at = 128 * megabyte, keys_at = 320 * megabyte,
                                 values_at = 400 * megabyte, rope_at = 2 * megabyte, plain_at = 32 * megabyte,
                                 tiled_at = 96 * megabyte;

  const gpu::device& on_;
  options how_;
  gpu::queue queue_;
  tool::warmth warm_;
  gpu::transfer transfer_;
  gpu::buffer small_, read_;
  std::vector<gpu::buffer> weights_;
  std::uint64_t random_ = 1, turn_ = 0;
};

std::string label_of(const form& by) {
  return by.rows == 0 ? "dots/" + std::to_string(by.tokens)
                      : std::to_string(by.rows) + "x" + std::to_string(by.tokens) + "/" + std::to_string(by.subgroups) +
                            (by.module == 0 ? "" : "#" + std::to_string(by.module));
}

options read_options(int count, char** arguments) {
  options how;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tiles;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--check") how.check = true;
    else if (word == "--only-files") how.only_files = true;
    else if (word == "--statistics") how.statistics = true;
    else if (word == "--only") how.only = arguments[++i];
    else if (word == "--tokens") how.tokens.push_back(static_cast<std::uint32_t>(std::atoi(arguments[++i])));
    else if (word == "--tile") {
      std::uint32_t rows = 0, subgroups = 0;
      std::sscanf(arguments[++i], "%ux%u", &rows, &subgroups);
      tiles.emplace_back(rows, subgroups);
    } else if (word == "--spirv") how.modules.push_back(bench::module_in(arguments[++i]));
    else if (!bench::add_codec(word, how.codecs)) throw argument_error("small_batch", "a codec or an option", word);
  }
  if (how.codecs.empty()) how.codecs = {codec::q8_0, codec::q4_0, codec::q4_1, codec::q4_k, codec::q6_k};
  if (how.tokens.empty()) how.tokens = {8, 16, 32};
  if (tiles.empty()) tiles = {{32, 8}, {16, 8}, {16, 16}, {16, 4}};
  // With a subgroup up to 64 sums a lane.
  for (std::size_t module = how.only_files ? 1 : 0; module <= how.modules.size(); ++module)
    for (const auto& [rows, subgroups] : tiles)
      for (const std::uint32_t tokens : how.tokens)
        if (rows * tokens / subgroups <= 64) how.tiles.push_back({rows, subgroups, tokens, module});
  return how;
}

void print_checks(rows_products& on, const options& how) {
  for (const codec type : how.codecs)
    for (std::size_t module = how.only_files ? 1 : 0; module <= how.modules.size(); ++module) {
      std::printf("%s, module %zu: %s\n", kernels::info(type).name.data(), module,
                  on.same(type, module) ? "the bits of dot products" : "WRONG");
      std::fflush(stdout);
    }
}

struct job {
  std::string title;
  product p;
  codec type;
  std::uint32_t tokens;
  form by;
  gpu::pipeline pipe;
};

std::vector<job> jobs_of(const options& how) {
  std::vector<job> jobs;
  for (const codec type : how.codecs)
    for (const auto& [model, products] :
         {std::pair{"Mistral 7B", std::span(mistral)}, std::pair{"Gemma-3 4B", std::span(gemma)}})
      for (const product& p : products) {
        if (!how.only.empty() && how.only != p.name && how.only != model &&
            how.only != std::string(model) + " " + p.name)
          continue;
        for (const std::uint32_t tokens : how.tokens) {
          const std::string title = std::string(model) + " " + kernels::info(type).name.data() + " " + p.name + ", " +
                                    std::to_string(tokens) + " tokens";
          jobs.push_back({title, p, type, tokens, rows_products::dots(p.rows, tokens), {}});
          for (const form& by : how.tiles)
            if ((by.tokens == tokens || (by.tokens == 16 && tokens == 32)))
              jobs.push_back({title, p, type, tokens, by, {}});
        }
      }
  return jobs;
}

/// Makes the pipelines on all processors. A job that needs more shared memory than the device has gets none.
void make_pipelines(rows_products& on, std::vector<job>& jobs) {
  std::atomic<std::size_t> next{0};
  std::vector<joining_thread> makers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    makers.emplace_back([&] {
      for (std::size_t at = next++; at < jobs.size(); at = next++) try {
          jobs[at].pipe = on.pipeline(jobs[at].p, jobs[at].type, jobs[at].by);
        } catch (const intaglio::error&) {}
    });
}

/// @param rate of a streaming read, in bytes a microsecond
void print_times(rows_products& on, const std::vector<job>& jobs, double rate) {
  std::string title;
  std::uint32_t rows = 0;
  for (const job& each : jobs) {
    if (each.title != title)
      std::printf("%s%s, us and percent of a streaming read:\n", title.empty() ? "" : "\n", each.title.c_str());
    title = each.title;
    if (rows != each.tokens) on.tokens(rows = each.tokens);
    if (each.pipe.handle() == VK_NULL_HANDLE) continue;
    const double microseconds = on.time(each.p, each.type, each.by, each.tokens, each.pipe),
                 bytes = static_cast<double>(kernels::matmul_weight_bytes(each.type, each.p.rows, each.p.columns));
    std::printf("  %s %.1f %.0f%%", label_of(each.by).c_str(), microseconds, 100 * bytes / rate / microseconds);
    for (const std::string& line : each.pipe.statistics()) std::printf("\n    %s", line.c_str());
    std::fflush(stdout);
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) try {
  const options how = read_options(count, arguments);
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  for (const auto& shape : device.description().matrix_shapes)
    if (how.check) std::printf("  %s\n", shape.text().c_str());
  rows_products on(device, how);
  if (how.check) {
    print_checks(on, how);
    return 0;
  }
  on.fill_weights();
  const double rate = tool::stream_read_rate(device) * 1e-6;  // bytes a microsecond
  std::printf("streaming read: %.2f TB/s\n", rate * 1e-6);
  std::vector<job> jobs = jobs_of(how);
  make_pipelines(on, jobs);
  print_times(on, jobs, rate);
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
