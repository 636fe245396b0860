/**
 * Source text as rules want to see it: code without comments and without what strings say. Line breaks stay, so
 * that a finding has its line. A scanner, not a parser: it knows where code is, not what it means.
 */

const known = new Map<string, string>();

/** Blanks comments and the insides of strings. Code inside a template's `${}` stays. Many rules ask for the same files. */
export function codeOf(source: string): string {
  const code = known.get(source) ?? withoutWords(source);
  known.set(source, code);
  return code;
}

function withoutWords(source: string): string {
  let out = '';
  let at = 0;
  /** For each template that is open: how many braces are open inside its `${}`. */
  const templates: number[] = [];

  function skipTo(end: number): void {
    out += source.slice(at, end).replace(/[^\n]/g, ' ');
    at = end;
  }
  function skipString(quote: string): void {
    let end = at + 1;
    while (end < source.length && source[end] !== quote) end += source[end] === '\\' ? 2 : 1;
    out += quote;
    at += 1;
    skipTo(end);
    out += quote;
    at = end + 1;
  }
  function skipTemplate(): void {
    let end = at;
    while (end < source.length && source[end] !== '`' && !source.startsWith('${', end)) {
      end += source[end] === '\\' ? 2 : 1;
    }
    skipTo(end);
    if (source[end] === '`') {
      out += '`';
      at = end + 1;
    } else {
      out += '${';
      at = end + 2;
      templates.push(0);
    }
  }
  function braces(char: string): void {
    const open = templates.pop();
    if (open === undefined) return;
    if (char === '{') templates.push(open + 1);
    else if (char === '}' && open > 0) templates.push(open - 1);
    else if (char !== '}') templates.push(open);
  }

  while (at < source.length) {
    const char = source[at] as string;
    const closesTemplateCode = char === '}' && templates.at(-1) === 0;
    if (source.startsWith('//', at)) skipTo(endOf(source, '\n', at));
    else if (source.startsWith('/*', at)) skipTo(endOf(source, '*/', at) + 2);
    else if (char === '/' && startsRegExp(out)) skipTo(endOfRegExp(source, at));
    else if (char === "'" || char === '"') skipString(char);
    else {
      braces(char);
      out += char;
      at += 1;
      if (char === '`' || closesTemplateCode) skipTemplate();
    }
  }
  return out;
}

function endOf(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from);
  return found === -1 ? source.length : found;
}

/** After a value a slash divides; after anything else it starts a regular expression. */
function startsRegExp(before: string): boolean {
  return /(?:^|[(,=:[!&|?{};+*<>~^-]|\b(?:return|typeof|case|of|in|await|yield))\s*$/.test(before.slice(-20));
}

function endOfRegExp(source: string, from: number): number {
  let inClass = false;
  for (let end = from + 1; end < source.length; end++) {
    const char = source[end];
    if (char === '\n') return end;
    if (char === '\\') end += 1;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '/' && !inClass) return end + 1;
  }
  return source.length;
}

/** What a module names in its imports and re-exports, static and dynamic. */
export function importsOf(source: string): readonly string[] {
  const code = codeOf(source);
  const starts = code.matchAll(/(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*(?=['"])/g);
  return [...starts].map((match) => {
    const open = match.index + match[0].length;
    return source.slice(open + 1, source.indexOf(source[open] as string, open + 1));
  });
}

/** Where a pattern occurs: one `file:line: text` each. */
export function findings(
  file: string,
  source: string,
  searched: string,
  pattern: RegExp,
  counts: (found: string) => boolean = () => true,
): readonly string[] {
  const lines = source.split('\n');
  const found = [...searched.matchAll(pattern)].filter(([text]) => counts(text));
  return found.map((match) => {
    const line = searched.slice(0, match.index).split('\n').length;
    return `${file}:${line}: ${lines[line - 1]?.trim()}`;
  });
}
