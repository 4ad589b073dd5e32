// Which features of which layer fired for an answer, as the server's walk on the CPU finds them.
'use strict';

async function trace(at) {
  const map = $('trace-map'), detail = $('trace-detail'), asked = request_messages(current, at);
  map.replaceChildren('The answer is walked on the CPU …');
  detail.replaceChildren();
  $('trace').showModal();
  try {
    const reply = await ask_server('/v1/trace', {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({messages: asked, reply: current.messages[at].content})
    });
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error.message);
    const tokens = found.tokens.slice(found.reply_from), layers = tokens[0].added_by_layer.length,
          most = Math.max(1e-9, ...tokens.flatMap(each => each.added_by_layer));
    const promoted = new Map(found.promotes.map(each => [each.layer + ' ' + each.feature, each.tokens]));
    const rows = [];
    for (let layer = layers - 1; layer >= 0; --layer) {
      rows.push(element('span', {className: 'layer', textContent: 'layer ' + layer}));
      tokens.forEach((token, i) => {
        const describe = () => detail.replaceChildren(
            element('b', {textContent: 'layer ' + layer + ', token ' + JSON.stringify(token.piece)}),
            element(
                'ul', {},
                ...found.fired.filter(each => each.token === i + found.reply_from && each.layer === layer)
                    .map(each => element('li', {
                           textContent: 'feature ' + each.feature + ' (gate ' + each.score.toFixed(2) + ', adds ' +
                               each.contribution.toFixed(2) + ') promotes ' +
                               (promoted.get(layer + ' ' + each.feature) || [])
                                   .map(piece => JSON.stringify(piece))
                                   .join(' ')
                         }))));
        const cell = element('button', {
          type: 'button',
          className: 'cell',
          ariaLabel: 'layer ' + layer + ', token ' + (i + 1) + ' ' + token.piece,
          onfocus: describe,
          onpointerenter: describe
        });
        cell.style.setProperty('--v', Math.sqrt(token.added_by_layer[layer] / most).toFixed(3));
        rows.push(cell);
      });
    }
    rows.push(
        element('span', {className: 'layer'}),
        ...tokens.map(token => element('span', {className: 'token', textContent: token.piece})));
    map.style.gridTemplateColumns = 'auto repeat(' + tokens.length + ', 24px)';
    map.replaceChildren(...rows);
  } catch (problem) { map.replaceChildren('No trace: ' + problem.message); }
}
