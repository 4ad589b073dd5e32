// SPDX-License-Identifier: MIT
#include "intaglio/plan/resident_coded.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/families/mixes.hpp"
#include "intaglio/models/gemma2.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/gptoss.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/models/olmo2.hpp"
#include "intaglio/models/phi3.hpp"
#include "intaglio/models/qwen2.hpp"
#include "intaglio/models/qwen3.hpp"
#include "intaglio/models/qwen3moe.hpp"
#include "intaglio/models/smollm3.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/plan/variants_used.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {
plan::profile with(auto change) {
  plan::profile out = plan::profiles::portable;
  change(out);
  return out;
}
template <class Model>
plan::planned made(const plan::profile& target = plan::profiles::portable, std::uint32_t context = 4096) {
  return plan::planned::of<Model>(target, context);
}
std::uint32_t constant(const plan::sequence& of, std::string_view name) {
  return of.resident[0].specialization[kernels::layers_coded_interface.specialization_index(name)];
}
}  // namespace

TEST_CASE("a Llama's resident dispatch", "[plan][resident]") {
  const auto mistral = made<models::mistral_7b<dtype::q4_0>>();
  const plan::table& t = mistral.table();
  const plan::sequence& one = t.resident_decode;
  // A rise of these is a slower token.
  CHECK(one.dispatch_count() == 4);
  CHECK(one.barrier_count() == 3);
  CHECK(t.decode.dispatch_count() == 163);
  CHECK(one.weight_bytes() == t.decode.weight_bytes());
  CHECK(one.resident[0].groups[0] == 132);
  CHECK(one.arguments.size() == kernels::layers_coded::argument_count);
  CHECK(constant(one, "codec") == static_cast<std::uint32_t>(kernels::codec::q4_0));
  CHECK(constant(one, "inner_norms") == 0);
  CHECK(constant(one, "full_every") == 1);
  CHECK_FALSE(plan::variants_used(std::array{&t}).has(kernels::variant::layers_dense));
  // Nothing is filled before the pass: of the partials the embedding makes blank what the pass has of spans.
  CHECK(one.blanks_itself());
  CHECK(one.prologue[0].groups[0] == 133);
  plan::table broken = t;
  std::vector<plan::dispatch> prologue(one.prologue.begin(), one.prologue.end());
  prologue[0].accesses[prologue[0].access_count - 1u].bytes -= 16;
  broken.resident_decode.prologue = prologue;
  CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("to be made blank beside the embedding"));
  std::uint64_t after = 0;
  for (const auto& d : one.epilogue) after += plan::bytes_moved(t, one, d, 100, 1);
  CHECK(plan::bytes_moved(t, one, one.resident[0], 100, 1) + plan::bytes_moved(t, one, one.prologue[0], 100, 1) +
            after ==
        plan::bytes_moved(t, one, 100, 1));
}

TEST_CASE("Gemma-3's resident dispatch has layers of two kinds", "[plan][resident]") {
  const auto gemma = made<models::gemma3_4b<dtype::q8_0>>();
  const plan::table& t = gemma.table();
  const plan::sequence& one = t.resident_decode;
  CHECK(one.dispatch_count() == 4);
  CHECK(t.decode.dispatch_count() == 275);
  CHECK(one.weight_bytes() == t.decode.weight_bytes());
  CHECK(one.arguments.size() == 2 * kernels::layers_coded::argument_count);
  CHECK(constant(one, "inner_norms") == 1);
  CHECK(constant(one, "full_every") == 6);
  CHECK(constant(one, "window") == 1024);
  CHECK(constant(one, "ring") == t.caches[0].positions);
  // Where no position leaves the window before the context ends, its layers' caches are none.
  for (const std::uint32_t context : {300u, 1024u, 1060u}) {
    CAPTURE(context);
    const auto short_gemma = made<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, context);
    REQUIRE_FALSE(short_gemma.table().resident_decode.resident.empty());
    CHECK(constant(short_gemma.table().resident_decode, "window") == 1024);
    CHECK(constant(short_gemma.table().resident_decode, "ring") == context);
    CHECK(plan::verify(short_gemma.table()).view().empty());
  }
  // Tables of turns differ by the kind of layer, weights do not.
  CHECK(one.arguments_of(4)[10].slot != one.arguments_of(5)[10].slot);
  CHECK(one.arguments_of(4)[9].slot == one.arguments_of(5)[9].slot);

  // Writes of two layers on the same bytes are seen, of one kind or of two.
  for (const std::uint8_t kind : {std::uint8_t{0}, std::uint8_t{1}}) {
    std::vector<plan::dispatch> period(one.period.begin(), one.period.end());
    for (auto& d : period)
      if (d.block == kind && d.kernel == kernels::kernel::norm_add)
        for (std::size_t i = 0; i < d.access_count; ++i)
          if (d.accesses[i].write)
            d.accesses[i].layer_stride = d.push[kernels::norm_add_interface.push_index("output")].layer_stride = 0;
    plan::table broken = t;
    broken.resident_decode.period = period;
    CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("expected bytes of its own"));
  }
}

TEST_CASE("the resident dispatch adds biases of q, k and v", "[plan][resident]") {
  const auto qwen2 = made<models::qwen25_3b<dtype::q8_0>>();
  const auto qwen3 = made<models::qwen3_4b<dtype::q8_0>>();
  const plan::sequence& biased = qwen2.table().resident_decode;
  REQUIRE_FALSE(biased.resident.empty());
  CHECK(biased.dispatch_count() == 4);
  CHECK(biased.weight_bytes() == qwen2.table().decode.weight_bytes());
  CHECK(constant(biased, "biased") == 1);
  CHECK(constant(biased, "head_norms") == 0);
  const plan::operand& biases = biased.arguments_of(0)[kernels::layers::argument_count];
  REQUIRE(biases.where == plan::region::weight);
  CHECK(qwen2.table().weights[biases.slot].columns == 2048 + 2 * 256);
  const plan::sequence& normed = qwen3.table().resident_decode;
  REQUIRE_FALSE(normed.resident.empty());
  CHECK(constant(normed, "biased") == 0);
  CHECK(constant(normed, "head_norms") == 1);
  CHECK(normed.arguments_of(0)[kernels::layers::argument_count].where == plan::region::none);
  // 18,944 columns come in two parts.
  CHECK_FALSE(made<models::qwen25_7b<dtype::q8_0>>().table().resident_decode.resident.empty());
  CHECK_FALSE(made<models::qwen25_7b<dtype::bf16>>().table().resident_decode.resident.empty());
  // A bias that no argument states is seen.
  plan::table broken = qwen2.table();
  std::vector<plan::operand> arguments(biased.arguments.begin(), biased.arguments.end());
  arguments[kernels::layers::argument_count].offset += 16;
  broken.resident_decode.arguments = arguments;
  CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("expected the bytes at every argument"));
}

TEST_CASE("the resident dispatch has norms after sublayers and bounded scores", "[plan][resident]") {
  const auto norms = [](const plan::sequence& of) {
    return static_cast<kernels::layers_coded::norms_around>(constant(of, "inner_norms"));
  };
  using kernels::layers_coded::norms_around;
  const auto is_whole = [](const plan::planned& of) {
    const plan::table& t = of.table();
    REQUIRE_FALSE(t.resident_decode.resident.empty());
    CHECK(plan::verify(t).view() == "");
    CHECK(t.resident_decode.weight_bytes() == t.decode.weight_bytes());
  };
  for (const std::uint32_t context : {4096u, 8192u}) {  // windows of 4,096 in every other layer
    CAPTURE(context);
    const auto gemma = made<models::gemma2_2b<dtype::q8_0>>(plan::profiles::portable, context);
    is_whole(gemma);
    const plan::sequence& one = gemma.table().resident_decode;
    CHECK(one.dispatch_count() == 5);  // with the bound of logits
    CHECK(norms(one) == norms_around::before_and_after);
    CHECK(constant(one, "softcap") == std::bit_cast<std::uint32_t>(50.f));
    CHECK(constant(one, "head_norms") == 0);
    CHECK(constant(one, "full_every") == 2);
  }
  const auto olmo = made<models::olmo2_7b<dtype::q8_0>>();
  is_whole(olmo);
  const plan::sequence& one = olmo.table().resident_decode;
  CHECK(norms(one) == norms_around::after);
  CHECK(constant(one, "softcap") == 0);
  CHECK(constant(one, "head_norms") == static_cast<std::uint32_t>(kernels::turn_norms::all_heads));
  CHECK(constant(one, "eps") == std::bit_cast<std::uint32_t>(1e-6f));
  CHECK(one.arguments_of(0)[8].where == plan::region::none);
  is_whole(made<models::olmo2_1b<dtype::bf16>>());
  is_whole(made<models::gemma2_9b<dtype::bf16>>());
}

TEST_CASE("what workgroups wait for is written once, before it is waited for, and no wait is for good",
          "[plan][resident]") {
  const auto mistral = made<models::mistral_7b<dtype::q4_0>>();
  const auto gemma = made<models::gemma3_4b<dtype::q8_0>>();
  for (const plan::table* whole : {&mistral.table(), &gemma.table()}) {
    const plan::sequence& one = whole->resident_decode;
    const auto refused = [&](auto change, const char* sentence) {
      plan::table broken = *whole;
      std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
      std::vector<plan::dispatch> resident(one.resident.begin(), one.resident.end());
      change(arguments, resident);
      broken.resident_decode.arguments = arguments;
      broken.resident_decode.resident = resident;
      CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring(sentence));
    };
    const auto spin_limit = kernels::layers_coded_interface.specialization_index("spin_limit");
    for (const std::uint32_t turns : {0u, ~0u})
      refused([&](auto&, auto& resident) { resident[0].specialization[spin_limit] = turns; }, "expected waits of 1 to");
    // Two values at one offset, and at each other's.
    for (std::size_t n = kernels::layers_coded::first_exchanged; n < kernels::layers_coded::last_exchanged; ++n) {
      CAPTURE(n);
      refused([&](auto& arguments, auto&) { arguments[n + 1] = arguments[n]; }, "to be written by a step that follows");
      refused([&](auto& arguments, auto&) { std::swap(arguments[n], arguments[n + 1]); },
              "to be written by a step that follows");
    }
  }
}

TEST_CASE("the resident dispatch has layers with experts", "[plan][resident]") {
  using namespace kernels::layers_coded;
  const auto holds = [](const plan::planned& of, const mixture& experts) {
    const plan::table& t = of.table();
    const plan::sequence& one = t.resident_decode;
    REQUIRE_FALSE(one.resident.empty());
    CHECK(plan::verify(t).view() == "");
    CHECK(one.dispatch_count() == 4);
    CHECK(one.weight_bytes() == t.decode.weight_bytes());
    CHECK(mixture_in(constant(one, "ffns")) == experts);
    CHECK(one.arguments.size() == one.pattern.kinds() * (argument_logits + 1));
    CHECK(one.arguments_of(0)[argument_router].where == plan::region::weight);
    CHECK(plan::variants_used(std::array{&t}).has(kernels::variant::layers_experts));
    // Two values at each other's offset, or at one.
    const std::array exchanged{3u, 4u, 5u, argument_logits, 6u, 7u};
    for (std::size_t n = 0; n + 1 < exchanged.size(); ++n)
      for (const bool swapped : {true, false}) {
        CAPTURE(n, swapped);
        std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
        if (swapped) std::swap(arguments[exchanged[n]], arguments[exchanged[n + 1]]);
        else arguments[exchanged[n + 1]] = arguments[exchanged[n]];
        plan::table broken = t;
        broken.resident_decode.arguments = arguments;
        CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("to be written by a step that follows"));
      }
    // What is waited for is blank before the pass.
    plan::table broken = t;
    broken.resident_decode.blank_bytes -= 256;
    CHECK(plan::verify(broken).view() != "");
  };
  holds(made<models::mixtral_8x7b<dtype::q4_0>>(), {8, 2, false});
  holds(made<models::qwen3_30b_a3b<dtype::q4_k>>(), {128, 8, false});
  // q in Q4_K, k and v in Q8_0, projection in Q5_K, down projections in Q4_K and Q6_K.
  const decoder_config& mixtral = models::mixtral_8x7b_config;
  holds(
      families::planned_of(mixtral, families::mix_of(mixtral, "q4_k_m").value(), "it", plan::profiles::portable, 4096),
      {8, 2, false});
  // Products of 16-bit weights stay a chain.
  CHECK(made<models::qwen3_30b_a3b<dtype::bf16>>().table().resident_decode.resident.empty());
}

TEST_CASE("gpt-oss's resident dispatch has biases, sinks, and experts whose gate and up are apart",
          "[plan][resident]") {
  const auto oss = families::planned_of(models::gptoss_20b_config, {dtype::mxfp4, dtype::q8_0, dtype::q8_0}, "it",
                                        plan::profiles::portable, 4096);
  const plan::table& t = oss.table();
  REQUIRE(plan::verify(t).view() == "");
  const plan::sequence& one = t.resident_decode;
  REQUIRE_FALSE(one.resident.empty());
  CHECK(one.dispatch_count() == 4);
  CHECK(one.weight_bytes() == t.decode.weight_bytes());
  const auto c = kernels::constants_of<kernels::layers_coded_kernel>(one.resident[0].specialization);
  CHECK(c.biased == 7);
  CHECK(c.full_every == 2);
  CHECK((kernels::layers_coded::mixture_in(c.ffns) == kernels::layers_coded::mixture{32, 4, false, true}));
  const std::uint32_t each = kernels::layers_coded_kernel::argument_count(c);
  CHECK(each == kernels::layers_coded::argument_sinks + kernels::layers_coded::arguments_of_additions);
  REQUIRE(one.arguments.size() == 2 * each);
  for (std::uint32_t n = kernels::layers_coded::argument_sinks; n < each; ++n)
    CHECK(one.arguments_of(0)[n].where == plan::region::weight);
  // The stream after attention has to follow attention's result, although two steps of the chain make it.
  std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
  std::swap(arguments[4], arguments[5]);
  plan::table broken = t;
  broken.resident_decode.arguments = arguments;
  CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("to be written by a step that follows"));
  // Fewer pairs of rows of gate than workgroups.
  decoder_config narrow = models::gptoss_20b_config;
  narrow.intermediate_size = 128, narrow.num_experts_per_tok = 2;
  CHECK(families::planned_of(narrow, {dtype::mxfp4, dtype::q8_0, dtype::q8_0}, "it", plan::profiles::portable, 4096)
            .table()
            .resident_decode.resident.empty());
}

TEST_CASE("dense weights take the least number of workgroups that need no more turns", "[plan][resident]") {
  const auto workgroups = [](const plan::planned& of) { return of.table().resident_decode.resident[0].groups[0]; };
  const auto gemma = made<models::gemma3_4b<dtype::bf16>>();
  CHECK(plan::variants_used(std::array{&gemma.table()}).has(kernels::variant::layers_dense));
  CHECK(workgroups(gemma) == 128);  // five turns of 16 pairs of rows
  CHECK(workgroups(made<models::gemma3_4b<dtype::q8_0>>()) == 132);
  // Eight turns need 80 of 83 workgroups, which is less than 31 of 32.
  CHECK(workgroups(made<models::gemma3_4b<dtype::bf16>>(with([](plan::profile& p) { p.work.layers_parts = 83; }))) ==
        83);
}

TEST_CASE("models and profiles that keep the chain", "[plan][resident]") {
  const auto has = [](const plan::planned& of) { return !of.table().resident_decode.resident.empty(); };
  CHECK(has(made<models::gemma3_4b<dtype::bf16>>()));
  CHECK(has(made<models::mistral_7b<dtype::q8_0>>()));
  CHECK(has(made<models::mistral_7b<dtype::f16>>()));
  CHECK(has(made<models::mistral_7b<dtype::bf16>>()));
  CHECK(has(made<models::mistral_7b<dtype::q4_k>>()));
  CHECK(has(made<models::mistral_7b<dtype::q6_k>>()));
  CHECK(has(made<models::mistral_7b<dtype::iq4_xs>>()));
  CHECK(has(made<models::gemma3_4b<dtype::q4_k>>()));
  CHECK_FALSE(has(made<models::mistral_7b<dtype::q4_0>>(with([](plan::profile& p) { p.work.layers_parts = 0; }))));
  CHECK_FALSE(has(made<models::mistral_7b<dtype::q4_0>>(with([](plan::profile& p) { p.work.layers_subgroups = 1; }))));
  CHECK_FALSE(has(
      made<models::mistral_7b<dtype::q4_0>>(with([](plan::profile& p) { p.cache_element = kernels::element::f32; }))));
  CHECK_FALSE(has(made<models::mistral_7b<dtype::q4_0>>(plan::profiles::cpu)));
  // Every fourth layer does not turn, and what turns is scaled.
  const auto smollm = made<models::smollm3_3b<dtype::bf16>>(plan::profiles::portable, 16384);
  REQUIRE(has(smollm));
  CHECK(constant(smollm.table().resident_decode, "full_every") == 4);
  CHECK(constant(smollm.table().resident_decode, "window") == 16384);
  CHECK(constant(smollm.table().resident_decode, "ring") == 16384);
  CHECK(has(made<models::phi_4_mini<dtype::q8_0>>()));
}

TEST_CASE("the room in shared memory holds what the shader declares for Mistral 7B and Gemma-3 4B",
          "[plan][resident]") {
  // x, its scales, a norm's blocks twice, rotations, addresses of two layers, the fresh query, key and value, the
  // residual, a flag.
  const std::uint64_t mistral =
      448 * 6 * 16 + 448 * 8 + 2 * 32 * 4 + 64 * 8 + 2 * 21 * 8 + 32 * 16 + 64 * 8 + 2 * (2048 / 132 + 2) * 8 + 4;
  const std::uint64_t gemma = (32 * 64 + 208) * 16 + 320 * 8 + 2 * 20 * 4 + 256 * 8 + 2 * 21 * 8 + 64 * 16 + 128 * 8 +
                              2 * (1280 / 132 + 2) * 8 + 4;
  const auto bytes = [](std::uint64_t widest, std::uint64_t hidden, std::uint64_t head_dim, std::uint64_t full_every) {
    return kernels::shared_memory_bytes(
        "layers_coded", {kernels::given<&kernels::layers_coded_kernel::constants::workgroup_size>(512),
                         kernels::given<&kernels::layers_coded_kernel::constants::codec>(
                             static_cast<std::uint64_t>(kernels::codec::q4_0)),
                         kernels::given<&kernels::layers_coded_kernel::constants::hidden_size>(hidden),
                         kernels::given<&kernels::layers_coded_kernel::constants::intermediate_size>(widest),
                         kernels::given<&kernels::layers_coded_kernel::constants::head_dim>(head_dim),
                         kernels::given<&kernels::layers_coded_kernel::constants::heads>(8),
                         kernels::given<&kernels::layers_coded_kernel::constants::full_every>(full_every),
                         kernels::given<&kernels::layers_coded_kernel::constants::parts>(132),
                         kernels::given<&kernels::layers_coded_kernel::constants::ffns>(16)});
  };
  const std::uint64_t stated_mistral = bytes(14336, 4096, 128, 1), stated_gemma = bytes(10240, 2560, 256, 6);
  CHECK(stated_mistral >= mistral);
  CHECK(stated_mistral <= mistral + 64);
  CHECK(stated_gemma >= gemma);
  CHECK(stated_gemma <= gemma + 64);
  // Dense inputs as floats: Gemma-3's 10,240 at once, Mistral's 14,336 in parts of 7,168.
  const auto dense = [](std::uint64_t widest) {
    return kernels::shared_memory_bytes(
        "layers_dense", {kernels::given<&kernels::layers_coded_kernel::constants::workgroup_size>(512),
                         kernels::given<&kernels::layers_coded_kernel::constants::codec>(
                             static_cast<std::uint64_t>(kernels::codec::bf16)),
                         kernels::given<&kernels::layers_coded_kernel::constants::hidden_size>(4096),
                         kernels::given<&kernels::layers_coded_kernel::constants::intermediate_size>(widest),
                         kernels::given<&kernels::layers_coded_kernel::constants::head_dim>(128),
                         kernels::given<&kernels::layers_coded_kernel::constants::heads>(32),
                         kernels::given<&kernels::layers_coded_kernel::constants::full_every>(1),
                         kernels::given<&kernels::layers_coded_kernel::constants::parts>(128),
                         kernels::given<&kernels::layers_coded_kernel::constants::ffns>(16)});
  };
  CHECK(dense(11264) - dense(10240) == 4 * 1024);
  CHECK(dense(11264) <= kernels::layers::resident_shared_memory_bytes);
  CHECK(dense(14336) == dense(7168));
  CHECK(dense(16384) - dense(14336) == 4 * (8960 - 7168));
  CHECK(dense(18944) - dense(14336) == 4 * (18944 - 8960 - 7168));
  CHECK(dense(18944) <= kernels::layers::resident_shared_memory_bytes);
  // Qwen2.5's 18,944 columns are split into blocks: parts of 10,240 and the rest.
  CHECK(bytes(18944, 3584, 128, 1) - bytes(9216, 3584, 128, 1) == (10240 - 9216) / 32 * 104);
}
