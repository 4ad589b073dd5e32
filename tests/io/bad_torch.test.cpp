// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>

#include "bad_files.hpp"
#include "original_model.hpp"

namespace {

using namespace pickled;

/// Puts each fault into a folder that holds a sound model, has it judged and repairs the folder.
struct faults {
  original_model sound;
  bad_file_judge judge;
  std::filesystem::path file;
  bytes whole;
  std::string pickle;  ///< of the sound file
  zip_image image;

  faults() {
    std::vector<std::pair<std::string, std::string>> storages;
    sound.write(
        1, [&](std::uint64_t, auto& tensors, auto& data) { pickle = pickled::file(dict(tensors)), storages = data; });
    file = sound.made / "consolidated.00.pth";
    whole = read_bytes(file);
    image = torch_image(pickle, storages);
  }
  void put(const std::string& name, const bytes& data) {
    write_bytes(file, data);
    judge.judge(name, sound.made.path(), data.size(), verdict::refused);
  }
  void changed(const std::string& name, const std::function<void(zip_image&)>& edit) {
    zip_image other = image;
    edit(other);
    put(name, other.build());
  }
  void pickled_as(const std::string& name, const std::string& text) {
    changed(name, [&](zip_image& i) { i.at("model/data.pkl").data = text; });
  }
  /// `from` becomes `to` where it is first in the pickle.
  void replaced(const std::string& name, std::string_view from, const std::string& to) {
    const auto at = pickle.find(from);
    REQUIRE(at != std::string::npos);
    std::string text = pickle;
    pickled_as(name, text.replace(at, from.size(), to));
  }
  void params(const std::string& name, const std::string& text) {
    write_bytes(file, whole);
    write_text(sound.made / "params.json", text);
    judge.judge(name, sound.made.path(), whole.size(), verdict::refused);
    write_text(sound.made / "params.json", sound.params);
  }
};

}  // namespace

TEST_CASE("malformed PyTorch files: every fault is refused with a clear error, and nothing is called", "[torch][bad]") {
  faults all;
  REQUIRE(intaglio::io::check(all.sound.made.path()).ok());
  const std::string body = all.pickle.substr(2, all.pickle.size() - 3), name = text("norm.weight");

  for (std::size_t at = 1; at < all.whole.size(); at += at < 200 || at + 200 > all.whole.size() ? 7 : 131)
    all.put("cut at " + std::to_string(at), {all.whole.begin(), all.whole.begin() + static_cast<std::ptrdiff_t>(at)});
  for (const std::size_t more : {1u, 22u, 4096u}) {
    bytes longer = all.whole;
    longer.resize(longer.size() + more);
    all.put(std::to_string(more) + " trailing bytes", longer);
  }

  // Globals that do something, called at once, kept for later, or in a branch that nothing reads.
  for (const auto& [module, which] : {std::pair{"os", "system"},
                                      {"posix", "system"},
                                      {"nt", "system"},
                                      {"subprocess", "Popen"},
                                      {"builtins", "eval"},
                                      {"builtins", "exec"},
                                      {"__builtin__", "eval"},
                                      {"builtins", "__import__"},
                                      {"builtins", "getattr"},
                                      {"importlib", "import_module"},
                                      {"runpy", "run_path"},
                                      {"shutil", "rmtree"},
                                      {"torch", "load"},
                                      {"torch.hub", "load"},
                                      {"torch._utils", "_rebuild_tensor"},
                                      {"torch.jit", "load"},
                                      {"numpy.core.multiarray", "_reconstruct"},
                                      {"collections", "Counter"},
                                      {"_codecs", "encode"},
                                      {"pickle", "loads"},
                                      {"torch._utils", "_rebuild_device_tensor_from_numpy"}}) {
    const std::string which_one = std::string(module) + "." + which,
                      called = global(module, which) + tuple({text("touch intaglio-was-here")}) + "R";
    all.pickled_as(which_one + " called first", "\x80\x02" + called + "q\x7F" + body + ".");
    all.pickled_as(which_one + " as a value", file(dict({{"x", called}})));
    all.replaced(which_one + " instead of a tensor", "ctorch._utils\n_rebuild_tensor_v2\n", global(module, which));
    all.pickled_as(which_one + " in a second pickle", all.pickle + file(called));
  }
  for (const char* opcode : {"\x93",
                             "i",
                             "o",
                             "\x81",
                             "\x92",
                             "\x82\x01",
                             "\x83\x01\x01",
                             "\x84\x01\x01\x01\x01",
                             "P",
                             "0",
                             "1",
                             "2",
                             "\x94",
                             "\x95",
                             "\x8C",
                             "\x8D",
                             "\x96",
                             "\x97",
                             "I",
                             "L",
                             "S",
                             "T",
                             "V",
                             "F",
                             "d",
                             "l",
                             "g",
                             "p",
                             "\x90",
                             "\x91",
                             "B",
                             "C",
                             "\x8E",
                             "\x8B",
                             "\xFE"})
    all.pickled_as("opcode " + std::to_string(static_cast<unsigned char>(opcode[0])), "\x80\x02" + body + opcode + ".");
  all.pickled_as("protocol 4", "\x80\x04" + all.pickle.substr(2));
  all.pickled_as("empty", "");
  all.pickled_as("no STOP", "\x80\x02" + body);
  all.pickled_as("a list", file("]"));
  all.pickled_as("a million lists", "\x80\x02" + std::string(1'000'000, ']'));
  all.pickled_as("a million marks", "\x80\x02" + std::string(1'000'000, '('));
  all.pickled_as("memo slot 2^32-1", "\x80\x02" + body + "r\xFF\xFF\xFF\xFF.");
  all.pickled_as("memo slot never filled", "\x80\x02h\x05.");
  all.pickled_as("string of 4 GiB", "\x80\x02X\xFF\xFF\xFF\xFF.");
  all.replaced("name that is no UTF-8", "norm.weight", "norm.wei\xFF\xFEt");
  all.replaced("name with a control character", "norm.weight", "norm.weig\x1bt");
  all.replaced("name of no tensor", "norm.weight", "norm.weighs");
  all.replaced("name twice", text("norm.weight"), text("output.weight"));

  // Views of the storage of "layers.0.attention.wv.weight", which has 32 elements.
  const auto viewed = [&](const std::string& what, std::int64_t elements, std::int64_t offset,
                          const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
    std::vector<std::pair<std::string, std::string>> tensors, storages;
    zip_image other;
    all.sound.write(1, [&](std::uint64_t, auto& list, auto& data) {
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].first == "layers.0.attention.wv.weight")
          list[i].second = tensor(storage("FloatStorage", data[i].first, elements), offset, shape, strides);
      other = torch_image(pickled::file(dict(list)), data);
    });
    all.put(what, other.build());
  };
  viewed("offset past the storage", 32, 1, {4, 8}, {8, 1});
  viewed("offset of 2^63-1", 32, INT64_MAX, {4, 8}, {8, 1});
  viewed("negative offset", 32, -1, {4, 8}, {8, 1});
  viewed("stride past the storage", 32, 0, {4, 8}, {9, 1});
  viewed("stride of 2^62", 32, 0, {4, 8}, {INT64_MAX / 2, 1});
  viewed("negative stride", 32, 31, {4, 8}, {-8, -1});
  viewed("strides that wrap", 32, 0, {INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX});
  viewed("expanded to 2^40", 32, 0, {1 << 20, 1 << 20}, {0, 0});
  viewed("too few strides", 32, 0, {4, 8}, {8});
  viewed("nine dimensions", 32, 0, {4, 8, 1, 1, 1, 1, 1, 1, 1}, {8, 1, 1, 1, 1, 1, 1, 1, 1});
  viewed("transposed", 32, 0, {8, 4}, {4, 1});
  viewed("one row less", 32, 0, {3, 8}, {8, 1});
  viewed("flat", 32, 0, {32}, {1});
  viewed("empty", 32, 0, {0, 8}, {8, 1});
  viewed("more elements than bytes", 33, 0, {4, 8}, {8, 1});
  viewed("2^62 elements", INT64_MAX / 2, 0, {4, 8}, {8, 1});
  viewed("negative number of elements", -32, 0, {4, 8}, {8, 1});

  all.changed("data.pkl compressed", [](zip_image& i) { i.at("model/data.pkl").method = 8; });
  all.changed("data.pkl encrypted", [](zip_image& i) { i.at("model/data.pkl").flags |= 1; });
  all.changed("two data.pkl", [](zip_image& i) { i.members.push_back(i.at("model/data.pkl")); });
  all.changed("data.pkl of another folder", [](zip_image& i) { i.members.push_back({"other/data.pkl", "x"}); });
  all.changed("no data.pkl", [](zip_image& i) { i.members.erase(i.members.begin()); });
  all.changed("storage missing", [](zip_image& i) { i.at("model/data/3").name = "model/data/99"; });
  all.changed("storage short", [](zip_image& i) { i.at("model/data/3").data.pop_back(); });
  all.changed("storage long", [](zip_image& i) { i.at("model/data/3").data += '\0'; });
  all.changed("storage with another checksum", [](zip_image& i) { i.at("model/data/3").checksum = 1; });
  all.changed("pickle with another checksum", [](zip_image& i) { i.at("model/data.pkl").checksum = 1; });
  all.changed("storage over another", [](zip_image& i) { i.at("model/data/3").header_offset = 0; });
  all.changed("size past the end", [](zip_image& i) { i.at("model/data/3").size = 0x7FFFFFFF; });
  all.changed("big endian", [](zip_image& i) { i.at("model/byteorder").data = "big"; });
  all.changed("version of letters", [](zip_image& i) { i.at("model/version").data = "latest"; });
  all.changed("no version", [](zip_image& i) { i.members.pop_back(); });
  all.changed("a link",
              [](zip_image& i) { i.at("model/data/3").maker = 3 << 8, i.at("model/data/3").attributes = 0xA1FF0000; });
  for (const char* path : {"../../evil", "/evil", "model\\evil", "model/../evil", "model//evil", "model/\x1b[31m"})
    all.changed(path, [&](zip_image& i) { i.members.push_back({path, "x"}); });
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{200}, std::int64_t{1} << 40})
    all.changed(std::to_string(count) + " members", [&](zip_image& i) { i.zip64 = true, i.count = count; });
  for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{1} << 40, INT64_MAX})
    all.changed("directory at " + std::to_string(offset),
                [&](zip_image& i) { i.zip64 = true, i.directory_offset = offset; });
  all.changed("text in front", [](zip_image& i) { i.front = "#!/bin/sh\n"; });
  all.changed("a comment", [](zip_image& i) { i.comment = "PK\x05\x06"; });
  all.changed("NaN in a storage", [](zip_image& i) {
    i.at("model/data/3").data.replace(4, 4, packed(std::numeric_limits<float>::quiet_NaN()));
  });
  all.changed("infinity in a storage", [](zip_image& i) {
    i.at("model/data/3").data.replace(8, 4, packed(std::numeric_limits<float>::infinity()));
  });

  const std::string fields =
      R"("n_layers":1,"n_heads":2,"n_kv_heads":1,"hidden_dim":12,"vocab_size":10,"norm_eps":1e-5)";
  for (const char* other :
       {R"("dim":16)", R"("dim":0)", R"("dim":-8)", R"("dim":8.5)", R"("dim":"8")", R"("dim":4294967296)",
        R"("dim":8,"dim":8)", R"("dim":8,"moe":{})", R"("dim":8,"rope_theta":0)", R"("dim":8,"head_dim":3)",
        R"("dim":8,"sliding_window":-1)", R"("dim":8,"vocab_size":10)"})
    all.params(other, "{" + fields + "," + other + "}");
  all.params("params.json without fields", "{}");
  all.params("params.json cut", "{\"dim\":8");

  std::printf("%zu malformed PyTorch files: median %.1f ms, worst %.1f ms\n", all.judge.count(),
              all.judge.median() * 1e3, all.judge.worst() * 1e3);
  CHECK(all.judge.count() >= 281);
  CHECK(all.judge.median() <= 0.020);
  CHECK_FALSE(std::filesystem::exists("intaglio-was-here"));
}

TEST_CASE("malformed PyTorch files: any byte may be another, and what passes holds the same tensors", "[torch][bad]") {
  faults all;
  const std::size_t data = all.image.text().size();
  const std::uint64_t directory = [&] {
    std::uint32_t at;
    std::memcpy(&at, all.whole.data() + all.whole.size() - 6, 4);
    return std::uint64_t{at};
  }();
  REQUIRE(directory < data);
  const auto sound = intaglio::io::torch_file(intaglio::io::mapped_file::from_memory(all.whole, "sound")).tensors();
  std::size_t passed = 0;
  for (std::size_t at = 0; at < all.whole.size(); ++at)
    for (const unsigned flip : {0x01u, 0x80u, 0xFFu}) {
      bytes other = all.whole;
      other[at] ^= static_cast<std::byte>(flip);
      try {
        const intaglio::io::torch_file got(intaglio::io::mapped_file::from_memory(other, "memory"));
        for (const auto& member : got.members()) intaglio::io::check_member(got.file(), member);
        ++passed;
        REQUIRE(got.tensors().size() == sound.size());
        for (std::size_t i = 0; i < sound.size(); ++i)
          REQUIRE((got.tensors()[i].name == sound[i].name && got.tensors()[i].offset == sound[i].offset));
      } catch (const intaglio::file_error&) {}
    }
  CHECK(passed < all.whole.size());  // dates, versions of ZIP and the like
}
