/* SPDX-License-Identifier: MIT */
/* A program in C89 from outside of the tree: usage: consumer MODEL. Prints what it found; tests/bindings/run knows what
 * that is. */
#include <intaglio/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int pieces;

static int take(const char* piece, size_t length, void* user) {
  (void)user;
  ++pieces;
  fwrite(piece, 1, length, stdout);
  return 0;
}
static int stop_at_once(const char* piece, size_t length, void* user) {
  (void)piece;
  (void)length;
  ++*(int*)user;
  return 1;
}
static void must(int status, const char* what) {
  if (status == INTAGLIO_OK) return;
  printf("%s: status %d: %s\n", what, status, intaglio_last_error());
  exit(1);
}
static void refused(int status, int expected, const char* what) {
  printf("%s: %s: %s\n", what, status == expected ? "refused" : "NOT REFUSED", intaglio_last_error());
}

int main(int count, char** arguments) {
  intaglio_model_options options;
  intaglio_generate_options how;
  intaglio_model* model = NULL;
  intaglio_stream* stream = NULL;
  intaglio_result result;
  intaglio_message turn;
  const char *prompt = "Once upon a time", *piece;
  int ids[64], stops = 0, status;
  size_t used = 2, length = 0, i;
  char text[256];
  float *logits, *vector;

  if (count != 2) return 2;
  printf("version %s, interface %u\n", intaglio_version_text(), intaglio_c_version());
  refused(intaglio_model_open("/no/such/model.gguf", NULL, &model), INTAGLIO_BAD_FILE, "no file");
  refused(intaglio_model_open(NULL, NULL, &model), INTAGLIO_BAD_ARGUMENT, "no path");
  refused(intaglio_tokenize(NULL, prompt, 4, 0, ids, &used), INTAGLIO_BAD_ARGUMENT, "no model");
  intaglio_model_options_init(&options);
  options.device = "no such device";
  status = intaglio_model_open(arguments[1], &options, &model);
  printf("no device: %s\n", status == INTAGLIO_DEVICE_ERROR && strstr(intaglio_last_error(), "no such device")
                              ? "refused"
                              : "NOT REFUSED");
  options.device = NULL;
  options.context = 1000000;
  refused(intaglio_model_open(arguments[1], &options, &model), INTAGLIO_BAD_ARGUMENT, "context");
  options.context = 0;
  must(intaglio_model_open(arguments[1], &options, &model), "open");
  printf("context %u, vocabulary %u, width %u\n", intaglio_model_context(model), intaglio_model_vocab_size(model),
         intaglio_model_hidden_size(model));

  refused(intaglio_tokenize(model, prompt, strlen(prompt), 1, ids, &used), INTAGLIO_NO_ROOM, "two ids");
  printf("needs %u\n", (unsigned)used);
  used = 64;
  must(intaglio_tokenize(model, prompt, strlen(prompt), 1, ids, &used), "tokenize");
  length = sizeof text;
  must(intaglio_detokenize(model, ids, used, text, &length), "detokenize");
  printf("%u tokens, text '%.*s'\n", (unsigned)used, (int)length, text);

  intaglio_generate_options_init(&how);
  how.max_tokens = 8;
  memset(&result, 0, sizeof result);
  result.size = sizeof result;
  must(intaglio_generate(model, ids, used, &how, take, NULL, &result), "generate");
  printf("\n%u tokens, finish %d, some pieces %s\n", result.generated_tokens, result.finish, pieces > 1 ? "yes" : "no");
  must(intaglio_stream_open(model, ids, used, &how, &stream), "stream");
  refused(intaglio_reset(model), INTAGLIO_BAD_ARGUMENT, "a call while a stream runs");
  while ((status = intaglio_stream_next(stream, &piece, &length)) == INTAGLIO_OK) fwrite(piece, 1, length, stdout);
  printf("\nended with %d\n", status);
  must(intaglio_stream_result(stream, &result), "result");
  intaglio_stream_close(stream);
  printf("cached %u\n", result.cached_tokens);
  must(intaglio_generate(model, ids, used, &how, stop_at_once, &stops, NULL), "stop");
  printf("stopped after %d piece\n", stops);
  how.temperature = -1;
  refused(intaglio_generate(model, ids, used, &how, NULL, NULL, NULL), INTAGLIO_BAD_ARGUMENT, "temperature");

  turn.role = "user";
  turn.content = "Tell me a story.";
  used = 64;
  must(intaglio_tokenize_chat(model, &turn, 1, ids, &used), "chat");
  printf("conversation of %u tokens\n", (unsigned)used);
  logits = (float*)malloc(used * intaglio_model_vocab_size(model) * sizeof(float));
  must(intaglio_reset(model), "reset");
  must(intaglio_logits(model, ids, used, logits, used * intaglio_model_vocab_size(model)), "logits");
  printf("position %u\n", intaglio_model_position(model));
  refused(intaglio_logits(model, ids, used, logits, 1), INTAGLIO_NO_ROOM, "logits");
  vector = (float*)malloc(intaglio_model_hidden_size(model) * sizeof(float));
  must(intaglio_embed(model, prompt, strlen(prompt), vector, intaglio_model_hidden_size(model)), "embed");
  {
    double sum = 0;
    for (i = 0; i < intaglio_model_hidden_size(model); ++i) sum += (double)vector[i] * vector[i];
    printf("vector of length %.3f\n", sum);
  }
  free(logits);
  free(vector);
  intaglio_model_close(model);
  intaglio_model_close(NULL);
  return 0;
}
