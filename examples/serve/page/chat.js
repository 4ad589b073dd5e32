// The chat page: conversations in the browser's own storage, answers streamed from the server that served the page.
'use strict';
const $ = id => document.getElementById(id);
const store = { settings: 'intaglio.settings', theme: 'intaglio.theme' };
let chats = [], current = null, healthy = false, walks = false, model = '', models = [], contexts = {};
const runs = new Map();  // what stops the answer that is under way, by conversation
const running = () => runs.get(current);

function read(key, otherwise) {
  try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
}
function write(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { trouble('This browser keeps no more settings.'); }
}
// One after the other: each writer has read what the one before has written.
let saving = Promise.resolve();
function save(chat = current) {
  chats.sort((a, b) => b.touched - a.touched);
  return saving = saving.then(async () => {
    if (!chats.includes(chat)) return;
    const other = await kept.put(chat);
    if (other) { chats.push(other); show(); }
  }).catch(problem => trouble('This browser keeps no more conversations (' + problem.message + '): export and delete some.'));
}
// Another tab has written: its record replaces ours, unless an answer comes into ours.
function written(id, record) {
  const at = chats.findIndex(each => each.id === id);
  if (at >= 0 && runs.has(chats[at])) return;
  if (!record) {
    if (at < 0) return;
    const [old] = chats.splice(at, 1);
    if (old === current) begin();
  } else if (at < 0) chats.push(record);
  else {
    if ((record.revision || 0) <= (chats[at].revision || 0)) return;
    if (chats[at] === current) current = record;
    chats[at] = record;
  }
  chats.sort((a, b) => b.touched - a.touched);
  if (!$('log').querySelector('.edit')) show();
}
function element(name, properties = {}, ...inside) {
  const out = Object.assign(document.createElement(name), properties);
  out.append(...inside);
  return out;
}
function trouble(text) {
  $('trouble').hidden = !text;
  $('trouble').textContent = text || '';
}

// Server ------------------------------------------------------------------------------------------
async function health() {
  let next = 3000;
  try {
    const reply = await fetch('/health', { cache: 'no-store' }), found = await reply.json();
    if (!healthy && reply.ok) trouble('');
    healthy = reply.ok;
    if (found.models) await list_models(found);
    else { model = found.model || model; contexts[model] = found.context; }
    if (walks !== !!found.walk) { walks = !!found.walk; if (!running()) show(); }
    if (model) $('model').textContent = model;
    $('state').textContent = found.models ? found.models.filter(each => each.status === 'loaded').length + ' of ' + found.models.length + ' models loaded' : found.status === 'ok' ? found.device : found.status + (found.detail ? ': ' + found.detail : '');
    $('loading').hidden = found.status !== 'loading';
    $('progress').value = found.progress || 0;
    $('loading-text').textContent = 'The model is being loaded: ' + Math.round(100 * (found.progress || 0)) + ' %';
    if (found.status === 'loading') next = 200;
    if (found.status === 'failed' || found.status === 'recovering') trouble('The server says: ' + (found.detail || found.status));
  } catch {
    healthy = false;
    $('state').textContent = 'no connection';
    trouble('The server does not answer. Trying again …');
    next = 1000;
  }
  $('send').disabled = !healthy || !!running();
  setTimeout(health, next);
}
// A server with a folder of models: the conversation says which one answers.
async function list_models(found) {
  for (const each of found.models) contexts[each.model] = each.context || contexts[each.model];
  const names = found.models.map(each => each.model);
  if (names.join('\n') === models.join('\n')) return;
  models = names;
  $('models').replaceChildren(...names.map(each => element('option', { value: each, textContent: each })));
  $('models').hidden = false;
  $('model').hidden = true;
  pick();
}
function pick() {
  if (!models.length) return;
  model = models.includes(current?.model) ? current.model : models.includes(read('intaglio.model')) ? read('intaglio.model') : models[0];
  $('models').value = model;
}

function settings() {
  const out = {}, form = new FormData($('settings'));
  for (const [name, value] of form) if (value !== '' && name !== 'system') out[name] = Number(value);
  return out;
}

// What the model is told of a conversation.
const fence = text => '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(each => each[0].length + 1)));
const with_files = message => message.content + (message.files || []).map(each => '\n\nFile ' + each.name + ':\n' + fence(each.text) + '\n' + each.text + '\n' + fence(each.text)).join('');
function told(chat, end) {
  const out = chat.messages.slice(0, end).map(each => ({ role: each.role, content: with_files(each) }));
  if (chat.system?.trim()) out.unshift({ role: 'system', content: chat.system.trim() });
  return out;
}

// Turns that were there before an edit or another answer are kept beside those that are shown: chat.branches has, by the message in front of them, the
// lists of messages that follow it; the one that is shown is in chat.messages, and null there.
const fresh = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
const before = (chat, at) => at === 0 ? 'root' : chat.messages[at - 1].id ||= fresh();
function branch(chat, at, following) {
  const old = chat.messages.splice(at, chat.messages.length, ...following), from = before(chat, at);
  if (!old.some(each => each.content)) return;
  const all = (chat.branches ||= {})[from] ||= { lists: [null], shown: 0 };
  all.lists[all.shown] = old;
  all.shown = all.lists.push(null) - 1;
}
function turn_to(chat, at, which) {
  const all = chat.branches[before(chat, at)];
  all.lists[all.shown] = chat.messages.splice(at, chat.messages.length, ...all.lists[which]);
  all.lists[which] = null;
  all.shown = which;
  chat.touched = Date.now();
  save();
  show();
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
  const message = goes_on ? chat.messages[at] : { role: 'assistant', id: fresh(), content: '' };
  if (!goes_on) branch(chat, at, [message]);
  for (const each of ['finish', 'problem', 'full', 'left_out']) delete message[each];
  message.open = true;
  if (models.length) chat.model = model;
  show();
  const asked = told(chat, at), begun = !!message.content;
  if (begun) asked.push({ role: 'assistant', content: message.content });
  const start = performance.now();
  let first = 0, tokens = 0, saved = start;
  const numbers = () => {
    const seconds = (performance.now() - first) / 1000, speed = first && tokens > 1 && seconds > 0.02 ? (tokens - 1) / seconds : 0;
    message.stats = { first_ms: Math.round((first || performance.now()) - start), tokens, speed: Math.round(speed * 10) / 10 };
    if (chat === current) figures(message.stats);
  };
  try {
    const reply = await fetch('/v1/chat/completions', {
      method: 'POST', signal: stop.signal, headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        messages: asked, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true }, ...settings(),
        ...(begun ? { continue_final_message: true } : {}), ...(chat.model ? { model: chat.model } : {}), ...(chat.truncate ? { truncation: 'auto' } : {}),
      }),
    });
    if (!reply.ok) {
      const { error } = await reply.json();
      message.full = error.code === 'context_length_exceeded';
      throw new Error(error.message);
    }
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let ended = false;
    for (let rest = ''; ;) {
      const { value, done } = await reader.read();
      if (done) break;
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const each of events) {
        if (!each.startsWith('data: ')) continue;
        if (each === 'data: [DONE]') { ended = true; continue; }
        const told = JSON.parse(each.slice(6));
        if (told.error) throw new Error(told.error.message);
        if (told.usage) {
          tokens = told.usage.completion_tokens;
          message.used = told.usage.prompt_tokens + tokens;
          message.left_out = told.usage.prompt_tokens_details?.truncated_messages || 0;
        }
        const choice = told.choices[0];
        if (choice?.delta.content || choice?.delta.reasoning_content) first ||= performance.now();
        if (choice?.delta.reasoning_content) message.thought = (message.thought || '') + choice.delta.reasoning_content;
        if (choice?.delta.content) message.content += choice.delta.content;
        if (choice?.finish_reason) message.finish = choice.finish_reason;
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
// What a page that went away has left: an answer that no tab writes is gone on with.
function go_on(chat) {
  const at = chat.messages.length - 1;
  if (chat.messages[at]?.open && !runs.has(chat)) answer(chat, at, true);
}

function figures(of) {
  $('first').textContent = of ? 'first token ' + of.first_ms + ' ms' : '–';
  $('speed').textContent = of ? of.speed + ' tokens/s' : '–';
  $('count').textContent = of ? of.tokens + ' tokens' : '–';
  const used = [...current.messages].reverse().find(each => each.used)?.used || 0, most = contexts[current.model || model] || 0, share = most ? used / most : 0;
  $('context').hidden = !most;
  $('context').querySelector('meter').value = share;
  $('context').querySelector('span').textContent = 'context ' + used + ' of ' + most;
  $('room').hidden = !(share > 0.8) || !!current.truncate;
  $('room').querySelector('span').textContent = 'This conversation fills ' + Math.round(100 * share) + ' % of the model\'s context: about ' + (most - used) + ' tokens are left.';
}

// Conversations -----------------------------------------------------------------------------------
function begin() {
  current = { id: Date.now() + '-' + Math.random().toString(36).slice(2), title: 'New chat', messages: [], touched: Date.now() };
  show();
  $('input').focus();
}
function open(chat) {
  current = chat;
  close_menu();
  show();
  go_on(chat);
}
let attached = [];
function send(text) {
  if ((!text.trim() && !attached.length) || running()) return;
  if (!chats.includes(current)) chats.unshift(current);
  if (current.messages.length === 0) current.title = (text.trim() || attached[0].name).slice(0, 60);
  current.messages.push({ role: 'user', id: fresh(), content: text, ...(attached.length ? { files: attached } : {}) });
  attached = [];
  show_attached();
  current.touched = Date.now();
  save();
  answer(current, current.messages.length);
}

// Files of text that go along with a message.
const most_of_file = 1 << 20;
async function attach(files) {
  for (const file of files) {
    const refuse = why => trouble(file.name + ': ' + why);
    if (file.size > most_of_file) { refuse('expected at most 1 MiB, found ' + file.size + ' bytes'); continue; }
    const bytes = new Uint8Array(await file.arrayBuffer());
    try {
      if (bytes.includes(0) || String.fromCharCode(...bytes.slice(0, 5)) === '%PDF-') throw new Error();
      attached.push({ name: file.name, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n') });
    } catch { refuse('expected a file of text in UTF-8, found another kind: paste its text instead'); }
  }
  show_attached();
}
function show_attached() {
  $('attached').hidden = !attached.length;
  $('attached').replaceChildren(...attached.map((each, i) => element('li', {}, each.name + ' ', element('button', { type: 'button', textContent: '×', ariaLabel: 'Leave out ' + each.name, onclick: () => { attached.splice(i, 1); show_attached(); } }))));
}

function rename(chat, item) {
  const name = element('input', { value: chat.title, ariaLabel: 'Name of the conversation', maxLength: 80 });
  let done = false;
  const end = keep => {
    if (done) return;
    done = true;
    if (keep && name.value.trim()) {
      chat.title = name.value.trim();
      chat.touched = Date.now();
      save(chat);
    }
    show();
  };
  name.onkeydown = event => {
    if (event.key === 'Enter') end(true);
    if (event.key === 'Escape') { event.stopPropagation(); end(false); }
  };
  name.onblur = () => end(true);
  item.replaceChildren(name);
  name.select();
}
let forget = 0;
function remove(chat) {
  runs.get(chat)?.abort();
  chats = chats.filter(each => each !== chat);
  saving = saving.then(() => kept.remove(chat.id)).catch(problem => trouble('It is still kept: ' + problem.message));
  if (chat === current) begin(); else show();
  $('undo').hidden = false;
  $('undo').querySelector('span').textContent = 'Deleted: ' + chat.title;
  $('undo').querySelector('button').onclick = () => {
    chats.push(chat);
    chat.revision = 0;  // as if it were new
    $('undo').hidden = true;
    save(chat);
    open(chat);
  };
  clearTimeout(forget);
  forget = setTimeout(() => { $('undo').hidden = true; }, 15000);
}

function tools(at) {
  const message = current.messages[at], button = (text, label, action) => element('button', { type: 'button', textContent: text, ariaLabel: label, onclick: action });
  const out = element('div', { className: 'tools' });
  if (running()) return out;
  const all = current.branches?.[before(current, at)];
  if (all && all.lists.length > 1) {
    const go = (step, text, label) => {
      const made = button(text, label + ' version of message ' + (at + 1), () => turn_to(current, at, all.shown + step));
      made.disabled = !(all.shown + step in all.lists);
      return made;
    };
    out.append(go(-1, '‹', 'Earlier'), element('span', { textContent: (all.shown + 1) + ' of ' + all.lists.length }), go(1, '›', 'Later'));
  }
  if (message.role === 'user') out.append(button('Edit', 'Edit message ' + (at + 1), () => edit(at)));
  else {
    out.append(button('Regenerate', 'Regenerate answer ' + (at + 1), () => answer(current, at)));
    out.append(button('Copy', 'Copy answer ' + (at + 1), () => navigator.clipboard?.writeText(message.content)));
    if (walks && message.content) out.append(button('Trace', 'Trace answer ' + (at + 1), () => trace(at)));
    const end = { length: 'cut at the longest length', stopped: 'stopped', error: 'not finished' }[message.finish];
    if (message.finish === 'stopped' || message.finish === 'error' || message.finish === 'length')
      if (message.content && at === current.messages.length - 1) out.append(button('Continue', 'Continue answer ' + (at + 1), () => answer(current, at, true)));
    if (end) out.append(element('span', { textContent: end }));
    if (message.left_out) out.append(element('span', { textContent: 'without the oldest ' + message.left_out + ' messages' }));
  }
  return out;
}
// Why there is no answer; it stays until the answer is asked for again.
function problem_of(at) {
  const message = current.messages[at], out = element('div', { className: 'problem' });
  if (!message.problem) return [];
  out.append(element('p', { textContent: 'No answer: ' + message.problem }), element('button', { type: 'button', textContent: 'Try again', onclick: () => answer(current, at) }));
  if (message.full) out.append(' ', element('button', { type: 'button', textContent: 'Leave the oldest turns out', onclick: () => { current.truncate = true; answer(current, at); } }));
  return [out];
}
function edit(at) {
  const turn = $('log').children[at], area = element('textarea', { value: current.messages[at].content, rows: 3, ariaLabel: 'Edited message' });
  const done = () => {
    if (!area.value.trim()) return;
    branch(current, at, [{ ...current.messages[at], id: fresh(), content: area.value }]);
    answer(current, at + 1);
  };
  area.onkeydown = event => {
    if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); done(); }
    if (event.key === 'Escape') { event.stopPropagation(); show(); }
  };
  turn.replaceChildren(element('div', { className: 'edit' }, area,
    element('div', { className: 'tools' }, element('button', { type: 'button', textContent: 'Send', onclick: done }), element('button', { type: 'button', textContent: 'Cancel', onclick: show }))));
  area.focus();
}

function draw(at) {
  const turn = $('log').children[at], log = $('log'), message = current.messages[at];
  if (!turn || !message) return;
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 60, fold = turn.querySelector('.thought');
  fold.hidden = !message.thought;
  fold.querySelector('summary').textContent = message.content ? 'Thoughts' : 'Thinking …';
  fold.querySelector('p').textContent = message.thought || '';
  turn.querySelector('.text').replaceChildren(markdown(message.content));
  if (at_end) log.scrollTop = log.scrollHeight;
}
const files_of = message => (message.files || []).map(each => element('details', { className: 'file' }, element('summary', { textContent: each.name }), element('pre', { tabIndex: 0, textContent: each.text })));
const prompts = ['Tell me a story about a brave mouse.', 'Explain what a compiler does, in three sentences.', 'Write a haiku about rain.'];
function show() {
  pick();
  $('settings').elements.system.value = current.system || '';
  $('chats').replaceChildren(...chats.map(chat => {
    const item = element('li', {}, element('button', { type: 'button', textContent: chat.title, onclick: () => open(chat) }),
      element('button', { type: 'button', textContent: '✎', ariaLabel: 'Rename ' + chat.title, onclick: () => rename(chat, item) }),
      element('button', { type: 'button', textContent: '×', ariaLabel: 'Delete ' + chat.title, onclick: () => remove(chat) }));
    if (chat === current) item.setAttribute('aria-current', 'true');
    return item;
  }));
  $('log').replaceChildren(...current.messages.map((message, at) => element('section', { className: 'turn ' + message.role },
    element('h2', { textContent: message.role === 'user' ? 'You' : current.model || model || 'Model' }), ...(message.role === 'user' ? [element('div', { className: 'text', textContent: message.content }), ...files_of(message)]
      : [element('details', { className: 'thought', hidden: !message.thought }, element('summary', { textContent: message.content || !running() ? 'Thoughts' : 'Thinking …' }), element('p', { textContent: message.thought || '' })),
        element('div', { className: 'text' }, markdown(message.content)), ...problem_of(at)]), tools(at))));
  if (!current.messages.length) $('log').append(element('div', { className: 'empty' }, element('p', { textContent: 'Ask something, or try one of these:' }),
    ...prompts.map(each => element('button', { type: 'button', textContent: each, onclick: () => { if (healthy) send(each); } }))));
  $('log').scrollTop = $('log').scrollHeight;
  figures([...current.messages].reverse().find(each => each.stats)?.stats);
  $('send').hidden = !!running();
  $('send').disabled = !healthy;
  $('stop').hidden = !running();
  $('log').setAttribute('aria-busy', String(!!running()));
}

// Walk trace --------------------------------------------------------------------------------------
async function trace(at) {
  const map = $('trace-map'), detail = $('trace-detail'), asked = told(current, at);
  map.replaceChildren('The answer is walked on the CPU …');
  detail.replaceChildren();
  $('trace').showModal();
  try {
    const reply = await fetch('/v1/trace', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ messages: asked, reply: current.messages[at].content }) });
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error.message);
    const tokens = found.tokens.slice(found.reply_from), layers = tokens[0].added_by_layer.length, most = Math.max(1e-9, ...tokens.flatMap(each => each.added_by_layer));
    const promoted = new Map(found.promotes.map(each => [each.layer + ' ' + each.feature, each.tokens]));
    const rows = [];
    for (let layer = layers - 1; layer >= 0; --layer) {
      rows.push(element('span', { className: 'layer', textContent: 'layer ' + layer }));
      tokens.forEach((token, i) => {
        const tell = () => detail.replaceChildren(element('b', { textContent: 'layer ' + layer + ', token ' + JSON.stringify(token.piece) }), element('ul', {}, ...found.fired
          .filter(each => each.token === i + found.reply_from && each.layer === layer)
          .map(each => element('li', { textContent: 'feature ' + each.feature + ' (gate ' + each.score.toFixed(2) + ', adds ' + each.contribution.toFixed(2) + ') promotes ' + (promoted.get(layer + ' ' + each.feature) || []).map(piece => JSON.stringify(piece)).join(' ') }))));
        const cell = element('button', { type: 'button', className: 'cell', ariaLabel: 'layer ' + layer + ', token ' + (i + 1) + ' ' + token.piece, onfocus: tell, onpointerenter: tell });
        cell.style.setProperty('--v', Math.sqrt(token.added_by_layer[layer] / most).toFixed(3));
        rows.push(cell);
      });
    }
    rows.push(element('span', { className: 'layer' }), ...tokens.map(token => element('span', { className: 'token', textContent: token.piece })));
    map.style.gridTemplateColumns = 'auto repeat(' + tokens.length + ', 24px)';
    map.replaceChildren(...rows);
  } catch (problem) {
    map.replaceChildren('No trace: ' + problem.message);
  }
}

// Time by kernel, of what has been timed since the last look --------------------------------------
let seen = new Map();
async function times() {
  if (!$('times').open) return;
  try {
    const lines = (await (await fetch('/metrics', { cache: 'no-store' })).text()).matchAll(/^intaglio_kernel_seconds_total\{pass="(\w+)",kernel="(\w+)"\} (\S+)$/gm);
    const now = new Map([...lines].map(([, pass, kernel, seconds]) => [kernel + (pass === 'prefill' ? ' (prompts)' : ''), Number(seconds)]));
    const since = [...now].map(([name, seconds]) => [name, seconds - (seconds >= (seen.get(name) || 0) ? seen.get(name) || 0 : 0)]).filter(([, seconds]) => seconds > 0).sort((a, b) => b[1] - a[1]);
    if (since.length) {
      const all = since.reduce((sum, [, seconds]) => sum + seconds, 0);
      $('times').querySelector('ul').replaceChildren(...since.slice(0, 8).map(([name, seconds]) => {
        const item = element('li', { textContent: name + ' ' + (100 * seconds / all).toFixed(0) + ' %' });
        item.style.setProperty('--share', (100 * seconds / all).toFixed(1) + '%');
        return item;
      }));
      seen = now;
    }
  } catch { /* the health check tells */ }
  setTimeout(times, 2000);
}
$('times').ontoggle = times;

// Controls ----------------------------------------------------------------------------------------
function close_menu() {
  $('side').classList.remove('open');
  $('menu').setAttribute('aria-expanded', 'false');
}
$('menu').onclick = () => $('menu').setAttribute('aria-expanded', String($('side').classList.toggle('open')));
$('new').onclick = () => { close_menu(); begin(); };
$('ask').onsubmit = event => {
  event.preventDefault();
  if (!healthy || running()) return;
  const text = $('input').value;
  $('input').value = '';
  send(text);
};
$('input').onkeydown = event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); $('ask').requestSubmit(); }
};
$('stop').onclick = () => running()?.abort();
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') { running()?.abort(); close_menu(); }
  if (event.altKey && event.key.toLowerCase() === 'n') { event.preventDefault(); $('new').click(); }
});
$('settings-open').onclick = () => {
  $('settings').hidden = !$('settings').hidden;
  $('settings-open').setAttribute('aria-expanded', String(!$('settings').hidden));
};
$('settings').onsubmit = event => event.preventDefault();
$('settings').oninput = event => {
  if (event.target.name === 'system') {
    current.system = event.target.value;
    save();
    return;
  }
  const { system, ...rest } = Object.fromEntries(new FormData($('settings')));
  write(store.settings, rest);
};
$('models').onchange = () => {
  model = current.model = $('models').value;
  write('intaglio.model', model);
  save();
  show();
};
$('attach').onclick = () => $('attach-files').click();
$('attach-files').onchange = async event => { await attach([...event.target.files]); event.target.value = ''; };
document.addEventListener('dragover', event => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
document.addEventListener('drop', event => { if (event.dataTransfer?.files.length) { event.preventDefault(); attach([...event.dataTransfer.files]); } });
$('room-cut').onclick = () => { current.truncate = true; save(); show(); };
$('room-new').onclick = () => $('new').click();
$('settings').onreset = () => localStorage.removeItem(store.settings);
$('plan-open').onclick = () => {
  $('plan').querySelector('iframe').src = '/plan' + (models.length ? '?model=' + encodeURIComponent(model) : '');
  $('plan').showModal();
};
$('theme').onclick = () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  write(store.theme, document.documentElement.dataset.theme);
};
$('export').onclick = () => {
  const link = element('a', { href: URL.createObjectURL(new Blob([JSON.stringify({ intaglio_chats: 1, chats }, null, 1)], { type: 'application/json' })), download: 'intaglio-chats.json' });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
$('import').onclick = () => $('import-file').click();
$('import-file').onchange = async event => {
  try {
    const found = JSON.parse(await event.target.files[0].text());
    if (found.intaglio_chats !== 1 || !Array.isArray(found.chats)) throw new Error('another format');
    const text = each => ({ role: each.role === 'user' ? 'user' : 'assistant', content: String(each.content), ...(each.thought ? { thought: String(each.thought) } : {}),
      ...(each.files?.length ? { files: each.files.map(file => ({ name: String(file.name), text: String(file.text) })) } : {}) });
    for (const each of found.chats)
      if (!chats.some(known => known.id === each.id)) {
        chats.push({ id: String(each.id), title: String(each.title), touched: Number(each.touched), messages: each.messages.map(text), ...(each.system ? { system: String(each.system) } : {}) });
        save(chats.at(-1));
      }
    show();
  } catch (problem) {
    trouble('The file cannot be imported: ' + problem.message);
  }
  event.target.value = '';
};

const theme = read(store.theme, null), chosen = read(store.settings, {});
if (theme) document.documentElement.dataset.theme = theme;
for (const [name, value] of Object.entries(chosen)) if ($('settings').elements[name]) $('settings').elements[name].value = value;
kept.open(written).then(({ list, broken, problem }) => {
  chats = list;
  if (problem) trouble('This browser keeps no conversations (' + problem.message + '): export those that are to stay.');
  if (broken) trouble(broken + ' conversations could not be read: they are left as they are, and not shown.');
  if (chats.length) open(chats[0]); else begin();
  health();
});
