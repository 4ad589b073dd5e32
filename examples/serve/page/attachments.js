// Files that go along with the next message: of text, and PDFs, whose text the server finds.
'use strict';

let attached = [];
const most_of_file = 1 << 20;
async function attach(files) {
  for (const file of files) try {
      attached.push(await (await is_pdf(file) ? text_of_pdf : text_of_file)(file));
    } catch (problem) { trouble(file.name + ': ' + problem.message); }
  show_attached();
}
const is_pdf = async file => await file.slice(0, 5).text() === '%PDF-';
function limit_size(file, most) {
  if (file.size > most) throw new Error('expected at most ' + most + ' bytes, found ' + file.size);
}
async function text_of_file(file) {
  limit_size(file, most_of_file);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    if (bytes.includes(0)) throw new Error();
    return {name: file.name, text: new TextDecoder('utf-8', {fatal: true}).decode(bytes).replaceAll('\r\n', '\n')};
  } catch { throw new Error('expected a PDF or a file of text in UTF-8, found another kind: paste its text instead'); }
}
async function text_of_pdf(file) {
  limit_size(file, pdf_bytes || most_of_file);
  const reply =
      await ask_server('/pdf-text', {method: 'POST', headers: {'Content-Type': 'application/pdf'}, body: file}),
        found = await reply.json();
  if (!reply.ok) throw new Error(found.error.message);
  if (!found.text.trim())
    throw new Error('expected text, found ' + found.pages + ' pages without any: they may be pictures');
  return {name: file.name, text: found.text.trim(), pages: found.pages};
}
const file_title = file =>
    file.name + (file.pages ? file.pages === 1 ? ' (1 page)' : ' (' + file.pages + ' pages)' : '');
function show_attached() {
  $('attached').hidden = !attached.length;
  $('attached')
      .replaceChildren(...attached.map((each, i) => element('li', {}, file_title(each) + ' ', element('button', {
                                                              type: 'button',
                                                              textContent: '×',
                                                              ariaLabel: 'Leave out ' + each.name,
                                                              onclick: () => {
                                                                attached.splice(i, 1);
                                                                show_attached();
                                                              }
                                                            }))));
}
