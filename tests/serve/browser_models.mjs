// SPDX-License-Identifier: MIT
// The chat page in a real Chromium on a server with a folder of models: the page's list picks the model of a
// conversation, which is loaded when it is asked; the choice is stored with the conversation.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {audit} from './browser_parts.mjs';
import {check, end, packages, start} from './server.mjs';

// fable; a model of its first layers, which writes otherwise; and a file that is none.
const folder = mkdtempSync(join(tmpdir(), 'intaglio-models-'));
const fable = fileURLToPath(new URL('../../examples/tool/fable.gguf', import.meta.url));
symlinkSync(fable, join(folder, 'fable.gguf'));
execFileSync(
    'python3',
    ['-c', 'import sys, models; models.write(*sys.argv[1:], layers=4)', fable, join(folder, 'narrator.gguf')],
    {cwd: fileURLToPath(new URL('.', import.meta.url)), env: {...process.env, PYTHONDONTWRITEBYTECODE: '1'}});
writeFileSync(join(folder, 'broken.gguf'), 'no model');

let server = await start('--models', folder);
const {chromium} = packages('playwright-core');
const browser =
    await chromium.launch({executablePath: process.env.INTAGLIO_CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
const context = await browser.newContext({viewport: {width: 1200, height: 800}, acceptDownloads: true});
context.setDefaultTimeout(60000);  // a busy machine is slow, not wrong
const page = await context.newPage(), problems = [];
page.on('pageerror', each => problems.push(String(each)));

const completions = '**/v1/chat/completions', question = 'Tell me a story about a brave mouse.';
const idle = () =>
    page.waitForFunction(() => document.getElementById('stop').hidden && !document.getElementById('send').disabled);
const answers = () => page.locator('.turn.assistant .text').allTextContents();
const authors = async () => (await page.locator('.turn.assistant h2').allTextContents()).join();
const picked = () => page.inputValue('#models');
const open = chat => page.getByRole('button', {name: chat, exact: true}).click();
// Sends a message. @return the model that the request names
const ask = async text => {
  await page.fill('#input', text);
  const [request] = await Promise.all([page.waitForRequest(completions), page.press('#input', 'Enter')]);
  await idle();
  return request.postDataJSON().model;
};
const states = async () => Object.fromEntries(
    (await (await fetch(server.url + '/health')).json()).models.map(each => [each.model, each.status]));
const expect_states = async (broken, fable, narrator, what) => check(
    JSON.stringify(await states()) === JSON.stringify({broken, fable, narrator}),
    `${what}, found ${JSON.stringify(await states())}`);
// The same question asked without the page.
async function reply_of(model) {
  const messages = [{role: 'user', content: question}],
        body = JSON.stringify({model, messages, temperature: 0, top_k: 40, max_tokens: 30});
  const reply = await fetch(
      server.url + '/v1/chat/completions', {method: 'POST', headers: {'Content-Type': 'application/json'}, body});
  return (await reply.json()).choices[0].message.content;
}

// The list: all models by name, none of which is loaded.
await page.goto(server.url);
await page.waitForSelector('#models:not([hidden])');
await idle();
check(
    (await page.locator('#models option').allTextContents()).join() === 'broken,fable,narrator' &&
        !await page.locator('#model').isVisible() && await page.textContent('#state') === '0 of 3 models loaded',
    `the list, found ${await page.textContent('h1')} and ${await page.textContent('#state')}`);
await audit(page, 'list of models');
await page.click('#settings-open');
await page.fill('[name=temperature]', '0');
await page.fill('[name=max_tokens]', '30');
await page.click('#settings-open');

// A pick by keyboard loads nothing; the first message loads the model that is picked, and no other.
await page.focus('#models');
await page.keyboard.press('End');
check(await picked() === 'narrator', `the pick, found ${await picked()}`);
await expect_states('unloaded', 'unloaded', 'unloaded', 'a pick loads nothing');
check(await ask(question) === 'narrator', 'the request names the model');
await expect_states('unloaded', 'unloaded', 'loaded', 'loaded on demand');
await page.waitForFunction(() => document.getElementById('state').textContent === '1 of 3 models loaded');
const narrated = (await answers())[0], begins = 'Once upon a time, there was a brave mouse named Pepper.';
check(narrated !== '' && narrated === await reply_of('narrator'), `the reply of that model, found ${narrated}`);
check(await authors() === 'narrator', `its name at the reply, found ${await authors()}`);
await page.waitForFunction(
    () => /^context \d+ of 512$/.test(document.querySelector('#context span').textContent));  // of that model

// The choice outlives a reload, and is the one of a new conversation until another is picked there.
await page.reload();
await page.waitForSelector('.turn.assistant');
await idle();
check(
    await picked() === 'narrator' && await authors() === 'narrator' && (await answers())[0] === narrated,
    `behind a reload, found ${await picked()} and ${await authors()}`);
await page.click('#new');
check(await picked() === 'narrator', 'the last pick in a new conversation');
await page.selectOption('#models', 'fable');
await page.reload();
await page.waitForSelector('#models:not([hidden])');
await page.click('#new');
check(await picked() === 'fable', `the last pick behind a reload, found ${await picked()}`);
await idle();
check(await ask(question) === 'fable', 'the request of the other conversation');
const fabled = (await answers())[0];
check(fabled.startsWith(begins) && fabled !== narrated, `the reply of the other model, found ${fabled}`);
await expect_states('unloaded', 'loaded', 'loaded', 'both are loaded');
await page.locator('#chats li button').nth(3).click();
check(await picked() === 'narrator' && (await answers())[0] === narrated, 'the first conversation has its model');
await page.locator('#chats li button').first().click();
check(await picked() === 'fable', 'and the second one its own');

// Another model in the same conversation: each reply says which one wrote it.
await page.selectOption('#models', 'narrator');
check(await authors() === 'fable', 'a pick changes no reply that is there');
check(await ask('And then?') === 'narrator', 'from here on it answers');
check(await authors() === 'fable,narrator', `two models in one conversation, found ${await authors()}`);
await audit(page, 'two models in a conversation');
const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
for (let i = 0; i < 2; ++i) await page.locator('#chats li button:last-child').first().click();
await page.selectOption('#models', 'fable');
await page.setInputFiles('#import-file', await file.path());
await page.waitForFunction(() => document.querySelectorAll('#chats li').length === 2);
await page.locator('#chats li button').first().click();
check(await picked() === 'narrator' && await authors() === 'fable,narrator', 'behind an import');

// A file that is no model is said so, and another one then answers.
await page.click('#new');
await page.selectOption('#models', 'broken');
check(await ask(question) === 'broken', 'the request of a broken model');
check(
    (await page.textContent('#log .problem')).includes('\'broken\' could not be loaded'),
    `why there is no answer, found ${await page.textContent('#log')}`);
await page.selectOption('#models', 'fable');
await page.locator('#log').getByRole('button', {name: 'Try again'}).click();
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 0);
await idle();
check((await answers())[0] === fabled && await authors() === 'fable', 'another model answers the same question');

// How a load goes; the plan of the model that is picked.
const loading =
    [{model: 'fable', status: 'loaded', context: 512}, {model: 'narrator', status: 'loading', detail: 'weights'}];
await page.route('**/health', route => route.fulfill({json: {status: 'ok', models: loading}}));
await page.waitForFunction(() => document.getElementById('state').textContent === 'narrator is being loaded: weights');
await page.unroute('**/health');
await page.waitForFunction(() => document.getElementById('state').textContent === '2 of 3 models loaded');
await page.click('#more summary');
const [plan] = await Promise.all([page.waitForRequest('**/plan*'), page.click('#plan-open')]);
await page.frameLocator('#plan iframe').locator('svg').first().waitFor();
check(plan.url().endsWith('/plan?model=fable'), `the plan, found ${plan.url()}`);
await page.keyboard.press('Escape');

// A reload within an answer: the same model goes on with it.
await page.click('#new');
await page.selectOption('#models', 'narrator');
await page.route(completions, route => route.continue({
  postData: JSON.stringify({...JSON.parse(route.request().postData()), ignore_eos: true, max_tokens: 200})
}));
const line = await context.newCDPSession(page);
await line.send('Network.enable');
await line.send(
    'Network.emulateNetworkConditions', {offline: false, latency: 0, downloadThroughput: 4000, uploadThroughput: -1});
await page.fill('#input', 'A long one.');
await page.press('#input', 'Enter');
await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 5);
const [again] = await Promise.all([
  page.waitForRequest(each => each.url().endsWith('/chat/completions') && !!each.postDataJSON().continue_final_message),
  page.reload()
]);
check(again.postDataJSON().model === 'narrator', `who goes on, found ${again.postData().slice(0, 300)}`);
await line.detach();
await idle();
await page.unroute(completions);

// The widget names its model.
const widget = await context.newPage();
for (const [attribute, words] of [['', /^No summary: model: expected one of/], [' data-model="fable"', /wrong\.$/]]) {
  await widget.route('**/tldr.html', async route => {
    const reply = await route.fetch();
    await route.fulfill({response: reply, body: (await reply.text()).replace('src="/tldr.js"', '$&' + attribute)});
  });
  await widget.goto(server.url + '/tldr.html');
  await widget.getByRole('button', {name: 'TL;DR'}).click();
  await widget.waitForFunction(
      () => /^No|wrong\.$/.test(document.body.lastElementChild.shadowRoot.getElementById('note').textContent));
  const note =
      await widget.evaluate(() => document.body.lastElementChild.shadowRoot.getElementById('note').textContent);
  check(words.test(note), `the widget with '${attribute}', found ${note}`);
  await widget.unroute('**/tldr.html');
}
await widget.close();

// A server with one model on its port: conversations of the others go on with it.
check(await server.stop() === 0, 'exit code');
server = await start('--port', String(server.port));
await page.waitForFunction(
    () => document.getElementById('models').hidden && document.getElementById('model').textContent === 'fable' &&
        !document.getElementById('send').disabled);
await page.locator('#chats li button').last().waitFor();
await page.locator('#chats li').last().locator('button').first().click();
check((await answers())[0] === narrated && await authors() === 'narrator', 'the first conversation again');
check(await ask('And now?') === undefined, 'no name of another server');
check(
    (await page.locator('#log .problem').count()) === 0 && await authors() === 'narrator,fable',
    `the one model answers, found ${await page.textContent('#log')}`);

check(problems.length === 0, `no error in the page, found ${problems}`);
await browser.close();
rmSync(folder, {recursive: true});
check(await server.stop() === 0, 'exit code of the second');
end('browser_models');
