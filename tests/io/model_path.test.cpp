// SPDX-License-Identifier: MIT
#include "intaglio/io/model_path.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <span>
#include <string_view>

#include "files.hpp"

using namespace intaglio::io;

TEST_CASE("a file says by its first bytes and its name which form it has", "[io][model_path]") {
  const temporary_folder folder;
  const auto gguf = write_text(folder / "model.bin", "GGUF\3\0\0\0");
  const auto zip = write_text(folder / "weights", "PK\x03\x04 and more");
  const auto old = write_text(folder / "weights.pth", "\x80\2}q");
  const auto header =
      write_bytes(folder / "model.safetensors", std::as_bytes(std::span(std::string_view("\x02\0\0\0\0\0\0\0{}", 10))));
  const auto cut = write_text(folder / "cut.safetensors", "\x02");
  CHECK_FALSE(is_torch_file(gguf));
  CHECK_FALSE(stands_for_folder(gguf));
  CHECK(is_zip_file(zip));
  CHECK((is_torch_file(zip) && stands_for_folder(zip)));
  CHECK_FALSE(is_zip_file(old));
  CHECK((is_torch_file(old) && stands_for_folder(old)));
  CHECK((is_safetensors_file(header) && stands_for_folder(header) && !is_torch_file(header)));
  CHECK_FALSE(is_safetensors_file(cut));
  CHECK(stands_for_folder(cut));
  CHECK_FALSE(is_packed_file(gguf));
}

TEST_CASE("a folder has a model's config by either name", "[io][model_path]") {
  const temporary_folder folder;
  CHECK_FALSE(has_model_config(folder.path()));
  write_text(folder / "params.json", "{}");
  CHECK(has_model_config(folder.path()));
  CHECK(folder_of(folder / "consolidated.00.pth") == folder.path());
  CHECK(folder_of("consolidated.00.pth") == ".");
}
