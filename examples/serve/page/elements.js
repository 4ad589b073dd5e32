// What all scripts of the chat page use: elements, the line that tells of trouble, and settings in the browser's
// storage.
'use strict';

const $ = id => document.getElementById(id);
const store = {
  key: 'intaglio.key',
  model: 'intaglio.model',
  settings: 'intaglio.settings',
  theme: 'intaglio.theme'
};

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch { return otherwise; }
}
function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch { trouble('This browser keeps no more settings.'); }
}

function element(name, properties = {}, ...inside) {
  const out = Object.assign(document.createElement(name), properties);
  out.append(...inside);
  return out;
}
function download(name, what) {
  const link = element('a', {
    href: URL.createObjectURL(new Blob([JSON.stringify(what, null, 1)], {type: 'application/json'})),
    download: name
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
// A line that stays until it is closed; actions are {what: what it does}.
function notice(text, actions = {}) {
  const close = () => {
    $('notice').hidden = true;
  };
  $('notice').replaceChildren(
      element('span', {textContent: text}),
      ...Object.entries({...actions, Close: close})
          .map(([name, onclick]) => element('button', {type: 'button', textContent: name, onclick})));
  $('notice').hidden = false;
}
function trouble(text) {
  $('trouble').hidden = !text;
  $('trouble').textContent = text || '';
}
