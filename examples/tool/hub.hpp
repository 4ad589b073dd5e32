// SPDX-License-Identifier: MIT
// Models by the name of their repository on the Hugging Face hub, or on a server that answers as it does (HF_ENDPOINT).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace intaglio::tool {

/// OWNER/REPO, and after a colon how the weights are quantised.
struct hub_name {
  std::string owner, repository, quantisation;  ///< the last empty where none is asked for
};
/// @throws argument_error: another form, or characters that the hub has in no name
hub_name parse_hub_name(const std::string& text);

/// HF_ENDPOINT, else the hub's address; no slash at the end.
std::string hub_endpoint();

/// Chooses a file of a repository: a GGUF file that is a whole model (not mmproj, imatrix), or the first part of a
/// split model. With `quantisation` it is the file that names it ("q4_k_m" in "M-Q4_K_M.gguf", not in
/// "M-UD-Q4_K_M.gguf" where both exist), else the first of Q4_K_M, Q4_0, Q8_0 that exists, else the only file.
/// @throws argument_error: no file fits, or several do; it lists the files
std::string choose_hub_file(std::span<const std::string> files, const std::string& quantisation);

/// The address of the model's file on the hub, which it asks for the repository's list of files.
/// @throws as parse_hub_name and choose_hub_file; input_error: the net; file_error: an answer that is no such list
std::string hub_address(const std::string& text);

/// The names of all parts of a split GGUF file, "NAME-00001-of-00003.gguf"; the name alone of any other.
std::vector<std::string> split_parts(const std::string& name);

}  // namespace intaglio::tool
