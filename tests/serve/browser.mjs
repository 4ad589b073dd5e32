// SPDX-License-Identifier: MIT
// The chat page and the TL;DR widget in a real Chromium: a server with a key, chat, stream, stop, edit, regenerate,
// reload with history, a server that dies and comes back, phone width, dark, a full context, files, two tabs, a reload
// within an answer, and what browser_parts.mjs has; each state is checked by axe-core's rules. With a folder as
// argument it writes the screenshots of docs/ there.
import {mkdtempSync, readdirSync, readFileSync, rmSync, statSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {audit, broken_records, footer, key, pdf, search, system_prompts, tool_calls} from './browser_parts.mjs';
import {check, end, packages, start} from './server.mjs';

const {chromium} = packages('playwright-core');
const pictures = process.argv[2];

const index = mkdtempSync(join(tmpdir(), 'intaglio-index-'));
const secret = 'a key, schlüssel';
let server = await start('--index', index, '--api-key', secret);
const browser =
    await chromium.launch({executablePath: process.env.INTAGLIO_CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
const context =
    await browser.newContext({viewport: {width: 1200, height: 800}, bypassCSP: false, acceptDownloads: true});
context.setDefaultTimeout(120000);  // a busy machine is slow, not wrong
const page = await context.newPage(), foreign = [], problems = [];
page.on('request', each => {
  if (!each.url().startsWith(server.url) && !each.url().startsWith('data:') && !each.url().startsWith('blob:'))
    foreign.push(each.url());
});
page.on('pageerror', each => problems.push(String(each)));

const picture = async name => {
  if (pictures) await page.screenshot({path: `${pictures}/${name}.png`});
};
const answers = () => page.locator('.turn.assistant .text').allTextContents();
const idle = () =>
    page.waitForFunction(() => document.getElementById('stop').hidden && !document.getElementById('send').disabled);
const ask = async text => {
  await page.fill('#input', text);
  await page.press('#input', 'Enter');
};

const another = await browser.newContext();
another.setDefaultTimeout(120000);
await key(another, server.url, secret, audit);
await another.close();

await page.goto(server.url);
await page.waitForSelector('#key[open]');
await page.keyboard.type(secret);
await page.keyboard.press('Enter');
await page.waitForFunction(() => document.getElementById('model').textContent === 'fable');
await idle();
await audit(page, 'empty page');
await page.click('#settings-open');
await page.fill('[name=temperature]', '0');
await page.fill('[name=max_tokens]', '60');
await audit(page, 'sampling');
await page.click('#settings-open');

await ask('Tell me a story about a brave mouse.');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 0);
await idle();
const first = (await answers())[0];
check(first.startsWith('Once upon a time, there was a brave mouse named Pepper.'), `the story, found ${first}`);
check(
    /first token \d+ ms/.test(await page.textContent('#first')) &&
        /[\d.]+ tokens\/s/.test(await page.textContent('#speed')) && (await page.textContent('#count')) === '60 tokens',
    `figures: ${await page.textContent('#numbers')}`);
check((await page.textContent('.turn.assistant .tools')).includes('cut at the longest length'), 'its end is shown');
check(
    /^context \d+ of 512$/.test(await page.textContent('#context span')) && await page.locator('#room').isHidden(),
    `the context's share, found ${await page.textContent('#context')}`);
await audit(page, 'conversation');
await picture('chat-desktop');

// The device's time by kernel, and which features fired for the answer.
await page.click('#times summary');
// Whether a pass of the answer or of its prompt was timed depends on the machine's speed.
await page.waitForFunction(() => /matmul( \(prompts\))? \d+ %/.test(document.querySelector('#times ul').textContent));
await audit(page, 'time by kernel');
await page.click('#times summary');
await page.click('text=Trace');
await page.waitForFunction(() => document.querySelectorAll('#trace-map .cell').length > 0);
const cells = await page.locator('#trace-map .cell').count(),
      pieces = await page.locator('#trace-map .token').allTextContents();
const solid = text => text.replace(/\s/g, '');
check(
    solid(pieces.join('')) === solid(first) && cells % pieces.length === 0 && cells > pieces.length,
    `a row for each layer, found ${cells} cells of ${pieces.length} tokens`);
await page.locator('#trace-map .cell').nth(3).focus();
check(
    /feature \d+ .* promotes "/.test(await page.textContent('#trace-detail')),
    `features behind a cell: ${await page.textContent('#trace-detail')}`);
await audit(page, 'trace');
await picture('chat-trace');
await page.keyboard.press('Escape');

// Regenerate, edit, stop.
await page.click('text=Regenerate');
await idle();
check((await answers())[0] === first, 'the same answer at temperature 0');
await page.click('.turn.user >> text=Edit');
await page.fill('.edit textarea', 'Tell me a story about a cat.');
await page.press('.edit textarea', 'Enter');
await page.waitForSelector('.turn.assistant');
await idle();
const second = (await answers())[0];
check((await page.locator('.turn').count()) === 2 && second !== first, 'another answer to another question');
await page.getByRole('button', {name: 'Earlier version of message 1'}).click();
check(
    (await answers())[0] === first && (await page.textContent('.turn.user .tools')).includes('1 of 2') &&
        (await page.textContent('.turn.assistant .tools')).includes('2 of 2'),
    'the turns before the edit are there');
await audit(page, 'branches');
await page.getByRole('button', {name: 'Later version of message 1'}).click();
check((await answers())[0] === second, 'and those behind it');

// Thoughts, Markdown and code, as a server would send them.
const deltas = [
  {reasoning_content: 'They want *code*.'}, {
    content: '# Head\n\nSome **bold** & <b>raw</b> text, `x < y`:\n\n' +
        '```js\nlet a = "<i>";\n```\n\n1. one\n2. two\n   - in\n\n' +
        '| a | b |\n|---|---|\n| 1 | 2 |\n\nEuler: $e^{i\\pi} = -1$ costs $5.\n\n\\[\n\\frac{1}{2}\n\\]\n\n' +
        '[here](https://example.org/) [bad](javascript:alert(1))'
  }
];
await page.click('#new');
await page.route('**/v1/chat/completions', route => route.fulfill({
  contentType: 'text/event-stream',
  body: deltas.map(delta => 'data: ' + JSON.stringify({choices: [{index: 0, delta, finish_reason: null}]}) + '\n\n')
            .join('') +
      'data: [DONE]\n\n'
}));
await ask('Some code?');
await page.waitForSelector('.turn.assistant .text pre');
await idle();
await page.unroute('**/v1/chat/completions');
check(
    (await page.textContent('.thought p')) === 'They want *code*.' && !(await page.locator('.thought p').isVisible()),
    'thoughts are folded');
await page.click('.thought summary');
check(await page.locator('.thought p').isVisible(), 'and can be read');
check(
    (await page.textContent('.text pre code')) === 'let a = "<i>";' &&
        (await page.locator('.text b, .text i').count()) === 0,
    'code and raw tags stay text');
check(
    (await page.locator('.text strong, .text ol > li, .text li li, .text td, .text .heading').count()) === 7,
    `Markdown, found ${await page.innerHTML('.text')}`);
check(
    (await page.locator('.text math').count()) === 2 && (await page.locator('.text mfrac mn').count()) === 2 &&
        (await page.textContent('.turn.assistant .text')).includes('costs $5.'),
    `formulas, found ${await page.innerHTML('.turn.assistant .text')}`);
check(
    (await page.textContent('.code .code-word')) === 'let' &&
        (await page.textContent('.code .code-string')) === '"<i>"',
    'colours of code');
check((await page.locator('.text a').count()) === 1, 'links to the web alone');
await audit(page, 'Markdown');
await context.grantPermissions(['clipboard-read', 'clipboard-write'], {origin: server.url});
await page.getByRole('button', {name: 'Copy code'}).click();
check((await page.evaluate(() => navigator.clipboard.readText())) === 'let a = "<i>";', 'code is copied');
await page.getByRole('button', {name: 'Rename Some code?'}).click();
await page.keyboard.type('Renamed');
await page.keyboard.press('Enter');
await page.getByRole('button', {name: 'Delete Renamed'}).click();
check((await page.locator('#chats li').count()) === 1, 'a deleted conversation');
await audit(page, 'undo');
await page.locator('#undo button').click();
check(
    (await page.locator('#chats li').count()) === 2 && (await page.locator('.text pre').count()) === 1,
    'and its way back');
await page.getByRole('button', {name: 'Delete Renamed'}).click();
await page.locator('#chats li button').first().click();
await page.click('#settings-open');
await page.fill('[name=max_tokens]', '');
await page.fill('[name=temperature]', '1');
await page.click('#settings-open');
await page.click('#new');
// A long answer over a slow line, so that there is something to stop, however busy the machine is.
const line = await page.context().newCDPSession(page);
await line.send('Network.enable');
const speed = bytes => line.send(
    'Network.emulateNetworkConditions', {offline: false, latency: 0, downloadThroughput: bytes, uploadThroughput: -1});
await speed(4000);
await page.route('**/v1/chat/completions', async route => {
  const body = JSON.parse(route.request().postData());
  await route.continue({
    postData: JSON.stringify({
      ...body,
      response_format: {type: 'json_schema', json_schema: {name: 'x', schema: {type: 'string', minLength: 400}}}
    })
  });
});
await ask('Go on and on.');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
await page.keyboard.press('Escape');
await idle();
const stopped = (await answers())[0];
check(
    (await page.textContent('.turn.assistant .tools')).includes('stopped') && stopped.length < 400,
    `a stopped answer, found ${stopped.length} letters`);
await page.unroute('**/v1/chat/completions');
await speed(-1);

// History.
await page.reload();
await page.waitForSelector('.turn.assistant');
check(
    (await page.locator('#chats li').count()) === 2 && (await answers())[0] === stopped,
    'conversations after a reload');
const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
const exported = JSON.parse(readFileSync(await file.path(), 'utf8'));
check(exported.chats.length === 2 && exported.chats[0].messages[1].content === stopped, 'the export');
await page.click('#chats li:last-child button:last-child');
check((await page.locator('#chats li').count()) === 1, 'a deleted conversation');
await page.setInputFiles('#import-file', await file.path());
await page.waitForFunction(() => document.querySelectorAll('#chats li').length === 2);

// Files of text and PDFs go along with a message; others are refused by name.
await page.click('#new');
await page.setInputFiles('#attach-files', [
  {name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The mouse is called ```Pip```.')},
  {name: 'paper.pdf', mimeType: 'application/pdf', buffer: pdf('It lives in a', 'mill.')},
  {name: 'bad.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7')}
]);
await page.waitForSelector('#attached li');
const names = await page.locator('#attached li').allTextContents();
check(
    /^bad.pdf: the PDF: expected one that pdftotext reads/.test(await page.textContent('#trouble')) &&
        names.join() === 'notes.txt ×,paper.pdf (2 pages) ×',
    `a file of text, a PDF, and none, found ${names} and ${await page.textContent('#trouble')}`);
await audit(page, 'files');
for (const [name, buffer, what] of [
         ['large.pdf', Buffer.concat([pdf('x'), Buffer.alloc(4 << 20)]), 'expected at most 4194304 bytes, found'],
         ['empty.pdf', pdf(''), 'expected text, found 1 pages without any'],
         ['picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]), 'expected a PDF or a file of text in UTF-8'],
]) {
  await page.setInputFiles('#attach-files', {name, mimeType: 'application/octet-stream', buffer});
  await page.waitForFunction(name => document.getElementById('trouble').textContent.startsWith(name), name);
  check(
      (await page.textContent('#trouble')).startsWith(`${name}: ${what}`),
      `${what}, found ${await page.textContent('#trouble')}`);
}
const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask('What is its name?')]);
check(
    request.postDataJSON().messages.at(-1).content ===
        'What is its name?\n\nFile notes.txt:\n````\nThe mouse is called ```Pip```.\n````' +
            '\n\nFile paper.pdf:\n```\nIt lives in a\n\n\nmill.\n```',
    `what is sent, found ${request.postData()}`);
await idle();
await page.click('.file summary');
check((await page.textContent('.file pre')) === 'The mouse is called ```Pip```.', 'the file is shown');
const [again] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
await page.getByRole('button', {name: 'Delete What is its name?'}).click();
await page.setInputFiles('#import-file', await again.path());
await page.getByRole('button', {name: 'What is its name?', exact: true}).click();
await page.click('.file summary');
check((await page.textContent('.file pre')) === 'The mouse is called ```Pip```.', 'and comes back by an import');

// The context is full: the page says why there is no answer, and offers what to do; the oldest turns are then left out.
await page.click('#settings-open');
await page.fill('[name=max_tokens]', '8');
await page.click('#settings-open');
await page.click('#new');
for (const name of ['One', 'Two', 'Three']) {
  await ask(name + ' mouse and a cat went home.'.repeat(28));
  await page.waitForFunction(
      () => document.querySelectorAll('.turn').length % 2 === 0 && document.getElementById('stop').hidden);
  if (name === 'Two')
    check(
        /fills 8\d %/.test(await page.textContent('#room')) && await page.locator('#room').isVisible(),
        `the context\'s end is shown before, found ${await page.textContent('#context')}`);
}
check(
    await page.locator('.problem').isVisible() && /maximum context length/.test(await page.textContent('.problem')),
    `a full context is shown, found ${await page.textContent('.turn:last-child')}`);
await audit(page, 'full context');
await page.locator('.problem').getByRole('button', {name: 'Leave the oldest turns out'}).click();
await idle();
check(
    /without the oldest [24] messages/.test(await page.textContent('.turn:last-child .tools')) &&
        (await page.locator('.problem').count()) === 0,
    `the oldest turns are left out, found ${await page.textContent('.turn:last-child')}`);
await page.click('#settings-open');
await page.fill('[name=max_tokens]', '');
await page.click('#settings-open');

// Two tabs share the stored conversations, but not the key; a reload within an answer goes on with it, and so does
// another conversation's.
const other = await context.newPage();
await other.goto(server.url);
await other.waitForSelector('#key[open]');
await other.keyboard.type(secret);
await other.keyboard.press('Enter');
await other.waitForSelector('.turn.assistant');
const before = await page.locator('#chats li').count();
await other.click('#new');
await other.waitForFunction(() => !document.getElementById('send').disabled);
await other.fill('#input', 'From the other tab.');
await other.press('#input', 'Enter');
await page.waitForFunction(count => document.querySelectorAll('#chats li').length === count, before + 1);
await other.waitForFunction(
    () => document.querySelector('.turn.assistant .tools') && document.getElementById('stop').hidden);
await page.getByRole('button', {name: 'From the other tab.', exact: true}).click();
await page.waitForFunction(
    text => document.querySelector('.turn.assistant .text')?.textContent === text,
    await other.textContent('.turn.assistant .text'));
await other.close();
await page.route('**/v1/chat/completions', async route => {
  const body = JSON.parse(route.request().postData());
  await route.continue({postData: JSON.stringify({...body, ignore_eos: true, max_tokens: -1})});
});
await page.click('#new');
await speed(40000);
await ask('A long one.');
// What comes is stored from its first letters on, twice a second.
const stored_letters = () => new Promise(good => {
  const asked = indexedDB.open('intaglio', 1);
  asked.onsuccess = () => {
    const all = asked.result.transaction('chats').objectStore('chats').getAll();
    all.onsuccess = () => {
      asked.result.close();
      good(all.result.map(each => each.messages.at(-1)).find(each => each?.open)?.content.length || 0);
    };
  };
});
for (let tries = 0; tries < 600 && !await page.evaluate(stored_letters); ++tries) await page.waitForTimeout(20);
await page.reload();
await page.waitForSelector('.turn.assistant');
const part = (await answers())[0];
await idle();
const whole = (await answers())[0];
check(
    part.length > 0 && whole.startsWith(part.slice(0, 50)) && whole.length > part.length + 100 &&
        !(await page.textContent('.turn.assistant .tools')).includes('not finished'),
    `an answer goes on behind a reload, found ${part.length} and ${whole.length} letters`);
await speed(-1);
await page.click('#new');
await ask('Another long one.');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
await page.locator('#chats li button').nth(3).click();
await page.waitForTimeout(300);
await page.getByRole('button', {name: 'Another long one.', exact: true}).click();
await idle();
check((await answers())[0].length > 200, 'an answer goes on while another conversation is shown');
await page.unroute('**/v1/chat/completions');

await tool_calls(page, ask, idle, audit);
await system_prompts(page, ask, idle, audit);
await search(page, audit);
await broken_records(page, audit);

// The plan in its menu; dark; the phone.
await page.click('#more summary');
await audit(page, 'menu');
await page.click('#plan-open');
await page.frameLocator('#plan iframe').locator('svg').first().waitFor();
await picture('chat-plan');
await page.keyboard.press('Escape');
await page.click('#theme');
await audit(page, 'dark');
await page.locator('#chats li').last().locator('button').first().click();
await page.waitForSelector('.turn.assistant');
await picture('chat-dark');
await page.setViewportSize({width: 375, height: 720});
check(
    await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no scrolling sideways on a phone');
await page.click('#menu');
await audit(page, 'phone, menu');
await page.keyboard.press('Escape');
await page.click('#theme');
await picture('chat-phone');
await audit(page, 'phone');
await footer(page);
await page.setViewportSize({width: 1200, height: 800});

// The server dies in the middle, and comes back.
await page.click('#new');
await page.route('**/v1/chat/completions', async route => {
  const body = JSON.parse(route.request().postData());
  await route.continue({
    postData: JSON.stringify({
      ...body,
      response_format: {type: 'json_schema', json_schema: {name: 'x', schema: {type: 'string', minLength: 400}}}
    })
  });
});
await ask('And now?');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
await server.kill();
await page.waitForSelector('#trouble:not([hidden])');
check(
    /does not answer/.test(await page.textContent('#trouble')) &&
        (await page.textContent('.problem')).startsWith('No answer') && (await answers())[0].length > 0,
    'the error is shown, what came is kept');
await page.unroute('**/v1/chat/completions');
await audit(page, 'error');
process.env.PATH = index;  // a folder without programs
server = await start('--port', String(server.port));
await page.waitForFunction(
    () => document.getElementById('trouble').hidden && !document.getElementById('send').disabled);
await page.click('text=Regenerate');
await idle();
check(
    (await answers())[0].length > 0 && !(await page.textContent('.turn.assistant .tools')).includes('not finished'),
    'an answer from the server that came back');
await page.setInputFiles('#attach-files', {name: 'paper.pdf', mimeType: 'application/pdf', buffer: pdf('Pip')});
await page.waitForSelector('#trouble:not([hidden])');
check(
    /^paper.pdf: .*poppler-utils/.test(await page.textContent('#trouble')) &&
        (await page.locator('#attached li').count()) === 0,
    `no program for PDFs, found ${await page.textContent('#trouble')}`);

let scripts = 0;
const folder = new URL('../../examples/serve/page/', import.meta.url);
for (const name of readdirSync(folder).filter(each => each.endsWith('.js') && each !== 'tldr.js'))
  scripts += statSync(new URL(name, folder)).size;
check(scripts < 200000, `scripts of the page: expected under 200,000 bytes, found ${scripts}`);

// The widget.
const size = statSync(new URL('tldr.js', folder)).size;
check(size < 20000, `tldr.js: expected under 20,000 bytes, found ${size}`);
await page.goto(server.url + '/tldr.html');
await page.getByRole('button', {name: 'TL;DR'}).click();
await page.waitForFunction(
    () => /wrong\.$/.test(document.body.lastElementChild.shadowRoot.getElementById('note').textContent));
check(
    (await page.evaluate(() => document.body.lastElementChild.shadowRoot.getElementById('text').textContent)).length >
        10,
    'a summary');
await audit(page, 'widget');
await picture('tldr');

check(foreign.length === 0, `no other hosts, found ${foreign}`);
check(problems.length === 0, `no error in the page, found ${problems}`);
await browser.close();
rmSync(index, {recursive: true});
check(await server.stop() === 0, 'exit code');
end('browser');
