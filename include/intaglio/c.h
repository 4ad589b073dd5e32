/* SPDX-License-Identifier: MIT */
/* The C interface of intaglio (C89): opens a model's file on a Vulkan device, tokenises, generates, gives logits and
 * vectors. The shared library libintaglio has it (bindings/c, docs/bindings.md). Calls return a status, and
 * intaglio_last_error() has the sentence. No exception leaves a call. A model is used by one thread at a time; models
 * share nothing. */
#ifndef INTAGLIO_C_H
#define INTAGLIO_C_H

#include <stddef.h>

/* Version of this interface. Within a major version functions are added and none is changed; structs grow at their
 * ends, and the library reads as many bytes of them as `size` says. */
#define INTAGLIO_C_VERSION_MAJOR 1
#define INTAGLIO_C_VERSION_MINOR 0

#if defined(_WIN32) && defined(INTAGLIO_C_BUILDING)
#define INTAGLIO_C_API __declspec(dllexport)
#elif defined(_WIN32)
#define INTAGLIO_C_API __declspec(dllimport)
#elif defined(__GNUC__)
#define INTAGLIO_C_API __attribute__((visibility("default")))
#else
#define INTAGLIO_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. */
enum intaglio_status {
  INTAGLIO_OK = 0,
  INTAGLIO_END = 1,           /* a stream has no more text */
  INTAGLIO_BAD_ARGUMENT = 2,  /* an option out of range, a null pointer, no room in the context */
  INTAGLIO_BAD_FILE = 3,      /* the model's file or folder */
  INTAGLIO_DEVICE_ERROR = 4,  /* no device, a missing feature, a kernel that computes wrong numbers */
  INTAGLIO_DEVICE_LOST = 5,   /* close the model; another one can be opened */
  INTAGLIO_OUT_OF_MEMORY = 6, /* of the device or of the host */
  INTAGLIO_NO_ROOM = 7,       /* a buffer is too short; its length has been set to what is needed */
  INTAGLIO_INTERNAL = 8       /* anything else */
};

/* A model on a device, with one history of tokens. */
typedef struct intaglio_model intaglio_model;
/* A generation that is under way and gives its text piece by piece. */
typedef struct intaglio_stream intaglio_stream;

/* Of a model that is opened. Set by intaglio_model_options_init; then change members. */
typedef struct intaglio_model_options {
  size_t size;         /* of this struct */
  const char* device;  /* index, UUID or part of the name; NULL: the best one that is there */
  int allow_cpu;       /* whether a CPU driver may be taken where there is no GPU; 1 */
  unsigned context;    /* positions; 0: the model's own, at most 16384, as many as the device has memory for */
} intaglio_model_options;

/* Of a generation. Set by intaglio_generate_options_init; then change members. */
typedef struct intaglio_generate_options {
  size_t size;             /* of this struct */
  float temperature;       /* 0: greedy; 0 */
  unsigned top_k;          /* 0: off; 0 */
  float top_p;             /* 1: off; 1 */
  float min_p;             /* 0: off; 0 */
  float repeat_penalty;    /* 1: off; 1 */
  int repeat_last_n;       /* tokens that the penalty looks at; -1: 64, or the whole of a shorter context; -1 */
  unsigned seed_low;       /* 64 bits, of which text is a function; 0 */
  unsigned seed_high;      /* 0 */
  unsigned max_tokens;     /* 0: until the model ends or the context is full; 0 */
  const char* const* stop; /* texts that end the generation, stop_count of them; NULL */
  size_t stop_count;       /* 0 */
} intaglio_generate_options;

/* Why a generation ended. */
enum intaglio_finish { INTAGLIO_FINISH_NONE = 0, INTAGLIO_FINISH_STOP = 1, INTAGLIO_FINISH_LENGTH = 2 };

/* What a generation was. Set `size` before the call. */
typedef struct intaglio_result {
  size_t size;
  int finish;                /* enum intaglio_finish */
  unsigned prompt_tokens;    /* fed now */
  unsigned cached_tokens;    /* of the prompt, already there from the last call */
  unsigned generated_tokens; /* drawn */
  double prompt_ms;
  double decode_ms;
} intaglio_result;

/* One turn of a conversation, UTF-8, ended by 0. Roles: system, user, assistant. */
typedef struct intaglio_message {
  const char* role;
  const char* content;
} intaglio_message;

/* A piece of text, not ended by 0. Not 0 ends the generation. */
typedef int (*intaglio_piece_callback)(const char* piece, size_t length, void* user);

/* Version of the library: "0.1.0". */
INTAGLIO_C_API const char* intaglio_version_text(void);
/* Version of this interface: MAJOR * 1000 + MINOR. */
INTAGLIO_C_API unsigned intaglio_c_version(void);
/* The sentence of the last call of this thread that failed, at most 400 bytes; until the next call. Never NULL. */
INTAGLIO_C_API const char* intaglio_last_error(void);

/* Sets all members of the options to their defaults. */
INTAGLIO_C_API void intaglio_model_options_init(intaglio_model_options* options);
/* Sets all members of the options to their defaults. */
INTAGLIO_C_API void intaglio_generate_options_init(intaglio_generate_options* options);

/* Opens a GGUF file or a Hugging Face folder, plans the model for the device and loads it. options may be NULL. */
INTAGLIO_C_API int intaglio_model_open(const char* path, const intaglio_model_options* options, intaglio_model** model);
/* NULL is fine. Streams of it are closed first. */
INTAGLIO_C_API void intaglio_model_close(intaglio_model* model);

/* Number of positions that the caches have room for. 0 for NULL. */
INTAGLIO_C_API unsigned intaglio_model_context(const intaglio_model* model);
/* Number of tokens in the history. 0 for NULL. */
INTAGLIO_C_API unsigned intaglio_model_position(const intaglio_model* model);
/* Number of tokens in the vocabulary. 0 for NULL. */
INTAGLIO_C_API unsigned intaglio_model_vocab_size(const intaglio_model* model);
/* Floats of an embedding. 0 for NULL. */
INTAGLIO_C_API unsigned intaglio_model_hidden_size(const intaglio_model* model);
/* Name of the device, which lives as long as the model. NULL for NULL. */
INTAGLIO_C_API const char* intaglio_model_device(const intaglio_model* model);

/* Tokens of a text. special: texts of control tokens are those tokens, and one BOS comes first where the model wants
 * one; 0: plain text. count is the room in ids before the call and the tokens after it. */
INTAGLIO_C_API int intaglio_tokenize(intaglio_model* model, const char* text, size_t length, int special, int* ids,
                                     size_t* count);
/* Tokens of a conversation in the model's chat template, up to where the answer begins. */
INTAGLIO_C_API int intaglio_tokenize_chat(intaglio_model* model, const intaglio_message* messages, size_t message_count,
                                          int* ids, size_t* count);
/* Text of tokens, not ended by 0. length is the room in text before the call and the bytes after it. */
INTAGLIO_C_API int intaglio_detokenize(intaglio_model* model, const int* ids, size_t count, char* text, size_t* length);

/* Answers a prompt of tokens; what it has in common with the history of the model is not computed again. callback and
 * result may be NULL. */
INTAGLIO_C_API int intaglio_generate(intaglio_model* model, const int* ids, size_t count,
                                     const intaglio_generate_options* options, intaglio_piece_callback callback,
                                     void* user, intaglio_result* result);
/* The same piece by piece. Until the stream is closed or at its end the model takes no other call. */
INTAGLIO_C_API int intaglio_stream_open(intaglio_model* model, const int* ids, size_t count,
                                        const intaglio_generate_options* options, intaglio_stream** stream);
/* INTAGLIO_OK and a piece, whole UTF-8, which lives until the next call; or INTAGLIO_END. */
INTAGLIO_C_API int intaglio_stream_next(intaglio_stream* stream, const char** piece, size_t* length);
/* Gives the result of the stream so far. */
INTAGLIO_C_API int intaglio_stream_result(const intaglio_stream* stream, intaglio_result* result);
/* Ends the generation and frees the stream. NULL is fine. */
INTAGLIO_C_API void intaglio_stream_close(intaglio_stream* stream);

/* Appends tokens to the history and gives the logits after each: float [count, vocab_size]. room: floats in logits. */
INTAGLIO_C_API int intaglio_logits(intaglio_model* model, const int* ids, size_t count, float* logits, size_t room);
/* A vector for a text: float [hidden_size], of length 1. room: floats in vector. The history is forgotten. */
INTAGLIO_C_API int intaglio_embed(intaglio_model* model, const char* text, size_t length, float* vector, size_t room);
/* Forgets the history. */
INTAGLIO_C_API int intaglio_reset(intaglio_model* model);

#ifdef __cplusplus
}
#endif

#endif
