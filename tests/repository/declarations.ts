/**
 * Reads emitted declaration files: which names a module exports, where each is declared, and what else those
 * declarations speak of. Knows the compiler's layout (a statement starts at the left edge), not the language.
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

interface Reference {
  readonly file: string;
  readonly name: string;
}

interface Statement {
  /** Without comments. */
  readonly text: string;
  /** With the comments inside it. */
  readonly commented: string;
  /** Its doc comment, as text; empty when it has none. */
  readonly doc: string;
}

interface Module {
  /** Declarations by name; overloads make several. */
  readonly declared: Map<string, Statement[]>;
  /** Local names that come from elsewhere. */
  readonly imported: Map<string, Reference>;
  readonly exported: Map<string, Reference>;
  /** Files of which everything is exported. */
  readonly stars: string[];
}

export interface Declaration extends Reference, Statement {}

export class Declarations {
  readonly #modules = new Map<string, Module>();

  /** What a file exports, by public name, sorted. */
  exportsOf(file: string): ReadonlyMap<string, Declaration> {
    const names = [...this.#namesOf(file)].sort(([a], [b]) => (a < b ? -1 : 1));
    return new Map(names.map(([name, from]) => [name, this.#declaration(from)]));
  }

  /** The declarations that this one speaks of, directly. */
  mentionedBy({ file, name, text }: Declaration): readonly Declaration[] {
    const module = this.#module(file);
    const mentioned: Reference[] = [];
    for (const [word] of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
      if (word === name) continue;
      if (module.declared.has(word)) mentioned.push({ file, name: word });
      const from = module.imported.get(word);
      if (from) mentioned.push(from);
    }
    for (const [, specifier = '', word = ''] of text.matchAll(/import\("(\.[^"]+)"\)\.(\w+)/g)) {
      mentioned.push({ file: fileOf(file, specifier), name: word });
    }
    return mentioned.map((reference) => this.#declaration(reference));
  }

  #namesOf(file: string): Map<string, Reference> {
    const { exported, stars } = this.#module(file);
    const names = new Map<string, Reference>();
    for (const star of stars) for (const [name, from] of this.#namesOf(star)) names.set(name, from);
    for (const [name, from] of exported) names.set(name, from);
    return names;
  }

  #declaration(reference: Reference): Declaration {
    const { declared, imported } = this.#module(reference.file);
    const statements = declared.get(reference.name);
    if (statements) {
      const joined = (part: keyof Statement) => statements.map((statement) => statement[part]).join('\n');
      return {
        ...reference,
        text: joined('text'),
        commented: joined('commented'),
        doc: joined('doc').trim(),
      };
    }
    const from = imported.get(reference.name) ?? this.#namesOf(reference.file).get(reference.name);
    if (from && (from.file !== reference.file || from.name !== reference.name))
      return this.#declaration(from);
    throw new Error(`${reference.file} does not declare ${reference.name}.`);
  }

  #module(file: string): Module {
    const known = this.#modules.get(file);
    if (known) return known;
    const module: Module = { declared: new Map(), imported: new Map(), exported: new Map(), stars: [] };
    this.#modules.set(file, module);
    for (const statement of statementsOf(readFileSync(file, 'utf8'))) readStatement(file, statement, module);
    return module;
  }
}

/** A comment at the left edge belongs to the statement that follows it, or is one inside a union. */
function statementsOf(source: string): readonly Statement[] {
  const sources: { commented: string; readonly doc: string }[] = [];
  let doc = '';
  for (const part of source.split(/\n(?=[A-Za-z@]|\/\*\*|\/\/)/)) {
    const before = sources.at(-1);
    if (!/^\/[*/]/.test(part)) {
      sources.push({ commented: part.replace(/^[ \t]+(?:#private|private .*);\n/gm, '').trim(), doc });
      doc = '';
    } else if (before && withoutComments(part) !== '') {
      before.commented += `\n${part}`;
    } else {
      doc = docOf(part);
    }
  }
  return sources.map(({ commented, doc }) => ({ text: withoutComments(commented), commented, doc }));
}

function withoutComments(source: string): string {
  return `${source}\n`
    .replace(/^[ \t]*\/\*\*?[\s\S]*?\*\/\n/gm, '')
    .replace(/^[ \t]*\/\/.*\n?/gm, '')
    .trim();
}

/** The text of a doc comment, on one line per paragraph or list item. */
export function docOf(comment: string): string {
  return comment
    .replace(/^\s*\/\*\*+|\*+\/\s*$/g, '')
    .replace(/^[ \t]*\* ?/gm, '')
    .replace(/(\S)[ \t]*\n(?=[ \t]*[^\s\-\d])/g, '$1 ')
    .trim();
}

function readStatement(file: string, parsed: Statement, module: Module): void {
  const statement = parsed.text;
  const specifier = /\bfrom ['"]([^'"]+)['"];?$/.exec(statement)?.[1];
  if (statement.startsWith('import ')) {
    if (!specifier?.startsWith('.')) return;
    for (const [outer, local] of listed(statement)) {
      module.imported.set(local, { file: fileOf(file, specifier), name: outer });
    }
  } else if (/^export (?:type )?\*/.test(statement) && specifier) {
    module.stars.push(fileOf(file, specifier));
  } else if (/^export (?:type )?\{/.test(statement)) {
    const from = specifier === undefined ? file : fileOf(file, specifier);
    for (const [inner, outer] of listed(statement)) module.exported.set(outer, { file: from, name: inner });
  } else {
    readDeclaration(file, parsed, module);
  }
}

const DECLARED =
  /^(export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?(?:interface|type|class|function|const|let|enum|namespace) ([\w$]+)/;

function readDeclaration(file: string, parsed: Statement, module: Module): void {
  const statement = parsed.text;
  if (statement === '' || statement.startsWith('declare global')) return;
  const [, exported, name] = DECLARED.exec(statement) ?? [];
  if (!name) throw new Error(`${file} has a statement that is not understood:\n${statement}`);
  module.declared.set(name, [...(module.declared.get(name) ?? []), parsed]);
  if (exported) module.exported.set(name, { file, name });
}

/** `{ a, type b as c }` → `[[a, a], [b, c]]`. */
function listed(statement: string): readonly (readonly [string, string])[] {
  const list = /\{([^}]*)\}/.exec(statement)?.[1] ?? '';
  return list.split(',').flatMap((entry) => {
    const [inner, outer] = entry
      .trim()
      .replace(/^type /, '')
      .split(' as ');
    return inner ? [[inner, outer ?? inner] as const] : [];
  });
}

function fileOf(from: string, specifier: string): string {
  return resolve(dirname(from), specifier.replace(/\.js$/, '.d.ts'));
}
