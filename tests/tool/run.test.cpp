// SPDX-License-Identifier: MIT
// run, logits, chat, bench, devices and doctor on whatever device there is.
#include "shared.hpp"
#include "tool/program.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace tool_test;

namespace {

/// Values and shape of a float32 .npy file, read by the format's own rules.
struct array {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};
array read_npy(const std::string& path) {
  const std::string bytes = content(path);
  REQUIRE(bytes.size() > 128);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  CHECK((10 + header) % 64 == 0);
  const std::string words = bytes.substr(10, header);
  CHECK(words.back() == '\n');
  CHECK(contains(words, "'descr': '<f4', 'fortran_order': False, 'shape': ("));
  array out;
  std::size_t count = 1;
  for (std::size_t at = words.find('(') + 1; words[at] != ')';) {
    if (words[at] < '0' || words[at] > '9') {
      ++at;
      continue;
    }
    std::size_t used = 0;
    out.shape.push_back(std::stoul(words.substr(at), &used));
    count *= out.shape.back();
    at += used;
  }
  REQUIRE(bytes.size() == 10 + header + 4 * count);
  out.values.resize(count);
  std::memcpy(out.values.data(), bytes.data() + 10 + header, 4 * count);
  return out;
}

std::string joined(const nlohmann::json& ids) {
  std::string out;
  for (const auto& id : ids) out += (out.empty() ? "" : ",") + std::to_string(id.get<int>());
  return out;
}

}  // namespace

TEST_CASE("run tells a story and keeps notes away from stdout") {
  const outcome story = call({"run", "-n", "24", "--seed", "7"});
  CAPTURE(story.err);
  CHECK(story.code == 0);
  CHECK(story.out.size() > 40);
  CHECK(story.out.back() == '\n');
  const outcome again = call({"run", "-n", "24", "--seed", "7", "--quiet", "--tokens-per-submit", "1"});
  CHECK(again.out == story.out);
  CHECK(again.err.empty());
}

TEST_CASE("run --json: the goldens' greedy tokens, from text and from ids") {
  const auto goldens = nlohmann::json::parse(content(shared("models/goldens/fable.json").string()));
  for (const auto& prompt : goldens["prompts"]) {
    const std::size_t stable = std::min<std::size_t>(prompt["greedy_stable"].get<std::size_t>(), 24);
    if (stable == 0) continue;
    CAPTURE(prompt["text"].dump());
    const auto got = call({"run", "--ids", joined(prompt["ids"]), "-n", std::to_string(stable), "--json"}).json();
    const auto& expected = prompt["greedy"];
    CHECK(got["ids"] == nlohmann::json(std::vector<int>(
                            expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(got["ids"].size()))));
    CHECK(got["ids"].size() >= std::min(stable, expected.size()));
    CHECK(got["timings"]["prompt_tokens"] == prompt["ids"].size());
    for (const std::string key : {"load_ms", "prompt_ms", "decode_ms", "tokens_per_second", "first_token_ms"})
      CHECK(got["timings"][key].is_number());
    if (prompt["kind"] == "plain")
      CHECK(call({"run", "--prompt", prompt["text"], "-n", std::to_string(stable), "--json"}).json()["ids"] ==
            got["ids"]);
  }
}

TEST_CASE("why a generation ends") {
  const auto length = call({"run", "--prompt", "Once upon a time", "-n", "3", "--json"}).json();
  CHECK(length["finish_reason"] == "length");
  CHECK(length["timings"]["decode_tokens"] == 2);
  const auto drafted =
      call({"run", "--prompt", "Once upon a time", "-n", "3", "--prompt-lookup", "7", "--json"}).json();
  CHECK(drafted["ids"] == length["ids"]);
  CHECK(drafted["timings"]["accepted_tokens"] <= drafted["timings"]["drafted_tokens"]);
  const auto stopped = call({"run", "--prompt", "Once upon a time", "-n", "40", "--stop", "nowhere to be found",
                             "--stop", "little girl", "--json"})
                           .json();
  CHECK(stopped["finish_reason"] == "stop");
  CHECK(stopped["text"] == ", there was a ");
}

TEST_CASE("run --prompt reads control tokens and puts one BOS in front") {
  const std::string prompt = "<|begin_of_text|>User: Where is the cat?<|eot_id|>Assistant: ";
  const auto count = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "-n", "1", "--json"});
    return call(more).json()["timings"]["prompt_tokens"].get<std::size_t>();
  };
  const auto read = call({"tokenize", "--special", "--text", prompt, "--json"}).json()["ids"].size();
  CHECK(count({"--prompt", prompt}) == read);
  CHECK(count({"--prompt", prompt.substr(std::string("<|begin_of_text|>").size())}) == read);
  CHECK(count({"--prompt", prompt, "--plain"}) ==
        call({"tokenize", "--bos", "--text", prompt, "--json"}).json()["ids"].size());
}

TEST_CASE("options and input outside of what is allowed") {
  const std::vector<std::pair<std::vector<std::string>, int>> wrong{
      {{"--temperature", "nan"}, 2}, {{"--temperature", "-1"}, 2}, {{"--temperature", "inf"}, 2},
      {{"--top-p", "0"}, 2},         {{"--top-p", "2"}, 2},        {{"--top-k", "0"}, 2},
      {{"--top-k", "5000"}, 2},      {{"--min-p", "1.5"}, 2},      {{"--repeat-penalty", "0"}, 2},
      {{"--prompt-lookup", "8"}, 2}, {{"--stop", ""}, 2},          {{"-n", "0"}, 2},
      {{"--chunk", "100000"}, 2}};
  for (const auto& [options, code] : wrong) {
    std::vector<std::string> arguments{"run", "--prompt", "a", "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const outcome got = call(arguments);
    CAPTURE(options.front(), options.back(), got.err);
    CHECK(got.code == code);
    CHECK(got.out.empty());
    CHECK(contains(got.first_error(), "expected"));
  }
  std::string many = "1";
  for (int i = 0; i < 600; ++i) many += ",1";
  const outcome too_long = call({"run", "--ids", many});
  CHECK(too_long.code == 1);
  CHECK(contains(too_long.first_error(),
                 "fable.gguf (embedded): prompt: expected at most 512 tokens (the context), found 601 tokens"));
  const outcome no_token = call({"run", "--ids", "1,4096"});
  CHECK(no_token.code == 1);
  CHECK(contains(no_token.first_error(), "found 4096"));
}

TEST_CASE("a signal ends a story with what there is") {
  for (const int number : {SIGINT, SIGTERM}) {
    const outcome got = call({"run", "--temperature", "0.7", "--seed", "3"},
                             {.environment = {}, .input = {}, .stdout_path = {}, .signal = number});
    CHECK(got.code == 128 + number);
    CHECK(got.out.size() > 1);
    CHECK(got.out.back() == '\n');
  }
}

TEST_CASE("logits and hidden states, whatever the chunk") {
  const temporary_folder folder;
  const std::string ids = "4093,453,466,258,418,11,395,282,258,378,482,443,457,13";
  REQUIRE(call({"logits", "--ids", ids, "--out", folder / "a", "--hidden"}).code == 0);
  REQUIRE(call({"logits", "--ids", ids, "--out", folder / "b", "--hidden", "--chunk", "3"}).code == 0);
  REQUIRE(call({"logits", "--ids", ids, "--out", folder / "c"}).code == 0);
  const array logits = read_npy(folder / "a/logits.npy"), hidden = read_npy(folder / "a/hidden.npy");
  CHECK(logits.shape == std::vector<std::size_t>{14, 4096});
  CHECK(hidden.shape == std::vector<std::size_t>{9, 14, 256});
  CHECK(content(folder / "a/logits.npy") == content(folder / "b/logits.npy"));
  CHECK(content(folder / "a/hidden.npy") == content(folder / "b/hidden.npy"));
  CHECK(content(folder / "a/logits.npy") == content(folder / "c/logits.npy"));
  CHECK_FALSE(fs::exists(folder / "c/hidden.npy"));

  const auto goldens = nlohmann::json::parse(content(shared("models/goldens/fable.json").string()));
  const std::string expected = content(shared("models/goldens/fable-logits.f32").string());
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < 4096; ++i) {
    float value = 0;
    std::memcpy(&value, expected.data() + 4 * i, 4);
    difference += std::pow(static_cast<double>(logits.values[4 * 4096 + i] - value), 2);
    length += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::sqrt(difference / length) <=
        3 * goldens["prompts"][0]["spread"]["largest_relative_l2"].get<double>() + 1e-4);
  CHECK(call({"logits", "--ids", "1", "--out", "/dev/null"}).code == 1);
}

TEST_CASE("texts become vectors, whatever the chunk") {
  const auto vector_of = [](const nlohmann::json& line) { return line["embedding"].get<std::vector<double>>(); };
  const auto length = [](const std::vector<double>& of) {
    double out = 0;
    for (const double x : of) out += x * x;
    return std::sqrt(out);
  };
  const outcome two = call({"embed", "--text", "a brave mouse", "--text", "a lazy cat"});
  REQUIRE(two.code == 0);
  std::istringstream lines(two.out);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
  REQUIRE(found.size() == 2);
  CHECK(vector_of(found[0]).size() == 256);
  CHECK(vector_of(found[0]) != vector_of(found[1]));
  CHECK(std::abs(length(vector_of(found[0])) - 1) < 1e-5);
  CHECK(call({"embed", "--text", "a brave mouse", "--chunk", "1"}).json() == found[0]);
  CHECK(call({"embed", "--text", "a brave mouse", "--pooling", "last"}).json() == found[0]);
  CHECK(call({"embed", "--file", "-"}, {.environment = {}, .input = "a brave mouse", .stdout_path = {}}).json() ==
        found[0]);
  const auto mean = vector_of(call({"embed", "--text", "a brave mouse", "--pooling", "mean"}).json());
  CHECK(mean != vector_of(found[0]));
  const auto plain = vector_of(call({"embed", "--text", "a brave mouse", "--no-normalize"}).json());
  CHECK(std::abs(plain[7] / length(plain) - vector_of(found[0])[7]) < 1e-6);
  CHECK(call({"embed", "--ids", "4096"}).code != 0);
}

TEST_CASE("chat answers line by line") {
  const outcome got = call({"chat", "--temperature", "0", "-n", "12"},
                           {.environment = {},
                            .input = "Tell me a story about a brave mouse.\n/help\n/reset\nTell me a story about a "
                                     "brave mouse.\n/quit\nnever read\n",
                            .stdout_path = {}});
  CAPTURE(got.err);
  CHECK(got.code == 0);
  const std::size_t half = got.out.size() / 2;
  CHECK(got.out.substr(0, half) == got.out.substr(half));
  CHECK(got.out.starts_with("Once upon a time"));
}

TEST_CASE("devices, and a device that is not there") {
  const outcome listed = call({"devices"});
  CHECK(listed.code == 0);
  const auto json = call({"devices", "--json"}).json();
  REQUIRE(json.size() >= 1);
  const std::string uuid = json[0]["uuid"], name = json[0]["name"];
  CHECK(contains(listed.out, uuid));
  for (const std::string& chosen : {std::string("0"), uuid, name.substr(0, 5)}) {
    CAPTURE(chosen);
    CHECK(call({"run", "--prompt", "a", "-n", "1", "--device", chosen}).code == 0);
  }
  const outcome missing = call({"run", "--prompt", "a", "--device", "no such device"});
  CHECK(missing.code == 3);
  CHECK(contains(missing.first_error(), "no device matches 'no such device'"));
  for (const std::string command : {"run", "devices", "bench", "logits", "doctor"}) {
    std::vector<std::string> arguments{command};
    if (command == "logits") arguments.insert(arguments.end(), {"--ids", "1", "--out", "/tmp"});
    const outcome none =
        call(arguments,
             {.environment = {{"VK_DRIVER_FILES", "/nonexistent.json"}, {"VK_ICD_FILENAMES", "/nonexistent.json"}},
              .input = {},
              .stdout_path = {}});
    CAPTURE(command, none.err);
    CHECK(none.code == 3);
    CHECK(none.first_error().starts_with("intaglio: "));
  }
}

TEST_CASE("doctor reports, and bench measures what the page can show") {
  const outcome report = call({"doctor"});
  CHECK(report.code == 0);
  for (const std::string word : {"version", "loader", "driver", "embedded model"}) CHECK(contains(report.out, word));
  CHECK(call({"doctor", "--json"}).json().size() >= 3);
  const outcome whole = call({"doctor", "--report", "--quiet"});
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  const auto row = whole.json();
  CHECK(row["proven"] == true);
  CHECK(row["sections"]["kernels"]["device"].get<std::string>().size() > 3);
  CHECK(row["class"]["subgroup_size"].get<int>() >= 4);
  CHECK(row["class"]["uses"].size() >= 1);
  CHECK(row["residency"]["workgroups_at_once"].get<int>() >= 1);
  CHECK(row["residency"]["workgroups_at_once"] <= row["residency"]["most_tried"]);
  REQUIRE(row["benches"].size() == 3);
  for (const auto& each : row["benches"])
    CHECK((each.contains("left_out") || each["bench"]["decode"]["tokens_per_second"].get<double>() > 0));
  CHECK(row["benches"][0]["bench"]["sequences"].size() == 2);

  const temporary_folder folder;
  const outcome measured = call({"bench", "-p", "16", "-n", "8", "-r", "1", "--json"});
  CAPTURE(measured.err);
  REQUIRE(measured.code == 0);
  const auto json = measured.json();
  CHECK(json["prompt"]["tokens"] == 16);
  CHECK(json["decode"]["tokens"] == 8);
  for (const std::string key :
       {"bytes_per_token", "gigabytes_per_second", "stream_bytes_per_second", "percent_of_stream"})
    CHECK(json[key].get<double>() > 0);
  const auto& host = json["host_per_token"];
  CHECK(host["thread_cpu_us"].get<double>() > 0);
  CHECK(host["process_cpu_us"].get<double>() >= host["thread_cpu_us"].get<double>());
  // A layer allocates in the calling thread, with the same operator new.
  if (std::getenv("VK_INSTANCE_LAYERS") == nullptr) CHECK(host["allocations"] == 0);
  CHECK(host["recorded_commands"] == 0);
  CHECK((host["submits"] > 0 && host["submits"] <= 1));
  for (const std::string start : {"cold", "warm"}) CHECK(json["start"][start]["first_token_ms"].get<double>() > 0);
  CHECK(json["memory"]["device_bytes"].get<std::uint64_t>() > json["memory"]["weight_bytes"].get<std::uint64_t>());
  CHECK(json["memory"]["host_peak_bytes"].get<std::uint64_t>() > 1'000'000);
  for (const auto& sequence : json["sequences"])
    for (const auto& each : sequence["dispatches"])
      CHECK(each["bytes"].get<std::uint64_t>() >= each["weight_bytes"].get<std::uint64_t>());
  write(folder / "bench.json", measured.out);
  const outcome page = call({"plan", "fable", "--profile", json["plan"]["profile"], "--html", folder / "plan.html",
                             "--bench", folder / "bench.json"});
  CAPTURE(page.err);
  CHECK(page.code == 0);
  if (!json["sequences"].empty()) CHECK(contains(content(folder / "plan.html"), "\u00b5s \u00d7 8"));
  CHECK(call({"bench", "--context", "512"}).code == 2);
}

TEST_CASE("bench makes weights up, compares two ways to decode, and writes the page") {
  const temporary_folder folder;
  const outcome made =
      call({"bench",  "--synthetic", "fable",  "--codec", "tq2_0", "--relu-zeros", "0.8",    "-p",
            "4",      "-n",          "4",      "-r",      "1",     "--ab",         "record", "--ab",
            "submit", "--ab",        "layers", "--ab",    "walk",  "--json",       "--html", folder / "plan.html"});
  CAPTURE(made.err);
  REQUIRE(made.code == 0);
  const auto json = made.json();
  CHECK(json["source"] == "random weights");
  CHECK(json["codec"] == "tq2_0");
  REQUIRE(json["ab"].size() == 4);
  CHECK(json["ab"][0]["pair"] == "record");
  CHECK(json["ab"][1]["first"]["name"] == "submit-per-token");
  CHECK(json["ab"][2]["second"]["name"] == "chain");
  CHECK(json["ab"][3]["second"]["name"] == "walk");
  for (const auto& each : json["ab"])
    for (const std::string side : {"first", "second"}) CHECK(each[side]["tokens_per_second"].get<double>() > 0);
  if (!json["sequences"].empty()) CHECK(contains(content(folder / "plan.html"), "\u00b5s \u00d7 8"));
  const outcome other = call({"bench", "--synthetic", "fable", "--codec", "q4_0"});
  CHECK(other.code == 2);
  CHECK(contains(other.first_error(),
                 "--codec: expected one that fable is engraved for: i2_s, tq1_0, tq2_0, found 'q4_0'"));
}

TEST_CASE("a model over several devices says what it says on one, and its plan lists the stages") {
  const auto run = [](const std::vector<std::string>& more) {
    std::vector<std::string> all{"run", "--prompt", "Once upon a time", "-n", "16", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return call(all);
  };
  const outcome whole = run({}), cut = run({"--devices", "0,0,0", "--cut", "2,5"});
  CAPTURE(cut.err);
  CHECK(cut.code == 0);
  CHECK(cut.out.size() > 20);
  CHECK(cut.out == whole.out);
  const outcome bench = call({"bench", "--devices", "0,0", "-p", "8", "-n", "4", "-r", "1", "--json"});
  CAPTURE(bench.err);
  REQUIRE(bench.code == 0);
  CHECK(bench.json()["stage_ms"].size() == 2);
  CHECK(bench.json()["decode_tokens_per_second"].get<double>() > 0);
  const outcome plan = call({"plan", "fable", "--cut", "3,6"});
  CHECK(contains(plan.out, "stage 1, profile cpu: layers 3 to 5\n"));
  CHECK(contains(plan.out, "crosses: f32 [tokens, 256] of the stream, 1,024 bytes a token, 32,768 a chunk of 32\n"));
  CHECK(contains(plan.out, ", rows that cross "));
  const outcome on_devices = call({"plan", "fable", "--devices", "0,0,0"});
  CAPTURE(on_devices.err);
  CHECK(on_devices.code == 0);
  CHECK(contains(on_devices.out, "fable in 3 stages\nstage 0 on "));
  CHECK(contains(on_devices.out, "\nstage 2 on "));
  const outcome other = call({"plan", "fable", "--devices", "0,0", "--cut", "3,5"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "cut: expected as many stages as devices, 2, found 3"));
  const outcome alone = run({"--cut", "3"});
  CHECK(alone.code == 2);
  CHECK(contains(alone.err, "--devices beside it"));
  CHECK(run({"--devices", "0,0", "--cut", "8"}).code == 2);
}
