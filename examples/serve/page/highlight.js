// Colours of code: comments, texts, numbers and the words of a language, each as text in a span. What is not known
// stays plain.
'use strict';

const highlight = (() => {
  const words = text => new Set(text.trim().split(/\s+/));
  const c = `
      auto bool break case catch char class const constexpr continue default delete do double else enum extern
      false float for if inline int long namespace new nullptr operator override private protected public return
      short signed sizeof static struct switch template this throw true try typedef typename union unsigned using
      virtual void volatile while`;
  const js = `
      as async await break case catch class const continue default delete do else export extends false finally for
      from function if import in instanceof interface let new null of return static super switch this throw true
      try type typeof undefined var void while yield`;
  const java = c + `
      abstract boolean byte extends final finally fun implements import instanceof interface native null object
      package super synchronized throws val var when`;
  const known = {
    c,
    cpp: c,
    'c++': c,
    h: c,
    hpp: c,
    glsl: c + ' in out uniform layout vec2 vec3 vec4 mat4 buffer',
    cs: java,
    java,
    kotlin: java,
    js,
    javascript: js,
    jsx: js,
    ts: js,
    typescript: js,
    tsx: js,
    json: 'true false null',
    py: `
      and as assert async await break class continue def del elif else except False finally for from global if
      import in is lambda match None nonlocal not or pass raise return self True try while with yield`,
    rust: `
      as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod
      move mut pub ref return self Self static struct super trait true type unsafe use where while`,
    go: `
      break case chan const continue default defer else fallthrough false for func go goto if import interface map
      nil package range return select struct switch true type var`,
    sh: 'case do done elif else esac export fi for function if in local return then until while',
    ruby: `
      begin class def do else elsif end ensure false for if in module nil not or rescue return self super then
      true unless until when while yield`,
    sql: `
      add all alter and as asc between by case create cross delete desc distinct drop else end exists from full
      group having if in index inner insert into is join key left like limit not null on or order outer primary
      references right select set table then union unique update values view when where with`,
    lua: 'and break do else elseif end false for function if in local nil not or repeat return then true until while',
    yaml: 'true false null yes no',
    toml: 'true false',
  };
  Object.assign(known, {
    python: known.py,
    rs: known.rust,
    bash: known.sh,
    shell: known.sh,
    zsh: known.sh,
    rb: known.ruby,
    yml: known.yaml,
    golang: known.go
  });
  const hash = words('py python sh bash shell zsh ruby rb yaml yml toml'), dash = words('sql lua'),
        folded = words('sql'), sets = {};

  return (text, language) => {
    const name = language.toLowerCase();
    if (!Object.hasOwn(known, name)) return [text];
    const own = sets[name] ||= words(known[name]);
    const comment = hash.has(name) ? '#[^\\n]*' :
        dash.has(name)             ? '--[^\\n]*' :
        name === 'json'            ? '(?!)' :
                                     '\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)';
    const quoted =
        '"""[^]*?(?:"""|$)|"(?:\\\\[^]|[^"\\\\\\n])*"?|\'(?:\\\\[^]|[^\'\\\\\\n])*\'?|`(?:\\\\[^]|[^`\\\\])*`?';
    const mark = new RegExp(`(${comment})|(${quoted})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, 'g');
    const out = [];
    let at = 0;
    for (const found of text.matchAll(mark)) {
      const [all, comment, string, number, word] = found;
      const kind = comment !== undefined                        ? 'comment' :
          string !== undefined                                  ? 'string' :
          number !== undefined                                  ? 'number' :
          own.has(folded.has(name) ? word.toLowerCase() : word) ? 'word' :
                                                                  '';
      if (!kind) continue;
      if (found.index > at) out.push(text.slice(at, found.index));
      out.push(Object.assign(document.createElement('span'), {className: 'code-' + kind, textContent: all}));
      at = found.index + all.length;
    }
    out.push(text.slice(at));
    return out;
  };
})();
