// Answers: streamed from the server into a conversation, stopped, and gone on with.
'use strict';

const texts = ['system', 'tools'];  // settings that a conversation has
function tools_of(chat) {
  if (!chat.tools?.trim()) return {};
  const tools = json_of(chat.tools);
  if (!Array.isArray(tools)) throw new Error('tools: expected a JSON list, found another text');
  return {tools};
}
function settings() {
  const out = {}, form = new FormData($('settings'));
  for (const [name, value] of form)
    if (value !== '' && !texts.includes(name)) out[name] = Number(value);
  return out;
}

// One answer into messages[at]; what is there is kept as another branch, or gone on with.
async function answer(chat, at, goes_on = false) {
  if (runs.has(chat)) return;
  const stop = new AbortController();
  runs.set(chat, stop);
  show();
  const free = await kept.alone(chat.id, () => answer_alone(chat, at, goes_on, stop));
  runs.delete(chat);
  if (!free) trouble('Another tab answers in this conversation.');
  show();
  if (chat === current) $('input').focus();
}
async function answer_alone(chat, at, goes_on, stop) {
  const message = goes_on ? chat.messages[at] : {role: 'assistant', id: fresh(), content: ''};
  if (!goes_on) branch(chat, at, [message]);
  for (const each of ['finish', 'problem', 'full', 'left_out', 'tool_calls', 'results']) delete message[each];
  message.open = true;
  if (models.length) chat.model = model_of(chat);
  health_soon();
  show();
  save(chat);  // what goes away from here on is gone on with
  const asked = request_messages(chat, at), begun = !!message.content;
  if (begun) asked.push({role: 'assistant', content: message.content});
  const start = performance.now();
  let first = 0, tokens = 0, saved = 0;
  const numbers = () => {
    const seconds = (performance.now() - first) / 1000,
          speed = first && tokens > 1 && seconds > 0.02 ? (tokens - 1) / seconds : 0;
    message.stats = {
      first_ms: Math.round((first || performance.now()) - start),
      tokens,
      speed: Math.round(speed * 10) / 10
    };
    if (chat === current) figures(message.stats);
  };
  try {
    const reply = await ask_server('/v1/chat/completions', {
      method: 'POST',
      signal: stop.signal,
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({
        messages: asked,
        stream: true,
        stream_options: {include_usage: true, continuous_usage_stats: true},
        ...settings(),
        ...tools_of(chat),
        ...(begun ? {continue_final_message: true} : {}),
        ...(models.length ? {model: chat.model} : {}),
        ...(chat.truncate ? {truncation: 'auto'} : {}),
      }),
    });
    if (!reply.ok) {
      const {error} = await reply.json();
      message.full = error.code === 'context_length_exceeded';
      throw new Error(error.message);
    }
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let ended = false;
    for (let rest = '';;) {
      const {value, done} = await reader.read();
      if (done) break;
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const each of events) {
        if (!each.startsWith('data: ')) continue;
        if (each === 'data: [DONE]') {
          ended = true;
          continue;
        }
        const chunk = JSON.parse(each.slice(6));
        if (chunk.error) throw new Error(chunk.error.message);
        if (chunk.model) message.model = chunk.model;
        if (chunk.usage) {
          tokens = chunk.usage.completion_tokens;
          message.used = chunk.usage.prompt_tokens + tokens;
          message.left_out = chunk.usage.prompt_tokens_details?.truncated_messages || 0;
        }
        if (!chunk.choices[0]) continue;
        const {delta, finish_reason} = chunk.choices[0];
        if (delta.content || delta.reasoning_content || delta.tool_calls) first ||= performance.now();
        if (delta.reasoning_content) message.thought = (message.thought || '') + delta.reasoning_content;
        if (delta.content) message.content += delta.content;
        for (const part of delta.tool_calls || []) add_call(message, part);
        if (finish_reason) message.finish = finish_reason;
      }
      numbers();
      if (chat === current) draw(at);
      if (performance.now() - saved > 500) saved = performance.now(), save(chat);
    }
    if (!ended) throw new Error('the answer was cut off');
    if (chat === current) $('said').textContent = message.content;
  } catch (problem) {
    if (stop.signal.aborted) message.finish = 'stopped';
    else {
      message.finish = 'error';
      message.problem = problem.message;
      if (problem instanceof TypeError) healthy = false;  // no connection
    }
  }
  delete message.open;
  chat.touched = Date.now();
  await save(chat);
}
// A call comes in parts: its name with the first one, its arguments bit by bit.
function add_call(message, {index, id, function: part}) {
  const calls = message.tool_calls ||= [];
  if (!calls[index]) calls[index] = {id, type: 'function', function: {name: '', arguments: ''}};
  calls[index].function.name += part?.name || '';
  calls[index].function.arguments += part?.arguments || '';
}
// What a page that went away has left: an answer that no tab writes is gone on with, once the page knows the server's
// models.
async function go_on(chat) {
  await first_health;
  const at = chat.messages.length - 1;
  if (chats.includes(chat) && chat.messages[at]?.open && !runs.has(chat)) answer(chat, at, true);
}
