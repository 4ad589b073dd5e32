// Markdown as nodes of the page: headings, lists, quotes, tables, formulas (math.js), code with its colours
// (highlight.js) and a button that copies it, emphasis and links. Nothing of a text ever becomes markup of the page:
// every piece is set as text.
'use strict';

function markdown(text) {
  const make = (name, properties = {}, ...inside) => {
    const out = Object.assign(document.createElement(name), properties);
    out.append(...inside);
    return out;
  };

  // Marks within a line, in the order in which they are searched.
  const marks = new RegExp([
    /(`+)(.+?)\1(?!`)/,                                     // code
    /\\\((.+?)\\\)/,                                        // formula in brackets
    /\$\$(.+?)\$\$/,                                        // formula of its own line
    /(?<![\w$\\])\$(?=[^\s$])([^$]*?[^\s$\\])\$(?![\w$])/,  // formula between dollars
    /\*\*(?=\S)(.+?\S?)\*\*/,                               // strong
    /(?<![\w*])\*(?=\S)([^*]+?)\*(?!\w)/,                   // emphasis
    /(?<!\w)_(?=\S)([^_]+?)_(?!\w)/,                        // emphasis
    /~~(.+?)~~/,                                            // struck out
    /\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/,                 // link
    /(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])/,         // address
  ].map(each => each.source).join('|'));

  // Emphasis, code, links and plain addresses within a line.
  function inline(line) {
    const out = [];
    for (let rest = line; rest;) {
      const found = marks.exec(rest);
      if (!found) {
        out.push(rest);
        break;
      }
      if (found.index) out.push(rest.slice(0, found.index));
      const [all, ticks, code, bracketed, displayed, dollars, strong, star, under, gone, label, address, plain] = found;
      const link = (to, inside) => make('a', {href: to, target: '_blank', rel: 'noopener noreferrer'}, ...inside);
      if (ticks) out.push(make('code', {textContent: code.trim() || code}));
      else if (bracketed || dollars) out.push(formula(bracketed || dollars, false));
      else if (displayed) out.push(formula(displayed, true));
      else if (strong) out.push(make('strong', {}, ...inline(strong)));
      else if (star || under) out.push(make('em', {}, ...inline(star || under)));
      else if (gone) out.push(make('del', {}, ...inline(gone)));
      else if (label) out.push(link(address, inline(label)));
      else out.push(link(plain, [plain]));
      rest = rest.slice(found.index + all.length);
    }
    return out;
  }

  function code(lines, language) {
    const body = lines.join('\n'), button = make('button', {type: 'button', textContent: 'Copy code'});
    button.onclick = () => {
      navigator.clipboard?.writeText(body);
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy code';
      }, 1500);
    };
    return make(
        'figure', {className: 'code'}, make('figcaption', {}, make('span', {textContent: language || 'code'}), button),
        make('pre', {tabIndex: 0}, make('code', {}, ...highlight(body, language))));
  }

  const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/,
        cells = line =>
            line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map(each => each.trim().replaceAll('\\|', '|'));
  function list(lines, at) {
    const [, indent, sign] = item.exec(lines[at]), out = make(/\d/.test(sign) ? 'ol' : 'ul');
    if (/\d/.test(sign) && parseInt(sign) !== 1) out.start = parseInt(sign);
    let last = null;
    while (at < lines.length) {
      const found = item.exec(lines[at]);
      if (found && found[1].length > indent.length + 1 && last) {
        const [inner, next] = list(lines, at);
        last.append(inner);
        at = next;
      } else if (found && found[1].length >= indent.length) {
        last = make('li', {}, ...inline(found[3]));
        out.append(last);
        ++at;
      } else if (!found && last && /^\s+\S/.test(lines[at])) {
        last.append(' ', ...inline(lines[at++].trim()));
      } else break;
    }
    return [out, at];
  }

  const out = document.createDocumentFragment(), lines = text.split('\n');
  for (let at = 0; at < lines.length;) {
    const line = lines[at], fence = /^\s*(```+|~~~+)\s*([\w+#.-]*)/.exec(line),
          heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      ++at;
      continue;
    }
    if (fence) {
      const inside = [];
      for (++at; at < lines.length && !lines[at].trim().startsWith(fence[1]); ++at) inside.push(lines[at]);
      ++at;
      out.append(code(inside, fence[2]));
    } else if (/^\s*(\$\$|\\\[)/.test(line)) {
      const open = line.trim().slice(0, 2), close = open === '$$' ? '$$' : '\\]',
            rest = lines.slice(at).join('\n').trimStart().slice(2), end = rest.indexOf(close);
      // What is not ended yet is still on its way.
      const inside = end < 0 ? rest : rest.slice(0, end),
            behind = end < 0 ? '' : rest.slice(end + 2).split('\n', 1)[0].trim();
      out.append(make(
          'p', {}, end < 0 ? make('code', {textContent: inside}) : formula(inside, true),
          ...(behind ? inline(behind) : [])));
      at += inside.split('\n').length;
    } else if (heading) {
      out.append(make('p', {className: 'heading h' + heading[1].length}, ...inline(heading[2])));
      ++at;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.append(make('hr'));
      ++at;
    } else if (item.test(line)) {
      const [made, next] = list(lines, at);
      out.append(made);
      at = next;
    } else if (/^\s*>/.test(line)) {
      const inside = [];
      for (; at < lines.length && /^\s*>/.test(lines[at]); ++at) inside.push(lines[at].replace(/^\s*> ?/, ''));
      out.append(make('blockquote', {}, markdown(inside.join('\n'))));
    } else if (
        line.includes('|') && /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/.test(lines[at + 1] || '') &&
        cells(line).length === cells(lines[at + 1]).length) {
      const head = make('tr', {}, ...cells(line).map(each => make('th', {scope: 'col'}, ...inline(each)))),
            body = make('tbody');
      for (at += 2; at < lines.length && lines[at].includes('|'); ++at)
        body.append(make('tr', {}, ...cells(lines[at]).map(each => make('td', {}, ...inline(each)))));
      out.append(make('table', {}, make('thead', {}, head), body));
    } else {
      const inside = [];
      for (; at < lines.length && lines[at].trim() && !/^\s*(```|~~~|>|#{1,6}\s|\$\$|\\\[)/.test(lines[at]) &&
           (!inside.length || !item.test(lines[at]));
           ++at)
        inside.push(lines[at]);
      const paragraph = make('p');
      inside.forEach((each, i) => paragraph.append(...(i ? [make('br')] : []), ...inline(each)));
      out.append(paragraph);
    }
  }
  return out;
}
