// SPDX-License-Identifier: MIT
// Parts of browser.mjs that stand for themselves: the server's key, calls of tools, system prompts, the search, records
// that cannot be read, and the footer of a phone; and the audit of a page.
import {readFileSync} from 'node:fs';

import {check, packages} from './server.mjs';

const axe = readFileSync(packages.resolve('axe-core/axe.min.js'), 'utf8');
/// The page as it is now breaks none of axe-core's rules.
export async function audit(on, what) {
  const found = await on
                    .evaluate(
                        source => {
                          (0, eval)(source);
                          return axe.run(document, {iframes: false});
                        },
                        axe)
                    .catch(async () => {
                      // The page's policy forbids eval: the driver puts the auditor in itself.
                      const session = await on.context().newCDPSession(on);
                      await session.send('Runtime.evaluate', {expression: axe});
                      const {result} = await session.send('Runtime.evaluate', {
                        expression: 'axe.run(document, { iframes: false })' +
                            '.then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.target)])))',
                        awaitPromise: true
                      });
                      return {violations: JSON.parse(result.value)};
                    });
  check(found.violations.length === 0, `axe: ${what}: ${JSON.stringify(found.violations).slice(0, 600)}`);
}

const named = page => page.waitForFunction(() => document.getElementById('model').textContent === 'fable');

/// A PDF with a page for each text.
export function pdf(...texts) {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${texts.length} /Kids [${texts.map((_, i) => `${4 + 2 * i} 0 R`).join(' ')}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'
  ];
  for (const text of texts) {
    const drawn = `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`;
    objects.push(
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${objects.length + 2} 0 R ` +
            '/Resources << /Font << /F1 3 0 R >> >> >>',
        `<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`);
  }
  let out = '%PDF-1.4\n';
  const offsets = objects.map((each, i) => {
    const at = out.length;
    out += `${i + 1} 0 obj\n${each}\nendobj\n`;
    return at;
  });
  const table = offsets.map(at => String(at).padStart(10, '0') + ' 00000 n \n').join('');
  return Buffer.from(
      out + `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}` +
      `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${out.length}\n%%EOF\n`);
}

/// The page comes without the key and asks for it. A wrong one is refused, Cancel leaves the page as it is, and the
/// right one is kept until the tab is closed, or for long where that is wished.
export async function key(context, url, secret, audit) {
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector('#key[open]');
  await audit(page, 'key');
  await page.keyboard.type('another');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#key-wrong:not([hidden])');
  await audit(page, 'wrong key');
  await page.keyboard.press('Escape');
  await named(page);
  await page.waitForFunction(() => !document.getElementById('send').disabled);
  await page.click('.empty button');
  await page.waitForSelector('#key[open]');
  await page.getByRole('button', {name: 'Cancel'}).click();
  await page.waitForSelector('#log .problem');
  check(
      (await page.textContent('#log .problem')).startsWith('No answer: the server asks for its key'),
      `an answer without the key, found ${await page.textContent('#log .problem')}`);
  await page.locator('#log').getByRole('button', {name: 'Try again'}).click();
  await page.fill('#key-text', secret);
  await page.focus('#key-keep');
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.turn.assistant .text')?.textContent.length > 0);
  await page.keyboard.press('Escape');
  check((await page.locator('#log .problem').count()) === 0, 'the request is sent again with the right key');
  const stored = async () => JSON.stringify(
      await page.evaluate(() => [sessionStorage, localStorage].map(each => each.getItem('intaglio.key'))));
  check(await stored() === JSON.stringify([null, secret]), `kept for long, found ${await stored()}`);
  await page.click('#more summary');
  await page.click('#key-forget');
  check(await stored() === '[null,null]', `forgotten, found ${await stored()}`);
  await page.reload();
  await page.waitForSelector('#key[open]');
  await page.keyboard.type(secret);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => sessionStorage.getItem('intaglio.key'));
  check(await stored() === JSON.stringify([secret, null]), `kept for the tab, found ${await stored()}`);
  await page.reload();
  await named(page);
  await page.click('#more summary');
  await page.click('#plan-open');
  await page.frameLocator('#plan iframe').locator('svg').first().waitFor();
  check(!(await page.locator('#key').isVisible()), 'a reload asks for no key');
  await page.close();
}

// Waits until a stored conversation has the text.
async function until_stored(page, text) {
  const is_stored = text => new Promise(good => {
    const asked = indexedDB.open('intaglio', 1);
    asked.onsuccess = () => {
      const all = asked.result.transaction('chats').objectStore('chats').getAll();
      all.onsuccess = () => {
        asked.result.close();
        good(JSON.stringify(all.result).includes(text));
      };
    };
  });
  for (let tries = 0; tries < 500 && !await page.evaluate(is_stored, text); ++tries) await page.waitForTimeout(20);
}

/// Calls of tools are folded, stored, exported and sent back.
export async function tool_calls(page, ask, idle, audit) {
  const call = (index, part, more = {}) => ({tool_calls: [{index, ...more, function: part}]});
  const weather = {id: 'call00001', type: 'function'}, clock = {id: 'call00002', type: 'function'};
  const deltas = [
    {reasoning_content: 'I look.'}, call(0, {name: 'get_weather', arguments: ''}, weather),
    call(0, {arguments: '{"city": "Bo'}), call(0, {arguments: 'nn"}'}),
    call(1, {name: 'get_time', arguments: '{}'}, clock)
  ];
  await page.click('#new');
  await page.route('**/v1/chat/completions', route => route.fulfill({
    contentType: 'text/event-stream',
    body: deltas.map(delta => ({delta, finish_reason: null}))
              .concat({delta: {}, finish_reason: 'tool_calls'})
              .map(each => 'data: ' + JSON.stringify({choices: [{index: 0, ...each}]}) + '\n\n')
              .join('') +
        'data: [DONE]\n\n'
  }));
  await ask('Which weather?');
  await page.waitForSelector('.call');
  await idle();
  await page.unroute('**/v1/chat/completions');
  const shown = async what => {
    check(
        (await page.locator('.call summary').allTextContents()).join() === 'Call of get_weather,Call of get_time' &&
            !(await page.locator('.call pre').first().isVisible()),
        `${what}: folded calls, found ${await page.innerHTML('.turn.assistant')}`);
    await page.locator('.call summary').first().press('Enter');
    check(
        (await page.locator('.call pre').first().innerText()) === '{\n  "city": "Bonn"\n}',
        `${what}: arguments, found ${await page.locator('.call pre').first().innerText()}`);
  };
  await shown('an answer');
  await audit(page, 'calls of tools');
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
  await page.reload();
  await page.waitForSelector('.call');
  await shown('a reload');
  await page.getByRole('button', {name: 'Delete Which weather?'}).click();
  await page.setInputFiles('#import-file', await file.path());
  await page.getByRole('button', {name: 'Which weather?', exact: true}).click();
  await shown('an import');
  await page.getByLabel('Result of get_weather').fill('It rains.');
  await until_stored(page, 'It rains.');
  await page.reload();
  await page.waitForSelector('.call');
  const reply = page.waitForResponse('**/v1/chat/completions');
  await page.getByRole('button', {name: 'Send the results'}).press('Enter');
  const sent = (await reply).request().postDataJSON().messages.slice(1);
  check(
      (await reply).status() === 200 && JSON.stringify(sent) === JSON.stringify([
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {...weather, function: {name: 'get_weather', arguments: '{"city": "Bonn"}'}},
            {...clock, function: {name: 'get_time', arguments: '{}'}}
          ]
        },
        {role: 'tool', tool_call_id: weather.id, content: 'It rains.'},
        {role: 'tool', tool_call_id: clock.id, content: 'No result.'}
      ]),
      `calls are sent back, found ${JSON.stringify(sent)} and ${(await reply).status()}`);
  await idle();
  check((await page.locator('.turn.assistant').count()) === 2, 'the answer to the results');
  await real_call(page, ask, idle);
}

/// The server calls a tool that the conversation names; what is no list is refused.
async function real_call(page, ask, idle) {
  await page.click('#new');
  await page.click('#settings-open');
  await page.fill('[name=tools]', '{}');
  await ask('Which weather?');
  await page.waitForSelector('#log .problem');
  check(
      (await page.textContent('#log .problem')).startsWith('No answer: tools: expected a JSON list'),
      `tools that are no list, found ${await page.textContent('#log .problem')}`);
  await page.fill('[name=tools]', JSON.stringify([
    {type: 'function', function: {name: 'get_time', parameters: {type: 'object', properties: {utc: {type: 'boolean'}}}}}
  ]));
  await page.click('#settings-open');
  await page.route('**/v1/chat/completions', route => route.continue({
    postData: JSON.stringify({...JSON.parse(route.request().postData()), tool_choice: 'required'})
  }));
  await page.locator('#log').getByRole('button', {name: 'Try again'}).click();
  await page.waitForSelector('.call');
  await idle();
  await page.unroute('**/v1/chat/completions');
  check(
      (await page.locator('.call summary').allTextContents()).every(each => each === 'Call of get_time') &&
          JSON.parse(await page.locator('.call pre').first().textContent()) !== null,
      `a call of the server, found ${await page.innerHTML('.turn.assistant')}`);
}

/// A conversation has its own system prompt: shown above its turns, sent in front of them, stored and exported with it.
export async function system_prompts(page, ask, idle, audit) {
  const field = page.locator('[name=system]'), block = page.locator('#system');
  const asked = async text => {
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(text)]);
    await idle();
    return request.postDataJSON().messages;
  };
  const reply = () => page.locator('.turn.assistant .text').last().textContent();
  const shown = async (text, what) => check(
      await field.inputValue() === text && await block.isVisible() === (text !== '') &&
          (await block.locator('p').textContent()) === text,
      `${what}: expected '${text}', found '${await field.inputValue()}' and '${await block.textContent()}'`);
  const open = name => page.getByRole('button', {name, exact: true}).click();
  const mouse = 'You tell stories about a mouse that is called Pip.', frog = 'You are a frog.\nYou live in a pond.';

  await page.click('#settings-open');
  await page.fill('[name=temperature]', '0');
  await page.fill('[name=max_tokens]', '24');
  await page.click('#new');
  await shown('', 'a new conversation');
  check(JSON.stringify(await asked('A plain question.')) === '[{"role":"user","content":"A plain question."}]', 'none');
  const plain = await reply();
  await page.click('#new');
  await field.fill(mouse);
  await shown(mouse, 'a prompt that was filled in');
  const first = [{role: 'system', content: mouse}, {role: 'user', content: 'A plain question.'}];
  check(JSON.stringify(await asked('A plain question.')) === JSON.stringify(first), 'it is sent in front');
  check(await reply() !== plain && await reply() !== '', `the model reads it, found ${await reply()} twice`);
  await page.getByRole('button', {name: 'Rename A plain question.'}).first().click();
  await page.keyboard.type('The mouse');
  await page.keyboard.press('Enter');
  await page.click('#new');
  await shown('', 'another conversation');
  await field.fill(frog);
  check((await asked('Who are you?'))[0].content === frog, 'another prompt');
  await block.locator('summary').click();
  check(await block.locator('p').innerText() === frog, 'it is read in its lines');
  await audit(page, 'system prompt');
  await open('The mouse');
  await shown(mouse, 'the first one again');
  await page.getByRole('button', {name: 'Defaults'}).click();
  await page.waitForFunction(() => document.querySelector('[name=temperature]').value === '0.7');
  await shown(mouse, 'behind the defaults of sampling');

  await until_stored(page, JSON.stringify(frog).slice(1, -1));
  await page.reload();
  await page.waitForSelector('.turn.assistant');
  await shown(frog, 'behind a reload, the latest');
  await open('The mouse');
  await shown(mouse, 'behind a reload, the other');
  await idle();
  const all = await asked('Go on.');
  check(
      all.length === 4 && all.filter(each => each.role === 'system').length === 1 && all[0].content === mouse,
      `one prompt in front of all turns, found ${JSON.stringify(all)}`);
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
  await page.getByRole('button', {name: 'Delete The mouse'}).click();
  await page.setInputFiles('#import-file', await file.path());
  await open('The mouse');
  await shown(mouse, 'behind an import');
  await page.click('#settings-open');
  await field.fill(' ');
  check(!await block.isVisible(), 'an empty one is not shown');
  check((await asked('Without it.')).every(each => each.role !== 'system'), 'and not sent');
  await page.fill('[name=temperature]', '1');
  await page.click('#settings-open');
}

/// Titles, messages and the other versions of turns are searched.
export async function search(page, audit) {
  const all = await page.locator('#chats li').count();
  const found = async text => {
    await page.fill('#search', text);
    return page.locator('#chats li').count();
  };
  check(await found('OTHER tab. from the') === 1, 'words of a title, in any order and case');
  check(await found('brave mouse pepper') > 0, 'words of a version that is not shown');
  await audit(page, 'search');
  check(
      await found('xylophone') === 0 && (await page.textContent('#found')) === `0 of ${all} conversations`,
      `nothing found, found ${await page.textContent('#found')}`);
  check(await found('') === all && !(await page.locator('#found').isVisible()), 'all without a search');
}

/// Records that cannot be read are put apart, reported in one sentence, and can be saved and deleted.
export async function broken_records(page, audit) {
  const all = await page.locator('#chats li').count(), broken = [{id: 'a', title: 5}, {id: 7, messages: 'x'}];
  const started = async () => {
    await page.reload();
    await named(page);
    await page.waitForSelector('#chats li');
  };
  await page.evaluate(
      records => new Promise((good, bad) => {
        const asked = indexedDB.open('intaglio', 1);
        asked.onsuccess = () => {
          const writes = asked.result.transaction('chats', 'readwrite');
          for (const each of records) writes.objectStore('chats').put(each);
          writes.oncomplete = () => good(asked.result.close());
          writes.onerror = bad;
        };
      }),
      broken);
  for (const time of ['first', 'second']) {
    await started();
    check(
        (await page.textContent('#notice span')) ===
                '2 conversations that cannot be read are put apart; all others are here.' &&
            await page.locator('#notice').isVisible() && (await page.locator('#chats li').count()) === all,
        `the ${time} start, found ${await page.textContent('#notice')}`);
  }
  await audit(page, 'records put apart');
  const [file] =
      await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Save as a file'}).click()]);
  const saved = JSON.parse(readFileSync(await file.path(), 'utf8')).map(each => JSON.stringify(each)).sort();
  check(
      JSON.stringify(saved) === JSON.stringify(broken.map(each => JSON.stringify(each)).sort()),
      `the file, found ${saved}`);
  await page.locator('#notice').getByRole('button', {name: 'Delete'}).click();
  await page.waitForSelector('#notice', {state: 'hidden'});
  await started();
  check(!(await page.locator('#notice').isVisible()), 'deleted for good');
}

/// The figures are one line, whatever they are.
export async function footer(page) {
  for (const width of [320, 375, 480]) {
    await page.setViewportSize({width, height: 720});
    const found = await page.evaluate(() => {
      document.getElementById('speed').textContent = '12345.6 tokens/s';
      document.getElementById('context').hidden = false;
      document.querySelector('#context span').textContent = 'context 131072 of 131072';
      const line = document.querySelector('footer'), parts = [...line.querySelectorAll('span, summary')];
      const boxes = parts.filter(each => each.checkVisibility()).map(each => each.getBoundingClientRect());
      return {
        height: line.clientHeight,
        middles: boxes.map(box => (box.top + box.bottom) / 2),
        right: Math.max(...boxes.map(box => box.right))
      };
    });
    check(
        found.height < 40 && Math.max(...found.middles) - Math.min(...found.middles) < 6 && found.right <= width,
        `a footer of one line at ${width} px, found ${JSON.stringify(found)}`);
  }
  await page.click('#times summary');
  const list = await page.locator('#times ul').boundingBox(), line = await page.locator('footer').boundingBox();
  check(
      line.height < 40 && list.y + list.height <= line.y + 1,
      `the list above the line, found ${JSON.stringify([list, line])}`);
  await page.click('#times summary');
}
