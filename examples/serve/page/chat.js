// The chat page: conversations in the browser's own storage, answers streamed from the server that served the page.
'use strict';
const $ = id => document.getElementById(id);
const store = { chats: 'intaglio.chats', settings: 'intaglio.settings', theme: 'intaglio.theme' };
let chats = read(store.chats, []), current = null, running = null, healthy = false, walks = false, model = '';

function read(key, otherwise) {
  try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
}
function write(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { trouble('This browser keeps no more conversations: export and delete some.'); }
}
// Another tab may have written meanwhile: of each conversation the later one is kept, and what was deleted stays so.
const gone = new Set();
function save() {
  for (const each of read(store.chats, [])) {
    const own = chats.findIndex(known => known.id === each.id);
    if (own < 0 && !gone.has(each.id)) chats.push(each);
    else if (own >= 0 && chats[own] !== current && each.touched > chats[own].touched) chats[own] = each;
  }
  chats.sort((a, b) => b.touched - a.touched);
  write(store.chats, chats);
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

// Server ----------------------------------------------------------------------------------------------------------------------------
async function health() {
  let next = 3000;
  try {
    const reply = await fetch('/health', { cache: 'no-store' }), found = await reply.json();
    if (!healthy && reply.ok) trouble('');
    healthy = reply.ok;
    model = found.model || model;
    if (walks !== !!found.walk) { walks = !!found.walk; if (!running) show(); }
    if (model) $('model').textContent = model;
    $('state').textContent = found.status === 'ok' ? found.device : found.status + (found.detail ? ': ' + found.detail : '');
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
  $('send').disabled = !healthy || !!running;
  setTimeout(health, next);
}

function settings() {
  const out = {}, form = new FormData($('settings'));
  for (const [name, value] of form) if (value !== '' && name !== 'system') out[name] = Number(value);
  return { sampling: out, system: String(form.get('system') || '').trim() };
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

// One answer into messages[at]; what is there is kept as another branch.
async function answer(chat, at) {
  const { sampling, system } = settings(), message = { role: 'assistant', id: fresh(), content: '' }, stop = new AbortController();
  branch(chat, at, [message]);
  running = stop;
  show();
  const asked = chat.messages.slice(0, at).map(({ role, content }) => ({ role, content }));
  if (system) asked.unshift({ role: 'system', content: system });
  const start = performance.now();
  let first = 0, tokens = 0;
  const numbers = () => {
    const seconds = (performance.now() - first) / 1000, speed = first && tokens > 1 && seconds > 0 ? (tokens - 1) / seconds : 0;
    message.stats = { first_ms: Math.round((first || performance.now()) - start), tokens, speed: Math.round(speed * 10) / 10 };
    figures(message.stats);
  };
  try {
    const reply = await fetch('/v1/chat/completions', {
      method: 'POST', signal: stop.signal, headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages: asked, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true }, ...sampling }),
    });
    if (!reply.ok) throw new Error((await reply.json()).error.message);
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
        if (told.usage) tokens = told.usage.completion_tokens;
        const choice = told.choices[0];
        if (choice?.delta.content || choice?.delta.reasoning_content) first ||= performance.now();
        if (choice?.delta.reasoning_content) message.thought = (message.thought || '') + choice.delta.reasoning_content;
        if (choice?.delta.content) message.content += choice.delta.content;
        if (choice?.finish_reason) message.finish = choice.finish_reason;
      }
      numbers();
      draw(at);
    }
    if (!ended) throw new Error('the answer was cut off');
    $('said').textContent = message.content;
  } catch (problem) {
    if (stop.signal.aborted) message.finish = 'stopped';
    else {
      message.finish = 'error';
      healthy = false;
      trouble('No answer: ' + problem.message);
    }
  }
  running = null;
  chat.touched = Date.now();
  save();
  show();
  $('input').focus();
}

function figures(of) {
  $('first').textContent = of ? 'first token ' + of.first_ms + ' ms' : '–';
  $('speed').textContent = of ? of.speed + ' tokens/s' : '–';
  $('count').textContent = of ? of.tokens + ' tokens' : '–';
}

// Conversations ---------------------------------------------------------------------------------------------------------------------
function begin() {
  current = { id: Date.now() + '-' + Math.random().toString(36).slice(2), title: 'New chat', messages: [], touched: Date.now() };
  show();
  $('input').focus();
}
function open(chat) {
  running?.abort();
  current = chat;
  close_menu();
  show();
}
function send(text) {
  if (!text.trim() || running) return;
  if (!chats.includes(current)) chats.unshift(current);
  if (current.messages.length === 0) current.title = text.trim().slice(0, 60);
  current.messages.push({ role: 'user', id: fresh(), content: text });
  current.touched = Date.now();
  save();
  answer(current, current.messages.length);
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
      save();
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
  if (chat === current) running?.abort();
  gone.add(chat.id);
  chats = chats.filter(each => each !== chat);
  save();
  if (chat === current) begin(); else show();
  $('undo').hidden = false;
  $('undo').querySelector('span').textContent = 'Deleted: ' + chat.title;
  $('undo').querySelector('button').onclick = () => {
    gone.delete(chat.id);
    chats.push(chat);
    $('undo').hidden = true;
    save();
    open(chat);
  };
  clearTimeout(forget);
  forget = setTimeout(() => { $('undo').hidden = true; }, 15000);
}

function tools(at) {
  const message = current.messages[at], button = (text, label, action) => element('button', { type: 'button', textContent: text, ariaLabel: label, onclick: action });
  const out = element('div', { className: 'tools' });
  if (running) return out;
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
    if (end) out.append(element('span', { textContent: end }));
  }
  return out;
}
function edit(at) {
  const turn = $('log').children[at], area = element('textarea', { value: current.messages[at].content, rows: 3, ariaLabel: 'Edited message' });
  const done = () => {
    if (!area.value.trim()) return;
    branch(current, at, [{ role: 'user', id: fresh(), content: area.value }]);
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
function show() {
  $('chats').replaceChildren(...chats.map(chat => {
    const item = element('li', {}, element('button', { type: 'button', textContent: chat.title, onclick: () => open(chat) }),
      element('button', { type: 'button', textContent: '✎', ariaLabel: 'Rename ' + chat.title, onclick: () => rename(chat, item) }),
      element('button', { type: 'button', textContent: '×', ariaLabel: 'Delete ' + chat.title, onclick: () => remove(chat) }));
    if (chat === current) item.setAttribute('aria-current', 'true');
    return item;
  }));
  $('log').replaceChildren(...current.messages.map((message, at) => element('section', { className: 'turn ' + message.role },
    element('h2', { textContent: message.role === 'user' ? 'You' : model || 'Model' }), ...(message.role === 'user' ? [element('div', { className: 'text', textContent: message.content })]
      : [element('details', { className: 'thought', hidden: !message.thought }, element('summary', { textContent: message.content || !running ? 'Thoughts' : 'Thinking …' }), element('p', { textContent: message.thought || '' })),
        element('div', { className: 'text' }, markdown(message.content))]), tools(at))));
  $('log').scrollTop = $('log').scrollHeight;
  figures([...current.messages].reverse().find(each => each.stats)?.stats);
  $('send').hidden = !!running;
  $('send').disabled = !healthy;
  $('stop').hidden = !running;
  $('log').setAttribute('aria-busy', String(!!running));
}

// Walk trace ------------------------------------------------------------------------------------------------------------------------
async function trace(at) {
  const map = $('trace-map'), detail = $('trace-detail'), system = settings().system, asked = current.messages.slice(0, at).map(({ role, content }) => ({ role, content }));
  if (system) asked.unshift({ role: 'system', content: system });
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

// Time by kernel, of what has been timed since the last look --------------------------------------------------------------------------
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

// Controls --------------------------------------------------------------------------------------------------------------------------
function close_menu() {
  $('side').classList.remove('open');
  $('menu').setAttribute('aria-expanded', 'false');
}
$('menu').onclick = () => $('menu').setAttribute('aria-expanded', String($('side').classList.toggle('open')));
$('new').onclick = () => { running?.abort(); close_menu(); begin(); };
$('ask').onsubmit = event => {
  event.preventDefault();
  if (!healthy || running) return;
  const text = $('input').value;
  $('input').value = '';
  send(text);
};
$('input').onkeydown = event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); $('ask').requestSubmit(); }
};
$('stop').onclick = () => running?.abort();
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') { running?.abort(); close_menu(); }
  if (event.altKey && event.key.toLowerCase() === 'n') { event.preventDefault(); $('new').click(); }
});
$('settings-open').onclick = () => {
  $('settings').hidden = !$('settings').hidden;
  $('settings-open').setAttribute('aria-expanded', String(!$('settings').hidden));
};
$('settings').onsubmit = event => event.preventDefault();
$('settings').oninput = () => write(store.settings, Object.fromEntries(new FormData($('settings'))));
$('settings').onreset = () => localStorage.removeItem(store.settings);
$('plan-open').onclick = () => {
  $('plan').querySelector('iframe').src = '/plan';
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
    const text = each => ({ role: each.role === 'user' ? 'user' : 'assistant', content: String(each.content), ...(each.thought ? { thought: String(each.thought) } : {}) });
    for (const each of found.chats)
      if (!chats.some(known => known.id === each.id)) chats.push({ id: String(each.id), title: String(each.title), touched: Number(each.touched), messages: each.messages.map(text) });
    save();
    show();
  } catch (problem) {
    trouble('The file cannot be imported: ' + problem.message);
  }
  event.target.value = '';
};

const theme = read(store.theme, null), kept = read(store.settings, {});
if (theme) document.documentElement.dataset.theme = theme;
for (const [name, value] of Object.entries(kept)) if ($('settings').elements[name]) $('settings').elements[name].value = value;
if (chats.length) open(chats[0]); else begin();
health();
