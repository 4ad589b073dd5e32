// SPDX-License-Identifier: MIT
#include "hub.hpp"

#include "download.hpp"
#include "web_answer.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/message.hpp>
#include <intaglio/io/gguf_names.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace intaglio::tool {
namespace {

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_hub_word(std::string_view text) {
  return !text.empty() && text.size() <= 96 && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

/// Whether `word` is in `name` between characters that are neither letters nor digits nor '_'.
bool has_word(const std::string& name, const std::string& word) {
  const auto ends = [&](std::size_t at) {
    return at >= name.size() || (!is_letter_or_digit(name[at]) && name[at] != '_');
  };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1))
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) return true;
  return false;
}

std::string listed(std::span<const std::string> files) {
  std::string out;
  for (std::size_t i = 0; i < files.size() && i < 8; ++i) out += (i == 0 ? "" : ", ") + printable(files[i], 60);
  if (files.size() > 8) out += " and " + std::to_string(files.size() - 8) + " more";
  return out.empty() ? "none" : out;
}

}  // namespace

hub_name parse_hub_name(const std::string& text) {
  hub_name out;
  const std::size_t slash = text.find('/'), colon = text.find(':');
  out.owner = text.substr(0, slash);
  if (slash != std::string::npos)
    out.repository = text.substr(slash + 1, colon == std::string::npos ? colon : colon - slash - 1);
  if (colon != std::string::npos) out.quantisation = text.substr(colon + 1);
  if (!is_hub_word(out.owner) || !is_hub_word(out.repository) ||
      (colon != std::string::npos && !is_hub_word(out.quantisation)))
    throw argument_error("--hf", "OWNER/REPO or OWNER/REPO:QUANTISATION", "'" + printable(text, 200) + "'");
  return out;
}

std::string choose_hub_file(std::span<const std::string> files, const std::string& quantisation) {
  std::vector<std::string> models;
  for (const std::string& each : files)
    if (io::names_gguf_model(each)) models.push_back(each);
  const auto naming = [&](const std::string& word) {
    std::vector<std::string> out;
    for (const std::string& each : models)
      if (has_word(lower_case(each), lower_case(word))) out.push_back(each);
    if (out.size() > 1 && lower_case(word).find("ud-") == std::string::npos)
      std::erase_if(out, [](const std::string& each) { return has_word(lower_case(each), "ud"); });
    return out;
  };
  const auto only = [&](const std::vector<std::string>& found, const std::string& wanted) {
    if (found.size() == 1) return found.front();
    throw argument_error("--hf", wanted, found.empty() ? listed(models) : listed(found));
  };
  if (!quantisation.empty()) return only(naming(quantisation), "a GGUF file that names " + quantisation);
  for (const char* usual : {"q4_k_m", "q4_0", "q8_0"})
    if (const auto found = naming(usual); found.size() == 1) return found.front();
  return only(models, "a repository with one GGUF file, or :QUANTISATION after its name");
}

std::string hub_endpoint() {
  const char* const endpoint = std::getenv("HF_ENDPOINT");
  std::string out = endpoint != nullptr && *endpoint != '\0' ? endpoint : "https://huggingface.co";
  while (out.ends_with('/')) out.pop_back();
  return out;
}

std::string hub_address(const std::string& text) {
  const hub_name name = parse_hub_name(text);
  const std::string endpoint = hub_endpoint();
  const std::string repository = name.owner + "/" + name.repository, list = endpoint + "/api/models/" + repository;
  const std::string answer = download_text(parse_url(list));
  const auto parsed = nlohmann::json::parse(answer, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("siblings") || !parsed["siblings"].is_array())
    throw file_error(list, std::nullopt, "the hub's answer", "a JSON object with the repository's files, `siblings`",
                     printable(answer, 60));
  std::vector<std::string> files;
  for (const auto& each : parsed["siblings"])
    if (each.is_object() && each.contains("rfilename") && each["rfilename"].is_string())
      files.push_back(each["rfilename"].get<std::string>());
  std::string path;
  for (const char c : choose_hub_file(files, name.quantisation)) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (is_letter_or_digit(c) || std::string_view("-_.~/").find(c) != std::string_view::npos) path += c;
    else path += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return endpoint + "/" + repository + "/resolve/main/" + path;
}

std::vector<std::string> split_parts(const std::string& name) {
  const std::uint32_t parts = io::gguf_split_of(name).parts;
  if (parts == 0) return {name};
  std::vector<std::string> out;
  for (std::uint32_t part = 0; part < parts; ++part) out.push_back(io::gguf_part_name(name, part, parts));
  return out;
}

}  // namespace intaglio::tool
