// Conversations: their list, the one that is shown, what is saved of them, and their text for the model.
'use strict';

let chats = [], current = null;
const runs = new Map();  // what stops the answer that is under way, by conversation
const running = () => runs.get(current);

// One after the other: each writer has read what the one before has written.
let saving = Promise.resolve();
function save(chat = current) {
  chats.sort((a, b) => b.touched - a.touched);
  return saving = saving
                      .then(async () => {
                        if (!chats.includes(chat)) return;
                        const other = await kept.put(chat);
                        if (other) {
                          chats.push(other);
                          show();
                        }
                      })
                      .catch(
                          problem => trouble(
                              'This browser keeps no more conversations (' + problem.message +
                              '): export and delete some.'));
}
// Another tab has written: its record replaces ours, unless an answer comes into ours.
function written(id, record) {
  const at = chats.findIndex(each => each.id === id);
  if (at >= 0 && runs.has(chats[at])) return;
  if (!record) {
    if (at < 0) return;
    const [old] = chats.splice(at, 1);
    if (old === current) begin();
  } else if (at < 0) chats.push(record);
  else {
    if ((record.revision || 0) <= (chats[at].revision || 0)) return;
    if (chats[at] === current) current = record;
    chats[at] = record;
  }
  chats.sort((a, b) => b.touched - a.touched);
  if (!$('log').querySelector('.edit, .call textarea:focus')) show();
}

// The text of a conversation for the model.
const fence = text => '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(each => each[0].length + 1)));
const with_files = message => message.content +
    (message.files || [])
        .map(each => '\n\nFile ' + each.name + ':\n' + fence(each.text) + '\n' + each.text + '\n' + fence(each.text))
        .join('');
function json_of(text) {
  try {
    return JSON.parse(text);
  } catch { return undefined; }
}
const result_of = (message, call) => message.results?.[message.tool_calls.indexOf(call)] || '';
function request_messages(chat, end) {
  const out = chat.messages.slice(0, end).flatMap(each => {
    // A call that was stopped within its arguments is none.
    const calls = (each.tool_calls || []).filter(call => json_of(call.function.arguments) !== undefined);
    if (!calls.length) return {role: each.role, content: with_files(each)};
    return [
      {role: each.role, content: each.content || null, tool_calls: calls},
      ...calls.map(call => ({role: 'tool', tool_call_id: call.id, content: result_of(each, call) || 'No result.'}))
    ];
  });
  if (chat.system?.trim()) out.unshift({role: 'system', content: chat.system.trim()});
  return out;
}

// Turns that were there before an edit or another answer are kept beside those that are shown: chat.branches has, by
// the message in front of them, the lists of messages that follow it; the one that is shown is in chat.messages, and
// null there.
const fresh = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
const before = (chat, at) => at === 0 ? 'root' : chat.messages[at - 1].id ||= fresh();
function branch(chat, at, following) {
  const old = chat.messages.splice(at, chat.messages.length, ...following), from = before(chat, at);
  if (!old.some(each => each.content || each.tool_calls)) return;
  const all = (chat.branches ||= {})[from] ||= {lists: [null], shown: 0};
  all.lists[all.shown] = old;
  all.shown = all.lists.push(null) - 1;
}
function turn_to(chat, at, which) {
  const all = chat.branches[before(chat, at)];
  all.lists[all.shown] = chat.messages.splice(at, chat.messages.length, ...all.lists[which]);
  all.lists[which] = null;
  all.shown = which;
  chat.touched = Date.now();
  save();
  show();
}

// The conversations that have every word that is searched for, in the title or a message, a turn's other versions too.
const letters = text => text.normalize('NFKC').toLowerCase();
function found_chats() {
  const words = letters($('search').value).split(/\s+/).filter(Boolean);
  const text = chat => letters([
    {content: chat.title}, ...chat.messages,
    ...Object.values(chat.branches || {}).flatMap(all => all.lists.flatMap(list => list || []))
  ].map(with_files).join('\n'));
  const out = words.length ? chats.filter(chat => {
    const all = text(chat);
    return words.every(word => all.includes(word));
  }) :
                             chats;
  $('found').hidden = !words.length;
  $('found').textContent = words.length ? out.length + ' of ' + chats.length + ' conversations' : '';
  return out;
}

function begin() {
  current = {
    id: Date.now() + '-' + Math.random().toString(36).slice(2),
    title: 'New chat',
    messages: [],
    touched: Date.now()
  };
  show();
  $('input').focus();
}
function open(chat) {
  current = chat;
  close_menu();
  show();
  go_on(chat);
}
function rename(chat, item) {
  const name = element('input', {value: chat.title, ariaLabel: 'Name of the conversation', maxLength: 80});
  let done = false;
  const end = keep => {
    if (done) return;
    done = true;
    if (keep && name.value.trim()) {
      chat.title = name.value.trim();
      chat.touched = Date.now();
      save(chat);
    }
    show();
  };
  name.onkeydown = event => {
    if (event.key === 'Enter') end(true);
    if (event.key === 'Escape') {
      event.stopPropagation();
      end(false);
    }
  };
  name.onblur = () => end(true);
  item.replaceChildren(name);
  name.select();
}
let forget = 0;
function remove(chat) {
  runs.get(chat)?.abort();
  chats = chats.filter(each => each !== chat);
  saving = saving.then(() => kept.remove(chat.id)).catch(problem => trouble('It is still kept: ' + problem.message));
  if (chat === current) begin();
  else show();
  $('undo').hidden = false;
  $('undo').querySelector('span').textContent = 'Deleted: ' + chat.title;
  $('undo').querySelector('button').onclick = () => {
    chats.push(chat);
    chat.revision = 0;  // as if it were new
    $('undo').hidden = true;
    save(chat);
    open(chat);
  };
  clearTimeout(forget);
  forget = setTimeout(() => {
    $('undo').hidden = true;
  }, 15000);
}
