/** The public API of a package as one readable page, from the declarations that its `exports` name. */
import { join, relative, sep } from 'node:path';
import { type Declaration, Declarations } from './declarations.js';

export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

export function publicApi(folder: string, manifest: Manifest): string {
  const declarations = new Declarations();
  const shown = new Map<string, string>();
  const behind: Declaration[] = [];
  const sections: string[] = [];

  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (typeof target === 'string') continue;
    const entry = subpath.replace('.', manifest.name);
    const own: string[] = [];
    const again: string[] = [];
    for (const [name, declaration] of declarations.exportsOf(join(folder, target.types))) {
      const before = shown.get(idOf(declaration));
      if (before) again.push(`- \`${name}\`, as in \`${before}\``);
      else own.push(textOf(name, declaration));
      shown.set(idOf(declaration), before ?? entry);
      behind.push(...declarations.mentionedBy(declaration));
    }
    sections.push(section(entry, own, again));
  }

  const rest = closure(declarations, behind, shown);
  if (rest.length > 0) {
    const texts = rest.map((declaration) => textOf(declaration.name, declaration));
    sections.push(section('Not exported, but part of the above', texts, []));
  }
  return `${sections.join('\n\n')}\n`;

  function idOf({ file, name }: Declaration): string {
    return `${relative(folder, file).split(sep).join('/')}#${name}`;
  }

  function closure(
    all: Declarations,
    from: Declaration[],
    known: Map<string, string>,
  ): readonly Declaration[] {
    const found = new Map<string, Declaration>();
    for (let next = from.pop(); next; next = from.pop()) {
      const id = idOf(next);
      if (known.has(id) || found.has(id)) continue;
      found.set(id, next);
      from.push(...all.mentionedBy(next));
    }
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, declaration]) => declaration);
  }
}

function section(title: string, own: readonly string[], again: readonly string[]): string {
  const block = own.length > 0 ? ['```ts', own.join('\n\n'), '```', ''] : [];
  return [`## ${title}`, '', ...block, ...again].join('\n').trimEnd();
}

function textOf(name: string, { name: declared, text }: Declaration): string {
  const as = name === declared ? '' : `// exported as ${name}\n`;
  return as + text.replace(/ +$/gm, '').replace(/^ +/gm, (indent) => indent.slice(indent.length / 2));
}
