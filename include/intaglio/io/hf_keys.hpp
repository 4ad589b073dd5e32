// SPDX-License-Identifier: MIT
// The meaning of each key of config.json and params.json to this library. Key names: transformers' PreTrainedConfig and
// the configuration classes of the families, mistral-inference's TransformerArgs, llama-models' ModelArgs.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

enum class config_key_use : std::uint8_t {
  read,      ///< by the reader of the file, or by that of the tokenizer
  harmless,  ///< not part of the computation
  training,  ///< has an effect only in training: warned of where it is not 0
  off,       ///< must be false, 0 or empty
  own,       ///< read in families that have the key; in others it must be false, 0 or empty
};

struct config_key_rule {
  std::string_view key;
  config_key_use use = config_key_use::read;
  std::string_view families = {};        ///< model types that have the key, separated by spaces
  bool (*has)(const family&) = nullptr;  ///< families that have the key; if this and `families` are unset, all have

  /// Whether a model type, or a type of RoPE scaling, has the key.
  constexpr bool is_of(std::string_view model_type) const {
    if (families.empty() && has == nullptr) return true;
    for (std::string_view list = families; !list.empty();) {
      const std::string_view first = list.substr(0, list.find(' '));
      if (first == model_type) return true;
      list.remove_prefix((std::min)(list.size(), first.size() + 1));
    }
    const family* const of = has == nullptr ? nullptr : family_named(model_type);
    return of != nullptr && has(*of);
  }
};

/// @{
/// Whether a family has the part that a key describes.
constexpr bool has_kinds_of_layers(const family& of) { return of.kinds_of_layers; }
constexpr bool has_streams(const family& of) { return of.streams; }
constexpr bool has_layer_inputs(const family& of) { return of.kinds_of_layers || of.streams; }
constexpr bool has_multipliers(const family& of) { return of.multipliers; }
constexpr bool has_delta_rules(const family& of) { return of.recurrent == recurrence::delta_net; }
constexpr bool has_short_conv(const family& of) { return of.recurrent == recurrence::short_conv; }
constexpr bool has_state_space(const family& of) { return of.recurrent == recurrence::mamba2; }
constexpr bool has_single_sublayers(const family& of) { return of.single_sublayers; }
constexpr bool has_layers_without_rope(const family& of) { return of.no_rope_interval != 0; }
constexpr bool has_biased_experts(const family& of) { return of.block_biases; }
constexpr bool has_experts_alone(const family& of) {
  return of.experts == mixtures::all || may_share_expert(of) || of.single_sublayers;
}
constexpr bool has_logistic_router(const family& of) { return of.score == expert_score::logistic; }
constexpr bool has_optional_norms(const family& of) { return of.optional_norms; }
constexpr bool has_shared_experts(const family& of) { return of.shared_experts != 0 && !of.moe_keys; }
constexpr bool has_moe_keys(const family& of) { return of.moe_keys; }
constexpr bool has_draft_layers(const family& of) { return of.draft_layers; }
constexpr bool has_plain_experts(const family& of) { return of.experts == mixtures::all && !of.block_biases; }
constexpr bool has_narrow_experts(const family& of) {
  return of.default_expert_width != 0 || of.kinds_of_layers || of.single_sublayers;
}
constexpr bool has_counted_experts(const family& of) { return has_shared_experts(of) || of.single_sublayers; }
constexpr bool has_stated_parts(const family& of) { return has_plain_experts(of) || has_scored_router(of); }
constexpr bool has_stated_eps(const family& of) { return has_short_conv(of) || of.single_sublayers; }
constexpr bool has_gelu(const family& of) { return of.act == activation::gelu_tanh; }
constexpr bool has_stated_scores(const family& of) { return has_gelu(of) && of.norms_behind && !has_layer_inputs(of); }
constexpr bool has_local_rope(const family& of) { return (has_stated_scores(of) || of.streams) && of.head_norms; }
constexpr bool has_window_interval(const family& of) { return has_local_rope(of) || of.globals_stand; }
constexpr bool has_positions(const family& of) { return of.learned_positions; }
constexpr bool has_layer_norms(const family& of) { return of.layer_norms; }
/// Whether a family has a window, or a key of one that has no effect.
constexpr bool has_window(const family& of) {
  return of.window_interval != 0 || of.windows || of.no_rope_interval != 0 ||
         (of.window == gguf_window::inert && of.recurrent == recurrence::none);
}
/// @}

/// Keys of the text model's object in config.json.
inline constexpr config_key_rule hf_key_rules[] = {
    {"model_type"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads"},
    {"num_key_value_heads"},
    {"head_dim"},
    {"vocab_size"},
    {"max_position_embeddings"},
    {"original_max_position_embeddings"},
    {"rms_norm_eps"},
    {"rope_theta"},
    {"rope_scaling"},
    {"rope_parameters"},
    {"partial_rotary_factor"},
    {"rope_local_base_freq", config_key_use::read, {}, has_local_rope},
    {"hidden_act"},
    {"hidden_activation", config_key_use::read, "modernbert", has_gelu},
    {"tie_word_embeddings"},
    {"sliding_window", config_key_use::read, "mistral mixtral", has_window},
    {"use_sliding_window"},
    {"max_window_layers", config_key_use::harmless},  // belongs to use_sliding_window
    {"sliding_window_pattern", config_key_use::read, "mistral mixtral", has_window_interval},
    {"_sliding_window_pattern", config_key_use::read, "mistral mixtral", has_local_rope},
    {"layer_types"},
    {"query_pre_attn_scalar", config_key_use::read, {}, has_stated_scores},
    {"attn_logit_softcapping"},
    {"final_logit_softcapping"},
    {"global_head_dim", config_key_use::read, {}, has_kinds_of_layers},
    {"num_global_key_value_heads", config_key_use::read, {}, has_kinds_of_layers},
    {"attention_k_eq_v", config_key_use::read, {}, has_kinds_of_layers},
    {"num_kv_shared_layers", config_key_use::read, {}, has_layer_inputs},
    {"use_double_wide_mlp", config_key_use::read, {}, has_kinds_of_layers},
    {"hidden_size_per_layer_input", config_key_use::read, {}, has_layer_inputs},
    {"vocab_size_per_layer_input", config_key_use::read, {}, has_layer_inputs},
    {"altup_num_inputs", config_key_use::read, {}, has_streams},
    {"altup_active_idx", config_key_use::read, {}, has_streams},
    {"altup_correct_scale", config_key_use::read, {}, has_streams},
    {"altup_coef_clip", config_key_use::read, {}, has_streams},
    {"altup_lr_multiplier", config_key_use::harmless},  // for training
    {"laurel_rank", config_key_use::read, {}, has_streams},
    {"activation_sparsity_pattern", config_key_use::read, {}, has_streams},
    {"enable_moe_block", config_key_use::read, {}, has_kinds_of_layers},
    {"top_k_experts", config_key_use::read, {}, has_kinds_of_layers},
    {"use_mrope", config_key_use::off},
    {"no_rope_layers"},
    {"no_rope_layer_interval", config_key_use::read, {}, has_layers_without_rope},
    {"embedding_multiplier", config_key_use::read, {}, has_multipliers},
    {"attention_multiplier", config_key_use::read, {}, has_multipliers},
    {"residual_multiplier", config_key_use::read, {}, has_multipliers},
    {"logits_scaling", config_key_use::read, {}, has_multipliers},
    {"linear_conv_kernel_dim", config_key_use::read, {}, has_delta_rules},
    {"linear_num_key_heads", config_key_use::read, {}, has_delta_rules},
    {"linear_num_value_heads", config_key_use::read, {}, has_delta_rules},
    {"linear_key_head_dim", config_key_use::read, {}, has_delta_rules},
    {"linear_value_head_dim", config_key_use::read, {}, has_delta_rules},
    {"full_attention_interval", config_key_use::read, {}, has_delta_rules},
    {"attn_output_gate"},
    {"shared_expert_intermediate_size", config_key_use::read, {}, has_shared_expert},
    {"mamba_ssm_dtype", config_key_use::harmless},        // states are f32
    {"mtp_num_hidden_layers", config_key_use::harmless},  // heads that draft tokens
    {"mtp_use_dedicated_embeddings", config_key_use::harmless},
    {"norm_eps", config_key_use::read, "modernbert", has_stated_eps},
    {"tie_embedding", config_key_use::read, {}, has_short_conv},
    {"conv_L_cache", config_key_use::read, {}, has_short_conv},
    {"conv_bias", config_key_use::off},
    {"full_attn_idxs", config_key_use::read, {}, has_short_conv},
    {"block_ff_dim", config_key_use::read, {}, has_short_conv},
    {"block_auto_adjust_ff_dim", config_key_use::read, {}, has_short_conv},
    {"block_ffn_dim_multiplier", config_key_use::read, {}, has_short_conv},
    {"block_multiple_of", config_key_use::read, {}, has_short_conv},
    // A key of LFM2 that transformers does not read either.
    {"block_dim", config_key_use::harmless},
    {"block_norm_eps", config_key_use::harmless},
    {"block_mlp_init_scale", config_key_use::harmless},
    {"block_out_init_scale", config_key_use::harmless},
    {"block_use_swiglu", config_key_use::harmless},
    {"block_use_xavier_init", config_key_use::harmless},
    {"conv_dim", config_key_use::harmless},
    {"conv_dim_out", config_key_use::harmless},
    {"conv_use_xavier_init", config_key_use::harmless},
    {"num_heads", config_key_use::harmless},
    {"use_pos_enc", config_key_use::harmless},
    {"shared_intermediate_size", config_key_use::read, {}, may_share_expert},
    {"position_embedding_type", config_key_use::read, "granitemoehybrid", has_positions},
    {"layer_norm_eps", config_key_use::read, {}, has_positions},
    {"type_vocab_size", config_key_use::read, {}, has_layer_norms},
    // Keys of Nomic's BERT, which are GPT-2's.
    {"n_embd", config_key_use::read, "nomic_bert"},
    {"n_head", config_key_use::read, "nomic_bert"},
    {"n_inner", config_key_use::read, "nomic_bert"},
    {"n_layer", config_key_use::read, "nomic_bert"},
    {"n_positions", config_key_use::read, "nomic_bert"},
    {"max_trained_positions", config_key_use::read, "nomic_bert"},
    {"activation_function", config_key_use::read, "nomic_bert"},
    {"rotary_emb_base", config_key_use::read, "nomic_bert"},
    {"rotary_emb_fraction", config_key_use::read, "nomic_bert"},
    {"rotary_emb_scale_base", config_key_use::read, "nomic_bert"},
    {"rotary_emb_interleaved", config_key_use::read, "nomic_bert"},
    {"rotary_scaling_factor", config_key_use::read, "nomic_bert"},  // for positions behind max_trained_positions
    {"qkv_proj_bias", config_key_use::read, "nomic_bert"},
    {"mlp_fc1_bias", config_key_use::read, "nomic_bert"},
    {"mlp_fc2_bias", config_key_use::read, "nomic_bert"},
    {"prenorm", config_key_use::read, "nomic_bert"},
    {"parallel_block", config_key_use::read, "nomic_bert"},
    {"parallel_block_tied_norm", config_key_use::read, "nomic_bert"},
    {"causal", config_key_use::read, "nomic_bert"},
    {"use_rms_norm", config_key_use::read, "nomic_bert"},
    {"moe_every_n_layers", config_key_use::read, "nomic_bert"},
    {"scale_attn_by_inverse_layer_idx", config_key_use::read, "nomic_bert"},
    {"scale_attn_weights", config_key_use::read, "nomic_bert"},
    {"global_rope_theta", config_key_use::read, "modernbert"},
    {"local_rope_theta", config_key_use::read, "modernbert"},
    {"global_attn_every_n_layers", config_key_use::read, "modernbert"},
    {"local_attention", config_key_use::read, "modernbert"},
    {"norm_bias", config_key_use::read, "modernbert"},
    {"decoder_bias", config_key_use::harmless},  // of the head for training
    {"classifier_activation", config_key_use::harmless},
    {"classifier_bias", config_key_use::harmless},
    {"classifier_pooling", config_key_use::harmless},
    {"deterministic_flash_attn", config_key_use::harmless},
    {"initializer_cutoff_factor", config_key_use::harmless},
    {"reference_compile", config_key_use::harmless},
    {"repad_logits_with_grad", config_key_use::harmless},
    {"sparse_pred_ignore_index", config_key_use::harmless},
    {"sparse_prediction", config_key_use::harmless},
    {"mlp_dropout", config_key_use::training},
    {"pad_vocab_size_multiple", config_key_use::harmless},
    {"dense_seq_output", config_key_use::harmless},
    {"fused_bias_fc", config_key_use::harmless},
    {"fused_dropout_add_ln", config_key_use::harmless},
    {"reorder_and_upcast_attn", config_key_use::harmless},
    {"use_flash_attn", config_key_use::harmless},
    {"use_xentropy", config_key_use::harmless},
    {"summary_activation", config_key_use::harmless},
    {"summary_first_dropout", config_key_use::harmless},
    {"summary_proj_to_labels", config_key_use::harmless},
    {"summary_type", config_key_use::harmless},
    {"summary_use_proj", config_key_use::harmless},
    {"normalization_function", config_key_use::read, "granitemoehybrid"},
    {"layers_block_type", config_key_use::read, {}, has_state_space},
    // Keys of state space layers.
    {"mamba_conv_bias", config_key_use::read, "granitemoehybrid"},
    {"mamba_d_conv", config_key_use::read, "granitemoehybrid"},
    {"mamba_d_head", config_key_use::read, "granitemoehybrid"},
    {"mamba_d_state", config_key_use::read, "granitemoehybrid"},
    {"mamba_expand", config_key_use::read, "granitemoehybrid"},
    {"mamba_n_groups", config_key_use::read, "granitemoehybrid"},
    {"mamba_n_heads", config_key_use::read, "granitemoehybrid"},
    {"mamba_proj_bias"},
    {"time_step_limit", config_key_use::read, {}, has_state_space},
    {"hybrid_override_pattern", config_key_use::read, {}, has_single_sublayers},
    {"attention_head_dim", config_key_use::read, "hunyuan_v1_dense", has_single_sublayers},
    {"layer_norm_epsilon", config_key_use::read, "nomic_bert", has_single_sublayers},
    {"mlp_hidden_act", config_key_use::read, {}, has_single_sublayers},
    {"mamba_hidden_act", config_key_use::read, {}, has_single_sublayers},
    {"mamba_num_heads", config_key_use::read, {}, has_single_sublayers},
    {"mamba_head_dim", config_key_use::read, {}, has_single_sublayers},
    {"ssm_state_size", config_key_use::read, {}, has_single_sublayers},
    {"n_groups", config_key_use::read, {}, has_single_sublayers},
    {"conv_kernel", config_key_use::read, {}, has_single_sublayers},
    {"use_conv_bias", config_key_use::read, {}, has_single_sublayers},
    {"use_bias"},
    {"mamba_chunk_size", config_key_use::harmless},  // how prompts are cut
    {"chunk_size", config_key_use::harmless},
    {"expand", config_key_use::harmless},  // Nemotron-H: its heads determine it
    {"use_mamba_kernels", config_key_use::harmless},
    {"mamba_ssm_cache_dtype", config_key_use::harmless},  // states are f32
    {"num_logits_to_keep", config_key_use::harmless},
    {"residual_in_fp32", config_key_use::harmless},  // the stream is f32
    {"rescale_prenorm_residual", config_key_use::harmless},
    {"time_step_min", config_key_use::harmless},  // initial values for training
    {"time_step_max", config_key_use::harmless},
    {"time_step_floor", config_key_use::harmless},
    {"init_method", config_key_use::harmless},
    {"attention_bias"},
    {"attention_out_bias"},
    {"qkv_bias", config_key_use::read, "qwen2_moe"},  // the tensors show it
    {"mlp_bias"},
    {"use_bidirectional_attention"},
    {"num_experts"},
    {"num_local_experts"},
    {"num_experts_per_tok", config_key_use::read, "mixtral", has_experts_alone},
    {"moe_intermediate_size", config_key_use::read, {}, has_narrow_experts},
    {"norm_topk_prob", config_key_use::read, {}, has_stated_parts},
    // Keys of Nemotron-H's mixtures, as n_routed_experts and others; nobody reads them without such layers.
    {"moe_shared_expert_intermediate_size", config_key_use::read, {}, has_single_sublayers},
    {"moe_latent_size", config_key_use::read, {}, has_single_sublayers},
    {"moe_shared_expert_overlap", config_key_use::harmless},  // how the shared expert is scheduled
    {"mtp_layers_block_type", config_key_use::harmless},      // heads that draft tokens
    {"mtp_hybrid_override_pattern", config_key_use::harmless},
    {"num_dense_layers", config_key_use::read, "lfm2_moe"},
    {"use_expert_bias", config_key_use::read, "lfm2_moe"},
    {"routed_scaling_factor", config_key_use::read, {}, has_logistic_router},
    {"n_routed_experts", config_key_use::read, {}, has_counted_experts},
    {"n_shared_experts", config_key_use::read, {}, has_counted_experts},
    {"first_k_dense_replace", config_key_use::read, {}, has_shared_experts},
    {"n_group", config_key_use::read, {}, has_counted_experts},
    {"topk_group", config_key_use::read, {}, has_counted_experts},
    {"num_nextn_predict_layers", config_key_use::read, {}, has_draft_layers},
    {"moe_num_experts", config_key_use::read, {}, has_moe_keys},
    {"moe_k", config_key_use::read, {}, has_moe_keys},
    {"moe_num_shared_experts", config_key_use::read, {}, has_moe_keys},
    {"moe_layer_start_index", config_key_use::read, {}, has_moe_keys},
    {"moe_layer_end_index", config_key_use::read, {}, has_moe_keys},
    {"moe_layer_interval", config_key_use::read, {}, has_moe_keys},
    {"moe_norm_min", config_key_use::read, {}, has_moe_keys},
    {"moe_gate_act", config_key_use::read, {}, has_moe_keys},
    {"moe_norm_gate_logits", config_key_use::read, {}, has_moe_keys},
    {"moe_use_aux_free", config_key_use::read, {}, has_moe_keys},
    {"moe_gate", config_key_use::harmless},      // choice of a kernel
    {"moe_capacity", config_key_use::harmless},  // tokens that training leaves out
    {"multi_token_pred_lambda", config_key_use::harmless},
    {"swiglu_limit", config_key_use::read, {}, has_biased_experts},
    {"experts_per_token", config_key_use::read, {}, has_biased_experts},
    {"initial_context_length", config_key_use::read, {}, has_biased_experts},
    {"decoder_sparse_step", config_key_use::read, {}, has_plain_experts},
    {"mlp_only_layers", config_key_use::off},
    {"quantization_config"},
    {"bos_token_id"},
    {"eos_token_id"},
    {"eod_token_id"},
    {"pad_token_id"},
    {"unk_token_id"},
    {"sep_token_id", config_key_use::harmless},
    {"mask_token_id", config_key_use::harmless},
    {"cls_token_id", config_key_use::harmless},
    {"decoder_start_token_id", config_key_use::harmless},
    // Keys about the program that wrote the file.
    {"architectures", config_key_use::harmless},
    {"auto_map", config_key_use::harmless},
    {"dtype", config_key_use::harmless},
    {"torch_dtype", config_key_use::harmless},
    {"transformers_version", config_key_use::harmless},
    {"_name_or_path", config_key_use::harmless},
    {"name_or_path", config_key_use::harmless},
    {"_commit_hash", config_key_use::harmless},
    {"unsloth_fixed", config_key_use::harmless},
    {"unsloth_version", config_key_use::harmless},
    {"tokenizer_class", config_key_use::harmless},
    {"model_max_length", config_key_use::harmless},
    // Keys about how transformers runs the model.
    {"use_cache", config_key_use::harmless},
    {"cache_implementation", config_key_use::harmless},
    {"attn_implementation", config_key_use::harmless},
    {"_attn_implementation", config_key_use::harmless},
    {"_attn_implementation_autoset", config_key_use::harmless},
    {"experts_implementation", config_key_use::harmless},
    {"pretraining_tp", config_key_use::harmless},  // splits products without changing their result
    {"chunk_size_feed_forward", config_key_use::harmless},
    {"output_attentions", config_key_use::harmless},
    {"output_hidden_states", config_key_use::harmless},
    {"return_dict", config_key_use::harmless},
    {"use_return_dict", config_key_use::harmless},
    {"torchscript", config_key_use::harmless},
    {"is_decoder", config_key_use::harmless},
    // Keys of classifiers' heads.
    {"id2label", config_key_use::harmless},
    {"label2id", config_key_use::harmless},
    {"num_labels", config_key_use::harmless},
    {"problem_type", config_key_use::harmless},
    {"finetuning_task", config_key_use::harmless},
    {"task_specific_params", config_key_use::harmless},
    // Keys of training.
    {"initializer_range", config_key_use::harmless},
    {"gradient_checkpointing", config_key_use::harmless},
    {"output_router_logits", config_key_use::harmless},
    {"router_aux_loss_coef", config_key_use::harmless},
    {"router_jitter_noise", config_key_use::training},
    {"dropout", config_key_use::training},
    {"attention_dropout", config_key_use::training},
    {"hidden_dropout", config_key_use::training},
    {"ffn_dropout", config_key_use::training},
    {"resid_dropout", config_key_use::training},
    {"residual_dropout", config_key_use::training},
    {"embedding_dropout", config_key_use::training},
    {"embed_dropout", config_key_use::training},
    {"activation_dropout", config_key_use::training},
    {"classifier_dropout", config_key_use::training},
    {"hidden_dropout_prob", config_key_use::training},
    {"attention_probs_dropout_prob", config_key_use::training},
    {"attn_pdrop", config_key_use::training},
    {"embd_pdrop", config_key_use::training},
    {"full_attn_mod", config_key_use::harmless},  // Phi-4-mini: 1; its own code does not read it
    {"interpolate_factor", config_key_use::harmless},
    {"lm_head_bias", config_key_use::off},
    {"resid_pdrop", config_key_use::training},
    {"layerdrop", config_key_use::training},
    // Keys of Hunyuan for other models, and for classifiers.
    {"cla_share_factor", config_key_use::harmless},  // belongs to use_cla
    {"class_num", config_key_use::harmless},
    {"dense_list", config_key_use::harmless},
    {"im_end_id", config_key_use::harmless},
    {"im_newline_id", config_key_use::harmless},
    {"im_start_id", config_key_use::harmless},
    {"mask_init_id", config_key_use::harmless},
    {"org_vocab_size", config_key_use::harmless},
    {"pad_id", config_key_use::harmless},
    {"pool_type", config_key_use::harmless},
    {"text_end_id", config_key_use::harmless},
    {"text_start_id", config_key_use::harmless},
    {"norm_type", config_key_use::read, "hunyuan_v1_dense"},
    // Keys that would change the computation.
    {"add_classification_head", config_key_use::off},
    {"use_cla", config_key_use::off},  // layers that share keys and values
    {"use_mla", config_key_use::off},
    {"is_encoder_decoder", config_key_use::off},
    {"add_cross_attention", config_key_use::off},
    {"alibi", config_key_use::off},
    {"rope_interleaved", config_key_use::off},
    {"use_qk_norm", config_key_use::own, {}, has_optional_norms},
    {"qk_norm", config_key_use::off},
    {"clip_qkv", config_key_use::off},
    {"per_layer_config", config_key_use::off},
};

/// Keys outside of the text model's object in a multimodal config.json.
inline constexpr config_key_rule hf_outer_key_rules[] = {
    {"text_config"},
    {"vision_config", config_key_use::harmless},
    {"audio_config", config_key_use::harmless},
    {"mm_tokens_per_image", config_key_use::harmless},
    {"boi_token_index", config_key_use::harmless},
    {"eoi_token_index", config_key_use::harmless},
    {"image_token_index", config_key_use::harmless},
    {"boi_token_id", config_key_use::harmless},
    {"boa_token_id", config_key_use::harmless},
    {"eoa_token_id", config_key_use::harmless},
    {"eoa_token_index", config_key_use::harmless},
    {"audio_token_id", config_key_use::harmless},
    {"video_token_id", config_key_use::harmless},
    {"vision_soft_tokens_per_image", config_key_use::harmless},
    {"audio_soft_tokens_per_image", config_key_use::harmless},
    {"eoi_token_id", config_key_use::harmless},
    {"image_token_id", config_key_use::harmless},
    {"vision_start_token_id", config_key_use::harmless},
    {"vision_end_token_id", config_key_use::harmless},
    {"vision_token_id", config_key_use::harmless},
    {"multimodal_projector_bias", config_key_use::harmless},
    {"projector_hidden_act", config_key_use::harmless},
    {"spatial_merge_size", config_key_use::harmless},
    {"vision_feature_layer", config_key_use::harmless},
    {"model_type"},
    {"tie_word_embeddings"},
    {"quantization_config"},
    {"bos_token_id"},
    {"eos_token_id"},
    {"pad_token_id"},
};

/// Keys of rope_scaling and rope_parameters, for the types that are read.
inline constexpr config_key_rule hf_rope_key_rules[] = {
    {"rope_type"},
    {"type"},
    {"rope_theta"},
    {"partial_rotary_factor"},
    {"mrope_section", config_key_use::harmless},  // for text all sections have the same position
    {"mrope_interleaved", config_key_use::harmless},
    {"full_attention"},
    {"sliding_attention"},
    {"factor", config_key_use::read, "linear llama3 yarn dynamic"},
    {"low_freq_factor", config_key_use::read, "llama3"},
    {"high_freq_factor", config_key_use::read, "llama3"},
    {"original_max_position_embeddings", config_key_use::read, "llama3 yarn longrope su"},
    {"alpha", config_key_use::read, "dynamic"},
    {"beta_fast", config_key_use::read, "yarn dynamic"},  // with dynamic the value is not used
    {"beta_slow", config_key_use::read, "yarn dynamic"},
    {"attention_factor", config_key_use::read, "yarn longrope su"},
    {"mscale", config_key_use::read, "yarn dynamic"},
    {"mscale_all_dim", config_key_use::read, "yarn dynamic"},
    {"llama_4_scaling_beta", config_key_use::read, "yarn"},
    {"truncate", config_key_use::read, "yarn"},
    {"short_factor", config_key_use::read, "longrope su"},
    {"long_factor", config_key_use::read, "longrope su"},
};

/// Keys of the quantization_config of a BitNet.
inline constexpr config_key_rule hf_quantization_key_rules[] = {
    {"quant_method"},
    {"linear_class"},
    {"use_rms_norm"},
    {"quantization_mode", config_key_use::harmless},  // the weights' type shows it
    {"rms_norm_eps", config_key_use::harmless},       // read with use_rms_norm
    {"modules_to_not_convert", config_key_use::harmless},
};

/// Keys of params.json. "moe" is an object with keys of its own.
inline constexpr config_key_rule original_key_rules[] = {
    {"dim"},
    {"n_layers"},
    {"n_heads"},
    {"n_kv_heads"},
    {"head_dim"},
    {"hidden_dim"},
    {"multiple_of"},
    {"ffn_dim_multiplier"},
    {"moe"},
    {"norm_eps"},
    {"rope_theta"},
    {"use_scaled_rope"},
    {"rope_scaling_factor", config_key_use::read, "scaled"},
    {"rope_high_freq_factor", config_key_use::read, "scaled"},
    {"sliding_window"},
    {"tied_embeddings"},
    {"vocab_size"},
    {"max_position_embeddings"},
    {"max_seq_len"},
    {"quantization"},
    {"vision_encoder"},
    {"lora"},
    {"max_batch_size", config_key_use::harmless},
    {"model_type", config_key_use::harmless},
    {"dropout", config_key_use::training},
    {"attention_dropout", config_key_use::training},
    {"causal"},
    {"use_biases"},
    {"yarn", config_key_use::off},
    {"llama_4_scaling", config_key_use::off},
    {"use_qk_norm", config_key_use::off},
    {"q_lora_rank", config_key_use::off},
};
inline constexpr config_key_rule original_expert_key_rules[] = {{"num_experts"}, {"num_experts_per_tok"}};

/// Checks every key of an object against the rules. Keys that nobody reads are added to `warnings` by name. A null
/// counts as an absent value.
/// @param model_type  or the type of a RoPE scaling
/// @throws file_error for a key that must be off and is not
inline void judge_config_keys(const json_place& object, std::span<const config_key_rule> rules,
                              std::string_view model_type, std::vector<std::string>& warnings) {
  constexpr std::size_t most = 16;
  std::size_t named = 0;
  const auto warn = [&](const json_place& value, const std::string& what) {
    if (++named <= most)
      warnings.push_back(in_file(object.file(), "key '" + printable(value.where(), 100) + "' " + what));
  };
  for (const auto& [key, value] : object.members()) {
    if (!value.present()) continue;
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& each) { return each.key == key; });
    if (rule == rules.end()) warn(value, "is unknown and not read");
    else if ((rule->use == config_key_use::off || (rule->use == config_key_use::own && !rule->is_of(model_type))) &&
             !value.is_unwritten())
      value.refuse("none");
    else if (rule->use == config_key_use::training && !value.is_unwritten()) warn(value, "acts in training alone");
    else if (!rule->is_of(model_type) && !value.is_unwritten())
      warn(value, "is not used by " + printable(model_type, 40));
  }
  if (named > most)
    warnings.push_back(in_file(object.file(), "and " + std::to_string(named - most) + " more keys are not used"));
}

}  // namespace intaglio::io
