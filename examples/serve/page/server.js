// The server: whether it answers, which models it has, and where its device's time goes.
'use strict';

let healthy = false, walks = false, pdf_bytes = 0, model = '', models = [], contexts = {}, next_health = 0,
    answered = () => {};
const first_health = new Promise(good => answered = good);  // settled when the server was asked once

async function health() {
  let next = 3000;
  try {
    const reply = await fetch('/health', {cache: 'no-store'}), found = await reply.json();
    if (!healthy && reply.ok) trouble('');
    healthy = reply.ok;
    list_models(found.models || []);
    if (!found.models) {
      model = found.model || model;
      contexts[model] = found.context;
    }
    pdf_bytes = found.pdf_bytes || 0;
    if (walks !== !!found.walk) {
      walks = !!found.walk;
      if (!running()) show();
    }
    if (model) $('model').textContent = model;
    show_context();
    $('state').textContent = found.models ? state_of(found.models) :
        found.status === 'ok'             ? found.device :
                                            found.status + (found.detail ? ': ' + found.detail : '');
    $('loading').hidden = found.status !== 'loading';
    $('progress').value = found.progress || 0;
    $('loading-text').textContent = 'The model is being loaded: ' + Math.round(100 * (found.progress || 0)) + ' %';
    if (found.status === 'loading' || found.models?.some(each => each.status === 'loading')) next = 200;
    if (found.status === 'failed' || found.status === 'recovering')
      trouble('The server says: ' + (found.detail || found.status));
  } catch {
    healthy = false;
    $('state').textContent = 'no connection';
    trouble('The server does not answer. Trying again …');
    next = 1000;
  }
  $('send').disabled = !healthy || !!running();
  answered();
  clearTimeout(next_health);
  next_health = setTimeout(health, next);
}
// A request may load its model: the page asks at once how that goes.
function health_soon() {
  if (!models.length) return;
  clearTimeout(next_health);
  next_health = setTimeout(health, 200);
}
function state_of(list) {
  const loading = list.find(each => each.status === 'loading');
  return loading ? loading.model + ' is being loaded' + (loading.detail ? ': ' + loading.detail : '') :
                   list.filter(each => each.status === 'loaded').length + ' of ' + list.length + ' models loaded';
}
// A server with a folder of models: the conversation says which one answers.
function list_models(list) {
  for (const each of list) contexts[each.model] = each.context || contexts[each.model];
  const names = list.map(each => each.model);
  if (names.join('\n') === models.join('\n')) return;
  models = names;
  $('models').replaceChildren(...names.map(each => element('option', {value: each, textContent: each})));
  $('models').hidden = !names.length;
  $('model').hidden = !!names.length;
  pick();
}
// The model that answers in a conversation: its own, the last one that was picked, or the first. A server with one
// model has no list: its model answers, whichever one of another server the conversation had.
const model_of = chat =>
    models.length ? [chat?.model, read(store.model), models[0]].find(each => models.includes(each)) : model;
function pick() {
  if (models.length) $('models').value = model = model_of(current);
}

// Time of each kernel in the passes timed since the last update.
let seen = new Map();
async function times() {
  if (!$('times').open) return;
  try {
    const lines = (await (await fetch('/metrics', {cache: 'no-store', headers: with_key()})).text())
                      .matchAll(/^intaglio_kernel_seconds_total\{pass="(\w+)",kernel="(\w+)"\} (\S+)$/gm);
    const now = new Map([...lines].map(
        ([, pass, kernel, seconds]) => [kernel + (pass === 'prefill' ? ' (prompts)' : ''), Number(seconds)]));
    const since =
        [...now]
            .map(([name, seconds]) => [name, seconds - (seconds >= (seen.get(name) || 0) ? seen.get(name) || 0 : 0)])
            .filter(([, seconds]) => seconds > 0)
            .sort((a, b) => b[1] - a[1]);
    if (since.length) {
      const all = since.reduce((sum, [, seconds]) => sum + seconds, 0);
      $('times').querySelector('ul').replaceChildren(...since.slice(0, 8).map(([name, seconds]) => {
        const item = element('li', {textContent: name + ' ' + (100 * seconds / all).toFixed(0) + ' %'});
        item.style.setProperty('--share', (100 * seconds / all).toFixed(1) + '%');
        return item;
      }));
      seen = now;
    }
  } catch { /* the health check reports it */
  }
  setTimeout(times, 2000);
}
$('times').ontoggle = times;
