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
  if (event.target.name === 'system') {
    current.system = event.target.value;
    save();
    return;
  }
  const {system, ...rest} = Object.fromEntries(new FormData($('settings')));
  write(store.settings, rest);
};
$('models').onchange = () => {
  model = current.model = $('models').value;
  write('intaglio.model', model);
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
$('settings').onreset = () => localStorage.removeItem(store.settings);
$('plan-open').onclick = () => {
  $('plan').querySelector('iframe').src = '/plan' + (models.length ? '?model=' + encodeURIComponent(model) : '');
  $('plan').showModal();
};
$('theme').onclick = () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' :
                                                        matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  write(store.theme, document.documentElement.dataset.theme);
};
$('export').onclick = () => {
  const link = element('a', {
    href: URL.createObjectURL(
        new Blob([JSON.stringify({intaglio_chats: 1, chats}, null, 1)], {type: 'application/json'})),
    download: 'intaglio-chats.json'
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
$('import').onclick = () => $('import-file').click();
$('import-file').onchange = async event => {
  try {
    const found = JSON.parse(await event.target.files[0].text());
    if (found.intaglio_chats !== 1 || !Array.isArray(found.chats)) throw new Error('another format');
    const text = each => ({
      role: each.role === 'user' ? 'user' : 'assistant',
      content: String(each.content),
      ...(each.thought ? {thought: String(each.thought)} : {}),
      ...(each.files?.length ? {files: each.files.map(file => ({name: String(file.name), text: String(file.text)}))} :
                               {})
    });
    for (const each of found.chats)
      if (!chats.some(known => known.id === each.id)) {
        chats.push({
          id: String(each.id),
          title: String(each.title),
          touched: Number(each.touched),
          messages: each.messages.map(text),
          ...(each.system ? {system: String(each.system)} : {})
        });
        save(chats.at(-1));
      }
    show();
  } catch (problem) { trouble('The file cannot be imported: ' + problem.message); }
  event.target.value = '';
};

const theme = read(store.theme, null), chosen = read(store.settings, {});
if (theme) document.documentElement.dataset.theme = theme;
for (const [name, value] of Object.entries(chosen))
  if ($('settings').elements[name]) $('settings').elements[name].value = value;
kept.open(written).then(({list, broken, problem}) => {
  chats = list;
  if (problem) trouble('This browser keeps no conversations (' + problem.message + '): export those that are to stay.');
  if (broken) trouble(broken + ' conversations could not be read: they are left as they are, and not shown.');
  if (chats.length) open(chats[0]);
  else begin();
  health();
});
