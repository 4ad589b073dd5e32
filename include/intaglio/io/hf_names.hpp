// SPDX-License-Identifier: MIT
// Maps Hugging Face tensor names to GGUF's (llama.cpp's gguf-py/gguf/tensor_mapping.py).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_decoder_names.hpp"
#include "intaglio/io/renamed_tensors.hpp"

namespace intaglio::io {

/// The name of a layer's tensor in both conventions.
struct hf_part {
  std::string_view hf, gguf;
};
/// Names of the tensors that hold all experts of a layer of a Granite.
inline constexpr std::array<hf_part, 2> granite_experts{
    {{"block_sparse_moe.input_linear", "ffn_gate_up_exps"}, {"block_sparse_moe.output_linear", "ffn_down_exps"}}};

/// Names of a shared expert and of its gate.
inline constexpr std::array<hf_part, 4> gated_shared_expert{{{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                                                             {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                                             {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                                             {"mlp.shared_expert.down_proj", "ffn_down_shexp"}}};

/// Names of shared experts without a gate; the library computes them as one wide expert.
inline constexpr std::array<hf_part, 3> shared_expert_names{{{"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                                             {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                                             {"mlp.shared_experts.down_proj", "ffn_down_shexp"}}};

/// Names of tensors of families with Mamba-2.
[[gnu::cold]] inline std::vector<hf_part> mamba2_parts(const family& of) {
  if (of.single_sublayers)
    return {{"norm", "attn_norm"},
            {"mixer.q_proj", "attn_q"},
            {"mixer.k_proj", "attn_k"},
            {"mixer.v_proj", "attn_v"},
            {"mixer.o_proj", "attn_output"},
            {"mixer.in_proj", "ssm_in"},
            {"mixer.conv1d", "ssm_conv1d"},
            {"mixer.norm", "ssm_norm"},
            {"mixer.out_proj", "ssm_out"},
            {"mixer.up_proj", "ffn_up"},
            {"mixer.down_proj", "ffn_down"},
            {"mixer.gate", "ffn_gate_inp"},
            {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
            {"mixer.shared_experts.down_proj", "ffn_down_shexp"}};
  return {{"input_layernorm", "attn_norm"},
          {"self_attn.q_proj", "attn_q"},
          {"self_attn.k_proj", "attn_k"},
          {"self_attn.v_proj", "attn_v"},
          {"self_attn.o_proj", "attn_output"},
          {"mamba.in_proj", "ssm_in"},
          {"mamba.conv1d", "ssm_conv1d"},
          {"mamba.norm", "ssm_norm"},
          {"mamba.out_proj", "ssm_out"},
          {"post_attention_layernorm", "ffn_norm"},
          {"block_sparse_moe.router.layer", "ffn_gate_inp"},
          granite_experts[0],
          granite_experts[1]};
}
/// The name of the router that chooses experts.
constexpr std::string_view router_name(const family& of) {
  if (of.multipliers) return "block_sparse_moe.router.layer";
  if (of.kinds_of_layers) return "router.proj";
  if (of.block_biases) return "mlp.router";
  return of.experts == mixtures::all ? "mlp.gate" : "block_sparse_moe.gate";
}
/// Names of tensors in families with short convolutions.
[[gnu::cold]] inline std::vector<hf_part> short_conv_parts() {
  return {{"operator_norm", "attn_norm"},
          {"self_attn.q_proj", "attn_q"},
          {"self_attn.k_proj", "attn_k"},
          {"self_attn.v_proj", "attn_v"},
          {"self_attn.out_proj", "attn_output"},
          {"self_attn.q_layernorm", "attn_q_norm"},
          {"self_attn.k_layernorm", "attn_k_norm"},
          {"conv.in_proj", "shortconv.in_proj"},
          {"conv.conv", "shortconv.conv"},
          {"conv.out_proj", "shortconv.out_proj"},
          {"ffn_norm", "ffn_norm"},
          {"feed_forward.gate", "ffn_gate_inp"},
          {"feed_forward.w1", "ffn_gate"},
          {"feed_forward.w3", "ffn_up"},
          {"feed_forward.w2", "ffn_down"}};
}
/// Names of attention's tensors in all families except LFM2, hybrids of Mamba-2 and encoders, and of the norm in front
/// of it.
inline constexpr std::array<hf_part, 7> attention_parts{{{"input_layernorm", "attn_norm"},
                                                         {"self_attn.q_proj", "attn_q"},
                                                         {"self_attn.k_proj", "attn_k"},
                                                         {"self_attn.v_proj", "attn_v"},
                                                         {"self_attn.o_proj", "attn_output"},
                                                         {"self_attn.q_norm", "attn_q_norm"},
                                                         {"self_attn.k_norm", "attn_k_norm"}}};
/// Names of the tensors of latent attention; q_proj and o_proj are attention's.
inline constexpr std::array<hf_part, 6> latent_parts{{{"self_attn.q_a_proj", "attn_q_a"},
                                                      {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                                      {"self_attn.q_b_proj", "attn_q_b"},
                                                      {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                                      {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                                      {"self_attn.kv_b_proj", "attn_kv_b"}}};
/// Names of norms of q and k after the rotation; they replace the last two of attention's names.
inline constexpr std::array<hf_part, 2> turned_norm_parts{
    {{"self_attn.query_layernorm", "attn_q_norm"}, {"self_attn.key_layernorm", "attn_k_norm"}}};
/// Names of tensors in a layer of Qwen3.5 and Qwen3-Next besides attention's.
inline std::vector<hf_part> delta_net_parts() {
  return {{"linear_attn.in_proj_qkv", "attn_qkv"},
          {"linear_attn.in_proj_qkvz", "attn_qkvz"},
          {"linear_attn.in_proj_z", "attn_gate"},
          {"linear_attn.in_proj_b", "ssm_beta"},
          {"linear_attn.in_proj_a", "ssm_alpha"},
          {"linear_attn.in_proj_ba", "ssm_ba"},
          {"linear_attn.conv1d", "ssm_conv1d"},
          {"linear_attn.norm", "ssm_norm"},
          {"linear_attn.out_proj", "ssm_out"},
          {"post_attention_layernorm", "post_attention_norm"},
          {"mlp.gate", "ffn_gate_inp"},
          {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
          {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
          {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
          {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
          {"mlp.gate_proj", "ffn_gate"},
          {"mlp.up_proj", "ffn_up"},
          {"mlp.down_proj", "ffn_down"}};
}
/// Names of a layer's tensors. One name means the norm in front of the FFN in Llama and the norm after attention in
/// Gemma.
[[gnu::cold]] inline std::vector<hf_part> hf_parts(const family& of) {
  if (of.recurrent == recurrence::mamba2) return mamba2_parts(of);
  const bool gemma = of.norms_after && !of.norms_by_sublayer;
  const char* const after_attention = gemma                  ? "post_attention_layernorm"
                                      : of.norms_by_sublayer ? "post_self_attn_layernorm"
                                                             : "pre_feedforward_layernorm";
  if (of.recurrent == recurrence::short_conv) return short_conv_parts();
  std::vector<hf_part> out(attention_parts.begin(), attention_parts.end());
  if (of.turned_norms) {
    out.resize(attention_parts.size() - 2);
    out.insert(out.end(), turned_norm_parts.begin(), turned_norm_parts.end());
  }
  if (of.latent) out.insert(out.end(), latent_parts.begin(), latent_parts.end());
  const auto add = [&out](const std::vector<hf_part>& more) { out.insert(out.end(), more.begin(), more.end()); };
  if (of.recurrent == recurrence::delta_net) {
    add(delta_net_parts());
    return out;
  }
  add({{"self_attn.qkv_proj", "attn_qkv"},
       {"self_attn.attn_sub_norm", "attn_sub_norm"},
       {gemma ? "pre_feedforward_layernorm" : "post_attention_layernorm", of.ffn_norm},
       {after_attention, of.norms_after ? "post_attention_norm" : "ffn_norm"},
       {of.norms_by_sublayer ? "post_mlp_layernorm" : "post_feedforward_layernorm", "post_ffw_norm"},
       {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
       {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
       {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
       {router_name(of), "ffn_gate_inp"},
       {"mlp.gate_proj", "ffn_gate"},
       {of.fused || of.fused_gate_up ? "mlp.gate_up_proj" : "mlp.up_proj", "ffn_up"},
       {"mlp.down_proj", "ffn_down"},
       {"mlp.ffn_sub_norm", "ffn_sub_norm"},
       {"per_layer_input_gate", "inp_gate"},
       {"per_layer_projection", "proj"},
       {"post_per_layer_input_norm", "post_norm"},
       {"laurel.linear_left", "laurel_l"},
       {"laurel.linear_right", "laurel_r"},
       {"laurel.post_laurel_norm", "laurel_post_norm"},
       {"altup.modality_router", "altup_router"},
       {"altup.router_norm", "altup_router_norm"},
       {"altup.prediction_coefs", "altup_predict_coef"},
       {"altup.correction_coefs", "altup_correct_coef"}});
  if (may_share_expert(of)) out.insert(out.end(), granite_experts.begin(), granite_experts.end());
  if (has_shared_expert(of)) out.insert(out.end(), gated_shared_expert.begin(), gated_shared_expert.end());
  if (of.shared_experts) out.insert(out.end(), shared_expert_names.begin(), shared_expert_names.end());
  return out;
}
/// @{
/// Names of tensors without the ending: those outside of the layers except the head, and those of layers.
inline constexpr std::array<hf_part, 8> hf_globals{
    {{"embed_tokens.weight", "token_embd.weight"},
     {"norm.weight", "output_norm.weight"},
     {"norm.bias", "output_norm.bias"},
     {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
     {"per_layer_model_projection.weight", "per_layer_model_proj.weight"},
     {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
     {"2_Dense.linear.weight", "dense_2.weight"},
     {"3_Dense.linear.weight", "dense_3.weight"}}};
inline constexpr std::array<hf_part, 15> hf_tails{{{"altup.correct_output_scale", "altup_correct_scale.weight"},
                                                   {"layer_scalar", "layer_output_scale.weight"},
                                                   {"router.scale", "ffn_gate_inp.scale"},
                                                   {"router.per_expert_scale", "ffn_down_exps.scale"},
                                                   {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                                   {"experts.down_proj", "ffn_down_exps.weight"},
                                                   {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                                   {"mlp.experts.down_proj", "ffn_down_exps.weight"},
                                                   {"feed_forward.expert_bias", "exp_probs_b.bias"},
                                                   {"mlp.expert_bias", "exp_probs_b.bias"},
                                                   {"mlp.gate.expert_bias", "exp_probs_b.bias"},
                                                   {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                                   {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                                   {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
                                                   {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"}}};
/// @}
/// Whether layers of a family have such a tensor.
constexpr bool has_tails(const family& of, std::string_view hf) {
  if (hf.starts_with("mlp.experts.")) return of.default_expert_width != 0 && of.recurrent != recurrence::short_conv;
  if (hf == "mlp.moe_statics.e_score_correction_bias") return of.moe_keys;
  if (hf == "block_sparse_moe.e_score_correction_bias")
    return has_scored_router(of) && !of.shared_experts && of.recurrent == recurrence::none;
  if (hf == "mlp.expert_bias") return of.gated_attention;
  if (hf == "mlp.gate.expert_bias") return of.type == architecture::bailingmoe2;
  if (hf == "mlp.gate.e_score_correction_bias")
    return has_scored_router(of) && of.shared_experts && !of.moe_keys && !of.gated_attention &&
           of.type != architecture::bailingmoe2;
  if (hf == "feed_forward.expert_bias") return has_scored_router(of) && of.recurrent == recurrence::short_conv;
  if (hf.starts_with("mixer.")) return of.single_sublayers;
  return hf.starts_with("altup.") ? of.streams : of.kinds_of_layers;
}
/// Beginnings of the names of matrices of streams; a number and ".weight" follow.
inline constexpr std::array<hf_part, 2> hf_stream_matrices{
    {{"altup_projections.", "altup_proj."}, {"altup_unembed_projections.", "altup_unembd_proj."}}};

/// Alternative names. A Granite that is written as its hybrid family has gate and up as one matrix.
inline constexpr std::array<hf_part, 2> hf_aliases{
    {{"shared_mlp.input_linear", "ffn_gate_up"}, {"shared_mlp.output_linear", "ffn_down"}}};

/// The suffix that turns a matrix's name into the name of its own norm: microsoft's bitnet-embedding, and transformers'
/// AutoBitLinear.
inline constexpr std::array<std::string_view, 2> projection_norm_ends{".norm", ".rms_norm"};

/// The GGUF name of a tensor; "model.layers.0.mlp.up_proj.weight_scale" becomes "blk.0.ffn_up.weight_scale". Absent for
/// other names.
[[gnu::cold]] inline std::optional<std::string> gguf_name(std::string_view name, architecture type) {
  if (const own_names* own = own_names_of(family_of(type)); own != nullptr) return own_gguf_name(name, *own);
  if (auto renamed = renamed_gguf_name(name, type)) return renamed;
  if (name == "lm_head.weight" || name == "language_model.lm_head.weight") return "output.weight";
  // Multimodal repositories have the text model under one of these prefixes; models without a head use the last one.
  const bool sublayers = family_of(type).single_sublayers;
  constexpr auto prefixes = std::to_array<std::string_view>(
      {"language_model.model.", "model.language_model.", "model.text_model.", "backbone.", "model.", ""});
  for (const std::string_view prefix : prefixes)
    if (name.starts_with(prefix) && (sublayers || prefix != "backbone.")) {
      name.remove_prefix(prefix.size());
      if (sublayers && name == "embeddings.weight") return "token_embd.weight";
      if (sublayers && name == "norm_f.weight") return "output_norm.weight";
      if (name == "embed_tokens.weight") return "token_embd.weight";
      if (family_of(type).embedding_norm && name == "embedding_norm.weight") return "token_embd_norm.weight";
      if (!family_of(type).embedding_norm && name == "norm.weight") return "output_norm.weight";
      for (const auto& [hf, gguf] : hf_globals)
        if (name == hf) return std::string(gguf);
      for (const auto& [hf, gguf] : hf_stream_matrices)
        if (family_of(type).streams && name.starts_with(hf))
          return std::string(gguf) + std::string(name.substr(hf.size()));
      constexpr std::string_view layers = "layers.";
      if (!name.starts_with(layers)) return std::nullopt;
      name.remove_prefix(layers.size());
      const auto digits = name.find('.');
      if (digits == 0 || digits == std::string_view::npos || digits > 6 ||
          name.find_first_not_of("0123456789") != digits || (digits > 1 && name[0] == '0'))
        return std::nullopt;
      const std::string_view layer = name.substr(0, digits);
      for (const auto& [hf, gguf] : hf_tails)
        if (name.substr(digits + 1) == hf && has_tails(family_of(type), hf))
          return "blk." + std::string(layer) + "." + std::string(gguf);
      const auto tail = name.rfind('.');
      if (tail <= digits) return std::nullopt;
      const std::string_view part = name.substr(digits + 1, tail - digits - 1), what = name.substr(tail + 1);
      if (family_of(type).sinks && part == "self_attn" && what == "sinks")
        return "blk." + std::string(layer) + ".attn_sinks.weight";
      if (const recurrence kind = family_of(type).recurrent;
          (kind == recurrence::delta_net && part == "linear_attn") ||
          (kind == recurrence::mamba2 && part == (sublayers ? "mixer" : "mamba"))) {
        if (what == "D" && kind == recurrence::mamba2) return "blk." + std::string(layer) + ".ssm_d";
        if (what == "A_log") return "blk." + std::string(layer) + ".ssm_a";
        if (what == "dt_bias") return "blk." + std::string(layer) + ".ssm_dt.bias";
      }
      if (what != "weight" && what != "weight_scale" && what != "bias") return std::nullopt;
      for (const auto& [hf, gguf] : hf_parts(family_of(type)))
        if (hf == part) return "blk." + std::string(layer) + "." + std::string(gguf) + "." + std::string(what);
      if (family_of(type).may_be_ternary && what == "weight")
        for (const std::string_view end : projection_norm_ends)
          for (const auto& [hf, gguf] : hf_parts(family_of(type)))
            if (part.starts_with(hf) && part.substr(hf.size()) == end)
              return "blk." + std::string(layer) + "." + std::string(gguf) + "_norm_in.weight";
      for (const auto& [hf, gguf] : hf_aliases)
        if (hf == part && family_of(type).multipliers)
          return "blk." + std::string(layer) + "." + std::string(gguf) + "." + std::string(what);
      return std::nullopt;
    }
  return std::nullopt;
}

/// The expert's matrix that a name refers to: "model.layers.3.block_sparse_moe.experts.7.w1.weight" and
/// "model.layers.3.mlp.experts.7.gate_proj.weight" are number 7 of "blk.3.ffn_gate_exps.weight".
struct expert_name {
  std::string gguf;
  std::uint32_t number = 0;
};
inline constexpr std::string_view own_experts = ".mlp.experts.";  ///< in front of an expert whose matrices have names
                                                                  ///< of their own
inline constexpr std::string_view mixer_experts = ".mixer.experts.";  ///< the same in layers that have only a mixture
/// The text in front of an expert's number.
inline constexpr std::array<std::string_view, 4> expert_folders{".block_sparse_moe.experts.", ".feed_forward.experts.",
                                                                own_experts, mixer_experts};
/// The text in front of a layer's number, where experts are in this folder.
constexpr std::string_view layers_of_experts(std::string_view folder) {
  return folder == mixer_experts ? "backbone.layers." : "model.layers.";
}
/// Layer and expert that a name states, if it does. @param layers, experts the texts in front of the two numbers
[[gnu::cold]] inline std::optional<expert_name> expert_of(std::string_view name,
                                                          std::string_view layers = "model.layers.",
                                                          std::string_view experts = ".block_sparse_moe.experts.") {
  constexpr std::string_view end = ".weight";
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != digits.npos ||
        (digits.size() > 1 && digits[0] == '0'))
      return std::nullopt;
    std::uint32_t out = 0;
    for (const char digit : digits) out = 10 * out + static_cast<std::uint32_t>(digit - '0');
    return out;
  };
  const auto middle = name.find(experts);
  if (!name.starts_with(layers) || middle == name.npos || !name.ends_with(end)) return std::nullopt;
  const auto layer = number(name.substr(layers.size(), middle - layers.size()));
  const std::string_view rest =
      name.substr(middle + experts.size(), name.size() - middle - experts.size() - end.size());
  const auto dot = rest.find('.');
  if (!layer || dot == rest.npos) return std::nullopt;
  const auto expert = number(rest.substr(0, dot));
  const std::string_view what = rest.substr(dot + 1);
  if (!expert) return std::nullopt;
  for (const auto& [matrix, gguf] : {hf_part{"w1", ".ffn_gate_exps"},
                                     {"w2", ".ffn_down_exps"},
                                     {"w3", ".ffn_up_exps"},
                                     {"gate_proj", ".ffn_gate_exps"},
                                     {"down_proj", ".ffn_down_exps"},
                                     {"up_proj", ".ffn_up_exps"}})
    if (what == matrix && (what[0] == 'w') == (experts != own_experts && experts != mixer_experts))
      return expert_name{"blk." + std::to_string(*layer) + std::string(gguf) + std::string(end), *expert};
  return std::nullopt;
}

/// Hugging Face's name of a tensor with a GGUF name; names without one are unchanged.
inline std::string hf_name(std::string_view name, architecture type) {
  if (const own_names* own = own_names_of(family_of(type)); own != nullptr)
    return own_hf_name(name, *own).value_or(std::string(name));
  if (auto renamed = renamed_hf_name(name, type)) return *renamed;
  if (name == "token_embd.weight") return "model.embed_tokens.weight";
  if (name == "output_norm.weight") return "model.norm.weight";
  if (name == "token_embd_norm.weight") return "model.embedding_norm.weight";
  for (const auto& [hf, gguf] : hf_globals)
    if (name == gguf) return "model." + std::string(hf);
  for (const auto& [hf, gguf] : hf_stream_matrices)
    if (name.starts_with(gguf)) return "model." + std::string(hf) + std::string(name.substr(gguf.size()));
  if (name == "output.weight") return "lm_head.weight";
  if (const auto dot = name.find('.', 4); name.starts_with("blk.") && dot != std::string_view::npos) {
    for (const auto& [hf, gguf] : hf_tails)
      if (name.substr(dot + 1) == gguf && has_tails(family_of(type), hf))
        return "model.layers." + std::string(name.substr(4, dot - 4)) + "." + std::string(hf);
    for (const auto& [hf, gguf] : hf_parts(family_of(type)))
      for (const auto& [end, hf_end] :
           {hf_part{".weight", ".weight"}, {".bias", ".bias"}, {"_norm_in.weight", ".norm.weight"}})
        if (name.substr(dot + 1).starts_with(gguf) && name.substr(dot + 1 + gguf.size()) == end)
          return "model.layers." + std::string(name.substr(4, dot - 4)) + "." + std::string(hf) + std::string(hf_end);
  }
  return std::string(name);
}

/// Whether a text model does not use a tensor: it belongs to a multimodal repository, or to heads that draft tokens.
inline bool is_vision_name(std::string_view name) {
  for (const std::string_view prefix :
       {"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector.",
        "model.embed_vision.", "model.embed_audio.", "model.audio_tower.", "visual.", "model.visual.",
        "model.vision_model.", "model.connector.", "mtp."})
    if (name.starts_with(prefix)) return true;
  return false;
}

/// Whether a tensor belongs to a layer after the last one, which drafts tokens.
/// @param layers the text in front of a layer's number  @param count layers of the model  @param drafts layers after
/// them
inline bool is_draft_name(std::string_view name, std::string_view layers, std::uint32_t count, std::uint32_t drafts) {
  if (drafts == 0 || !name.starts_with(layers)) return false;
  name = name.substr(layers.size(), name.find('.', layers.size()) - layers.size());
  if (name.empty() || name.size() > 6 || name.find_first_not_of("0123456789") != name.npos) return false;
  std::uint32_t layer = 0;
  for (const char digit : name) layer = 10 * layer + static_cast<std::uint32_t>(digit - '0');
  return layer >= count && layer - count < drafts;
}
/// Whether a tensor belongs to ERNIE 4.5's head that drafts tokens, whose names have no layer of the model.
inline bool is_draft_head(std::string_view name) { return name.starts_with("model.mtp_"); }
/// The warning about such tensors.
inline std::string draft_warning(std::size_t tensors) {
  return std::to_string(tensors) + " tensors of layers that draft tokens are not read";
}

}  // namespace intaglio::io
