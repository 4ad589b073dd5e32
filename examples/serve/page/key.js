// The server's key: asked for where it is missing or refused, kept as the user chooses, and sent along with requests.
'use strict';

let key = '';
try {
  key = sessionStorage.getItem(store.key) || localStorage.getItem(store.key) || '';
} catch { /* it is asked for in each tab */
}
// A field holds bytes: the key goes as UTF-8.
const with_key = (fields = {}) =>
    key ? {...fields, Authorization: 'Bearer ' + String.fromCharCode(...new TextEncoder().encode(key))} : fields;

function keep_key(text, for_long) {
  key = text;
  $('key-forget').hidden = !text;
  try {
    for (const each of [sessionStorage, localStorage]) each.removeItem(store.key);
    if (text) (for_long ? localStorage : sessionStorage).setItem(store.key, text);
  } catch { trouble('This browser keeps no key.'); }
}

// As fetch(). Where the server wants another key the user is asked for it, and the request is sent again.
async function ask_server(path, options = {}) {
  for (;;) {
    const sent = key, reply = await fetch(path, {...options, headers: with_key(options.headers)});
    if (reply.status !== 401) return reply;
    if (sent === key) await ask_key(options.signal);
  }
}
let asking = null;
function ask_key(signal) {
  asking ||= new Promise((good, bad) => {
    const box = $('key');
    $('key-wrong').hidden = !key;
    $('key-text').value = box.returnValue = '';
    box.onclose = () => {
      asking = null;
      if (box.returnValue !== 'use') return bad(new Error('the server asks for its key'));
      keep_key($('key-text').value, $('key-keep').checked);
      $('key-text').value = '';
      good();
    };
    box.showModal();
  });
  const stopped = new Promise((_, bad) => signal?.addEventListener('abort', () => bad(signal.reason), {once: true}));
  return Promise.race([asking, stopped]);
}
$('key-forget').hidden = !key;
$('key-forget').onclick = () => keep_key('', false);
