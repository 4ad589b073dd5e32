// SPDX-License-Identifier: MIT
// Commands on files of models: inspect, check, convert, pack and others.
#pragma once

#include "download.hpp"
#include "model_cache.hpp"
#include "story_commands.hpp"

#include <intaglio/core/error.hpp>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace intaglio::tool {

/// Commands on files of models: inspect, check, convert, pack and others.
class file_commands : public story_commands {
 protected:
  void add_file_commands() {
    add_inspect();
    add_check();
    add_tokenize();
    add_detokenize();
    add_logits();
    add_convert();
    add_index();
    add_pack();
    add_cache();
    add_pull();
    add_list();
    add_rm();
    add_engrave();
  }

 private:
  void add_inspect() {
    auto* c = add(
        "inspect", "Show what a model file says of itself: config, tokenizer, tensors",
        [this] { tool::inspect(inspect_); },
        "  intaglio inspect MODEL.gguf\n  intaglio inspect MODEL.gguf --tensors\n  intaglio inspect FOLDER --json");
    c->add_option("FILE", inspect_.file, "GGUF file or folder")->required();
    c->add_flag("--tensors", inspect_.tensors, "list every tensor");
    c->add_flag("--json", inspect_.json, "one JSON object, tensors and metadata in it");
  }
  void add_check() {
    auto* c = add(
        "check", "Validate structure, model, tokenizer and every value of a model file",
        [this] { tool::check(check_); }, "  intaglio check MODEL.gguf\n  intaglio check FOLDER && echo sound");
    c->add_option("FILE", check_.file, "GGUF file or folder")->required();
    c->add_option("--i2s-layout", check_.i2s_layout, "order of the codes in I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");
  }
  void add_tokenize() {
    auto* c = add(
        "tokenize", "Turn text into token ids", [this] { tool::tokenize(tokenize_); },
        "  intaglio tokenize --text \"Once upon a time\"\n  intaglio tokenize -m MODEL.gguf --file notes.txt --json\n\n"
        "With --json: {\"ids\":[...],\"pieces\":[...]}. A piece that is no UTF-8 by itself shows U+FFFD for its bytes; "
        "the ids are exact.");
    add_model(*c, tokenize_.model);
    auto* text = c->add_option("--text", tokenize_.text, "the text")->type_name("TEXT");
    auto* file =
        c->add_option("--file", tokenize_.file, "the text from a file; - is stdin")->type_name("FILE")->excludes(text);
    c->callback([text, file] {
      if (text->empty() && file->empty()) throw CLI::RequiredError("--text or --file");
    });
    c->add_flag("--special", tokenize_.special,
                "texts of special tokens become those tokens; else they are plain text");
    c->add_flag("--bos", tokenize_.bos, "put the model's BOS token in front");
    c->add_flag("--json", tokenize_.json, "one JSON object instead of ids with commas");
  }
  void add_detokenize() {
    auto* c = add(
        "detokenize", "Turn token ids into text, byte for byte", [this] { tool::detokenize(detokenize_); },
        "  intaglio detokenize --ids 453,466,258,418\n  intaglio detokenize --ids \"$(intaglio tokenize --file "
        "notes.txt)\" | cmp - "
        "notes.txt");
    add_model(*c, detokenize_.model);
    c->add_option("--ids", detokenize_.ids, "token ids: 1,2,3")->type_name("LIST")->required();
    c->add_flag("--json", detokenize_.json, "{\"text\": ...} instead of the bytes");
  }
  void add_logits() {
    auto* c = add(
        "logits", "Write the logits of every position, and hidden states, as NumPy arrays",
        [this] { tool::logits(logits_, common_); },
        "  intaglio logits -m MODEL.gguf --ids 1,2,3 --out out --hidden\n\n"
        "Writes OUT/logits.npy, float32 [tokens, vocabulary], and OUT/hidden.npy, float32 [layers + 1, tokens, width]: "
        "the embedding's "
        "output, then\n"
        "the output of each layer, before the final norm.");
    add_model(*c, logits_.model);
    add_context(*c, logits_.model);
    add_codec(*c, logits_.model);
    add_devices(*c, logits_.model);
    c->add_option("--ids", logits_.ids, "token ids, taken as they are: 1,2,3")->type_name("LIST")->required();
    c->add_option("-o,--out", logits_.out, "folder for the arrays; made where it is missing")
        ->type_name("DIR")
        ->required();
    c->add_flag("--hidden", logits_.hidden, "hidden states too");
    c->add_option("--chunk", logits_.chunk, "tokens fed at once; changes nothing but speed")->type_name("N");
  }
  void add_convert() {
    auto* c = add(
        "convert", "Write a model in another codec, and say how far its values moved",
        [this] { tool::convert(convert_); },
        "  intaglio convert FOLDER MODEL.gguf --codec q4_k\n  intaglio convert MODEL.gguf SMALLER.gguf --codec tq1_0\n"
        "  intaglio convert MODEL.gguf model.safetensors --codec bf16\n\n"
        "Norms stay f32. Tensors that have the codec already are copied. Prints for each kind of tensor and for all "
        "the largest and the root mean\n"
        "square difference of its values, absolute and as a part of the values' own.");
    c->add_option("IN", convert_.in, "GGUF file or folder")->required();
    c->add_option("OUT", convert_.out, "GGUF file, or *.safetensors for the tensors alone; written whole or not at all")
        ->required();
    c->add_option("--codec", convert_.codec, "one of " + converted_codecs())->type_name("C")->required();
    c->add_option("--embedding", convert_.embedding,
                  "codec of embedding and head; default: the same, but f16 beside ternary codecs and bcml1")
        ->type_name("C");
    c->add_option("--threads", convert_.threads, "threads that read and encode; default: one for each of the machine's")
        ->type_name("N");
    c->add_flag("--json", convert_.json, "one JSON object instead of the table");
    c->add_option("--i2s-layout", convert_.i2s_layout, "order of the codes in the input's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");
  }
  void add_index() {
    auto* c = add(
        "index", "Write a model's FFNs feature by feature, for walks: files to be mapped, and a manifest",
        [this] { tool::index(index_); },
        "  intaglio index MODEL.gguf -o index\n  intaglio index FOLDER -o index --codec bf16\n"
        "  intaglio index index -o vindex --larql && intaglio index vindex -o again\n  intaglio index MODEL.gguf -o "
        "index --hnsw\n\n"
        "A feature has three vectors: gate, up and down. Started again with the same arguments, it continues after the "
        "layers that are there\n"
        "and whole. The codec own keeps gate and up as the model has them, and down too unless its blocks run across "
        "features (then f32).\n"
        "A graph (--hnsw) is stored beside the index, for `walk knn --hnsw`. At sizes up to 10,240 features plain "
        "search "
        "is faster.");
    c->add_option("MODEL", index_.in,
                  "GGUF file or folder of a model with gated FFNs; or LARQL's index of one; or with --larql an index")
        ->required();
    c->add_option("-o,--out", index_.out, "folder of the index; made where it is missing")
        ->type_name("DIR")
        ->required();
    auto* codec =
        c->add_option("--codec", index_.codec, "own, f32, f16 or bf16")->type_name("C")->capture_default_str();
    c->add_flag("--larql", index_.larql,
                "write an index in LARQL's layout: gate_vectors, up_features, down_features and index.json")
        ->excludes(codec);
    auto* graph = c->add_flag("--hnsw", index_.hnsw, "make, or go on making, a graph over the gates too (HNSW)")
                      ->excludes("--larql");
    c->add_option("--links", index_.links, "of a feature in the graph; default: 16")->type_name("N")->needs(graph);
    c->add_option("--construction", index_.construction, "candidates for a new feature's links; default: 40")
        ->type_name("N")
        ->needs(graph);
    c->add_option("--search", index_.search, "candidates of a search; may change later; default: 2000")
        ->type_name("N")
        ->needs(graph);
    c->add_option("--threads", index_.threads, "threads that read and encode; default: one for each of the machine's")
        ->type_name("N");
    c->add_flag("--json", index_.json, "one JSON object instead of a line");
    c->add_option("--i2s-layout", index_.i2s_layout, "order of the codes in the model's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");
  }
  void add_pack() {
    auto* c = add(
        "pack",
        "Write a model as one file that loads by copying, or is read in place: config, tokenizer and weights as this "
        "tool's kernels take them",
        [this] { tool::pack(pack_); },
        "  intaglio pack MODEL.gguf -o MODEL.packed && intaglio run -m MODEL.packed --prompt Hello\n\n"
        "The file holds checksums of all its bytes. A program whose kernels lay weights out otherwise refuses it: then "
        "pack the model again.");
    c->add_option("FILE", pack_.file, "GGUF file or folder")->required();
    c->add_option("--codec", pack_.codec,
                  "pack the matrices in this codec where the file's is another, which changes their values")
        ->type_name("C");
    c->add_option("-o,--out", pack_.out, "file to write; whole or not at all")->type_name("FILE")->required();
    c->add_option("--threads", pack_.threads, "threads that read and repack; default: one for each of the machine's")
        ->type_name("N");
    c->add_option("--i2s-layout", pack_.i2s_layout, "order of the codes in the model's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");
  }
  void add_cache() {
    auto* c = add(
        "cache", "List or delete models that were fetched from the net", [this] { tool::cache(cache_); },
        "  intaglio cache list\n  intaglio cache delete https://host/MODEL.gguf\n  intaglio cache delete --all\n\n"
        "They are in $XDG_CACHE_HOME/intaglio/models (else ~/.cache). A download that broke off goes on in the next "
        "run.");
    c->add_option("ACTION", cache_.action, "list or delete")->required()->check(CLI::IsMember({"list", "delete"}));
    c->add_option("WHICH", cache_.which, "what to delete: addresses, keys or file names of the list");
    c->remove_option(c->get_option("--all"));  // of errors, which are never several here
    c->add_flag("--all", cache_.all, "delete all");
    c->add_flag("--json", cache_.json, "list as one JSON array");
  }
  void add_pull() {
    auto* c = add(
        "pull", "Fetch a model from the net into the cache, and print where it is",
        [this] { print_line(local_model(pulled_)); },
        "  intaglio pull hf:OWNER/REPO:Q4_0\n  intaglio pull https://host/MODEL.gguf");
    c->add_option("MODEL", pulled_, "https address, or hf:OWNER/REPO[:QUANTISATION]")
        ->required()
        ->check([](const std::string& model) {
          return is_url(model) ? std::string()
                               : "expected an address or hf:OWNER/REPO, found '" + printable(model, 80) + "'";
        });
  }
  void add_list() {
    auto* c = add(
        "list", "List models that were fetched, as cache list does",
        [this] {
          cache_.action = "list";
          tool::cache(cache_);
        },
        "  intaglio list --json");
    c->add_flag("--json", cache_.json, "one JSON array");
  }
  void add_rm() {
    auto* c = add(
        "rm", "Delete models that were fetched, as cache delete does",
        [this] {
          cache_.action = "delete";
          tool::cache(cache_);
        },
        "  intaglio rm hf:OWNER/REPO\n  intaglio rm --all");
    c->add_option("WHICH", cache_.which, "addresses, keys or file names of the list");
    c->remove_option(c->get_option("--all"));  // of errors, which are never several here
    c->add_flag("--all", cache_.all, "delete all");
  }
  void add_engrave() {
    auto* c = add(
        "engrave", "Build a tool for another model: writes its config and DIR/bin/intaglio",
        [this] { tool::engrave(engrave_); },
        "  intaglio engrave MODEL.gguf -o mine && mine/bin/intaglio run -m MODEL.gguf --prompt Hello\n\n"
        "`intaglio run -m FILE` needs none of this: it plans a file when it opens it, in a few milliseconds. Engraving "
        "gives more:\n"
        "* The compiler proves the plan before the program exists.\n"
        "* DIR/NAME.hpp has the model as a type. A program with intaglio::session<NAME> takes 3 MB and has no "
        "planner.\n"
        "* DIR/bin/intaglio is the whole tool, which knows the model by its name too. It still plans other files.\n\n"
        "Needs CMake, a C++20 compiler and the tool's sources, which are beside an installed or built intaglio "
        "(else: environment\n"
        "INTAGLIO_SOURCE, the source tree).");
    c->add_option("FILE", engrave_.file, "GGUF file or folder")->required();
    c->add_option("-o,--out", engrave_.directory, "folder to build in; default: engraved/NAME")->type_name("DIR");
    c->add_option("--codec", engrave_.codec,
                  "codec of the layers' matrices, f32 to q4_0; default: the file's, if it has one. Tensors of "
                  "another one are encoded anew on loading")
        ->type_name("C");
    c->add_option("--name", engrave_.name, "name of the model in C++; default: from the file's name")
        ->type_name("NAME");
  }

  std::string pulled_;
  inspect_options inspect_;
  check_options check_;
  tokenize_options tokenize_;
  detokenize_options detokenize_;
  logits_options logits_;
  convert_options convert_;
  index_options index_;
  pack_command_options pack_;
  engrave_options engrave_;
  cache_options cache_;
};

}  // namespace intaglio::tool
