// SPDX-License-Identifier: MIT
// Host memory while a larger model is loaded: what the process takes beyond the device's own memory, which on CPU
// drivers is the host's.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <numeric>
#include <string>

#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/runtime/pack.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/tables.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// A model of random codes as bitnet_middle_table() wants it.
void write_model(const std::filesystem::path& path) {
  const decoder_config& c = *bitnet_middle_table().config;
  io::gguf_writer out(path);
  const std::string a = "bitnet-b1.58.";
  out.set("general.architecture", "bitnet-b1.58");
  out.set(a + "embedding_length", c.hidden_size);
  out.set(a + "feed_forward_length", c.intermediate_size);
  out.set(a + "block_count", c.num_hidden_layers);
  out.set(a + "attention.head_count", c.num_attention_heads);
  out.set(a + "attention.head_count_kv", c.num_key_value_heads);
  out.set(a + "context_length", c.max_position_embeddings);
  out.set(a + "vocab_size", c.vocab_size);
  out.set(a + "attention.layer_norm_rms_epsilon", c.rms_norm_eps);
  out.set(a + "rope.freq_base", c.rope_theta);
  struct tensor {
    dtype type;
    std::uint64_t rows, columns;
  };
  std::vector<tensor> list;
  const auto add = [&](const std::string& name, dtype type, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t shape[] = {columns, rows};
    out.add_tensor(name, type, std::span(shape).first(rows == 1 ? 1 : 2));
    list.push_back({type, rows, columns});
  };
  add("token_embd.weight", dtype::f16, c.vocab_size, c.hidden_size);
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    add(blk + "attn_norm.weight", dtype::f32, 1, c.hidden_size);
    add(blk + "attn_q.weight", dtype::i2_s, c.q_size(), c.hidden_size);
    add(blk + "attn_k.weight", dtype::i2_s, c.kv_size(), c.hidden_size);
    add(blk + "attn_v.weight", dtype::i2_s, c.kv_size(), c.hidden_size);
    add(blk + "attn_sub_norm.weight", dtype::f32, 1, c.q_size());
    add(blk + "attn_output.weight", dtype::i2_s, c.hidden_size, c.q_size());
    add(blk + "ffn_norm.weight", dtype::f32, 1, c.hidden_size);
    add(blk + "ffn_gate.weight", dtype::i2_s, c.intermediate_size, c.hidden_size);
    add(blk + "ffn_up.weight", dtype::i2_s, c.intermediate_size, c.hidden_size);
    add(blk + "ffn_sub_norm.weight", dtype::f32, 1, c.intermediate_size);
    add(blk + "ffn_down.weight", dtype::i2_s, c.hidden_size, c.intermediate_size);
  }
  add("output_norm.weight", dtype::f32, 1, c.hidden_size);
  out.begin();
  std::vector<std::byte> bytes;
  for (const auto& each : list) {
    const std::uint64_t elements = each.rows * each.columns;
    if (each.type == dtype::f32) {
      const std::vector<float> ones(elements, 1.0f);
      out.write(std::as_bytes(std::span(ones)));
    } else if (each.type == dtype::f16) {
      bytes.assign(each.columns * 2, std::byte{0x2A});  // 0.0513
      for (std::uint64_t row = 0; row < each.rows; ++row) out.write(bytes);
    } else {
      bytes.assign(elements / 4 + 32, std::byte{0b00'01'10'01});
      const float scale = 0.5f;
      std::memcpy(bytes.data() + elements / 4, &scale, 4);
      out.write(bytes);
    }
  }
  out.finish();
}

/// A line of /proc/self/status in bytes.
std::uint64_t status(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  FAIL("no " + key + " in /proc/self/status");
  return 0;
}

}  // namespace

TEST_CASE("loading takes a bounded amount of host memory, far below the model's size") {
  const temporary_folder folder;
  const std::filesystem::path path = folder / "middle.gguf";
  write_model(path);
  REQUIRE(std::filesystem::file_size(path) > (std::uint64_t{180} << 20));
  checked_device on;
  const auto from = io::checkpoint::open(path);
  const std::array<const plan::table*, 1> tables{&bitnet_middle_table()};
  pack(from, tables, folder / "middle", {.threads = 2});
  const auto packed = io::checkpoint::open(folder / "middle");
  for (const auto& [model, staged] : {std::pair{&from, true}, {&from, false}, {&packed, true}, {&packed, false}}) {
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
    const std::uint64_t before = status("VmRSS"), taken_before = on.device.counters().allocated_bytes;
    std::uint64_t reports = 0;
    const auto weights = runtime::load_weights(
        on.device, bitnet_middle_table(), *model,
        {.progress = [&](const auto&) { ++reports; },
         .threads = 2,
         .staged = staged,
         .storage = model == &packed ? runtime::weight_storage::copied : runtime::weight_storage::automatic});
    const std::uint64_t peak = status("VmHWM"), device = on.device.counters().allocated_bytes - taken_before;
    CHECK(reports > 10);
    CHECK(device > (std::uint64_t{180} << 20));
    // of a packed file 96 MiB of parts to copy from, of others two of 16 MiB and what threads repack in
    CHECK(peak < before + device + (std::uint64_t{staged && model == &packed ? 112u : 64u} << 20));
  }
}
