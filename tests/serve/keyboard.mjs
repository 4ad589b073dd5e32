// SPDX-License-Identifier: MIT
// The chat page by keyboard alone, and at 320 px: every control is reached by Tab in the page's order, has a name and a
// visible focus; Enter, Space and Escape do what a click does; nothing is wider than the screen.
import {check, end, packages, start} from './server.mjs';

const {chromium} = packages('playwright-core');
const server = await start();
const browser =
    await chromium.launch({executablePath: process.env.INTAGLIO_CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
const context = await browser.newContext({viewport: {width: 1200, height: 800}});
context.setDefaultTimeout(60000);  // a busy machine is slow, not wrong
const page = await context.newPage();
const press = key => page.keyboard.press(key);

// Every visible control that can be used, in the page's order, numbered in an attribute.
const controls = () => page.evaluate(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')];
  const seen =
      all.filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled && each.type !== 'file');
  all.forEach(each => delete each.dataset.walk);
  seen.forEach((each, i) => each.dataset.walk = i);
  return seen.map(each => each.outerHTML.slice(0, 90));
});
// What has the focus: its number, its name, whether the focus is seen, and whether all of it is on the screen.
const focused = () => page.evaluate(() => {
  const at = document.activeElement, look = getComputedStyle(at), box = at.getBoundingClientRect();
  const name = at.getAttribute('aria-label') || [...(at.labels || [])].map(each => each.textContent).join(' ') ||
      at.textContent || at.title;
  return {
    walk: at.dataset.walk === undefined ? -1 : Number(at.dataset.walk),
    id: at.id,
    name: name.trim(),
    seen: at.matches(':focus-visible') && look.outlineStyle !== 'none' && parseFloat(look.outlineWidth) >= 2,
    inside: box.left >= 0 && box.right <= innerWidth + 0.5 && box.width > 0 && box.height > 0
  };
});

// Once round, from wherever the focus is.
async function walk(what) {
  const all = await controls(), found = [];
  for (let i = 0; i < all.length + 3 && found.length < all.length; ++i) {
    await press('Tab');
    const at = await focused();
    if (at.walk < 0) continue;
    if (found.includes(at.walk)) break;
    found.push(at.walk);
    check(at.name !== '', `${what}: expected a name of ${all[at.walk]}`);
    check(at.seen, `${what}: expected a focus that is seen on ${all[at.walk]}`);
    check(at.inside, `${what}: expected on the screen: ${all[at.walk]}`);
  }
  while (found.includes(0) && found[0] !== 0) found.push(found.shift());
  check(
      JSON.stringify(found) === JSON.stringify(all.map((_, i) => i)),
      `${what}: expected all of ${all.length} controls in their order, found ${JSON.stringify(found)} of ${all}`);
}
// Tab until this element has the focus.
async function go_to(id) {
  for (let i = 0; i < 60; ++i) {
    if ((await focused()).id === id) return;
    await press('Tab');
  }
  check(false, `expected ${id} to be reached by Tab`);
}
const idle = () =>
    page.waitForFunction(() => document.getElementById('stop').hidden && !document.getElementById('send').disabled);
const expanded = id => page.getAttribute('#' + id, 'aria-expanded');
const fits = async what => {
  const [wide, outside] = await page.evaluate(
      () =>
          [document.documentElement.scrollWidth,
           [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
               .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.closest('.skip'))
               .filter(
                   each =>
                       each.getBoundingClientRect().left < 0 || each.getBoundingClientRect().right > innerWidth + 0.5)
               .map(each => each.outerHTML.slice(0, 80))]);
  check(wide <= 320 && outside.length === 0, `${what}: expected 320 px, found ${wide} px, outside ${outside}`);
};

await page.goto(server.url);
await page.waitForFunction(() => document.getElementById('model').textContent === 'fable');
await idle();
await walk('empty page');

// The first control leads past the conversations.
for (let i = 0; i < 30 && (await focused()).walk !== 0; ++i) await press('Tab');
check((await focused()).name === 'Skip to the message box', `the first control, found ${(await focused()).name}`);
await press('Enter');
await press('Tab');
check(['input', 'attach', 'send'].includes((await focused()).id), `behind the skip, found ${(await focused()).id}`);

// Sampling opens, is filled in and closes.
await go_to('settings-open');
await press('Enter');
check((await expanded('settings-open')) === 'true', 'Enter opens the sampling');
await walk('sampling');
await go_to('settings-open');
await press('Tab');
while ((await page.evaluate(() => document.activeElement.name)) !== 'max_tokens') await press('Tab');
await page.keyboard.type('12');
while ((await page.evaluate(() => document.activeElement.name)) !== 'system') await press('Tab');
await page.keyboard.type('You are a bard.');
await go_to('settings-open');
await press('Space');
check((await expanded('settings-open')) === 'false', 'Space closes the sampling');

// A conversation: Shift Enter breaks the line, Enter sends.
await go_to('input');
await page.keyboard.type('Tell me');
await press('Shift+Enter');
await page.keyboard.type('a story.');
await press('Enter');
await page.waitForFunction(() => document.querySelector('.turn.assistant .tools'));
await idle();
check((await page.textContent('#count')) === '12 tokens', `as was set, found ${await page.textContent('#count')}`);
check((await page.textContent('.turn.user')).includes('Tell me\na story.'), 'a message of two lines');
await walk('conversation');
await page.evaluate(() => document.querySelector('#system summary').focus());
await press('Enter');
check(
    (await page.locator('#system p').innerText()) === 'You are a bard.' && await page.locator('#system p').isVisible(),
    'Enter opens the system prompt');
await walk('system prompt');

// The search finds a conversation by what was said in it; Escape ends the search, Enter opens what was found.
await press('Alt+n');
await go_to('search');
await page.keyboard.type('A STORY tell');
check(
    (await page.textContent('#found')) === '1 of 1 conversations' && (await page.locator('#chats li').count()) === 1,
    `what is found, found ${await page.textContent('#found')}`);
await walk('search');
await go_to('search');
await page.keyboard.type('zzz');
check((await page.locator('#chats li').count()) === 0, 'another word is in none');
await press('Escape');
check(
    (await page.inputValue('#search')) === '' && (await page.locator('#chats li').count()) === 1 &&
        (await focused()).id === 'search',
    'Escape ends the search');
await page.keyboard.type('story');
await press('Enter');
check((await page.locator('.turn').count()) === 2, 'Enter opens the first that is found');
await page.fill('#search', '');

// The menu opens by a key and is closed by Escape; its dialog takes the focus, and Escape gives it back.
await page.evaluate(() => document.getElementById('theme').focus());
await press('Tab');
check((await focused()).name === 'More', `behind the theme, found ${(await focused()).name}`);
await press('Enter');
await walk('menu');
await page.evaluate(() => document.querySelector('#more summary').focus());
check(await page.evaluate(() => !document.getElementById('more').open), 'the menu closes when the focus leaves it');
await press('Space');
await go_to('plan-open');
await press('Escape');
check(
    (await focused()).name === 'More' && await page.evaluate(() => !document.getElementById('more').open),
    'Escape closes the menu');
await press('Space');
await go_to('plan-open');
await press('Enter');
await page.waitForSelector('#plan[open]');
check(await page.evaluate(() => document.activeElement.closest('#plan') !== null), 'the dialog has the focus');
await press('Escape');
await page.waitForFunction(() => !document.getElementById('plan').open);
check((await focused()).name === 'More', `the focus comes back, found ${(await focused()).name}`);
await press('Alt+n');
check((await page.locator('.turn').count()) === 0, 'Alt N begins a conversation');

// As wide as a page of 1280 px that is enlarged four times (WCAG 2.2, 1.4.10).
await page.setViewportSize({width: 320, height: 640});
await fits('empty page at 320 px');
await walk('empty page at 320 px');
await go_to('menu');
await press('Enter');
check((await expanded('menu')) === 'true', 'Enter opens the conversations');
await page.waitForTimeout(400);  // it slides in
await fits('conversations at 320 px');
await walk('conversations at 320 px');
await press('Escape');
check((await expanded('menu')) === 'false', 'Escape closes the conversations');
await page.waitForTimeout(400);
await go_to('settings-open');
await press('Enter');
await fits('sampling at 320 px');
await walk('sampling at 320 px');
await go_to('settings-open');
await press('Enter');
await go_to('input');
await page.keyboard.type('word'.repeat(60) + ' one');
await press('Enter');
await page.waitForFunction(() => document.querySelector('.turn.assistant .tools'));
await idle();
await fits('conversation at 320 px');
await walk('conversation at 320 px');

await browser.close();
check(await server.stop() === 0, 'exit code');
end('keyboard');
