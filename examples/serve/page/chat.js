// The chat page: conversations in the browser's own storage, answers streamed from the server that served the page.
'use strict';
const $ = id => document.getElementById(id);
const store = { chats: 'intaglio.chats', settings: 'intaglio.settings', theme: 'intaglio.theme' };
let chats = read(store.chats, []), current = null, running = null, healthy = false, model = '';

function read(key, otherwise) {
  try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
}
function write(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { trouble('This browser keeps no more conversations: export and delete some.'); }
}
const save = () => write(store.chats, chats);
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

// One answer into messages[at]; what is there is replaced.
async function answer(chat, at) {
  const { sampling, system } = settings(), message = { role: 'assistant', content: '' }, stop = new AbortController();
  chat.messages.splice(at, chat.messages.length, message);
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
        if (choice?.delta.content) {
          first ||= performance.now();
          message.content += choice.delta.content;
        }
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
  current.messages.push({ role: 'user', content: text });
  save();
  answer(current, current.messages.length);
}

function tools(at) {
  const message = current.messages[at], button = (text, label, action) => element('button', { type: 'button', textContent: text, ariaLabel: label, onclick: action });
  const out = element('div', { className: 'tools' });
  if (running) return out;
  if (message.role === 'user') out.append(button('Edit', 'Edit message ' + (at + 1), () => edit(at)));
  else {
    out.append(button('Regenerate', 'Regenerate answer ' + (at + 1), () => answer(current, at)));
    out.append(button('Copy', 'Copy answer ' + (at + 1), () => navigator.clipboard?.writeText(message.content)));
    const end = { length: 'cut at the longest length', stopped: 'stopped', error: 'not finished' }[message.finish];
    if (end) out.append(element('span', { textContent: end }));
  }
  return out;
}
function edit(at) {
  const turn = $('log').children[at], area = element('textarea', { value: current.messages[at].content, rows: 3, ariaLabel: 'Edited message' });
  const done = () => {
    if (!area.value.trim()) return;
    current.messages[at].content = area.value;
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
  const text = $('log').children[at]?.querySelector('.text'), log = $('log');
  if (!text) return;
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  text.textContent = current.messages[at].content;
  if (at_end) log.scrollTop = log.scrollHeight;
}
function show() {
  $('chats').replaceChildren(...chats.map(chat => {
    const item = element('li', {}, element('button', { type: 'button', textContent: chat.title, onclick: () => open(chat) }),
      element('button', { type: 'button', textContent: '×', ariaLabel: 'Delete ' + chat.title, onclick: () => { chats = chats.filter(each => each !== chat); save(); chat === current ? begin() : show(); } }));
    if (chat === current) item.setAttribute('aria-current', 'true');
    return item;
  }));
  $('log').replaceChildren(...current.messages.map((message, at) => element('section', { className: 'turn ' + message.role },
    element('h2', { textContent: message.role === 'user' ? 'You' : model || 'Model' }), element('div', { className: 'text', textContent: message.content }), tools(at))));
  $('log').scrollTop = $('log').scrollHeight;
  figures([...current.messages].reverse().find(each => each.stats)?.stats);
  $('send').hidden = !!running;
  $('send').disabled = !healthy;
  $('stop').hidden = !running;
  $('log').setAttribute('aria-busy', String(!!running));
}

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
    const text = each => ({ role: each.role === 'user' ? 'user' : 'assistant', content: String(each.content) });
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
