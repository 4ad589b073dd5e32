// SPDX-License-Identifier: MIT
// The chat page and the TL;DR widget in a real Chromium: load, chat, stream, stop, edit, regenerate, reload with history, a server that dies and comes
// back, phone width, dark; each state held against axe-core's rules. With a folder as argument it writes the screenshots of docs/ there.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, end, packages, start } from './server.mjs';
const { chromium } = packages('playwright-core');
const axe = readFileSync(packages.resolve('axe-core/axe.min.js'), 'utf8'), pictures = process.argv[2];

const index = mkdtempSync(join(tmpdir(), 'intaglio-index-'));
let server = await start('--index', index);
const browser = await chromium.launch({ executablePath: process.env.INTAGLIO_CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, bypassCSP: false, acceptDownloads: true });
const page = await context.newPage(), foreign = [], problems = [];
page.on('request', each => { if (!each.url().startsWith(server.url) && !each.url().startsWith('data:') && !each.url().startsWith('blob:')) foreign.push(each.url()); });
page.on('pageerror', each => problems.push(String(each)));

async function audit(on, what) {
  const found = await on.evaluate(source => { (0, eval)(source); return axe.run(document, { iframes: false }); }, axe).catch(async () => {
    // The page's policy forbids eval: the driver puts the auditor in itself.
    const session = await on.context().newCDPSession(on);
    await session.send('Runtime.evaluate', { expression: axe });
    const { result } = await session.send('Runtime.evaluate', { expression: 'axe.run(document, { iframes: false }).then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.target)])))', awaitPromise: true });
    return { violations: JSON.parse(result.value) };
  });
  check(found.violations.length === 0, `axe: ${what}: ${JSON.stringify(found.violations).slice(0, 600)}`);
}
const picture = async name => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` }); };
const answers = () => page.locator('.turn.assistant .text').allTextContents();
const idle = () => page.waitForFunction(() => document.getElementById('stop').hidden && !document.getElementById('send').disabled, null, { timeout: 30000 });
const ask = async text => { await page.fill('#input', text); await page.press('#input', 'Enter'); };

await page.goto(server.url);
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
check(/first token \d+ ms/.test(await page.textContent('#first')) && /[\d.]+ tokens\/s/.test(await page.textContent('#speed')) && (await page.textContent('#count')) === '60 tokens', `figures: ${await page.textContent('#numbers')}`);
check((await page.textContent('.turn.assistant .tools')).includes('cut at the longest length'), 'its end is told');
await audit(page, 'conversation');
await picture('chat-desktop');

// The device's time by kernel, and which features fired for the answer.
await page.click('#times summary');
await page.waitForFunction(() => /matmul \d+ %/.test(document.querySelector('#times ul').textContent));
await audit(page, 'time by kernel');
await page.click('#times summary');
await page.click('text=Trace');
await page.waitForFunction(() => document.querySelectorAll('#trace-map .cell').length > 0, null, { timeout: 30000 });
const cells = await page.locator('#trace-map .cell').count(), pieces = await page.locator('#trace-map .token').allTextContents();
const solid = text => text.replace(/\s/g, '');
check(solid(pieces.join('')) === solid(first) && cells % pieces.length === 0 && cells > pieces.length, `a row for each layer, found ${cells} cells of ${pieces.length} tokens`);
await page.locator('#trace-map .cell').nth(3).focus();
check(/feature \d+ .* promotes "/.test(await page.textContent('#trace-detail')), `features behind a cell: ${await page.textContent('#trace-detail')}`);
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
await page.getByRole('button', { name: 'Earlier version of message 1' }).click();
check((await answers())[0] === first && (await page.textContent('.turn.user .tools')).includes('1 of 2') && (await page.textContent('.turn.assistant .tools')).includes('2 of 2'), 'the turns before the edit are there');
await audit(page, 'branches');
await page.getByRole('button', { name: 'Later version of message 1' }).click();
check((await answers())[0] === second, 'and those behind it');

// Thoughts, Markdown and code, as a server would send them.
const told = [{ reasoning_content: 'They want *code*.' }, { content: '# Head\n\nSome **bold** & <b>raw</b> text, `x < y`:\n\n```js\nlet a = "<i>";\n```\n\n1. one\n2. two\n   - in\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[here](https://example.org/) [bad](javascript:alert(1))' }];
await page.click('#new');
await page.route('**/v1/chat/completions', route => route.fulfill({ contentType: 'text/event-stream', body: told.map(delta => 'data: ' + JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] }) + '\n\n').join('') + 'data: [DONE]\n\n' }));
await ask('Some code?');
await page.waitForSelector('.turn.assistant .text pre');
await idle();
await page.unroute('**/v1/chat/completions');
check((await page.textContent('.thought p')) === 'They want *code*.' && !(await page.locator('.thought p').isVisible()), 'thoughts are folded');
await page.click('.thought summary');
check(await page.locator('.thought p').isVisible(), 'and can be read');
check((await page.textContent('.text pre code')) === 'let a = "<i>";' && (await page.locator('.text b, .text i').count()) === 0, 'code and raw tags stay text');
check((await page.locator('.text strong, .text ol > li, .text li li, .text td, .text .heading').count()) === 7, `Markdown, found ${await page.innerHTML('.text')}`);
check((await page.locator('.text a').count()) === 1, 'links to the web alone');
await audit(page, 'Markdown');
await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
await page.getByRole('button', { name: 'Copy code' }).click();
check((await page.evaluate(() => navigator.clipboard.readText())) === 'let a = "<i>";', 'code is copied');
await page.getByRole('button', { name: 'Rename Some code?' }).click();
await page.keyboard.type('Renamed');
await page.keyboard.press('Enter');
await page.getByRole('button', { name: 'Delete Renamed' }).click();
check((await page.locator('#chats li').count()) === 1, 'a deleted conversation');
await audit(page, 'undo');
await page.locator('#undo button').click();
check((await page.locator('#chats li').count()) === 2 && (await page.locator('.text pre').count()) === 1, 'and its way back');
await page.getByRole('button', { name: 'Delete Renamed' }).click();
await page.locator('#chats li button').first().click();
await page.click('#settings-open');
await page.fill('[name=max_tokens]', '');
await page.fill('[name=temperature]', '1');
await page.click('#settings-open');
await page.click('#new');
// A slow stream, so that there is something to stop.
await page.route('**/v1/chat/completions', async route => { const body = JSON.parse(route.request().postData()); await route.continue({ postData: JSON.stringify({ ...body, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'string', minLength: 400 } } } }) }); });
await ask('Go on and on.');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
await page.keyboard.press('Escape');
await idle();
const stopped = (await answers())[0];
check((await page.textContent('.turn.assistant .tools')).includes('stopped') && stopped.length < 400, `a stopped answer, found ${stopped.length} letters`);
await page.unroute('**/v1/chat/completions');

// History.
await page.reload();
await page.waitForSelector('.turn.assistant');
check((await page.locator('#chats li').count()) === 2 && (await answers())[0] === stopped, 'conversations after a reload');
const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
const kept = JSON.parse(readFileSync(await file.path(), 'utf8'));
check(kept.chats.length === 2 && kept.chats[0].messages[1].content === await page.evaluate(() => JSON.parse(localStorage.getItem('intaglio.chats'))[0].messages[1].content), 'the export');
await page.click('#chats li:last-child button:last-child');
check((await page.locator('#chats li').count()) === 1, 'a deleted conversation');
await page.setInputFiles('#import-file', await file.path());
await page.waitForFunction(() => document.querySelectorAll('#chats li').length === 2);

// The plan; dark; the phone.
await page.click('#plan-open');
await page.frameLocator('#plan iframe').locator('svg').first().waitFor();
await picture('chat-plan');
await page.keyboard.press('Escape');
await page.click('#theme');
await audit(page, 'dark');
await page.locator('#chats li').last().locator('button').first().click();
await page.waitForSelector('.turn.assistant');
await picture('chat-dark');
await page.setViewportSize({ width: 375, height: 720 });
check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no scrolling sideways on a phone');
await page.click('#menu');
await audit(page, 'phone, menu');
await page.keyboard.press('Escape');
await page.click('#theme');
await picture('chat-phone');
await audit(page, 'phone');
await page.setViewportSize({ width: 1200, height: 800 });

// The server dies in the middle, and comes back.
await page.click('#new');
await page.route('**/v1/chat/completions', async route => { const body = JSON.parse(route.request().postData()); await route.continue({ postData: JSON.stringify({ ...body, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'string', minLength: 400 } } } }) }); });
await ask('And now?');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
await server.kill();
await page.waitForSelector('#trouble:not([hidden])');
check(/No answer|does not answer/.test(await page.textContent('#trouble')) && (await answers())[0].length > 0, 'the error is shown, what came is kept');
await page.unroute('**/v1/chat/completions');
await audit(page, 'error');
server = await start('--port', String(server.port));
await page.waitForFunction(() => document.getElementById('trouble').hidden && !document.getElementById('send').disabled, null, { timeout: 15000 });
await page.click('text=Regenerate');
await idle();
check((await answers())[0].length > 0 && !(await page.textContent('.turn.assistant .tools')).includes('not finished'), 'an answer from the server that came back');

// The widget.
const size = statSync(new URL('../../examples/serve/page/tldr.js', import.meta.url)).size;
check(size < 20000, `tldr.js: expected under 20,000 bytes, found ${size}`);
await page.goto(server.url + '/tldr.html');
await page.getByRole('button', { name: 'TL;DR' }).click();
await page.waitForFunction(() => /wrong\.$/.test(document.body.lastElementChild.shadowRoot.getElementById('note').textContent), null, { timeout: 30000 });
check((await page.evaluate(() => document.body.lastElementChild.shadowRoot.getElementById('text').textContent)).length > 10, 'a summary');
await audit(page, 'widget');
await picture('tldr');

check(foreign.length === 0, `no other hosts, found ${foreign}`);
check(problems.length === 0, `no error in the page, found ${problems}`);
await browser.close();
rmSync(index, { recursive: true });
check(await server.stop() === 0, 'exit code');
end('browser');
