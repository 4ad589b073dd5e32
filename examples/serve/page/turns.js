// The conversation as it is shown: its turns with their buttons, its figures, and the list beside it.
'use strict';

function figures(of) {
  $('first').textContent = of ? 'first token ' + of.first_ms + ' ms' : '–';
  $('speed').textContent = of ? of.speed + ' tokens/s' : '–';
  $('count').textContent = of ? of.tokens + ' tokens' : '–';
  show_context();
}
// How much of the model's context the conversation fills, once the server says how large that is.
function show_context() {
  const used = [...current.messages].reverse().find(each => each.used)?.used || 0,
        most = contexts[model_of(current)] || 0, share = most ? used / most : 0;
  $('context').hidden = !most;
  $('context').querySelector('meter').value = share;
  $('context').querySelector('span').textContent = 'context ' + used + ' of ' + most;
  $('room').hidden = !(share > 0.8) || !!current.truncate;
  $('room').querySelector('span').textContent = 'This conversation fills ' + Math.round(100 * share) +
      ' % of the model\'s context: about ' + (most - used) + ' tokens are left.';
}

function tools(at) {
  const message = current.messages[at],
        button = (text, label, action) =>
            element('button', {type: 'button', textContent: text, ariaLabel: label, onclick: action});
  const out = element('div', {className: 'tools'});
  if (running()) return out;
  const all = current.branches?.[before(current, at)];
  if (all && all.lists.length > 1) {
    const go = (step, text, label) => {
      const made =
          button(text, label + ' version of message ' + (at + 1), () => turn_to(current, at, all.shown + step));
      made.disabled = !(all.shown + step in all.lists);
      return made;
    };
    out.append(
        go(-1, '‹', 'Earlier'), element('span', {textContent: (all.shown + 1) + ' of ' + all.lists.length}),
        go(1, '›', 'Later'));
  }
  if (message.role === 'user') out.append(button('Edit', 'Edit message ' + (at + 1), () => edit(at)));
  else {
    out.append(button('Regenerate', 'Regenerate answer ' + (at + 1), () => answer(current, at)));
    out.append(button('Copy', 'Copy answer ' + (at + 1), () => navigator.clipboard?.writeText(message.content)));
    if (walks && message.content) out.append(button('Trace', 'Trace answer ' + (at + 1), () => trace(at)));
    const end = {length: 'cut at the longest length', stopped: 'stopped', error: 'not finished'}[message.finish];
    if (message.finish === 'stopped' || message.finish === 'error' || message.finish === 'length')
      if (message.content && at === current.messages.length - 1)
        out.append(button('Continue', 'Continue answer ' + (at + 1), () => answer(current, at, true)));
    if (end) out.append(element('span', {textContent: end}));
    if (message.left_out)
      out.append(element('span', {textContent: 'without the oldest ' + message.left_out + ' messages'}));
  }
  return out;
}
// Why there is no answer; it stays until the answer is asked for again.
function problem_of(at) {
  const message = current.messages[at], out = element('div', {className: 'problem'});
  if (!message.problem) return [];
  out.append(
      element('p', {textContent: 'No answer: ' + message.problem}),
      element('button', {type: 'button', textContent: 'Try again', onclick: () => answer(current, at)}));
  if (message.full)
    out.append(' ', element('button', {
                 type: 'button',
                 textContent: 'Leave the oldest turns out',
                 onclick: () => {
                   current.truncate = true;
                   answer(current, at);
                 }
               }));
  return [out];
}
function edit(at) {
  const turn = $('log').children[at],
        area = element('textarea', {value: current.messages[at].content, rows: 3, ariaLabel: 'Edited message'});
  const done = () => {
    if (!area.value.trim()) return;
    branch(current, at, [{...current.messages[at], id: fresh(), content: area.value}]);
    answer(current, at + 1);
  };
  area.onkeydown = event => {
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      done();
    }
    if (event.key === 'Escape') {
      event.stopPropagation();
      show();
    }
  };
  turn.replaceChildren(element(
      'div', {className: 'edit'}, area,
      element(
          'div', {className: 'tools'}, element('button', {type: 'button', textContent: 'Send', onclick: done}),
          element('button', {type: 'button', textContent: 'Cancel', onclick: show}))));
  area.focus();
}

function draw(at) {
  const turn = $('log').children[at], log = $('log'), message = current.messages[at];
  if (!turn || !message) return;
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 60, fold = turn.querySelector('.thought');
  fold.hidden = !message.thought;
  fold.querySelector('summary').textContent = message.content || message.tool_calls ? 'Thoughts' : 'Thinking …';
  fold.querySelector('p').textContent = message.thought || '';
  turn.querySelector('.text').replaceChildren(markdown(message.content));
  turn.querySelector('.text').hidden = !message.content && !!message.tool_calls;
  const blocks = turn.querySelector('.calls'), open = [...blocks.children].map(each => each.open);
  blocks.replaceChildren(...call_blocks(at, open));
  if (at_end) log.scrollTop = log.scrollHeight;
}
// Calls of tools, folded as thoughts are, with room for their results.
function call_blocks(at, open = []) {
  const message = current.messages[at], calls = message.tool_calls || [];
  const block = (call, i) => {
    const value = json_of(call.function.arguments);
    const result = element('textarea', {
      rows: 2,
      value: result_of(message, call),
      readOnly: !!running(),
      oninput: () => {
        message.results = calls.map((each, j) => j === i ? result.value : result_of(message, each));
        save();
      }
    });
    return element(
        'details', {className: 'call', open: !!open[i]},
        element('summary', {textContent: 'Call of ' + call.function.name}),
        element(
            'pre',
            {tabIndex: 0, textContent: value === undefined ? call.function.arguments : JSON.stringify(value, null, 2)}),
        element('label', {}, 'Result of ' + call.function.name + ' ', result));
  };
  const send = element('button', {
    type: 'button',
    textContent: calls.length === 1 ? 'Send the result' : 'Send the results',
    onclick: () => answer(current, at + 1)
  });
  const is_last = at === current.messages.length - 1 && message.finish === 'tool_calls' && !running();
  return [...calls.map(block), ...(is_last ? [send] : [])];
}
const files_of = message =>
    (message.files || [])
        .map(
            each => element(
                'details', {className: 'file'}, element('summary', {textContent: file_title(each)}),
                element('pre', {tabIndex: 0, textContent: each.text})));
const prompts = [
  'Tell me a story about a brave mouse.', 'Explain what a compiler does, in three sentences.',
  'Write a haiku about rain.'
];
function list_chats() {
  $('chats').replaceChildren(...found_chats().map(chat => {
    const item = element(
        'li', {}, element('button', {type: 'button', textContent: chat.title, onclick: () => open(chat)}),
        element(
            'button',
            {type: 'button', textContent: '✎', ariaLabel: 'Rename ' + chat.title, onclick: () => rename(chat, item)}),
        element(
            'button',
            {type: 'button', textContent: '×', ariaLabel: 'Delete ' + chat.title, onclick: () => remove(chat)}));
    if (chat === current) item.setAttribute('aria-current', 'true');
    return item;
  }));
}
// The texts of the conversation in their fields, and its system prompt above its turns.
function show_texts() {
  for (const each of texts) $('settings').elements[each].value = current[each] || '';
  $('system').hidden = !current.system?.trim();
  $('system').querySelector('p').textContent = current.system?.trim() || '';
}
function show() {
  pick();
  show_texts();
  list_chats();
  $('log').replaceChildren(...current.messages.map(
      (message, at) => element(
          'section', {className: 'turn ' + message.role},
          element('h2', {textContent: message.role === 'user' ? 'You' : message.model || model_of(current) || 'Model'}),
          ...(message.role === 'user' ?
                  [element('div', {className: 'text', textContent: message.content}), ...files_of(message)] :
                  [
                    element(
                        'details', {className: 'thought', hidden: !message.thought}, element('summary', {
                          textContent: message.content || message.tool_calls || !running() ? 'Thoughts' : 'Thinking …'
                        }),
                        element('p', {textContent: message.thought || ''})),
                    element(
                        'div', {className: 'text', hidden: !message.content && !!message.tool_calls},
                        markdown(message.content)),
                    element('div', {className: 'calls'}, ...call_blocks(at)), ...problem_of(at)
                  ]),
          tools(at))));
  if (!current.messages.length)
    $('log').append(element(
        'div', {className: 'empty'}, element('p', {textContent: 'Ask something, or try one of these:'}),
        ...prompts.map(each => element('button', {
                         type: 'button',
                         textContent: each,
                         onclick: () => {
                           if (healthy) send(each);
                         }
                       }))));
  $('log').scrollTop = $('log').scrollHeight;
  figures([...current.messages].reverse().find(each => each.stats)?.stats);
  $('send').hidden = !!running();
  $('send').disabled = !healthy;
  $('stop').hidden = !running();
  $('log').setAttribute('aria-busy', String(!!running()));
}
