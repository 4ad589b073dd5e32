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

TEST_CASE("the name of a GGUF file says which part of a model it is", "[io][model_path]") {
  const gguf_split second = gguf_split_of("a-model-00002-of-00005.gguf");
  CHECK((second.prefix == "a-model" && second.part == 2 && second.parts == 5));
  CHECK(gguf_split_of("A-00001-of-00002.GGUF").parts == 2);
  for (const char* whole : {"model.gguf", "-00001-of-00002.gguf", "a-00003-of-00002.gguf", "a-00000-of-00002.gguf",
                            "a-0000x-of-00002.gguf", "a-00001-of-00002.bin", "a_00001-of-00002.gguf"}) {
    INFO(whole);
    CHECK(gguf_split_of(whole).parts == 0);
  }
  CHECK((names_gguf_model("Model.GGUF") && names_gguf_model("a-00001-of-00005.gguf")));
  for (const char* none : {"model.bin", "a-00002-of-00005.gguf", "mmproj-model-f16.gguf", "model.imatrix.gguf"}) {
    INFO(none);
    CHECK_FALSE(names_gguf_model(none));
  }
}

TEST_CASE("a folder stands for its only model", "[io][model_path]") {
  const temporary_folder folder;
  const auto error = [&] {
    try {
      return model_at(folder.path()).string();
    } catch (const intaglio::file_error& problem) {
      return std::string(problem.what()).substr(folder.path().string().size());
    }
  };
  CHECK(error() == ": the model of a folder: expected config.json, params.json or one GGUF file, found none of them");
  for (const char* beside : {"README.md", ".hidden.gguf", "mmproj-f16.gguf", "b-00002-of-00002.gguf"})
    write_text(folder / beside, "");
  CHECK(models_of_folder(folder.path()).empty());
  const auto first = write_text(folder / "b-00001-of-00002.gguf", "");
  CHECK(model_at(folder.path()) == first);
  CHECK(model_at(first) == first);
  CHECK(model_at(folder / "missing") == folder / "missing");
  write_text(folder / "config.json", "{}");  // as the hub has it beside GGUF files
  CHECK(model_at(folder.path()) == first);
  write_text(folder / "a.gguf", "");
  CHECK(error() ==
        ": the model of a folder: expected config.json, params.json or one GGUF file, found 2 GGUF files:"
        " a.gguf, b-00001-of-00002.gguf");
  for (const char* more : {"c.gguf", "d.gguf", "e.gguf"}) write_text(folder / more, "");
  CHECK(error().ends_with("found 5 GGUF files: a.gguf, b-00001-of-00002.gguf, c.gguf, d.gguf, ..."));
  write_text(folder / "model-00001-of-00002.safetensors", "");
  CHECK(model_at(folder.path()) == folder.path());
  std::filesystem::remove(folder / "config.json");  // weights of another form alone make no model
  CHECK(error().find("found 5 GGUF files") != std::string::npos);
}
