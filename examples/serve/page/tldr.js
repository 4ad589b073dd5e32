// TL;DR: a button that sums up the page that it stands on, by an intaglio server. Add to any page:
//   <script src="http://127.0.0.1:8080/tldr.js" defer></script>
// Options as attributes: data-server (default: where the script came from), data-select (what to sum up; default
// article, main or body), data-key (an API key), data-model (of a server with several), data-words (longest answer,
// 80). A page from elsewhere has to be allowed by the server's --cors-origin.
'use strict';
(() => {
  const own = document.currentScript, options = own?.dataset ?? {}, server = options.server || new URL(own.src).origin;
  const host = document.createElement('div'), root = host.attachShadow({mode: 'open'});
  root.innerHTML = `
<style>
  :host { all: initial; }
  .all {
    position: fixed; right: 1rem; bottom: 1rem; z-index: 2147483000; font: 16px/1.45 system-ui, sans-serif;
    display: flex; flex-direction: column; align-items: flex-end; gap: .5rem; max-width: min(26rem, calc(100vw - 2rem));
  }
  button {
    font: inherit; border: 0; border-radius: 2rem; padding: .6em 1.1em; background: #205c4b; color: #fff;
    cursor: pointer; box-shadow: 0 2px 8px #0005;
  }
  button:focus-visible { outline: 3px solid #8fd0bd; outline-offset: 2px; }
  section {
    background: #fff; color: #1d211f; border: 1px solid #cfcbbf; border-radius: 12px; padding: .8rem 1rem;
    box-shadow: 0 4px 20px #0004; width: 100%; box-sizing: border-box; max-height: 60vh; overflow: auto;
  }
  h2 { font-size: 1rem; margin: 0 0 .3rem; }
  p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
  .note { color: #55605a; font-size: .85rem; margin-top: .4rem; }
  .problem { color: #8a1c1c; }
  @media (prefers-color-scheme: dark) {
    section { background: #1e2426; color: #e8ebe7; border-color: #38423f; }
    .note { color: #a7b1ab; }
    .problem { color: #ffb4ab; }
  }
</style>
<div class="all">
  <section id="box" aria-label="Summary of this page" hidden>
    <h2>TL;DR</h2><p id="text" aria-live="polite"></p><p class="note" id="note"></p>
  </section>
  <button type="button" id="go" aria-controls="box" aria-expanded="false">TL;DR</button>
</div>`;
  const part = id => root.getElementById(id);
  let running = null;

  /// The page's words, without its scripts and menus; from the middle out where there are too many.
  function words(most) {
    const from = document.querySelector(options.select || 'article') || document.querySelector('main') || document.body,
          copy = from.cloneNode(true);
    for (const each of copy.querySelectorAll('script, style, nav, footer, aside, noscript, form')) each.remove();
    const text = copy.textContent.replace(/\s+/g, ' ').trim();
    return text.length <= most ? text :
                                 text.slice(0, Math.floor(most * 0.7)) + ' … ' + text.slice(-Math.floor(most * 0.3));
  }

  async function ask(most, signal) {
    const headers = {'Content-Type': 'application/json'};
    if (options.key) headers.Authorization = 'Bearer ' + options.key;
    const prompt =
        'Sum up the following text in at most ' + (Number(options.words) || 80) + ' words.\n\n' + words(most);
    return fetch(server + '/v1/chat/completions', {
      method: 'POST',
      headers,
      signal,
      body: JSON.stringify({
        messages: [{role: 'user', content: prompt}],
        stream: true,
        ...(options.model ? {model: options.model} : {}),
        temperature: 0.3,
        max_tokens: 2 * (Number(options.words) || 80)
      }),
    });
  }

  async function run() {
    const stop = running = new AbortController();
    part('box').hidden = false;
    part('go').textContent = 'Stop';
    part('go').setAttribute('aria-expanded', 'true');
    part('text').textContent = '';
    part('note').textContent = 'Reading …';
    part('note').className = 'note';
    try {
      // As much text as the model's context takes: each refusal halves it.
      let reply, most = 24000;
      for (;; most = Math.floor(most / 2)) {
        reply = await ask(most, stop.signal);
        if (reply.ok) break;
        const {error} = await reply.json();
        if (error.code !== 'context_length_exceeded' || most < 200) throw new Error(error.message);
      }
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = '';;) {
        const {value, done} = await reader.read();
        if (done) break;
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        for (const each of events) {
          if (!each.startsWith('data: {')) continue;
          const chunk = JSON.parse(each.slice(6));
          if (chunk.error) throw new Error(chunk.error.message);
          part('text').textContent += chunk.choices[0]?.delta.content ?? '';
        }
        part('note').textContent = 'Writing …';
      }
      part('note').textContent = 'Written by a language model on ' + new URL(server).host + '; it may be wrong.';
    } catch (problem) {
      part('note').textContent = stop.signal.aborted ? 'Stopped.' : 'No summary: ' + problem.message;
      part('note').className = stop.signal.aborted ? 'note' : 'note problem';
    }
    running = null;
    part('go').textContent = 'TL;DR';
  }

  part('go').onclick = () => running ? running.abort() : run();
  root.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return;
    running?.abort();
    part('box').hidden = true;
    part('go').setAttribute('aria-expanded', 'false');
    part('go').focus();
  });
  document.body.append(host);
})();
