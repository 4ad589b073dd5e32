// SPDX-License-Identifier: MIT
// Malformed Hugging Face folders made from a sound one: safetensors headers and data, indexes, config.json. Each has
// exactly one fault.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "bad_gguf_files.hpp"
#include "files.hpp"

/// A safetensors file taken apart: header entries in data order, and the data.
struct safetensors_image {
  using json = nlohmann::ordered_json;
  json header = json::object();
  bytes data;

  static safetensors_image of(const std::filesystem::path& path) {
    const bytes file = read_bytes(path);
    std::uint64_t length;
    std::memcpy(&length, file.data(), 8);
    safetensors_image out;
    out.header =
        json::parse(std::string(reinterpret_cast<const char*>(file.data()) + 8, static_cast<std::size_t>(length)));
    out.data.assign(file.begin() + 8 + static_cast<std::ptrdiff_t>(length), file.end());
    return out;
  }
  static bytes join(const std::string& header, const bytes& data, std::optional<std::uint64_t> length = std::nullopt) {
    bytes out;
    append(out, length.value_or(header.size()));
    const auto view = std::as_bytes(std::span(header));
    out.insert(out.end(), view.begin(), view.end());
    out.insert(out.end(), data.begin(), data.end());
    return out;
  }
  bytes build() const { return join(header.dump(), data); }
};

/// Puts each fault into `folder`, which holds a copy of the sound model, calls the sink and repairs the folder.
class bad_safetensors_folders {
 public:
  using sink = std::function<void(const std::string& name, std::uint64_t largest_file, verdict expected)>;
  bad_safetensors_folders(std::filesystem::path folder, sink call)
      : folder_(std::move(folder)), file_(folder_ / "model.safetensors"), base_(safetensors_image::of(file_)),
        sound_(read_bytes(file_)), text_(base_.header.dump()), sink_(std::move(call)) {}

  void all() {
    files();
    header_lengths();
    header_texts();
    entries();
    tensor_lists();
    values();
    configs();
    shards();
  }

 private:
  using json = nlohmann::ordered_json;

  void model(const std::string& name, const bytes& file, verdict expected = verdict::refused) {
    write_bytes(file_, file);
    sink_(name, file.size(), expected);
    write_bytes(file_, sound_);
  }
  template <class Edit>
  void changed(const std::string& name, Edit&& edit) {
    safetensors_image image = base_;
    edit(image);
    model(name, image.build());
  }
  void header_text(const std::string& name, const std::string& text) {
    model(name, safetensors_image::join(text, base_.data));
  }
  std::string replaced(std::string_view from, std::string_view to) const {
    const auto at = text_.find(from);
    if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + std::string(from));
    std::string out = text_;
    return out.replace(at, from.size(), to);
  }
  bytes start(std::size_t size) const { return {sound_.begin(), sound_.begin() + static_cast<std::ptrdiff_t>(size)}; }

  void files() {
    const std::size_t header = 8 + text_length();
    for (std::size_t at : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9}, header / 2, header - 1,
                           header, header + 1, sound_.size() / 2, sound_.size() - 1})
      model("cut at " + std::to_string(at), start(at));
    for (const auto& [name, entry] : base_.header.items())
      if (name != "__metadata__") {
        const std::size_t end = header + entry["data_offsets"][1].get<std::size_t>();
        if (end < sound_.size()) model("cut after " + name, start(end));
        model("cut in " + name,
              start(header +
                    (entry["data_offsets"][0].get<std::size_t>() + entry["data_offsets"][1].get<std::size_t>()) / 2));
      }
    for (const std::size_t more : {1u, 8u, 4096u}) {
      bytes longer = sound_;
      longer.resize(longer.size() + more);
      model(std::to_string(more) + " trailing bytes", longer);
    }
    model("zeros", bytes(4096));
  }
  std::size_t text_length() const {
    std::uint64_t length;
    std::memcpy(&length, sound_.data(), 8);
    return static_cast<std::size_t>(length);
  }

  void header_lengths() {
    for (const auto length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{text_.size() - 1},
                              std::uint64_t{text_.size() + 1}, std::uint64_t{sound_.size()}, std::uint64_t{100'000'001},
                              std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0},
                              ~std::uint64_t{0} - 7})
      model("header length " + std::to_string(length), safetensors_image::join(text_, base_.data, length));
  }

  void header_texts() {
    header_text("leading space", " " + text_);
    header_text("byte order mark", "\xEF\xBB\xBF" + text_);
    header_text("an array", "[" + text_ + "]");
    header_text("two objects", text_ + text_);
    header_text("text after the object", text_ + "x");
    header_text("NUL after the object", text_ + std::string(1, '\0'));
    header_text("empty", "");
    header_text("only a brace", "{");
    header_text("comment", replaced("{", "{/* */"));
    header_text("trailing comma", text_.substr(0, text_.size() - 1) + ",}");
    header_text("single quotes", replaced("\"dtype\"", "'dtype'"));
    header_text("not UTF-8", replaced("model.norm", "model.\xFFnorm"));
    header_text("lone surrogate", replaced("model.norm", "model.\\ud800norm"));
    header_text("overlong UTF-8", replaced("model.norm", "model.\xC0\xAEnorm"));
    header_text("raw control character", replaced("model.norm", "model.\nnorm"));
    header_text("escape character in a name", replaced("model.norm", "model.\\u001bnorm"));
    header_text("C1 control character in a name", replaced("model.norm", "model.\\u0085norm"));
    header_text("NUL in a name", replaced("model.norm", "model.\\u0000norm"));
    std::string deep = R"({"a":)";
    for (int i = 0; i < 100'000; ++i) deep += "[";
    header_text("100000 open lists", deep);
    header_text("100000 lists in __metadata__", R"({"__metadata__":)" + deep.substr(5));
    deep.clear();
    for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
    header_text("100000 open objects", deep);
    header_text("a name of 2 MB", R"({")" + std::string(2'000'000, 'n') + R"(":{}})");
    header_text("a long name",
                R"({")" + std::string(2000, 'n') + R"(":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})");
    // Duplicates, plain and by escape.
    const std::string first = "model.embed_tokens.weight", entry = base_.header[first].dump();
    header_text("tensor twice", "{\"" + first + "\":" + entry + "," + text_.substr(1));
    header_text("tensor twice by escape", "{\"\\u006dodel.embed_tokens.weight\":" + entry + "," + text_.substr(1));
    header_text("__metadata__ twice", R"({"__metadata__":{},"__metadata__":{},)" + text_.substr(1));
    header_text("metadata key twice", replaced("{\"format\":\"pt\"}", "{\"format\":\"pt\",\"format\":\"pt\"}"));
    header_text("metadata number", replaced("\"pt\"", "1"));
    header_text("metadata object", replaced("\"pt\"", "{}"));
    header_text("metadata list", replaced("{\"format\":\"pt\"}", "[]"));
    header_text("metadata null", replaced("{\"format\":\"pt\"}", "null"));
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      header_text(std::string(field) + " twice",
                  replaced("{\"dtype\":",
                           "{\"" + std::string(field) + "\":" + base_.header[first][field].dump() + ",\"dtype\":"));
      header_text(std::string("no ") + field,
                  replaced("\"" + std::string(field) + "\":" + base_.header[first][field].dump() +
                               (std::string_view(field) == "data_offsets" ? "" : ","),
                           ""));
    }
    header_text("unknown field", replaced("{\"dtype\":", "{\"extra\":1,\"dtype\":"));
  }

  void entries() {
    std::size_t number = 0;
    for (const auto& [name, entry] : base_.header.items()) {
      if (name == "__metadata__" || number++ % 9 != 0) continue;
      const auto edit = [&, tensor = name](const std::string& what, const char* field, const json& value) {
        changed(what + " of " + tensor, [&](safetensors_image& image) { image.header[tensor][field] = value; });
      };
      const std::uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      for (const char* type : {"F33", "f32", "", "F4", "F8_E8M0", "C64", "Q4_0"})
        edit(std::string("dtype '") + type + "'", "dtype", type);
      edit("dtype null", "dtype", nullptr);
      edit("dtype number", "dtype", 1);
      edit("dtype list", "dtype", json::array({"F32"}));
      edit("a wider dtype", "dtype", "F64");
      for (const json& shape :
           {json(nullptr), json(1), json("x"), json::object(), json::array({-1}), json::array({1.5}),
            json::array({"1"}), json::array({json::array()}), json::array({true}),
            json::array({json::parse("18446744073709551616")}), json::array({std::uint64_t{1} << 63, 2}),
            json::array({std::uint64_t{1} << 32, std::uint64_t{1} << 32}),
            json::array({~std::uint64_t{0}, ~std::uint64_t{0}}), json::array({0}),
            json::array({1, 1, 1, 1, 1, 1, 1, 1, 1}), json::array({7})})
        edit("shape " + shape.dump(), "shape", shape);
      for (const json& range :
           {json(nullptr), json(1), json::object(), json::array(), json::array({begin}), json::array({begin, end, end}),
            json::array({end, begin}), json::array({begin + 1, end}), json::array({begin, end - 1}),
            json::array({begin, end + 1}), json::array({begin + 2, end + 2}), json::array({-1, end}),
            json::array({begin, 1e300}), json::array({0.5, end}), json::array({begin, ~std::uint64_t{0}}),
            json::array({~std::uint64_t{0} - 1, ~std::uint64_t{0}}),
            json::array({std::uint64_t{1} << 63, std::uint64_t{1} << 63})})
        edit("data_offsets " + range.dump(), "data_offsets", range);
      changed("an entry that is a list: " + name,
              [&, tensor = name](safetensors_image& image) { image.header[tensor] = json::array(); });
      changed("an entry that is null: " + name,
              [&, tensor = name](safetensors_image& image) { image.header[tensor] = nullptr; });
    }
  }

  void tensor_lists() {
    std::size_t number = 0;
    for (const auto& [name, entry] : base_.header.items()) {
      if (name == "__metadata__" || number++ % 4 != 0) continue;
      const auto edit = [&, tensor = name](const std::string& what, auto&& change) {
        changed(what + " " + tensor, [&](safetensors_image& image) {
          json renamed = json::object();
          for (const auto& [key, value] : image.header.items()) change(renamed, key, value, key == tensor);
          image.header = renamed;
        });
      };
      edit("renamed",
           [](json& out, const std::string& key, const json& value, bool it) { out[it ? key + "x" : key] = value; });
      edit("in another layer", [](json& out, const std::string& key, const json& value, bool it) {
        out[it ? "model.layers.9.input_layernorm.weight" : key] = value;
      });
      if (entry["shape"].size() == 2)
        edit("transposed", [](json& out, const std::string& key, json value, bool it) {
          if (it) std::reverse(value["shape"].begin(), value["shape"].end());
          if (it && value["shape"][0] == value["shape"][1])
            value["shape"] = json::array({value["shape"][0], value["shape"][1], 1});
          out[key] = value;
        });
      if (entry["dtype"] == "BF16")
        edit("I16 instead of BF16", [](json& out, const std::string& key, json value, bool it) {
          if (it) value["dtype"] = "I16";
          out[key] = value;
        });
    }
    changed("extra tensor", [](safetensors_image& image) {
      const std::uint64_t at = image.data.size();
      image.header["extra.weight"] = {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {at, at + 8}}};
      image.data.resize(image.data.size() + 8);
    });
    changed("a head that is not tied", [](safetensors_image& image) {
      const std::uint64_t at = image.data.size();
      image.header["lm_head.weight"] = {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {at, at + 8}}};
      image.data.resize(image.data.size() + 8);
    });
    model("no tensors", safetensors_image::join("{}", {}));
  }

  void values() {
    const std::size_t data = 8 + text_length();
    std::size_t number = 0;
    for (const auto& [name, entry] : base_.header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = data + entry["data_offsets"][0].get<std::size_t>(),
                        end = data + entry["data_offsets"][1].get<std::size_t>();
      const auto put = [&](const std::string& what, std::size_t at, std::uint16_t value) {
        bytes file = sound_;
        std::memcpy(file.data() + at, &value, 2);
        model(what + " in " + name, file);
      };
      const bool few = number++ % 3 == 0;
      if (entry["dtype"] == "BF16") {
        put("NaN", end - 2, 0x7FC0);
        if (few) put("infinity", begin, 0xFF80);
        if (name.ends_with("weight_scale")) put("zero", begin, 0), put("negative", begin, 0xBF00);
      } else if (entry["dtype"] == "U8") {
        put("code 3", end - 2, 0x5755);
        if (few) put("code 3", begin, 0x55D5);
      }
    }
  }

  void config(const std::string& name, const std::string& text) {
    const bytes sound = read_bytes(folder_ / "config.json");
    write_text(folder_ / "config.json", text);
    sink_(name, sound_.size(), verdict::refused);
    write_bytes(folder_ / "config.json", sound);
  }
  void configs() {
    const bytes raw = read_bytes(folder_ / "config.json");
    const std::string text(reinterpret_cast<const char*>(raw.data()), raw.size());
    const auto sound = json::parse(text);
    for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                            "num_key_value_heads", "vocab_size", "max_position_embeddings"}) {
      for (const json& value : {json(0), json(-1), json(3.5), json("4"), json(std::uint64_t{1} << 32),
                                json(std::uint64_t{0xFFFFFFFF}), json(1e300), json::array({1}), json(true)}) {
        json edited = sound;
        edited[key] = value;
        config("config " + std::string(key) + " = " + value.dump(), edited.dump());
      }
      if (std::string_view(key) == "num_key_value_heads") continue;  // has a default
      json edited = sound;
      edited.erase(key);
      config("config without " + std::string(key), edited.dump());
    }
    const auto edit = [&](const std::string& name, auto&& change) {
      json edited = sound;
      change(edited);
      config("config " + name, edited.dump());
    };
    for (const json& value : {json(0), json(-1), json("x"), json(1e300), json(nullptr)})
      edit("rms_norm_eps " + value.dump(), [&](json& c) { c["rms_norm_eps"] = value; });
    for (const json& value : {json(0), json(-1), json("x"), json(1e300)})
      edit("rope_theta " + value.dump(), [&](json& c) { c["rope_theta"] = value; });
    for (const json& value : {json("other"), json(1), json(nullptr), json("")})
      edit("model_type " + value.dump(), [&](json& c) { c["model_type"] = value; });
    for (const json& value : {json("tanh"), json(1)})
      edit("hidden_act " + value.dump(), [&](json& c) { c["hidden_act"] = value; });
    edit("num_key_value_heads that divide nothing", [](json& c) { c["num_key_value_heads"] = 3; });
    edit("linear_class", [](json& c) { c["quantization_config"]["linear_class"] = "other"; });
    edit("quant_method", [](json& c) { c["quantization_config"]["quant_method"] = "gptq"; });
    edit("quantization_config list", [](json& c) { c["quantization_config"] = json::array(); });
    edit("attention_bias", [](json& c) { c["attention_bias"] = true; });
    edit("rope_scaling", [](json& c) { c["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}}; });
    edit("untied", [](json& c) { c["tie_word_embeddings"] = false; });
    edit("experts", [](json& c) { c["num_experts"] = 8; });
    config("config empty", "");
    config("config cut", text.substr(0, text.size() / 2));
    config("config list", "[]");
    config("config text", "\"x\"");
    config("config key twice", "{\"model_type\":\"bitnet\"," + text.substr(text.find('{') + 1));
    config("config deep", std::string(100'000, '['));
    config("config of 2 MB", text + std::string(2'000'000, ' '));
    config("config with text after NUL", text + std::string(1, '\0') + "x");
    config("config not UTF-8", "{\"a\":\"\xFF\"}");
  }

  void shards() {
    const auto index_path = folder_ / "model.safetensors.index.json";
    std::filesystem::remove(file_);
    // Two shards: the embedding, and everything else.
    safetensors_image first, second;
    const std::string embedding = "model.embed_tokens.weight";
    for (const auto& [name, entry] : base_.header.items()) {
      if (name == "__metadata__") continue;
      safetensors_image& to = name == embedding ? first : second;
      const std::uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1], at = to.data.size();
      to.data.insert(to.data.end(), base_.data.begin() + static_cast<std::ptrdiff_t>(begin),
                     base_.data.begin() + static_cast<std::ptrdiff_t>(end));
      to.header[name] = {
          {"dtype", entry["dtype"]}, {"shape", entry["shape"]}, {"data_offsets", {at, at + end - begin}}};
    }
    const char *one = "model-00001-of-00002.safetensors", *two = "model-00002-of-00002.safetensors";
    write_bytes(folder_ / one, first.build());
    write_bytes(folder_ / two, second.build());
    json map = json::object();
    for (const auto& [name, entry] : first.header.items()) map[name] = one;
    for (const auto& [name, entry] : second.header.items()) map[name] = two;
    const json sound = {{"metadata", {{"total_size", base_.data.size()}}}, {"weight_map", map}};
    const auto text = [&](const std::string& name, const std::string& index, verdict expected = verdict::refused) {
      write_text(index_path, index);
      sink_("index " + name, sound_.size(), expected);
    };
    const auto edit = [&](const std::string& name, auto&& change, verdict expected = verdict::refused) {
      json edited = sound;
      change(edited);
      text(name, edited.dump(), expected);
    };
    edit(
        "that is sound but for its total_size", [](json& i) { i["metadata"]["total_size"] = 1; }, verdict::warned);
    for (const char* bad :
         {"../model.safetensors", "/etc/passwd", "/model.safetensors", "..\\model.safetensors", "C:model.safetensors",
          "a/b.safetensors", "", ".", "..", "model.safetensors.index.json", ".safetensors", "other.bin",
          "missing-00001-of-00002.safetensors", "a\nb.safetensors", "..safetensors"})
      edit("with file name " + std::string(bad), [&](json& i) { i["weight_map"][embedding] = bad; });
    for (const json& bad : {json(nullptr), json(1), json(true), json::array({one}), json::object(), json(1.5)})
      edit("with " + bad.dump() + " as a file name", [&](json& i) { i["weight_map"][embedding] = bad; });
    for (const json& bad : {json(nullptr), json(1), json("x"), json::array({one}), json::object()})
      edit("with weight_map " + bad.dump(), [&](json& i) { i["weight_map"] = bad; });
    edit("without weight_map", [](json& i) { i.erase("weight_map"); });
    edit("that puts a tensor in the other shard", [&](json& i) { i["weight_map"]["model.norm.weight"] = one; });
    edit("without a tensor", [&](json& i) { i["weight_map"].erase("model.norm.weight"); });
    edit("with a tensor that is nowhere", [&](json& i) { i["weight_map"]["model.nowhere.weight"] = two; });
    text("with a tensor twice", "{\"weight_map\":{\"" + embedding + "\":\"" + one + "\"," + map.dump().substr(1) + "}");
    text("with weight_map twice", "{\"weight_map\":{}," + sound.dump().substr(1));
    text("cut", sound.dump().substr(0, 200));
    text("that is a list", "[]");
    text("that is empty", "");
    text("deep", "{\"metadata\":" + std::string(100'000, '[') + "}");
    write_text(index_path, sound.dump());
    write_bytes(folder_ / two, first.build());
    sink_("a shard twice", sound_.size(), verdict::refused);
    std::filesystem::remove(folder_ / two);
    sink_("a shard missing", sound_.size(), verdict::refused);
    std::filesystem::create_directory(folder_ / two);
    sink_("a shard that is a folder", sound_.size(), verdict::refused);
    std::filesystem::remove_all(folder_ / two);
    std::filesystem::remove(folder_ / one);
    std::filesystem::remove(index_path);
    sink_("no weights at all", sound_.size(), verdict::refused);
    write_bytes(file_, sound_);
    std::filesystem::remove(folder_ / "config.json");
    sink_("no config.json", sound_.size(), verdict::refused);
  }

  std::filesystem::path folder_, file_;
  safetensors_image base_;
  bytes sound_;
  std::string text_;
  sink sink_;
};
