// SPDX-License-Identifier: MIT
#include "intaglio/kernels/module_demands.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/declared_modules.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_batch.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_f16.hpp"
#include "intaglio/kernels/spirv/attention_f16_portable.hpp"
#include "intaglio/kernels/spirv/attention_fragments.hpp"
#include "intaglio/kernels/spirv/delta_net.hpp"
#include "intaglio/kernels/spirv/dense_batch.hpp"
#include "intaglio/kernels/spirv/dense_matmul.hpp"
#include "intaglio/kernels/spirv/dense_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/dense_rows.hpp"
#include "intaglio/kernels/spirv/embed.hpp"
#include "intaglio/kernels/spirv/expert_sum.hpp"
#include "intaglio/kernels/spirv/expert_tiles.hpp"
#include "intaglio/kernels/spirv/fixed.hpp"
#include "intaglio/kernels/spirv/gated.hpp"
#include "intaglio/kernels/spirv/head_gate.hpp"
#include "intaglio/kernels/spirv/head_rescore.hpp"
#include "intaglio/kernels/spirv/head_screen.hpp"
#include "intaglio/kernels/spirv/head_screen_portable.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_batch.hpp"
#include "intaglio/kernels/spirv/layers_batch_normed.hpp"
#include "intaglio/kernels/spirv/layers_coded.hpp"
#include "intaglio/kernels/spirv/layers_cpu.hpp"
#include "intaglio/kernels/spirv/layers_dense.hpp"
#include "intaglio/kernels/spirv/layers_experts.hpp"
#include "intaglio/kernels/spirv/layers_long.hpp"
#include "intaglio/kernels/spirv/layers_mixed.hpp"
#include "intaglio/kernels/spirv/layers_rows.hpp"
#include "intaglio/kernels/spirv/layers_rows_normed.hpp"
#include "intaglio/kernels/spirv/layers_ternary_rows.hpp"
#include "intaglio/kernels/spirv/matmul.hpp"
#include "intaglio/kernels/spirv/matmul_batch.hpp"
#include "intaglio/kernels/spirv/matmul_batch_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_batch_portable.hpp"
#include "intaglio/kernels/spirv/matmul_batch_tiled.hpp"
#include "intaglio/kernels/spirv/matmul_chunk.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_batch.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_cpu.hpp"
#include "intaglio/kernels/spirv/matmul_portable.hpp"
#include "intaglio/kernels/spirv/norm_add.hpp"
#include "intaglio/kernels/spirv/norm_quantize.hpp"
#include "intaglio/kernels/spirv/norm_quantize_cpu.hpp"
#include "intaglio/kernels/spirv/pages.hpp"
#include "intaglio/kernels/spirv/quantize_f16.hpp"
#include "intaglio/kernels/spirv/rms_norm.hpp"
#include "intaglio/kernels/spirv/route.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/sample_cpu.hpp"
#include "intaglio/kernels/spirv/short_conv.hpp"
#include "intaglio/kernels/spirv/streams.hpp"
#include "intaglio/kernels/spirv/ternary_batch.hpp"
#include "intaglio/kernels/spirv/ternary_batch_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_batch_portable.hpp"
#include "intaglio/kernels/spirv/ternary_chunk.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_portable.hpp"
#include "intaglio/kernels/spirv/ternary_float.hpp"
#include "intaglio/kernels/spirv/ternary_float_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_portable.hpp"
#include "intaglio/kernels/spirv/ternary_rows.hpp"
#include "intaglio/kernels/spirv/turn.hpp"
#include "intaglio/kernels/spirv/walk_down.hpp"
#include "intaglio/kernels/spirv/walk_down_cpu.hpp"
#include "intaglio/kernels/spirv/walk_down_portable.hpp"
#include "intaglio/kernels/spirv/walk_gate_up.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_cpu.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_portable.hpp"
#include "intaglio/kernels/spirv/walk_select.hpp"
#include "intaglio/kernels/spirv/walk_sum.hpp"
#include "intaglio/kernels/spirv/walk_trace.hpp"
#include "intaglio/kernels/spirv/walk_up.hpp"
#include "kernels/tiny_module.hpp"

namespace {

using namespace intaglio;
using namespace intaglio::kernels;

constexpr auto as_declared = [](std::uint32_t, std::uint32_t bits) { return bits; };

template <std::size_t N>
constexpr words_in_bytes<char> words_of(const char (&module)[N]) {
  return {module, N - 1};
}

constexpr module_demands tiny = demands_of(words_of(tiny_module), as_declared);
static_assert(tiny.problem.empty() && tiny.shared_memory_bytes == 0);
static_assert(tiny.workgroup == std::array<std::uint32_t, 3>{1, 1, 1}, "glslc's own constant of the width, not ours");
static_assert(tiny.needs(1) && tiny.needs(5347) && !tiny.needs(9));
static_assert(demands_of(words_of(tiny_module), [](std::uint32_t id, std::uint32_t bits) {
                return id == 0 ? 96 : bits;
              }).invocations() == 96);

/// A module's declarations, written instruction by instruction.
struct assembly {
  std::vector<std::uint32_t> words{0x07230203, 0x00010600, 0, 100, 0};
  constexpr assembly& operator()(std::uint32_t opcode, std::initializer_list<std::uint32_t> operands) {
    words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | opcode);
    words.insert(words.end(), operands.begin(), operands.end());
    return *this;
  }
  constexpr module_demands read(std::vector<std::uint32_t> constants = {}) const {
    return demands_of(std::span<const std::uint32_t>(words), [&](std::uint32_t id, std::uint32_t bits) {
      return id < constants.size() ? constants[id] : bits;
    });
  }
};

enum : std::uint32_t {
  u32 = 1,
  i32 = 2,
  f32 = 3,
  boolean = 4,
  pointer = 5,
  type = 6,
  a = 10,
  b = 11,
  c = 12,
  result = 13
};

/// With two specialization constants a and b of the type, and what `more` declares.
template <class More>
constexpr assembly with_constants(std::uint32_t of, More more) {
  assembly out;
  out(71, {a, 1, 0})(71, {b, 1, 1})(21, {u32, 32, 0})(21, {i32, 32, 1})(22, {f32, 32})(20, {boolean});
  out(50, {of, a, 7})(50, {of, b, 3});
  more(out);
  return out;
}
/// Bytes of an array of u32 whose length is an operation on a and b, divided by 4; or a problem.
constexpr std::uint64_t length_by(std::uint32_t opcode, std::uint32_t of, std::uint32_t x, std::uint32_t y) {
  const module_demands found = with_constants(of, [&](assembly& to) {
                                 to(52, {of, result, opcode, a, b})(28, {type, u32, result});
                                 to(32, {pointer, 4, type})(59, {pointer, 20, 4});
                               }).read({x, y});
  return found.problem.empty() ? found.shared_memory_bytes / 4 : 999;
}
static_assert(length_by(128, u32, 7, 3) == 10 && length_by(130, u32, 7, 3) == 4 && length_by(132, u32, 7, 3) == 21);
static_assert(length_by(134, u32, 7, 3) == 2 && length_by(137, u32, 7, 3) == 1 && length_by(134, u32, 7, 0) == 999);
static_assert(length_by(135, i32, 0 - 7u, 0 - 3u) == 2 && length_by(139, i32, 0 - 7u, 3) == 2);
static_assert(length_by(135, i32, 1u << 31, ~0u) == 1u << 31 && length_by(138, i32, 1u << 31, ~0u) == 0);
static_assert(length_by(194, u32, 96, 5) == 3 && length_by(196, u32, 3, 5) == 96 && length_by(196, u32, 3, 32) == 999);
static_assert(length_by(195, i32, 1u << 31, 31) == 0xFFFFFFFF && length_by(197, u32, 6, 3) == 7);
static_assert(length_by(198, u32, 6, 3) == 5 && length_by(199, u32, 6, 3) == 2);
static_assert(length_by(129, u32, 7, 3) == 999, "an addition of floats is none of integers");

/// a ? b : c by a comparison of a and b.
constexpr std::uint64_t chosen_by(std::uint32_t opcode, std::uint32_t x, std::uint32_t y) {
  return with_constants(u32,
                        [&](assembly& to) {
                          to(43, {u32, c, 1})(52, {boolean, 14, opcode, a, b})(52, {u32, result, 169, 14, b, c});
                          to(28, {type, u32, result})(32, {pointer, 4, type})(59, {pointer, 20, 4});
                        })
             .read({x, y})
             .shared_memory_bytes /
         4;
}
static_assert(chosen_by(170, 5, 5) == 5 && chosen_by(171, 5, 5) == 1 && chosen_by(172, 6, 5) == 5);
static_assert(chosen_by(174, 5, 5) == 5 && chosen_by(176, 5, 5) == 1 && chosen_by(178, 5, 5) == 5);
static_assert(chosen_by(177, 0 - 1u, 5) == 5 && chosen_by(176, 0 - 1u, 5) == 1, "signed and unsigned differ");

/// Bytes of one variable of a type that `declare` makes under the id `type`, after a variable of 4 bytes.
template <class Declare>
constexpr std::uint64_t bytes_after_four(Declare declare) {
  return with_constants(u32,
                        [&](assembly& to) {
                          declare(to);
                          to(32, {30, 4, u32})(59, {30, 31, 4})(32, {pointer, 4, type})(59, {pointer, 20, 4});
                        })
      .read()
      .shared_memory_bytes;
}
static_assert(bytes_after_four([](assembly& to) { to(23, {type, f32, 2}); }) == 16, "vec2 begins at 8");
static_assert(bytes_after_four([](assembly& to) { to(23, {type, f32, 3}); }) == 28, "vec3 begins at 16");
static_assert(bytes_after_four([](assembly& to) { to(23, {type, f32, 4}); }) == 32, "vec4 begins at 16");
static_assert(bytes_after_four([](assembly& to) { to(23, {7, f32, 3})(28, {type, 7, a}); }) == 16 + 7 * 16);
static_assert(bytes_after_four([](assembly& to) { to(23, {7, f32, 2})(24, {type, 7, 3}); }) == 8 + 3 * 8);
static_assert(bytes_after_four([](assembly& to) { to(28, {type, boolean, b}); }) == 4 + 3 * 4, "a bool takes 4 bytes");
static_assert(bytes_after_four([](assembly& to) { to(21, {type, 16, 0}); }) == 6);
static_assert(bytes_after_four([](assembly& to) { to(32, {type, 5349, f32}); }) == 16, "an address takes 8 bytes");
static_assert(bytes_after_four([](assembly& to) { to(23, {7, f32, 4})(30, {type, f32, 7, f32}); }) == 16 + 48);

}  // namespace

TEST_CASE("a workgroup's size may be a constant that is decorated as it") {
  assembly to;
  to(16, {9, 17, 1, 1, 1})(71, {a, 1, 3})(71, {40, 11, 25})(21, {u32, 32, 0})(50, {u32, a, 64})(43, {u32, b, 2});
  to(23, {7, u32, 3})(51, {7, 40, a, b, b});
  CHECK(to.read().workgroup == std::array<std::uint32_t, 3>{64, 2, 2});
  CHECK(to.read({0, 0, 0, 1u << 31}).invocations() == std::uint64_t{1} << 33);
  CHECK(to.read({0, 0, 0, 0}).invocations() == 0);
}

TEST_CASE("what cannot be read is said, never guessed") {
  const auto problem = [](const assembly& of) { return std::string(of.read().problem); };
  CHECK(problem(with_constants(f32, [](assembly& to) {
          to(52, {u32, result, 109, a})(28, {type, u32, result})(32, {pointer, 4, type})(59, {pointer, 20, 4});
        })) == "a variable of its shared memory has no size that can be read");
  CHECK(problem(assembly{}(59, {pointer, 20, 4})) == "a variable of its shared memory has no size that can be read");
  CHECK(problem(assembly{}(331, {9, 38, 1, 1, 1})) == "the size of its workgroup is no constant that can be read");
  CHECK(problem(assembly{}(17, {4428})) == "it lays its shared memory out itself, which is not read");
  CHECK(problem(assembly{}(21, {u32, 24, 0})) == "it has numbers of an unknown width");
  CHECK(problem(assembly{}(17, {})) == "an instruction lacks an operand");
  CHECK(problem(with_constants(u32, [](assembly& to) {
          to(43, {u32, c, ~0u});
          for (std::uint32_t i = 0; i < 3; ++i) to(28, {40 + i, i == 0 ? u32 : 39 + i, c});
          to(32, {pointer, 4, 42})(59, {pointer, 20, 4});
        })) == "its shared memory takes more bytes than 64 bits can count");
  assembly none;
  none.words.clear();
  CHECK(problem(none) == "it does not begin with SPIR-V's magic number");
  assembly crowded;
  crowded.words[3] = 0x400000;
  CHECK(problem(crowded) == "it has more ids than SPIR-V allows");
  CHECK(problem(assembly{}(20, {100})) == "an id is beyond the bound that it states");
  assembly endless;
  endless.words.push_back(0);
  CHECK(problem(endless) == "an instruction has no possible length");
}

TEST_CASE("the facts about a module equal the module's own, whatever its constants are") {
  struct whole {
    std::string_view name;
    words_in_bytes<char> words;
  };
  const whole modules[] = {
      {"embed", words_of(spirv::embed_spirv)},
      {"norm_quantize", words_of(spirv::norm_quantize_spirv)},
      {"norm_quantize_cpu", words_of(spirv::norm_quantize_cpu_spirv)},
      {"ternary_matmul", words_of(spirv::ternary_matmul_spirv)},
      {"ternary_matmul_portable", words_of(spirv::ternary_matmul_portable_spirv)},
      {"ternary_matmul_cpu", words_of(spirv::ternary_matmul_cpu_spirv)},
      {"ternary_batch", words_of(spirv::ternary_batch_spirv)},
      {"ternary_batch_portable", words_of(spirv::ternary_batch_portable_spirv)},
      {"ternary_batch_matrix", words_of(spirv::ternary_batch_matrix_spirv)},
      {"ternary_chunk", words_of(spirv::ternary_chunk_spirv)},
      {"ternary_chunk_portable", words_of(spirv::ternary_chunk_portable_spirv)},
      {"ternary_chunk_fragments", words_of(spirv::ternary_chunk_fragments_spirv)},
      {"ternary_float", words_of(spirv::ternary_float_spirv)},
      {"ternary_float_cpu", words_of(spirv::ternary_float_cpu_spirv)},
      {"attention", words_of(spirv::attention_spirv)},
      {"attention_cpu", words_of(spirv::attention_cpu_spirv)},
      {"attention_chunk", words_of(spirv::attention_chunk_spirv)},
      {"dense_matmul", words_of(spirv::dense_matmul_spirv)},
      {"dense_matmul_cpu", words_of(spirv::dense_matmul_cpu_spirv)},
      {"dense_batch", words_of(spirv::dense_batch_spirv)},
      {"head_screen", words_of(spirv::head_screen_spirv)},
      {"head_screen_portable", words_of(spirv::head_screen_portable_spirv)},
      {"head_rescore", words_of(spirv::head_rescore_spirv)},
      {"sample", words_of(spirv::sample_spirv)},
      {"sample_cpu", words_of(spirv::sample_cpu_spirv)},
      {"accept", words_of(spirv::accept_spirv)},
      {"layers", words_of(spirv::layers_spirv)},
      {"layers_long", words_of(spirv::layers_long_spirv)},
      {"layers_cpu", words_of(spirv::layers_cpu_spirv)},
      {"matmul", words_of(spirv::matmul_spirv)},
      {"matmul_portable", words_of(spirv::matmul_portable_spirv)},
      {"matmul_cpu", words_of(spirv::matmul_cpu_spirv)},
      {"turn", words_of(spirv::turn_spirv)},
      {"norm_add", words_of(spirv::norm_add_spirv)},
      {"route", words_of(spirv::route_spirv)},
      {"expert_sum", words_of(spirv::expert_sum_spirv)},
      {"quantize_f16", words_of(spirv::quantize_f16_spirv)},
      {"matmul_chunk", words_of(spirv::matmul_chunk_spirv)},
      {"matmul_chunk_batch", words_of(spirv::matmul_chunk_batch_spirv)},
      {"matmul_chunk_fragments", words_of(spirv::matmul_chunk_fragments_spirv)},
      {"matmul_chunk_matrix", words_of(spirv::matmul_chunk_matrix_spirv)},
      {"attention_f16_portable", words_of(spirv::attention_f16_portable_spirv)},
      {"attention_fragments", words_of(spirv::attention_fragments_spirv)},
      {"attention_f16", words_of(spirv::attention_f16_spirv)},
      {"walk_gate_up", words_of(spirv::walk_gate_up_spirv)},
      {"walk_gate_up_portable", words_of(spirv::walk_gate_up_portable_spirv)},
      {"walk_gate_up_cpu", words_of(spirv::walk_gate_up_cpu_spirv)},
      {"walk_down", words_of(spirv::walk_down_spirv)},
      {"walk_down_portable", words_of(spirv::walk_down_portable_spirv)},
      {"walk_down_cpu", words_of(spirv::walk_down_cpu_spirv)},
      {"pages", words_of(spirv::pages_spirv)},
      {"walk_select", words_of(spirv::walk_select_spirv)},
      {"walk_up", words_of(spirv::walk_up_spirv)},
      {"walk_sum", words_of(spirv::walk_sum_spirv)},
      {"fixed", words_of(spirv::fixed_spirv)},
      {"matmul_batch", words_of(spirv::matmul_batch_spirv)},
      {"matmul_batch_portable", words_of(spirv::matmul_batch_portable_spirv)},
      {"matmul_batch_matrix", words_of(spirv::matmul_batch_matrix_spirv)},
      {"matmul_batch_tiled", words_of(spirv::matmul_batch_tiled_spirv)},
      {"layers_coded", words_of(spirv::layers_coded_spirv)},
      {"layers_dense", words_of(spirv::layers_dense_spirv)},
      {"layers_mixed", words_of(spirv::layers_mixed_spirv)},
      {"layers_experts", words_of(spirv::layers_experts_spirv)},
      {"walk_trace", words_of(spirv::walk_trace_spirv)},
      {"rms_norm", words_of(spirv::rms_norm_spirv)},
      {"attention_batch", words_of(spirv::attention_batch_spirv)},
      {"expert_tiles", words_of(spirv::expert_tiles_spirv)},
      {"dense_rows", words_of(spirv::dense_rows_spirv)},
      {"ternary_rows", words_of(spirv::ternary_rows_spirv)},
      {"layers_rows", words_of(spirv::layers_rows_spirv)},
      {"layers_ternary_rows", words_of(spirv::layers_ternary_rows_spirv)},
      {"layers_batch", words_of(spirv::layers_batch_spirv)},
      {"layers_rows_normed", words_of(spirv::layers_rows_normed_spirv)},
      {"layers_batch_normed", words_of(spirv::layers_batch_normed_spirv)},
      {"gated", words_of(spirv::gated_spirv)},
      {"short_conv", words_of(spirv::short_conv_spirv)},
      {"delta_net", words_of(spirv::delta_net_spirv)},
      {"head_gate", words_of(spirv::head_gate_spirv)},
      {"streams", words_of(spirv::streams_spirv)},
  };
  REQUIRE(std::size(modules) == declared_modules.size());
  std::mt19937 random(20261126);
  for (std::size_t i = 0; i < declared_modules.size(); ++i) {
    const declared_module& declared = declared_modules[i];
    INFO(declared.name.view());
    REQUIRE(declared.name == modules[i].name);
    REQUIRE(declared.name.view().starts_with(interface_of(declared.of).name.substr(0, 6)));
    for (int trial = 0; trial < 40; ++trial) {
      std::vector<std::uint32_t> constants(max_specialization_constants);
      for (auto& each : constants) each = (1u << random() % 10u << (random() % 4u == 0 ? 5u : 0u)) - random() % 2u;
      const module_demands full =
          demands_of(modules[i].words, [&](std::uint32_t id, std::uint32_t) { return constants.at(id); });
      const module_use by_declaration = use_of(declared, constants);
      REQUIRE(by_declaration.defined == full.problem.empty());
      if (!by_declaration.defined) continue;
      REQUIRE(by_declaration.shared_memory_bytes == full.shared_memory_bytes);
      REQUIRE(by_declaration.workgroup == full.workgroup);
      REQUIRE(by_declaration.invocations() == full.invocations());
      REQUIRE(std::ranges::equal(declared.capabilities, std::span(full.capabilities).first(full.capability_count)));
    }
  }
}
TEST_CASE("a constant that is absent leaves demands undefined") {
  constexpr auto use = [](std::vector<std::uint32_t> constants) {
    module_use out{constants};
    spirv::norm_quantize_demands(out);
    return out.defined;
  };
  static_assert(use({32, 1024, 0, 0, 0, 0, 0, 0}) && !use({}));
}

TEST_CASE("random words end in a problem or in demands") {
  std::mt19937 random(7);
  const std::string_view whole(spirv::sample_spirv, sizeof spirv::sample_spirv - 1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bent(whole.substr(0, 12000));
    for (int n = 0; n < 8; ++n) bent[20 + random() % (bent.size() - 20)] = static_cast<char>(random());
    const module_demands found = demands_of(words_in_bytes<char>{bent.data(), bent.size()}, as_declared);
    CHECK((found.problem.empty() || found.problem_word <= bent.size() / 4));
  }
}
