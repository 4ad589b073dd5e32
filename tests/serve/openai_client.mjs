// SPDX-License-Identifier: MIT
// OpenAI's own client for JavaScript, unmodified, against intaglio-serve.
import {check, end, packages, start} from './server.mjs';
const OpenAI = packages('openai').default ?? packages('openai');

const server = await start(), client = new OpenAI({baseURL: server.url + '/v1', apiKey: 'none', maxRetries: 0});
const model = (await client.models.list()).data[0].id,
      messages = [{role: 'user', content: 'Tell me a story about a brave mouse.'}];
const whole = await client.chat.completions.create({model, messages, temperature: 0, max_tokens: 50});
const text = whole.choices[0].message.content;
check(text.startsWith('Once upon a time, there was a brave mouse named Pepper.'), `README's story, found ${text}`);
check(whole.usage.completion_tokens === 50 && whole.choices[0].finish_reason === 'length', 'its end and counts');
let streamed = '', pieces = 0, usage;
for await (const each of await client.chat.completions.create(
    {model, messages, temperature: 0, max_tokens: 50, stream: true, stream_options: {include_usage: true}})) {
  streamed += each.choices[0]?.delta.content ?? '';
  usage = each.usage ?? usage;
  ++pieces;
}
check(
    streamed === text && pieces > 5 && usage.completion_tokens === 50,
    `the same as a stream: ${pieces} pieces, ${streamed}`);
const entries = (await client.chat.completions.create(
                     {model, messages, temperature: 0, max_tokens: 5, logprobs: true, top_logprobs: 2}))
                    .choices[0]
                    .logprobs.content;
check(
    entries.length === 5 && entries.every(each => each.logprob <= 0 && each.top_logprobs.length === 2),
    'log probabilities');
const schema = {
  type: 'object',
  properties: {name: {type: 'string', maxLength: 8}, brave: {type: 'boolean'}},
  required: ['name', 'brave'],
  additionalProperties: false
};
const form = JSON.parse((await client.chat.completions.create({
                          model,
                          messages,
                          temperature: 1.5,
                          seed: 4,
                          max_tokens: 60,
                          response_format: {type: 'json_schema', json_schema: {name: 'mouse', schema, strict: true}}
                        }))
                            .choices[0]
                            .message.content);
check(typeof form.name === 'string' && typeof form.brave === 'boolean', `a form, found ${JSON.stringify(form)}`);
check(
    (await client.completions.create({model, prompt: 'Once upon a', max_tokens: 1, temperature: 0})).choices[0].text ===
        ' time',
    'a text');
for (const [kind, call] of [
         [OpenAI.NotFoundError, () => client.chat.completions.create({model: 'gpt-9', messages})],
         [OpenAI.BadRequestError, () => client.chat.completions.create({model, messages, temperature: 9})],
]) {
  const error = await call().then(() => null, problem => problem);
  check(error instanceof kind && error.message.length > 10, `${kind.name}, found ${error}`);
}
const stop = new AbortController(),
      left =
          await client.chat.completions.create({model, messages, temperature: 1, stream: true}, {signal: stop.signal});
for await (const _ of left) {
  stop.abort();
  break;
}
check(
    (await client.chat.completions.create({model, messages, temperature: 0, max_tokens: 50}))
            .choices[0]
            .message.content === text,
    'the same text after a stream that was left');
check(await server.stop() === 0, 'exit code');
end('openai for JavaScript');
