// SPDX-License-Identifier: MIT
// Vercel's AI SDK, unmodified, against intaglio-serve: text, stream, a form by a Zod schema, a tool.
import {check, end, packages, start} from './server.mjs';
const {generateObject, generateText, streamText, tool} = packages('ai');
const {createOpenAICompatible} = packages('@ai-sdk/openai-compatible'), {z} = packages('zod');

const server = await start();
const provider = createOpenAICompatible({
  name: 'here',
  baseURL: server.url + '/v1',
  apiKey: 'none',
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const asked = {
  model: provider('fable'),
  prompt: 'Tell me a story about a brave mouse.',
  temperature: 0,
  maxOutputTokens: 120,
  maxRetries: 0,
};
const story = 'Once upon a time, there was a brave mouse named Pepper.';
const whole = await generateText(asked);
check(whole.text.startsWith(story) && whole.usage.outputTokens > 10, `a text, found ${whole.text}`);
let streamed = '', pieces = 0;
for await (const each of streamText(asked).textStream) streamed += each, ++pieces;
check(streamed === whole.text && pieces > 5, `a stream: ${pieces} pieces, ${streamed}`);
const schema = z.object({name: z.string().max(8), age: z.number().int().min(1).max(9), brave: z.boolean()});
const form = (await generateObject({...asked, schema})).object;
check(schema.safeParse(form).success, `a form, found ${JSON.stringify(form)}`);
const inputSchema = z.object({city: z.string().max(8), unit: z.enum(['C', 'F'])});
const [call] =
    (await generateText({...asked, toolChoice: 'required', tools: {weather: tool({inputSchema})}})).toolCalls;
check(
    call.toolName === 'weather' && inputSchema.safeParse(call.input).success, `a call, found ${JSON.stringify(call)}`);
check((await server.stop()) === 0, 'exit code');
end('AI SDK');
