// SPDX-License-Identifier: MIT
// A session of a model with an adapter has the logits of the file in which its change was made, to the bit.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/io/lora_adapter.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "lora_files.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("a session with an adapter has the logits of the model with the change made in its file", "[runtime]") {
  checked_device on;
  const std::vector<std::int32_t> ids{5, 77, 300, 12, 9};
  for (const char* type : {"f32", "f16", "q8_0"}) {
    INFO(type);
    const temporary_folder folder;
    const auto path = conformance("llama-tiny") / ("gguf/llama-tiny-" + std::string(type) + ".gguf");
    const lora_file lora;
    lora.write(folder / "lora.gguf", io::gguf::open(path));
    write_merged(folder / "merged.gguf", path, lora, 1);
    io::checkpoint adapted = io::checkpoint::open(path);
    io::lora_adapter(folder / "lora.gguf").merge_into(adapted, 1);
    const io::checkpoint merged = io::checkpoint::open(folder / "merged.gguf"), plain = io::checkpoint::open(path);
    const plan::planned planned =
        families::planned_of(plain.config(), families::types_of(plain).types, "llama-tiny", plan::profiles::cpu, 64);
    const std::array<const plan::table*, 1> tables{&planned.table()};
    const auto logits_of = [&](const io::checkpoint& file) {
      basic_session session(on.device, tables, file, {.cache_folder = "", .prove_kernels = false});
      return session.logits(ids).logits;
    };
    const auto found = logits_of(adapted);
    CHECK(found == logits_of(merged));
    CHECK(found != logits_of(plain));
  }
}
