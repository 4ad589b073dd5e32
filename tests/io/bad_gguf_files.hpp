// SPDX-License-Identifier: MIT
// Malformed GGUF files made from a sound one. Each has exactly one fault.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gguf_image.hpp"

/// What check() must say: an error, or no error and a warning.
enum class verdict { refused, warned };

using bad_file_sink = std::function<void(const std::string& name, const bytes& file, verdict expected)>;

/// Calls the sink for every fault. The base is a BitNet model with a vocabulary.
class bad_gguf_files {
 public:
  bad_gguf_files(gguf_image base, bad_file_sink sink) : base_(std::move(base)), sink_(std::move(sink)) {
    file_ = base_.build(&fields_);
    architecture_ = text_of("general.architecture");
  }

  void all() {
    truncations();
    header();
    keys();
    arrays();
    alignments();
    tensor_infos();
    tensor_lists();
    hyperparameters();
    vocabulary();
    values();
    sink_("trailing byte blocks", with([](bytes& f) { f.resize(f.size() + 4096); }), verdict::warned);
  }

 private:
  static constexpr std::uint64_t huge[] = {
      std::uint64_t{1} << 31,       std::uint64_t{1} << 32, std::uint64_t{1} << 40, std::uint64_t{1} << 58,
      (std::uint64_t{1} << 61) + 1, std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0},
      ~std::uint64_t{0} / 14,       ~std::uint64_t{0} / 33};

  static std::vector<std::string> texts_of(const bytes& array) {
    std::vector<std::string> out;
    for (std::size_t at = 12; at < array.size();) {
      std::uint64_t length;
      std::memcpy(&length, array.data() + at, 8);
      out.emplace_back(reinterpret_cast<const char*>(array.data()) + at + 8, static_cast<std::size_t>(length));
      at += 8 + static_cast<std::size_t>(length);
    }
    return out;
  }
  static bytes array_of(const std::vector<std::string>& texts) {
    bytes out = bytes_of(std::uint32_t{8});
    append(out, std::uint64_t{texts.size()});
    for (const std::string& text : texts) append_text(out, text);
    return out;
  }
  std::string text_of(const std::string& key) {
    return {reinterpret_cast<const char*>(base_.at(key).value.data()) + 8, base_.at(key).value.size() - 8};
  }
  const gguf_field& field(const std::string& name) const {
    for (const auto& f : fields_)
      if (f.name == name) return f;
    throw std::runtime_error("no field " + name);
  }
  template <class Edit>
  bytes with(Edit&& edit) const {
    bytes out = file_;
    edit(out);
    return out;
  }
  template <class T>
  void overwrite(const std::string& name, std::size_t offset, T value) {
    sink_(name + " = " + std::to_string(value),
          with([&](bytes& f) { std::memcpy(f.data() + offset, &value, sizeof(T)); }), verdict::refused);
  }
  template <class Edit>
  void changed(const std::string& name, Edit&& edit, verdict expected = verdict::refused) {
    gguf_image image = base_;
    edit(image);
    sink_(name, image.build(), expected);
  }

  void truncations() {
    for (const gguf_field& f : fields_) {
      const auto cut = [&](std::size_t at) {
        sink_("cut at " + std::to_string(at) + " in " + f.name,
              bytes(file_.begin(), file_.begin() + static_cast<std::ptrdiff_t>(at)), verdict::refused);
      };
      cut(f.offset);
      if (f.size > 1) cut(f.offset + f.size / 2);
    }
  }

  void header() {
    for (const char* magic : {"GGML", "gguf", "FUGG", "ggjt", "PK\3\4"})
      sink_(std::string("magic ") + magic, with([&](bytes& f) { std::memcpy(f.data(), magic, 4); }), verdict::refused);
    for (const std::uint32_t version : {0u, 1u, 4u, 0x03000000u, 0x02000000u, 0xFFFFFFFFu})
      overwrite("version", 4, version);
    for (const auto count : huge) {
      overwrite("tensor count", 8, count);
      overwrite("key count", 16, count);
    }
    overwrite("tensor count", 8, std::uint64_t{base_.tensors.size() + 1});
    overwrite("tensor count", 8, std::uint64_t{base_.tensors.size() - 1});
    overwrite("tensor count", 8, std::uint64_t{0});
    overwrite("key count", 16, std::uint64_t{base_.keys.size() + 1});
    overwrite("key count", 16, std::uint64_t{base_.keys.size() - 1});
    overwrite("key count", 16, std::uint64_t{0});
    sink_("only a magic", bytes(file_.begin(), file_.begin() + 4), verdict::refused);
    sink_("zeros", bytes(4096), verdict::refused);
    sink_("one byte", bytes(1), verdict::refused);
  }

  void keys() {
    for (std::size_t i = 0; i < base_.keys.size(); ++i) {
      const std::string name = base_.keys[i].name;
      const std::size_t length = field("key " + name + " length").offset;
      for (const auto value : {std::uint64_t{1} << 31, std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{0}})
        overwrite("length of key " + name, length, value);
      overwrite("type of key " + name, field("key " + name + " type").offset, std::uint32_t{13});
      overwrite("type of key " + name, field("key " + name + " type").offset, std::uint32_t{0x80000000u});
    }
    changed("key twice", [](gguf_image& g) { g.keys.push_back(g.keys[3]); });
    changed("key twice with other types", [](gguf_image& g) {
      g.keys.push_back({g.keys[0].name, 7, bytes_of(std::uint8_t{1})});
    });
    changed("key not UTF-8", [](gguf_image& g) { g.keys.push_back({"a\xC3", 7, bytes_of(std::uint8_t{1})}); });
    changed("key with a surrogate", [](gguf_image& g) {
      g.keys.push_back({"a\xED\xA0\x80", 7, bytes_of(std::uint8_t{1})});
    });
    changed("key with NUL", [](gguf_image& g) {
      g.keys.push_back({std::string("a\0b", 3), 7, bytes_of(std::uint8_t{1})});
    });
    changed("key with an escape character", [](gguf_image& g) {
      g.keys.push_back({"a\x1B[2J", 7, bytes_of(std::uint8_t{1})});
    });
    changed("key of 65536 bytes", [](gguf_image& g) {
      g.keys.push_back({std::string(65536, 'k'), 7, bytes_of(std::uint8_t{1})});
    });
    changed("bool 2", [](gguf_image& g) { g.keys.push_back({"a", 7, bytes_of(std::uint8_t{2})}); });
    changed("bool 255",
            [](gguf_image& g) { g.at("tokenizer.ggml.add_bos_token").value = bytes_of(std::uint8_t{255}); });
    changed("text not UTF-8", [](gguf_image& g) { g.set<std::string>("general.name", "\xFF\xFE"); });
    changed("text with NUL", [](gguf_image& g) { g.set<std::string>("general.name", std::string("a\0b", 3)); });
    for (const auto length : huge)
      changed("text of " + std::to_string(length),
              [&](gguf_image& g) { g.at("general.name").value = bytes_of(length); });
  }

  void arrays() {
    const auto array = [](std::uint32_t element, std::uint64_t count, std::size_t payload) {
      bytes out = bytes_of(element);
      append(out, count);
      out.resize(out.size() + payload);
      return out;
    };
    for (const auto count : huge)
      for (const std::uint32_t element : {0u, 4u, 7u, 8u, 10u})
        changed("array of " + std::to_string(count) + " of type " + std::to_string(element), [&](gguf_image& g) {
          g.keys.push_back({"a", 9, array(element, count, 64)});
        });
    changed("array of 2^30 + 1", [&](gguf_image& g) {
      g.keys.push_back({"a", 9, array(0, (std::uint64_t{1} << 30) + 1, 64)});
    });
    for (const std::uint32_t element : {9u, 13u, 255u, 0xFFFFFFFFu})
      changed("array of type " + std::to_string(element), [&](gguf_image& g) {
        g.keys.push_back({"a", 9, array(element, 1, 64)});
      });
    changed("arrays nested 100000 deep", [&](gguf_image& g) {
      bytes nested;
      for (int i = 0; i < 100'000; ++i) {
        append(nested, std::uint32_t{9});
        append(nested, std::uint64_t{1});
      }
      g.keys.push_back({"a", 9, nested});
    });
    changed("array of bools with a 2", [&](gguf_image& g) {
      bytes value = array(7, 64, 64);
      value.back() = std::byte{2};
      g.keys.push_back({"a", 9, value});
    });
    changed("array of texts, one too long", [&](gguf_image& g) {
      bytes value = array(8, 2, 0);
      append_text(value, "one");
      append(value, ~std::uint64_t{0} - 7);
      g.keys.push_back({"a", 9, value});
    });
  }

  void alignments() {
    for (const std::uint32_t value : {0u, 3u, 24u, 31u, 33u, 0x80000000u, 0xFFFFFFFFu})
      changed("alignment " + std::to_string(value), [&](gguf_image& g) { g.set("general.alignment", value); });
    changed("alignment as u64", [](gguf_image& g) { g.set("general.alignment", std::uint64_t{32}); });
    changed("alignment as i32", [](gguf_image& g) { g.set("general.alignment", std::int32_t{32}); });
    changed("alignment as text", [](gguf_image& g) { g.set<std::string>("general.alignment", "32"); });
    changed("offsets aligned to 32 where 4096 is stated",
            [](gguf_image& g) { g.set("general.alignment", std::uint32_t{4096}); });
  }

  void tensor_infos() {
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}, base_.tensors.size() - 1}) {
      const std::string name = base_.tensors[i].name, what = "tensor " + name;
      for (const auto value : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{1} << 31, ~std::uint64_t{0}})
        overwrite("name length of " + what, field(what + " length").offset, value);
      for (const std::uint32_t value : {0u, 5u, 0x7FFFFFFFu, 0xFFFFFFFFu})
        overwrite("dimensions of " + what, field(what + " dimensions").offset, value);
      for (const auto value : huge) overwrite("size of " + what, field(what + " size").offset, value);
      for (const auto value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{129}, std::uint64_t{1} << 20})
        overwrite("size of " + what, field(what + " size").offset, value);
      for (const std::uint32_t value :
           {4u, 5u, 6u, 7u, 9u, 10u, 15u, 20u, 23u, 31u, 32u, 33u, 37u, 38u, 39u, 40u, 99u, 0xFFFFFFFFu}) {
        // An embedding may have any codec that is read.
        constexpr std::array read{6u, 7u, 10u, 20u, 23u, 40u};
        if (what.ends_with("token_embd.weight") && std::find(read.begin(), read.end(), value) != read.end()) continue;
        overwrite("type of " + what, field(what + " type").offset, value);
      }
      const std::uint64_t far = file_.size();
      for (const auto value : {std::uint64_t{1}, std::uint64_t{31}, far, far - 32, std::uint64_t{1} << 40,
                               (std::uint64_t{1} << 63), ~std::uint64_t{0} - 31, ~std::uint64_t{0} - 1023})
        overwrite("offset of " + what, field(what + " offset").offset, value);
    }
    // Overlap: one tensor starts inside or at another.
    for (std::size_t i = 1; i < base_.tensors.size(); i += 3)
      changed("tensor " + std::to_string(i) + " over the first", [&](gguf_image& g) { g.tensors[i].offset = 0; });
    changed("tensor in the middle of another", [](gguf_image& g) { g.tensors[4].offset = 4096; });
    const std::string matrix = "blk.0.attn_q.weight";
    changed("sizes that wrap to a small product", [&](gguf_image& g) {
      g.tensor_at(matrix).shape = {std::uint64_t{1} << 32, std::uint64_t{1} << 32, 1};
    });
    changed("sizes whose bytes wrap", [&](gguf_image& g) {
      g.tensor_at(matrix).shape = {std::uint64_t{1} << 31, std::uint64_t{1} << 31};
    });
    changed("name not UTF-8", [&](gguf_image& g) { g.tensor_at(matrix).name = "blk.0.attn_q.weigh\xFF"; });
    changed("name with NUL", [&](gguf_image& g) { g.tensor_at(matrix).name = std::string("blk\0", 4); });
    for (const char* text :
         {"blk\n.weight", "blk.0.attn_q\x1B[2J.weight", "blk.0.attn_q.weight\x7F", "blk.0.attn_q.weight\xC2\x85"})
      changed("name with a control character", [&](gguf_image& g) { g.tensor_at(matrix).name = text; });
    changed("I2_S in a llama file", [&](gguf_image& g) { g.set<std::string>("general.architecture", "llama"); });
    for (const std::uint32_t type : {38u, 39u})
      changed("TL codec " + std::to_string(type), [&](gguf_image& g) { g.tensor_at(matrix).type = type; });
  }

  void tensor_lists() {
    for (std::size_t i = 0; i < base_.tensors.size(); i += 2) {
      const std::string name = base_.tensors[i].name;
      changed("without " + name,
              [&](gguf_image& g) { g.tensors.erase(g.tensors.begin() + static_cast<std::ptrdiff_t>(i)); });
      changed("twice " + name, [&](gguf_image& g) { g.tensors.push_back(g.tensors[i]); });
      changed("I32 " + name, [&](gguf_image& g) { retype(g.tensors[i], 26, 4); });
      changed("F64 " + name, [&](gguf_image& g) { retype(g.tensors[i], 28, 8); });
      changed("renamed " + name, [&](gguf_image& g) { g.tensors[i].name = "blk.7.other.weight"; });
    }
    changed("an extra tensor", [](gguf_image& g) { g.tensors.push_back({"extra.weight", {32}, 0, bytes(128)}); });
    changed("an extra layer", [](gguf_image& g) {
      g.tensors.push_back({"blk.3.attn_norm.weight", {256}, 0, bytes(1024)});
    });
    changed("no tensors", [](gguf_image& g) { g.tensors.clear(); });
    changed("matrix transposed", [](gguf_image& g) {
      std::swap(g.tensor_at("blk.0.ffn_up.weight").shape[0], g.tensor_at("blk.0.ffn_up.weight").shape[1]);
    });
    changed("matrix as a vector", [](gguf_image& g) { g.tensor_at("blk.0.attn_q.weight").shape = {65536}; });
    changed("norm as a matrix", [](gguf_image& g) { g.tensor_at("blk.0.attn_norm.weight").shape = {256, 1}; });
    changed("norm of another length", [](gguf_image& g) {
      g.tensor_at("output_norm.weight").shape = {255};
      g.tensor_at("output_norm.weight").data.resize(1020);
    });
    changed("factor of another shape", [](gguf_image& g) {
      g.tensors.push_back({"blk.0.attn_q.scale", {2}, 0, bytes(8)});
    });
    for (const float value :
         {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      changed("factor " + std::to_string(value), [&](gguf_image& g) {
        g.tensors.push_back({"blk.0.attn_q.scale", {1}, 0, bytes_of(value)});
      });
  }
  static void retype(gguf_image::tensor& tensor, std::uint32_t type, std::size_t size) {
    std::size_t elements = 1;
    for (const auto n : tensor.shape) elements *= static_cast<std::size_t>(n);
    tensor.type = type;
    tensor.data.assign(elements * size, std::byte{0});
  }

  void hyperparameters() {
    for (const char* tail : {"embedding_length", "feed_forward_length", "block_count", "attention.head_count",
                             "context_length", "vocab_size", "attention.head_count_kv"}) {
      const std::string key = architecture_ + "." + tail;
      const bool optional = std::string_view(tail) == "vocab_size";
      if (!optional) changed("without " + key, [&](gguf_image& g) { g.remove(key); });
      for (const std::uint32_t value : {0u, 3u, 0x7FFFFFFFu, 0xFFFFFFFFu})
        if (!(std::string_view(tail) == "block_count" && value == 3) &&
            !(std::string_view(tail) == "context_length" && value != 0 && value != 0xFFFFFFFFu))
          changed(key + " = " + std::to_string(value), [&](gguf_image& g) { g.set(key, value); });
      changed(key + " as text", [&](gguf_image& g) { g.set<std::string>(key, "256"); });
      changed(key + " as f32", [&](gguf_image& g) { g.set(key, 256.f); });
      changed(key + " as a u64 whose lower half would do",
              [&](gguf_image& g) { g.set(key, (std::uint64_t{1} << 32) + 256); });
      changed(key + " as a negative i32", [&](gguf_image& g) { g.set(key, std::int32_t{-256}); });
      changed(key + " as bool", [&](gguf_image& g) { g.set(key, true); });
    }
    for (const char* tail : {"attention.layer_norm_rms_epsilon", "rope.freq_base"}) {
      const std::string key = architecture_ + "." + tail;
      for (const float value :
           {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
        changed(key + " = " + std::to_string(value), [&](gguf_image& g) { g.set(key, value); });
      changed(key + " as f64", [&](gguf_image& g) { g.set(key, 1e-5); });
    }
    changed("without an epsilon",
            [&](gguf_image& g) { g.remove(architecture_ + ".attention.layer_norm_rms_epsilon"); });
    changed("another head width",
            [&](gguf_image& g) { g.set(architecture_ + ".rope.dimension_count", std::uint32_t{32}); });
    changed("unknown RoPE scaling",
            [&](gguf_image& g) { g.set<std::string>(architecture_ + ".rope.scaling.type", "spiral"); });
    changed("RoPE scaling that the model does not have", [&](gguf_image& g) {
      g.set<std::string>(architecture_ + ".rope.scaling.type", "linear");
      g.set(architecture_ + ".rope.scaling.factor", 2.f);
    });
    changed("experts", [&](gguf_image& g) { g.set(architecture_ + ".expert_count", std::uint32_t{8}); });
    for (const char* other : {"unknown", "", "plamo", "bitnetx"})
      changed(std::string("architecture ") + other,
              [&](gguf_image& g) { g.set<std::string>("general.architecture", other); });
    changed("architecture as a number", [](gguf_image& g) { g.set("general.architecture", std::uint32_t{1}); });
    changed("without an architecture", [](gguf_image& g) { g.remove("general.architecture"); });
    changed("a part of a split model", [](gguf_image& g) {
      g.set("split.no", std::uint16_t{1});
      g.set("split.count", std::uint16_t{3});
    });
    changed("a split model without its parts", [](gguf_image& g) {
      g.set("split.no", std::uint16_t{0});
      g.set("split.count", std::uint16_t{3});
    });
    changed("split.count as f32", [](gguf_image& g) { g.set("split.count", 1.f); });
    changed("split.count as a negative i32", [](gguf_image& g) { g.set("split.count", std::int32_t{-1}); });
  }

  void vocabulary() {
    for (const char* key :
         {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"}) {
      const auto recount = [&](std::uint64_t less) {
        changed(std::string(key) + " with fewer elements", [&](gguf_image& g) {
          auto& value = g.at(key).value;
          std::uint64_t count;
          std::memcpy(&count, value.data() + 4, 8);
          std::uint32_t element;
          std::memcpy(&element, value.data(), 4);
          bytes shorter = bytes_of(element);
          append(shorter, count - less);
          std::size_t at = 12;
          for (std::uint64_t i = 0; i < count - less; ++i) {
            std::uint64_t length = 4;
            if (element == 8) {
              std::memcpy(&length, value.data() + at, 8);
              length += 8;
            }
            shorter.insert(shorter.end(), value.begin() + static_cast<std::ptrdiff_t>(at),
                           value.begin() + static_cast<std::ptrdiff_t>(at + length));
            at += length;
          }
          value = shorter;
        });
      };
      if (std::string_view(key) != "tokenizer.ggml.merges") recount(1);
      changed(std::string(key) + " as bytes", [&](gguf_image& g) {
        bytes value = bytes_of(std::uint32_t{0});
        append(value, std::uint64_t{1024});
        value.resize(value.size() + 1024);
        g.at(key).value = value;
      });
      changed(std::string(key) + " as one text", [&](gguf_image& g) { g.set<std::string>(key, "text"); });
    }
    changed("without tokens", [](gguf_image& g) { g.remove("tokenizer.ggml.tokens"); });
    changed("more tokens than rows", [&](gguf_image& g) {
      bytes value = bytes_of(std::uint32_t{8});
      append(value, std::uint64_t{1025});
      for (int i = 0; i < 1025; ++i) append_text(value, "t" + std::to_string(i));
      g.at("tokenizer.ggml.tokens").value = value;
    });
    for (const char* key : {"bos_token_id", "eos_token_id"})
      changed(std::string(key) + " out of range",
              [&](gguf_image& g) { g.set(std::string("tokenizer.ggml.") + key, std::uint32_t{1024}); });
    changed("bos_token_id as a negative i64",
            [](gguf_image& g) { g.set("tokenizer.ggml.bos_token_id", std::int64_t{-1}); });
    changed("add_bos_token as u32", [](gguf_image& g) { g.set("tokenizer.ggml.add_bos_token", std::uint32_t{1}); });
    const auto texts = [&](const std::string& what, const char* key, auto&& edit, verdict expected = verdict::refused) {
      changed(
          what,
          [&](gguf_image& g) {
            std::vector<std::string> list = texts_of(g.at(key).value);
            edit(list);
            g.at(key).value = array_of(list);
          },
          expected);
    };
    using list = std::vector<std::string>;
    for (const char* merge : {"", " ", "t", "t ", " h", "no such token", "\xF0\x9F\x90\xAD zz"})
      texts(std::string("merge '") + merge + "'", "tokenizer.ggml.merges", [&](list& all) { all[3] = merge; });
    texts("merge twice", "tokenizer.ggml.merges", [](list& all) { all.push_back(all[5]); });
    changed(
        "token twice",
        [&](gguf_image& g) {
          // A token of control: no merge makes it.
          const std::string key = "tokenizer.ggml.tokens";
          list all = texts_of(g.at(key).value);
          all.back() = all[300];
          g.at(key).value = array_of(all);
          bytes& types = g.at("tokenizer.ggml.token_type").value;
          const std::int32_t ordinary = 1;
          std::memcpy(types.data() + types.size() - 4, &ordinary, 4);
        },
        verdict::warned);
    texts("all tokens alike", "tokenizer.ggml.tokens", [](list& all) { all.assign(all.size(), "a"); });
    texts(
        "token of a byte missing", "tokenizer.ggml.tokens", [](list& all) { all[0] += "x"; }, verdict::warned);
    texts("token not UTF-8", "tokenizer.ggml.tokens", [](list& all) { all[700] = "\xFF"; });
    texts("an empty token", "tokenizer.ggml.tokens", [](list& all) { all[700].clear(); });
    changed("unknown tokenizer", [](gguf_image& g) { g.set<std::string>("tokenizer.ggml.model", "oracle"); });
  }

  void values() {
    for (std::size_t i = 0; i < base_.tensors.size(); ++i) {
      const auto& tensor = base_.tensors[i];
      const std::string name = tensor.name;
      const std::size_t last = tensor.data.size();
      if (tensor.type == 36) {
        const std::size_t codes = last - 32;
        changed("code 3 at the end of " + name, [&](gguf_image& g) { g.tensors[i].data[codes - 1] = std::byte{0x57}; });
        if (i % 2 == 0)
          changed("code 3 at the start of " + name, [&](gguf_image& g) { g.tensors[i].data[0] = std::byte{0xC0}; });
        for (const float scale :
             {0.f, -0.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
          if (i % 3 == 0 || std::isnan(scale))
            changed("scale " + std::to_string(scale) + " of " + name,
                    [&](gguf_image& g) { std::memcpy(g.tensors[i].data.data() + codes, &scale, 4); });
      } else if (tensor.type == 35 || tensor.type == 34) {
        for (const std::uint16_t scale :
             {std::uint16_t{0x7E00}, std::uint16_t{0x7C00}, std::uint16_t{0xB800}, std::uint16_t{0x0001}})
          changed("block scale " + std::to_string(scale) + " of " + name,
                  [&](gguf_image& g) { std::memcpy(g.tensors[i].data.data() + last - 2, &scale, 2); });
      } else if (tensor.type == 0) {
        for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
          changed(std::to_string(value) + " at the end of " + name,
                  [&](gguf_image& g) { std::memcpy(g.tensors[i].data.data() + last - 4, &value, 4); });
      } else if (tensor.type == 1) {
        for (const std::uint16_t value : {std::uint16_t{0x7C00}, std::uint16_t{0xFE00}})
          changed(std::to_string(value) + " at the end of " + name,
                  [&](gguf_image& g) { std::memcpy(g.tensors[i].data.data() + last - 2, &value, 2); });
      }
    }
  }

  gguf_image base_;
  bad_file_sink sink_;
  bytes file_;
  std::vector<gguf_field> fields_;
  std::string architecture_;
};
