// Formulas in TeX as MathML, which browsers draw themselves: letters, numbers, indices, fractions, roots, brackets that
// grow, matrices and the usual names. What is not known stays as it was written.
'use strict';

const formula = (() => {
  const space = 'http://www.w3.org/1998/Math/MathML';
  const make = (name, ...inside) => {
    const out = document.createElementNS(space, name);
    out.append(...inside);
    return out;
  };
  const pairs = text => Object.fromEntries(text.trim().split(/\s+/).map(each => each.split(':')));
  const letters = pairs(`
      alpha:α beta:β gamma:γ delta:δ epsilon:ϵ varepsilon:ε zeta:ζ eta:η theta:θ vartheta:ϑ iota:ι kappa:κ
      lambda:λ mu:μ nu:ν xi:ξ pi:π rho:ρ sigma:σ tau:τ upsilon:υ phi:ϕ varphi:φ chi:χ psi:ψ omega:ω Gamma:Γ
      Delta:Δ Theta:Θ Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ Phi:Φ Psi:Ψ Omega:Ω infty:∞ partial:∂ nabla:∇ hbar:ℏ ell:ℓ
      emptyset:∅ Re:ℜ Im:ℑ aleph:ℵ`);
  const signs = pairs(`
      times:× cdot:⋅ div:÷ pm:± mp:∓ le:≤ leq:≤ ge:≥ geq:≥ ne:≠ neq:≠ approx:≈ equiv:≡ sim:∼ simeq:≃ cong:≅
      propto:∝ in:∈ notin:∉ ni:∋ subset:⊂ subseteq:⊆ supset:⊃ supseteq:⊇ cup:∪ cap:∩ setminus:∖ to:→ rightarrow:→
      leftarrow:← leftrightarrow:↔ Rightarrow:⇒ Leftarrow:⇐ Leftrightarrow:⇔ implies:⟹ iff:⟺ mapsto:↦ forall:∀
      exists:∃ neg:¬ lnot:¬ land:∧ wedge:∧ lor:∨ vee:∨ oplus:⊕ otimes:⊗ circ:∘ bullet:∙ star:⋆ ast:∗ ldots:…
      cdots:⋯ dots:… vdots:⋮ ddots:⋱ mid:∣ parallel:∥ perp:⊥ angle:∠ ll:≪ gg:≫ prime:′ langle:⟨ rangle:⟩ lfloor:⌊
      rfloor:⌋ lceil:⌈ rceil:⌉ lbrace:{ rbrace:} vert:| Vert:‖ colon:: cdotp:⋅`);
  const large = pairs('sum:∑ prod:∏ int:∫ iint:∬ oint:∮ bigcup:⋃ bigcap:⋂ bigoplus:⨁ coprod:∐');
  const functions = new Set(`
      sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim ker
      gcd arg deg Pr mod`.trim().split(/\s+/));
  const above = pairs('hat:^ bar:¯ vec:→ tilde:~ dot:˙ ddot:¨ overline:‾ widehat:^ widetilde:~');
  const fonts = pairs(`
      mathbb:double-struck mathcal:script mathbf:bold mathrm:normal mathfrak:fraktur boldsymbol:bold
      mathsf:sans-serif mathit:italic`);
  const double = {C: 'ℂ', H: 'ℍ', N: 'ℕ', P: 'ℙ', Q: 'ℚ', R: 'ℝ', Z: 'ℤ'};

  class unknown extends Error {}
  class reader {
    constructor(text) {
      this.pieces = text.match(/\\[A-Za-z]+\*?|\\.|\d+(?:\.\d+)?|\s+|[^]/gu) || [];
      this.at = 0;
      this.depth = 0;
    }
    blank() {
      while (/^\s+$/.test(this.pieces[this.at] || '')) ++this.at;
    }
    look() {
      this.blank();
      return this.pieces[this.at];
    }
    next() {
      const out = this.look();
      if (out === undefined) throw new unknown('end');
      ++this.at;
      return out;
    }
    raw() {  // between braces, as it is written
      if (this.next() !== '{') throw new unknown('{');
      let out = '', open = 1;
      for (;;) {
        const piece = this.pieces[this.at++];
        if (piece === undefined) throw new unknown('}');
        open += piece === '{' ? 1 : piece === '}' ? -1 : 0;
        if (!open) return out;
        out += piece;
      }
    }
    row(ends) {
      if (++this.depth > 60) throw new unknown('depth');
      const out = [];
      for (let piece; (piece = this.look()) !== undefined && !ends.includes(piece);) out.push(this.indexed());
      --this.depth;
      return make('mrow', ...out);
    }
    group() {
      if (this.look() !== '{') return this.atom();
      this.next();
      const out = this.row(['}']);
      this.next();
      return out;
    }
    indexed() {
      const first = this.look();
      const base = first === '^' || first === '_' ? make('mrow') : this.atom();
      let under = null, over = null, primes = '';
      for (let piece; (piece = this.look()) === '^' || piece === '_' || piece === '\'';) {
        this.next();
        if (piece === '\'') primes += '′';
        else if (piece === '^') over = this.group();
        else under = this.group();
      }
      if (primes) over = over ? make('mrow', make('mo', primes), over) : make('mo', primes);
      if (!under && !over) return base;
      const limits = base.limits;
      const name = under && over ? (limits ? 'munderover' : 'msubsup') :
          under                  ? (limits ? 'munder' : 'msub') :
          limits                 ? 'mover' :
                                   'msup';
      return make(name, base, ...(under ? [under] : []), ...(over ? [over] : []));
    }
    bracket() {
      const piece = this.next(), name = piece.slice(1);
      if (piece === '.') return '';
      if (piece === '\\{' || piece === '\\}') return name;
      if (piece === '\\|') return '‖';
      if (piece.startsWith('\\')) {
        if (!Object.hasOwn(signs, name)) throw new unknown(piece);
        return signs[name];
      }
      return piece;
    }
    table(kind) {
      const sides = {
        pmatrix: '()',
        bmatrix: '[]',
        vmatrix: '||',
        Bmatrix: '{}',
        cases: '{',
        matrix: '',
        aligned: '',
        align: '',
        'align*': '',
        array: '',
        gathered: ''
      };
      if (!Object.hasOwn(sides, kind)) throw new unknown(kind);
      if (kind === 'array') this.raw();
      const rows = [];
      let cells = [];
      for (;;) {
        const cell = this.row(['&', '\\\\', '\\end']), end = this.next();
        cells.push(make('mtd', cell));
        if (end === '&') continue;
        rows.push(make('mtr', ...cells));
        cells = [];
        if (end === '\\end') break;
      }
      if (this.raw() !== kind) throw new unknown('\\end');
      const table = make('mtable', ...rows), side = sides[kind];
      if (kind.startsWith('align') || kind === 'cases')
        table.setAttribute('columnalign', kind === 'cases' ? 'left' : 'right left');
      return make('mrow', ...(side ? [make('mo', side[0])] : []), table, ...(side[1] ? [make('mo', side[1])] : []));
    }
    atom() {
      const piece = this.next(), name = piece.startsWith('\\') ? piece.slice(1) : '';
      if (piece === '{') {
        --this.at;
        return this.group();
      }
      if (piece === '}' || piece === '&') throw new unknown(piece);
      if (/^\d/.test(piece)) return make('mn', piece);
      if (/^\p{L}$/u.test(piece)) return make('mi', piece);
      if (!name) return make('mo', piece === '-' ? '−' : piece === '*' ? '∗' : piece);
      if (Object.hasOwn(letters, name)) return make('mi', letters[name]);
      if (Object.hasOwn(signs, name)) return make('mo', signs[name]);
      if (Object.hasOwn(large, name)) return Object.assign(make('mo', large[name]), {limits: !name.includes('int')});
      if (functions.has(name))
        return Object.assign(make('mi', name), {limits: ['lim', 'max', 'min', 'sup', 'inf'].includes(name)});
      if (name === 'frac' || name === 'dfrac' || name === 'tfrac') return make('mfrac', this.group(), this.group());
      if (name === 'binom') {
        const inside = make('mfrac', this.group(), this.group());
        inside.setAttribute('linethickness', '0');
        return make('mrow', make('mo', '('), inside, make('mo', ')'));
      }
      if (name === 'sqrt') {
        if (this.look() !== '[') return make('msqrt', this.group());
        this.next();
        const degree = this.row([']']);
        this.next();
        return make('mroot', this.group(), degree);
      }
      if (name === 'left') {
        const open = this.bracket(), inside = this.row(['\\right']);
        this.next();
        const close = this.bracket();
        return make('mrow', ...(open ? [make('mo', open)] : []), inside, ...(close ? [make('mo', close)] : []));
      }
      if (/^[bB]ig+[lrm]?$/.test(name)) return make('mo', this.bracket());
      if (['text', 'textbf', 'textit', 'mbox', 'operatorname'].includes(name))
        return make(name === 'operatorname' ? 'mi' : 'mtext', this.raw());
      if (Object.hasOwn(above, name)) return make('mover', this.group(), make('mo', above[name]));
      if (name === 'underline') return make('munder', this.group(), make('mo', '_'));
      if (Object.hasOwn(fonts, name)) {
        const inside = this.group();
        for (const each of [inside, ...inside.querySelectorAll('mi')]) {
          if (each.localName !== 'mi') continue;
          if (name === 'mathbb') each.textContent = double[each.textContent] || each.textContent;
          each.setAttribute('mathvariant', fonts[name] === 'normal' ? 'normal' : fonts[name]);
          if (fonts[name] === 'bold') each.style.fontWeight = 'bold';
        }
        return inside;
      }
      if (name === 'begin') return this.table(this.raw());
      if ([',', ';', ':', '!', ' ', 'quad', 'qquad'].includes(name)) {
        const out = make('mspace');
        out.setAttribute(
            'width',
            {',': '.17em', ';': '.28em', ':': '.22em', '!': '0', ' ': '.3em', quad: '1em', qquad: '2em'}[name]);
        return out;
      }
      if (['displaystyle', 'textstyle', 'limits', 'nolimits'].includes(name)) return make('mrow');
      if (['{', '}', '%', '$', '#', '&', '_'].includes(name)) return make('mo', name);
      if (name === '|') return make('mo', '‖');
      if (name === '\\') {
        const out = make('mspace');
        out.setAttribute('linebreak', 'newline');
        return out;
      }
      throw new unknown(piece);
    }
  }

  return (text, block) => {
    try {
      const from = new reader(text), inside = from.row([]);
      if (from.look() !== undefined) throw new unknown(from.look());
      const out = make('math', inside);
      if (block) out.setAttribute('display', 'block');
      out.setAttribute('aria-label', text.trim());
      return out;
    } catch (problem) {
      if (!(problem instanceof unknown)) throw problem;
      return Object.assign(document.createElement('code'), {textContent: text});
    }
  };
})();
