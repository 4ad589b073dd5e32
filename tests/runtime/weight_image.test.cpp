// SPDX-License-Identifier: MIT
// What a file's blocks may hold, of each codec that conformance2 has a file of.
#include "intaglio/runtime/weight_image.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "codecs/vectors.hpp"
#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "io/gguf_image.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Fills every weight of the file's plan.
void fill_all(const io::checkpoint& file) {
  const plan::planned made =
      families::planned_of(file.config(), families::types_of(file).types, "x", plan::profiles::cpu, 64);
  const runtime::weight_image image(file, made.table());
  std::vector<std::byte> bytes;
  for (std::uint32_t slot = 0; slot < made.table().weights.size(); ++slot) {
    const plan::weight& each = made.table().weights[slot];
    bytes.resize(static_cast<std::size_t>(each.bytes));
    for (std::uint32_t layer = 0; layer < (each.per_layer ? file.config().num_hidden_layers : 1); ++layer)
      if (made.table().has(each, layer)) image.fill(slot, layer, 0, bytes);
  }
}

struct broken {
  const char *model, *variant;
  const char* tensor;
};

}  // namespace

TEST_CASE("codecs without a file in conformance2 are loaded; scales that are no numbers and cut files are refused",
          "[families]") {
  const dtype type = GENERATE(dtype::iq2_xxs, dtype::iq2_xs, dtype::iq2_s, dtype::iq3_xxs, dtype::iq3_s, dtype::iq1_s,
                              dtype::iq1_m, dtype::nvfp4, dtype::q1_0, dtype::q2_0);
  INFO(name(type));
  // The matrices of a file in Q2_K, with blocks of the codec instead.
  gguf_image image =
      gguf_image::of(conformance("qwen3-tiny", "conformance2", "confgen2.py") / "gguf/qwen3-tiny-q2_k.gguf");
  const std::string blocks = testing::codec_vectors(name(type)).blocks;
  const auto id = static_cast<std::uint32_t>(info(type).ggml_type), q2_k = std::uint32_t{10};
  gguf_image::tensor* last = nullptr;
  for (gguf_image::tensor& each : image.tensors) {
    if (each.type != q2_k) continue;
    const std::size_t count =
        each.data.size() / info(dtype::q2_k).block_bytes * info(dtype::q2_k).block_elements / info(type).block_elements;
    each.type = id;
    each.data.resize(count * info(type).block_bytes);
    for (std::size_t i = 0; i < each.data.size(); ++i) each.data[i] = static_cast<std::byte>(blocks[i % blocks.size()]);
    if (each.name == "blk.1.attn_q.weight") last = &each;
  }
  REQUIRE(last != nullptr);
  const temporary_folder folder;
  const std::filesystem::path path = folder / "replaced.gguf";
  const auto write = [&](const bytes& file) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  };
  write(image.build());
  CHECK_NOTHROW(fill_all(io::checkpoint::open(path)));
  // Block 3: an f16 of infinity, in IQ1_M a quarter of it in each of four words. Of NVFP4 four scales of 127.
  std::byte* const third = last->data.data() + 3 * std::size_t{info(type).block_bytes};
  if (type == dtype::iq1_m)
    for (unsigned k = 0; k < 4; ++k)
      third[49 + 2 * k] = std::byte{static_cast<unsigned char>(k == 3 ? 0x70 : k == 2 ? 0xC0 : 0)};
  else if (type == dtype::nvfp4) std::fill_n(third, 4, std::byte{127});
  else third[0] = std::byte{0}, third[1] = std::byte{0x7C};
  bytes bad = image.build();
  write(bad);
  if (type == dtype::nvfp4) {  // ggml's rule: such a scale counts as 0
    const io::checkpoint file = io::checkpoint::open(path);
    CHECK_NOTHROW(fill_all(file));
    std::array<float, codecs::nvfp4::elements> values;
    codecs::nvfp4::decode(reinterpret_cast<const std::uint8_t*>(third), values.data());
    CHECK(std::all_of(values.begin(), values.end(), [](float value) { return value == 0.f; }));
  } else {
    const std::uint64_t at =
        io::gguf::open(path).find_tensor("blk.1.attn_q.weight")->offset + 3 * std::uint64_t{info(type).block_bytes};
    CHECK_THROWS_WITH(fill_all(io::checkpoint::open(path)),
                      ContainsSubstring("replaced.gguf") && ContainsSubstring(hexadecimal(at)) &&
                          ContainsSubstring("tensor 'blk.1.attn_q.weight'") &&
                          ContainsSubstring("expected a finite number, found NaN or infinity"));
  }
  bad.resize(bad.size() - 1000);
  write(bad);
  CHECK_THROWS_WITH(io::checkpoint::open(path), ContainsSubstring("replaced.gguf") && ContainsSubstring("tensor '") &&
                                                    ContainsSubstring("expected") && ContainsSubstring("found"));
  // A row that is one weight too short for its blocks.
  last->shape[0] -= 1;
  write(image.build());
  CHECK_THROWS_WITH(io::checkpoint::open(path),
                    ContainsSubstring("replaced.gguf") && ContainsSubstring("blk.1.attn_q.weight") &&
                        ContainsSubstring("expected a multiple of " + std::to_string(info(type).block_elements)));
}

TEST_CASE("a scale that is no number and a file that is cut are refused, in every codec of blocks", "[families]") {
  const broken each = GENERATE(
      broken{"qwen3-tiny", "q5_0", "blk.1.ffn_down.weight"}, broken{"qwen3-tiny", "q5_1", "blk.1.attn_q.weight"},
      broken{"qwen3-tiny", "q2_k", "token_embd.weight"}, broken{"qwen3-tiny", "q3_k", "blk.2.attn_v.weight"},
      broken{"qwen3-tiny", "q5_k", "blk.0.ffn_gate.weight"}, broken{"qwen3-tiny", "iq4_nl", "blk.0.attn_k.weight"},
      broken{"qwen3-tiny", "iq4_xs", "blk.0.ffn_up.weight"},
      broken{"qwen3moe-tiny", "mxfp4_moe", "blk.0.ffn_down_exps.weight"});
  INFO(each.model << " " << each.variant);
  const std::string name = std::string(each.model) + "-" + each.variant + ".gguf";
  const temporary_folder folder;
  const std::filesystem::path copy = folder / "copy.gguf";
  std::filesystem::copy_file(conformance(each.model, "conformance2", "confgen2.py") / "gguf" / name, copy);
  std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  std::uint64_t at = 0;
  dtype type{};
  {
    const auto whole = io::gguf::open(copy);
    const auto* tensor = whole.find_tensor(each.tensor);
    REQUIRE(tensor != nullptr);
    at = tensor->offset, type = tensor->type;
    CHECK_NOTHROW(fill_all(io::checkpoint::open(copy)));
  }
  const std::uint64_t third = at + 3 * info(type).block_bytes;
  const auto put = [&](std::uint64_t where, std::uint16_t bits, std::streamsize bytes) {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(where));
    file.write(reinterpret_cast<const char*>(&bits), bytes);
  };
  codecs::with_codec(type, [&]<class C>() {
    if constexpr (requires { C::f16_offsets; }) {
      for (const std::uint16_t bits : {std::uint16_t{0x7E00}, std::uint16_t{0xFC00}})
        put(third + C::f16_offsets[0], bits, 2);
    } else {
      put(third, 255, 1);
    }
  });
  const io::checkpoint bad = io::checkpoint::open(copy);
  CHECK_THROWS_WITH(fill_all(bad), ContainsSubstring("copy.gguf") && ContainsSubstring(hexadecimal(third)) &&
                                       ContainsSubstring("tensor '" + std::string(each.tensor)) &&
                                       ContainsSubstring("expected a finite number, found NaN or infinity"));
  std::filesystem::resize_file(copy, third + 1);
  CHECK_THROWS_WITH(io::checkpoint::open(copy), ContainsSubstring("copy.gguf"));
}

TEST_CASE("a block's scales are looked at where its codec has them", "[codecs]") {
  for (const codecs::device_row& row : codecs::device_rows) {
    INFO(name(row.type));
    codecs::with_codec(row.type, [&]<class C>() {
      std::array<std::uint8_t, C::bytes> block{};
      CHECK(codecs::is_finite<C>(block.data()));
      codecs::scale_block<C>(block.data(), 1.f);
      CHECK(codecs::is_finite<C>(block.data()));
      if constexpr (requires { C::f16_offsets; })
        for (const std::size_t at : C::f16_offsets) {
          auto broken = block;
          broken[at + 1] = 0x7C;
          CHECK_FALSE(codecs::is_finite<C>(broken.data()));
        }
    });
  }
}
