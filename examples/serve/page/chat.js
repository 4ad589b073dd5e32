// The chat page's controls and its start. Conversations are in the browser's own storage; answers are streamed from the
// server that served the page.
'use strict';

function send(text) {
  if ((!text.trim() && !attached.length) || running()) return;
  if (!chats.includes(current)) chats.unshift(current);
  if (current.messages.length === 0) current.title = (text.trim() || attached[0].name).slice(0, 60);
  current.messages.push({role: 'user', id: fresh(), content: text, ...(attached.length ? {files: attached} : {})});
  attached = [];
  show_attached();
  current.touched = Date.now();
  save();
  answer(current, current.messages.length);
}

function close_menu() {
  $('side').classList.remove('open');
  $('menu').setAttribute('aria-expanded', 'false');
}
$('menu').onclick = () => $('menu').setAttribute('aria-expanded', String($('side').classList.toggle('open')));
$('new').onclick = () => {
  close_menu();
  begin();
};
$('ask').onsubmit = event => {
  event.preventDefault();
  if (!healthy || running()) return;
  const text = $('input').value;
  $('input').value = '';
  send(text);
};
$('search').oninput = () => list_chats();
$('search').onkeydown = event => {
  if (event.key === 'Enter') $('chats').querySelector('button')?.click();
  if (event.key !== 'Escape' || !$('search').value) return;
  event.stopPropagation();
  event.preventDefault();
  $('search').value = '';
  list_chats();
};
$('input').onkeydown = event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $('ask').requestSubmit();
  }
};
$('stop').onclick = () => running()?.abort();
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') {
    running()?.abort();
    close_menu();
    if ($('more').open) close_more();
  }
  if (event.altKey && event.key.toLowerCase() === 'n') {
    event.preventDefault();
    $('new').click();
  }
});
$('settings-open').onclick = () => {
  $('settings').hidden = !$('settings').hidden;
  $('settings-open').setAttribute('aria-expanded', String(!$('settings').hidden));
};
$('settings').onsubmit = event => event.preventDefault();
$('settings').oninput = event => {
  if (texts.includes(event.target.name)) {
    current[event.target.name] = event.target.value;
    show_texts();
    save();
    return;
  }
  const {system, tools, ...rest} = Object.fromEntries(new FormData($('settings')));
  write(store.settings, rest);
};
$('models').onchange = () => {
  model = current.model = $('models').value;
  write(store.model, model);
  save();
  show();
};
$('attach').onclick = () => $('attach-files').click();
$('attach-files').onchange = async event => {
  await attach([...event.target.files]);
  event.target.value = '';
};
document.addEventListener('dragover', event => {
  if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
});
document.addEventListener('drop', event => {
  if (event.dataTransfer?.files.length) {
    event.preventDefault();
    attach([...event.dataTransfer.files]);
  }
});
$('room-cut').onclick = () => {
  current.truncate = true;
  save();
  show();
};
$('room-new').onclick = () => $('new').click();
$('defaults').onclick = () => {
  localStorage.removeItem(store.settings);
  $('settings').reset();
  show_texts();  // the conversation keeps its texts
};
function close_more() {
  $('more').open = false;
  $('more').querySelector('summary').focus();
}
document.addEventListener('click', event => {
  if (!$('more').contains(event.target)) $('more').open = false;
});
$('more').addEventListener('focusout', event => {
  if (event.relatedTarget && !$('more').contains(event.relatedTarget)) $('more').open = false;
});
// Not by its address, which no key goes along with.
$('plan-open').onclick = async () => {
  const page = $('plan').querySelector('iframe'), problem = $('plan').querySelector('.wrong');
  close_more();
  problem.hidden = true;
  $('plan').showModal();
  try {
    const reply = await ask_server('/plan' + (models.length ? '?model=' + encodeURIComponent(model) : ''));
    if (!reply.ok) throw new Error((await reply.json()).error.message);
    page.srcdoc = await reply.text();
  } catch (failure) {
    page.removeAttribute('srcdoc');
    problem.hidden = false;
    problem.textContent = 'No plan: ' + failure.message;
  }
};
$('theme').onclick = () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' :
                                                        matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  write(store.theme, document.documentElement.dataset.theme);
};
$('export').onclick = () => download('intaglio-chats.json', {intaglio_chats: 1, chats});
$('import').onclick = () => $('import-file').click();
$('import-file').onchange = async event => {
  try {
    const found = JSON.parse(await event.target.files[0].text());
    if (found.intaglio_chats !== 1 || !Array.isArray(found.chats)) throw new Error('another format');
    found.chats.forEach((each, i) => {
      if (!kept.sane(each)) throw new Error('chats[' + i + ']: expected a conversation, found another form');
    });
    for (const {id, title, touched, messages, branches, system, tools, model, truncate} of found.chats)
      if (!chats.some(known => known.id === id)) {
        for (const each of messages) delete each.open;  // nobody goes on with an answer of another browser
        chats.push({
          id,
          title,
          touched: touched || 0,
          messages,
          ...(branches ? {branches} : {}),
          ...(system ? {system} : {}),
          ...(tools ? {tools} : {}),
          ...(model ? {model} : {}),
          ...(truncate ? {truncate: true} : {})
        });
        save(chats.at(-1));
      }
    show();
  } catch (problem) { trouble('The file cannot be imported: ' + problem.message); }
  event.target.value = '';
};

function report_apart(count) {
  notice(
      (count === 1 ? 'One conversation that cannot be read is' : count + ' conversations that cannot be read are') +
          ' put apart; all others are here.',
      {
        'Save as a file': async () => download('intaglio-broken.json', await kept.apart()),
        'Delete': async () => {
          await kept.forget_apart();
          $('notice').hidden = true;
        }
      });
}

const theme = read(store.theme, null), chosen = read(store.settings, {});
if (theme) document.documentElement.dataset.theme = theme;
for (const [name, value] of Object.entries(chosen))
  if ($('settings').elements[name]) $('settings').elements[name].value = value;
kept.open(written).then(({list, apart, problem}) => {
  chats = list;
  if (problem) notice('This browser keeps no conversations (' + problem.message + '): export those that are to stay.');
  if (apart) report_apart(apart);
  if (chats.length) open(chats[0]);
  else begin();
  health();
  ask_server('/v1/models').catch(() => {});  // asks for the key where there is to be one
});
