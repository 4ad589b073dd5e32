// SPDX-License-Identifier: MIT
#include "intaglio/kernels/splice.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "kernels/matmul_problem.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using shader::real;

namespace {

// Every operation once.
struct every_operation {
  constexpr real operator()(real gate, real up) const {
    const auto inside = !(gate < -2.0f) && gate <= 4.0f;
    const auto special = gate == 1.0f || gate > 100.0f || abs(gate) >= 50.0f;
    return select(special, min(gate, 9.0f) - 1.0f, select(inside, max(-gate, gate / 8.0f) + exp(gate), tanh(gate))) *
           up;
  }
};
struct up_alone {
  constexpr real operator()(real, real up) const { return up; }
};

const kernels::kernel gating[] = {kernels::kernel::gated,
                                  kernels::kernel::ternary_matmul,
                                  kernels::kernel::ternary_rows,
                                  kernels::kernel::ternary_batch,
                                  kernels::kernel::ternary_chunk,
                                  kernels::kernel::ternary_float,
                                  kernels::kernel::layers,
                                  kernels::kernel::layers_coded,
                                  kernels::kernel::layers_rows,
                                  kernels::kernel::layers_rows_normed,
                                  kernels::kernel::layers_batch,
                                  kernels::kernel::layers_batch_normed,
                                  kernels::kernel::layers_ternary_rows,
                                  kernels::kernel::matmul,
                                  kernels::kernel::matmul_chunk,
                                  kernels::kernel::matmul_batch,
                                  kernels::kernel::walk_up};
std::vector<kernels::variant> all_variants() {
  std::vector<kernels::variant> out;
  for (std::size_t i = 0; i < kernels::variant_count; ++i) out.push_back(static_cast<kernels::variant>(i));
  return out;
}
std::vector<std::uint32_t> words_of(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> out(bytes.size() / 4);
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(out)).begin());
  return out;
}
bool has_spirv_val() {
  static const bool found = std::system("spirv-val --version > /dev/null 2>&1") == 0;
  return found;
}
bool valid(const std::vector<std::uint32_t>& words) {
  const temporary_folder folder;
  const auto path = folder / "module.spv";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(4 * words.size()));
  return std::system(("spirv-val --scalar-block-layout --target-env vulkan1.3 '" + path.string() + "'").c_str()) == 0;
}

}  // namespace

TEST_CASE("kernels that gate, and no others, mark the activation", "[kernels]") {
  for (const kernels::variant which : all_variants()) {
    const auto words = words_of(runtime::modules_of<>(which).spirv);
    const bool gates = std::ranges::find(gating, kernels::kernel_of(which)) != std::end(gating);
    INFO(kernels::name(which));
    CHECK((kernels::splicer(words, shader::expression_of<shader::silu>).markers() != 0) == gates);
  }
}

TEST_CASE("a module with an activation has no mark left and is valid SPIR-V", "[kernels]") {
  for (const kernels::variant which : all_variants()) {
    if (std::ranges::find(gating, kernels::kernel_of(which)) == std::end(gating)) continue;
    const auto module = runtime::modules_of<>(which).spirv;
    for (const shader::activation_function f :
         {shader::activation_function{every_operation{}}, shader::activation_function{up_alone{}},
          shader::activation_function{activation::gelu_tanh}}) {
      const auto words = runtime::patched_module(module, *f, which);
      INFO(kernels::name(which) << ", " << f->name);
      CHECK(kernels::splicer(words, *f).markers() == 0);
      if (f != shader::activation_function{every_operation{}} || !has_spirv_val()) continue;
      if (valid(words_of(module))) CHECK(valid(words));
      else WARN("this spirv-val does not know what the embedded module needs");
    }
  }
}

TEST_CASE("loops that a codec decides on are asked for or left to the driver, all others stay", "[kernels]") {
  constexpr auto loops = [](const std::vector<std::uint32_t>& words) {
    std::array<int, 3> out{};
    for (std::size_t at = 5; at < words.size(); at += std::max(words[at] >> 16, 1u))
      if ((words[at] & 0xffffu) == 246) ++out.at(words[at + 3]);
    return out;
  };
  using enum kernels::variant;
  for (const kernels::variant which : {layers_coded, layers_dense, layers_mixed, layers_experts}) {
    const auto as_it_is = words_of(runtime::modules_of<>(which).spirv);
    auto asked = as_it_is, left = as_it_is;
    kernels::hint_loops(asked, true);
    kernels::hint_loops(left, false);
    // Rounds of three products, each in every codec that the module has, and half layers.
    const bool mixed = which == layers_mixed || which == layers_experts;
    const int decided = 3 * static_cast<int>(mixed ? kernels::layers_coded::most_codecs : 1) + 1;
    CHECK(loops(as_it_is)[2] == decided);
    CHECK(loops(asked) == std::array{loops(as_it_is)[0], loops(as_it_is)[1] + decided, 0});
    CHECK(loops(left) == std::array{loops(as_it_is)[0] + decided, loops(as_it_is)[1], 0});
  }
  using kernels::layers_coded::asks_for_loops;
  CHECK_FALSE(asks_for_loops(static_cast<std::uint32_t>(kernels::codec::q4_0), false));
  CHECK(asks_for_loops(static_cast<std::uint32_t>(kernels::codec::q8_0), false));
  CHECK(asks_for_loops(static_cast<std::uint32_t>(kernels::codec::q4_0), true));
}

TEST_CASE("an activation of one's own gives the bits of the reference in every kernel that gates", "[kernels]") {
  kernel_device on;
  random_numbers random(5);
  for (const shader::activation_function f :
       {shader::activation_function{every_operation{}}, shader::activation_function{up_alone{}}}) {
    const reference::matmul_shape shape{
        .columns = 64, .rows = 24, .codec = kernels::codec::f32, .epilogue = kernels::epilogue::gated, .gate = f};
    const auto input = random.floats(3 * 64, -2, 2), weights = random.floats(24 * 64, -1.5f, 1.5f);
    std::vector<float> expected(3 * 12);
    const auto bytes = elements_of(weights, kernels::element::f32);
    reference::matmul(shape, input, bytes, expected);
    for (const bool wide : {false, true}) {
      on.wide_loads = wide;
      const auto in = on.filled(input), weight = on.filled(bytes), out = on.poisoned(4 * expected.size()),
                 state = on.filled(fresh_state(0, 3, 8, 64));
      on.run(kernels::kernel::matmul, 1,
             {{"columns", 64u},
              {"rows", 24u},
              {"codec", 1u},
              {"prologue", static_cast<std::uint32_t>(kernels::prologue::plain)},
              {"epilogue", static_cast<std::uint32_t>(kernels::epilogue::gated)},
              {"tile_tokens", 4u},
              {"activation", f}},
             {{"input", &in}, {"weight", &weight}, {"output", &out}, {"state", &state}}, {2, 1, 1});
      CHECK_SAME(on, out.read<float>(), expected);
    }
  }
}
