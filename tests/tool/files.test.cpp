// SPDX-License-Identifier: MIT
// inspect, check, convert, and what every command says of a bad file.
#include "intaglio/io/packed_image.hpp"
#include "shared.hpp"
#include "tool/program.hpp"

#include <cstdint>
#include <map>

using namespace tool_test;

namespace {

std::string fable() { return shared("models/fable-bitnet-i2_s.gguf").string(); }

}  // namespace

TEST_CASE("inspect shows config, metadata and tensors") {
  const auto json = call({"inspect", fable(), "--json"}).json();
  CHECK(json["form"] == "gguf");
  CHECK(json["architecture"] == "bitnet-b1.58");
  CHECK(json["config"]["hidden_size"] == 256);
  CHECK(json["config"]["hidden_act"] == "relu2");
  CHECK(json["parameters"] == 8927488);
  CHECK(json["problem"].is_null());
  CHECK(json["tensors"].size() > 80);
  CHECK(json["tensors"][0]["shape"].size() == 2);
  const outcome text = call({"inspect", fable(), "--tensors"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "num_hidden_layers"));
  CHECK(contains(text.out, "blk.7.ffn_down.weight"));
  const auto folder = call({"inspect", shared("models/fable-bitnet-packed").string(), "--json"}).json();
  CHECK(folder["form"] == "safetensors");
  CHECK(folder["config"] == json["config"]);
}

TEST_CASE("weights without a config are judged, and run beside one") {
  const temporary_folder folder;
  const std::string bare = folder / "bare.safetensors";
  fs::copy_file(shared("models/fable-bitnet/model.safetensors"), bare);
  const outcome judged = call({"check", bare});
  CHECK(judged.code == 0);
  CHECK(contains(judged.out, ": sound: "));
  CHECK(contains(judged.err, "bare.safetensors: neither config.json nor params.json beside it"));
  const outcome seen = call({"inspect", bare, "--json"});
  CHECK(seen.json()["form"] == "safetensors");
  CHECK(contains(seen.json()["problem"].get<std::string>(), "weights without a config"));
  const outcome none = call({"tokenize", "-m", bare, "--text", "a"});
  CHECK(none.code == 1);
  CHECK(contains(none.first_error(), "weights without a config: expected config.json or params.json beside the file"));
  const std::string beside = shared("models/fable-bitnet/model.safetensors").string();
  CHECK(call({"tokenize", "-m", beside, "--text", "Once"}).out ==
        call({"tokenize", "-m", fable(), "--text", "Once"}).out);
}

TEST_CASE("inspect says what a model computes in") {
  CHECK(call({"inspect", fable(), "--json"}).json()["config"]["activation_type"] == "i8");
  const std::string llama = shared("models/stories260k/stories260K-f32.gguf").string();
  CHECK(call({"inspect", llama, "--json"}).json()["config"]["activation_type"] == "f32");
}

TEST_CASE("what is stored and computed, and its memory, are said by inspect, plan and run") {
  const std::string mixed = shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf").string();
  const auto seen = call({"inspect", mixed, "--json"}).json();
  std::map<std::string, std::uint64_t> stored;
  for (const auto& tensor : seen["tensors"])
    stored[tensor["type"].get<std::string>()] += tensor["bytes"].get<std::uint64_t>();
  const auto& computed = seen["computed"]["codecs"];
  CHECK(stored.size() == 3);  // vectors are f32
  CHECK(computed.size() == 3);
  CHECK(computed["q4_k"] == stored["q4_k"]);
  CHECK(computed["q6_k"].get<std::uint64_t>() >= stored["q6_k"]);
  CHECK(computed["q6_k"].get<std::uint64_t>() < stored["q6_k"] * 102 / 100);  // groups of rows are filled up
  const auto weights = seen["computed"]["weight_bytes"].get<std::uint64_t>(),
             token = seen["computed"]["bytes_per_token"].get<std::uint64_t>();
  CHECK(weights >= stored["q4_k"] + stored["q6_k"]);
  CHECK((token < weights && token > weights / 2));  // of the embedding a row
  const std::string text = "q4_k 1.3 MB, q6_k 392.4 kB; 1.6 MB a token";
  CHECK(contains(call({"inspect", mixed}).out, "computed in               " + text + "\n"));
  const outcome said = call({"run", "-m", mixed, "--ids", "1,2", "-n", "4", "--context", "64"});
  CAPTURE(said.err);
  CHECK(said.code == 0);
  CHECK(contains(said.err, " (" + text + ")"));
  // Before anything is loaded.
  const std::size_t memory = said.err.find("takes ");
  REQUIRE(memory != std::string::npos);
  CHECK(memory < said.err.find("loaded in"));
  const std::string line = said.err.substr(memory, said.err.find('\n', memory) - memory);
  for (const std::string part : {" (weights 1.", "KV cache ", " for a context of 64, scratch ", "device has free"})
    CHECK(contains(line, part));
  CHECK(contains(call({"plan", mixed}).out, "device memory: weights 1,"));
}

TEST_CASE("a file is computed in its own codec unless another one is asked for") {
  const temporary_folder folder;
  const std::string in = shared("models/stories260k/stories260K-f32.gguf").string(), mixed = folder / "mixed.gguf";
  // Rows of 172 are no whole blocks: ffn_down becomes f16 beside the others' q8_0.
  REQUIRE(call({"convert", in, mixed, "--codec", "q8_0"}).code == 0);
  const std::vector<std::string> run{"run", "-m", mixed, "--prompt", "Once", "-n", "4", "--temperature", "0"};
  const outcome own = call(run);
  CAPTURE(own.err);
  CHECK(own.code == 0);
  CHECK_FALSE(contains(own.err, "warning: "));
  CHECK_FALSE(own.out.empty());
  auto asked = run;
  asked.insert(asked.end(), {"--codec", "f16"});
  const outcome got = call(asked);
  CAPTURE(got.err);
  CHECK(got.code == 0);
  CHECK(contains(got.err, "warning: "));
  CHECK(contains(got.err, " of q8_0 as f16"));
  CHECK_FALSE(got.out.empty());
  asked.back() = "q9";
  CHECK(call(asked).code == 2);
}

TEST_CASE("check is silent about sound files but for one line") {
  for (const std::string path :
       {"models/fable-bitnet-i2_s.gguf", "models/fable-bitnet-tq2_0.gguf", "models/fable-bitnet",
        "models/fable-bitnet-packed", "models/stories260k/stories260K-f32.gguf"}) {
    CAPTURE(path);
    const outcome got = call({"check", shared(path).string()});
    CAPTURE(got.err);
    CHECK(got.code == 0);
    CHECK(contains(got.out, ": sound: "));
  }
}

TEST_CASE("a folder with one GGUF file is that file for every command") {
  const temporary_folder folder;
  const std::string inside = folder / "model", converted = folder / "of-folder.gguf", direct = folder / "direct.gguf";
  fs::create_directory(inside);
  fs::create_symlink(fs::absolute(fable()), fs::path(inside) / "tales.gguf");
  CHECK(contains(call({"check", inside}).out, ": sound: "));
  CHECK(call({"inspect", inside, "--json"}).json()["config"] == call({"inspect", fable(), "--json"}).json()["config"]);
  const auto story_by = [&](const std::string& model) {
    return call({"run", "--model", model, "--prompt", "Once upon a time", "-n", "4", "--quiet", "--temperature", "0"});
  };
  CHECK((story_by(inside).code == 0 && story_by(inside).out == story_by(fable()).out));
  CHECK(call({"convert", inside, converted, "--codec", "tq2_0"}).code == 0);
  CHECK(call({"convert", fable(), direct, "--codec", "tq2_0"}).code == 0);
  CHECK(content(converted) == content(direct));
  fs::create_symlink(fs::absolute(fable()), fs::path(inside) / "other.gguf");
  const outcome several = call({"run", "--model", inside, "--prompt", "a"});
  CHECK(several.code == 1);
  CHECK(contains(several.first_error(), "one GGUF file, found 2 GGUF files: other.gguf, tales.gguf"));
}

TEST_CASE("a packed model is one file that every command takes") {
  const temporary_folder folder;
  const std::string packed = folder / "fable.packed";
  const outcome made = call({"pack", fable(), "-o", packed});
  CAPTURE(made.err);
  REQUIRE(made.code == 0);
  CHECK(contains(made.err, "for fable"));
  const auto seen = call({"inspect", packed, "--json"}).json();
  CHECK((seen["form"] == "packed" && seen["version"] == intaglio::io::packed_layout::version &&
         seen["problem"].is_null()));
  CHECK(seen["config"] == call({"inspect", fable(), "--json"}).json()["config"]);
  CHECK(contains(call({"check", packed}).out, ": sound: "));
  const std::vector<std::string> story{"run", "--prompt", "Once upon a time", "-n", "24", "--quiet"};
  const auto story_of = [&](const std::string& model) {
    auto arguments = story;
    arguments.insert(arguments.end(), {"--model", model});
    return call(arguments);
  };
  const outcome continued = story_of(packed);
  CHECK(continued.code == 0);
  CHECK(continued.out == story_of(fable()).out);
  CHECK(call({"tokenize", "-m", packed, "--text", "Once"}).out ==
        call({"tokenize", "-m", fable(), "--text", "Once"}).out);

  std::string broken = content(packed);
  broken[broken.size() / 2] ^= 1;
  const std::string damaged = folder / "damaged.packed", other = folder / "other.packed";
  write(damaged, broken);
  for (const outcome& refused : {call({"check", damaged}), story_of(damaged)}) {
    CHECK(refused.code == 1);
    CHECK(refused.first_error().find(damaged + ": offset 0x") != std::string::npos);
    CHECK(contains(refused.err, "checksum of "));
  }
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"pack", packed, "-o", other},
                                                    {"convert", packed, other, "--codec", "f16"},
                                                    {"engrave", packed, "-o", other}}) {
    const outcome got = call(arguments);
    CHECK(got.code == 1);
    CHECK(contains(got.err, "packed"));
    CHECK_FALSE(fs::exists(other));
  }
}

TEST_CASE("a bad file is named in the first line, with exit code 1") {
  const temporary_folder folder;
  const std::string whole = content(fable());
  const std::string cut = folder / "cut.gguf", nan = folder / "nan.gguf", text = folder / "text.gguf",
                    empty = folder / "empty.gguf", odd = folder / "odd\nname.gguf";
  write(cut, whole.substr(0, whole.size() / 2));
  std::string broken = whole;
  broken.replace(broken.size() - 32, 4, "\xFF\xFF\xFF\x7F");  // the last tensor ends with its scale
  write(nan, broken);
  write(text, "no model at all");
  write(empty, "");
  write(odd, "no model at all");
  for (const std::string& path :
       std::vector<std::string>{cut, text, empty, odd, folder / "missing.gguf", "/dev/null", folder / "."}) {
    for (const std::string command :
         {"check", "inspect", "tokenize", "run", "logits", "bench", "convert", "index", "engrave"}) {
      std::vector<std::string> arguments{command};
      if (command == "tokenize") arguments.insert(arguments.end(), {"--text", "a"});
      if (command == "run") arguments.insert(arguments.end(), {"--prompt", "a"});
      if (command == "logits") arguments.insert(arguments.end(), {"--ids", "1", "--out", folder / "out"});
      if (command == "tokenize" || command == "run" || command == "logits" || command == "bench")
        arguments.emplace_back("--model");
      arguments.push_back(path);
      if (command == "convert") arguments.insert(arguments.end(), {folder / "converted.gguf", "--codec", "tq2_0"});
      if (command == "index") arguments.insert(arguments.end(), {"-o", folder / "index"});
      const outcome got = call(arguments);
      CAPTURE(command, path, got.err);
      CHECK(got.code == 1);
      CHECK(got.out.empty());
      CHECK(got.first_error().size() <= 400);
      if (path != odd) CHECK(contains(got.first_error(), path.substr(0, path.find_last_of('/'))));
      else CHECK(contains(got.first_error(), "odd\\x0aname.gguf"));
    }
  }
  CHECK_FALSE(fs::exists(folder / "converted.gguf"));
  const outcome value = call({"check", nan});
  CHECK(value.code == 1);
  CHECK(contains(value.first_error(), "nan.gguf: offset 0x"));
}

TEST_CASE("index writes features, and goes on where it was ended") {
  const temporary_folder folder;
  const std::string out = folder / "index";
  const auto made = call({"index", fable(), "-o", out, "--json"}).json();
  CHECK(made["layers"] == 8);
  CHECK(made["kept_layers"] == 0);
  CHECK(made["features"] == 1024);
  CHECK(made["types"]["down"] == "ternary");
  CHECK(made["bytes"] == 8 * 3 * 1024 * 256 / 4);
  const auto manifest = nlohmann::json::parse(content(out + "/index.json"));
  CHECK(manifest["layers"].size() == 8);
  const outcome again = call({"index", fable(), "-o", out});
  CHECK(again.code == 0);
  CHECK(contains(again.out, "8 layers of 1024 features, gate ternary, up ternary, down ternary, 1.6 MB"));
  CHECK(contains(again.err, "the index was whole already"));
  const outcome other = call({"index", shared("models/stories260k/stories260K-f32.gguf").string(), "-o", out});
  CHECK(other.code == 1);
  CHECK(contains(other.err, "model_type: engraved"));
}

TEST_CASE("index changes to LARQL's layout and back") {
  need_shared();
  const temporary_folder folder;
  const std::string own = folder / "own", theirs = folder / "theirs", again = folder / "again";
  CHECK(call({"index", shared("models/stories260k/stories260K-f32.gguf").string(), "-o", own}).code == 0);
  CHECK(call({"index", own, "-o", theirs, "--larql", "--json"}).json()["layers"] == 5);
  CHECK(nlohmann::json::parse(content(theirs + "/index.json"))["family"] == "llama");
  CHECK(call({"index", theirs, "-o", again}).code == 0);
  for (const char* layer : {"/layer-0000.bin", "/layer-0004.bin"})
    CHECK(content(own + layer) == content(again + layer));
  CHECK(call({"index", theirs, "-o", folder / "new", "--codec", "f16"}).code == 2);
  const outcome none = call({"index", fable(), "-o", folder / "new", "--larql"});
  CHECK(none.code == 1);
  CHECK(contains(none.err, "index.json"));
}

TEST_CASE("convert keeps codes and scales through every ternary codec") {
  const temporary_folder folder;
  std::string in = fable();
  for (const std::string codec : {"tq2_0", "tq1_0", "f32", "i2_s"}) {
    CAPTURE(codec);
    const std::string out = folder / (codec + ".gguf");
    const outcome got = call({"convert", in, out, "--codec", codec});
    CAPTURE(got.err);
    REQUIRE(got.code == 0);
    CHECK(contains(got.out, "max error"));
    CHECK(contains(got.out, codec == "i2_s" ? "\nffn_gate              f32 to i2_s" : "to " + codec));
    CHECK(contains(got.out, "\nall  "));
    CHECK(call({"check", out}).code == 0);
    in = out;
  }
  const auto before = call({"inspect", fable(), "--json"}).json(), after = call({"inspect", in, "--json"}).json();
  CHECK(before["config"] == after["config"]);
  const auto tensor = [](const nlohmann::json& of, const std::string& file) {
    for (const auto& each : of["tensors"])
      if (each["name"] == "blk.3.ffn_gate.weight")
        return content(file).substr(each["offset"].get<std::size_t>(), each["bytes"].get<std::size_t>());
    return std::string{};
  };
  CHECK_FALSE(tensor(before, fable()).empty());
  CHECK(tensor(before, fable()) == tensor(after, in));
  const outcome wrong = call({"convert", fable(), folder / "wrong.gguf", "--codec", "q4_0"});
  CHECK(wrong.code == 2);
  CHECK_FALSE(fs::exists(folder / "wrong.gguf"));
}

TEST_CASE("convert reports what a codec cost, as a table and as JSON") {
  const temporary_folder folder;
  const std::string in = shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf").string(),
                    out = folder / "out.gguf";
  const auto report =
      call({"convert", in, out, "--codec", "bcml1", "--embedding", "q8_0", "--threads", "2", "--json"}).json();
  CHECK(report["codec"] == "bcml1");
  CHECK(report["kinds"].size() > 8);
  CHECK(report["all"]["relative_rms_error"].get<double>() > 0.005);
  CHECK(report["all"]["relative_rms_error"].get<double>() < 0.2);
  for (const auto& kind : report["kinds"]) {
    const bool embeds = kind["name"] == "token_embd" || kind["name"] == "output",
               norm = kind["name"].get<std::string>().ends_with("norm");
    CHECK(kind["to"] == (embeds ? "q8_0" : norm ? "f32" : "bcml1"));
    CHECK((kind["max_error"].get<double>() == 0) == norm);
    CHECK(kind["max_error"].get<double>() >= kind["rms_error"].get<double>());
  }
  CHECK(call({"check", out}).code == 0);
  const std::string text = call({"convert", out, folder / "model.safetensors", "--codec", "f16"}).out;
  CHECK(contains(text, "bcml1 to f16"));
  const outcome wrong = call({"convert", in, out, "--codec", "f16", "--embedding", "q9"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.first_error(), "--embedding: expected one of f32"));
}

TEST_CASE("a file of a size that is not engraved runs, in the requested context") {
  const std::string tiny = shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf").string();
  const auto report = call({"run", "--model", tiny, "--ids", "196", "-n", "4", "--context", "64", "--json"}).json();
  CHECK(report["ids"].size() == 4);
  const outcome got = call({"run", "--model", tiny, "--ids", "196", "--context", "1000000", "--quiet"});
  CAPTURE(got.err);
  CHECK(got.code == 2);
  CHECK(contains(got.first_error(), "--context: expected at most"));
}

TEST_CASE("what cannot be engraved is refused before anything is built") {
  const temporary_folder folder;
  const outcome got = call({"engrave", shared("models/stories260k/stories260K-f32.gguf").string(), "--codec", "tq2_0",
                            "-o", folder / "made"});
  CAPTURE(got.err);
  CHECK(got.code == 2);
  CHECK(
      contains(got.first_error(),
               "--codec: expected q1_0, iq1_s, iq1_m, iq2_xxs, q2_0, iq2_xs, iq2_s, q2_k, iq3_xxs, iq3_s, q3_k, mxfp4, "
               "iq4_xs, nvfp4, iq4_nl, q4_k, q4_0, q4_1, q5_k, q5_0, q5_1, q6_..., found 'tq2_0'"));
  CHECK_FALSE(fs::exists(folder / "made"));
  const outcome ternary = call({"engrave", fable(), "--codec", "q4_0", "-o", folder / "made"});
  CHECK(ternary.code == 2);
  CHECK(contains(ternary.first_error(), "--codec: expected f16, of a ternary model's embedding, found 'q4_0'"));
  const std::string mixed = shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf").string();
  // A file of several codecs: its header says each. Without a PATH nothing is built.
  const outcome several = call({"engrave", mixed, "-o", folder / "several", "--name", "several"},
                               {.environment = {{"PATH", folder / "nowhere"}}, .input = {}, .stdout_path = {}});
  CAPTURE(several.err);
  CHECK(several.code == 1);
  const std::string header = content(folder / "several/several.hpp");
  CHECK(contains(header, "{\"attn_v.weight\", intaglio::dtype::q6_k, 1},"));
  CHECK(contains(header, "{\"attn_q.weight\", intaglio::dtype::q4_k, 0},"));
  const outcome no_sources =
      call({"engrave", fable(), "-o", folder / "made"},
           {.environment = {{"INTAGLIO_SOURCE", folder / "nowhere"}}, .input = {}, .stdout_path = {}});
  CHECK(no_sources.code == 1);
  CHECK(contains(no_sources.first_error(), "expected the sources of intaglio"));
  CHECK_FALSE(fs::exists(folder / "made"));
}
