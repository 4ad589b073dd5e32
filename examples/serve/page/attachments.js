// Files of text that go along with the next message.
'use strict';

let attached = [];
const most_of_file = 1 << 20;
async function attach(files) {
  for (const file of files) {
    const refuse = why => trouble(file.name + ': ' + why);
    if (file.size > most_of_file) {
      refuse('expected at most 1 MiB, found ' + file.size + ' bytes');
      continue;
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    try {
      if (bytes.includes(0) || String.fromCharCode(...bytes.slice(0, 5)) === '%PDF-') throw new Error();
      attached.push(
          {name: file.name, text: new TextDecoder('utf-8', {fatal: true}).decode(bytes).replaceAll('\r\n', '\n')});
    } catch { refuse('expected a file of text in UTF-8, found another kind: paste its text instead'); }
  }
  show_attached();
}
function show_attached() {
  $('attached').hidden = !attached.length;
  $('attached').replaceChildren(...attached.map((each, i) => element('li', {}, each.name + ' ', element('button', {
                                                                       type: 'button',
                                                                       textContent: '×',
                                                                       ariaLabel: 'Leave out ' + each.name,
                                                                       onclick: () => {
                                                                         attached.splice(i, 1);
                                                                         show_attached();
                                                                       }
                                                                     }))));
}
