// SPDX-License-Identifier: MIT
// Schemas that zod writes for ordinary objects: each is taken, and zod takes what is drawn in it.
import {check, end, packages, start} from './server.mjs';
const {z} = packages('zod');

const node = z.object({value: z.int(), get next() { return node.nullable(); }});
const schemas = {
  object: z.object({name: z.string(), age: z.number().int().min(0).max(150)}),
  integers: z.object({any: z.int(), positive: z.int().positive(), small: z.int32(), even: z.int().multipleOf(2)}),
  numbers:
      z.object({share: z.number().min(0).max(1), price: z.number().positive().multipleOf(0.01), float: z.float64()}),
  nullable: z.object({score: z.number().gte(0).lte(1).nullable(), note: z.string().nullish()}),
  strings: z.object({
    short: z.string().min(1).max(5),
    code: z.string().regex(/^[A-Z]{2}\d{3}$/),
    word: z.string().startsWith('a'),
    end: z.string().endsWith('z'),
    has: z.string().includes('-')
  }),
  dates: z.object({day: z.iso.date(), at: z.iso.datetime(), clock: z.iso.time()}),
  names: z.object({id: z.uuid(), mail: z.email(), site: z.url()}),
  addresses: z.object({four: z.ipv4(), six: z.ipv6(), data: z.base64()}),
  enums: z.object({colour: z.enum(['red', 'green']), literal: z.literal('x'), several: z.literal(['a', 1, null])}),
  arrays: z.object({
    words: z.array(z.string()).min(1).max(3),
    exact: z.array(z.boolean()).length(2),
    pair: z.tuple([z.string(), z.int()])
  }),
  rest: z.tuple([z.string()], z.int()),
  records: z.object({counts: z.record(z.string(), z.int()), by: z.record(z.enum(['a', 'b']), z.int())}),
  union: z.object({value: z.union([z.string(), z.int(), z.null()])}),
  discriminated: z.discriminatedUnion(
      'kind',
      [z.object({kind: z.literal('cat'), lives: z.int()}), z.object({kind: z.literal('dog'), name: z.string()})]),
  intersection: z.intersection(z.object({a: z.string()}), z.object({b: z.int()})),
  recursive: node,
  defaults: z.object({a: z.string().default('x'), b: z.int().optional(), c: z.string().describe('a text')}),
  strict: z.strictObject({empty: z.boolean()}),
  loose: z.looseObject({id: z.int()}),
  catchall: z.object({id: z.int()}).catchall(z.string()),
  steps: z.object({steps: z.array(z.object({explanation: z.string(), output: z.string()})), final_answer: z.string()}),
  any: z.object({value: z.any(), unknown: z.unknown()}),
};

const server = await start();
let accepted = 0;
const list = Object.entries(schemas);
for (const [name, schema] of list) {
  const body = {
    messages: [{role: 'user', content: 'Tell me a story.'}],
    temperature: 1,
    seed: 1,
    max_tokens: 450,
    response_format: {type: 'json_schema', json_schema: {name, strict: true, schema: z.toJSONSchema(schema)}}
  };
  const answer = await (await fetch(server.url + '/v1/chat/completions', {
                   method: 'POST',
                   headers: {'Content-Type': 'application/json'},
                   body: JSON.stringify(body)
                 })).json();
  let problem = answer.error?.message;
  try {
    if (!problem) schema.parse(JSON.parse(answer.choices[0].message.content));
  } catch (found) { problem = answer.choices[0].message.content + ': ' + String(found.message).slice(0, 300); }
  accepted += problem ? 0 : 1;
  check(!problem, name + ': ' + problem);
}
check(await server.stop() === 0, 'exit code');
end(`zod: ${accepted} of ${list.length} schemas`);
