// What all scripts of the chat page use: elements, the line that tells of trouble, and settings in the browser's
// storage.
'use strict';

const $ = id => document.getElementById(id);
const store = {
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
function trouble(text) {
  $('trouble').hidden = !text;
  $('trouble').textContent = text || '';
}
