/**
 * The reference of the library: one page per group of entry points, from the emitted declarations and their doc comments.
 * 1. Every exported name is a heading with its text, and its declaration or the list of its members.
 * 2. A name that two entry points export is described at the first, and linked from the other.
 * 3. Types that are not exported, but part of exported ones, are described at the end of the page that mentions them first.
 */
import { join } from 'node:path';
import { type Declaration, Declarations } from '../declarations.js';
import type { Manifest } from '../public-api.js';
import { type Member, membersOf } from './members.js';

export interface Group {
  /** The name of the page in docs/reference. */
  readonly page: string;
  readonly title: string;
  readonly about: string;
  /** Subpaths of the package; '.' is the package itself. */
  readonly entries: readonly string[];
  /** Whether every member needs a text; else those of options do. */
  readonly everyMember: boolean;
}

export interface ReferencePage {
  readonly page: string;
  readonly text: string;
  /** Names and members without a text, and options whose text does not say their default. */
  readonly silent: readonly string[];
}

type Described = readonly [name: string, declaration: Declaration];

export function libraryReference(
  folder: string,
  manifest: Manifest,
  groups: readonly Group[],
): readonly ReferencePage[] {
  const declarations = new Declarations();
  /** Where each declaration is described: page and heading. */
  const places = new Map<string, { readonly page: string; readonly name: string }>();
  const idOf = ({ file, name }: Declaration): string => `${file}#${name}`;

  /** Those that no page has yet. */
  function claim(page: string, found: Iterable<Described>): readonly Described[] {
    return [...found].filter(([name, declaration]) => {
      if (places.has(idOf(declaration))) return false;
      places.set(idOf(declaration), { page, name });
      return true;
    });
  }

  const plans = groups.map((group) => {
    const sections = group.entries.map((entry) => {
      const target = manifest.exports[entry];
      if (target === undefined || typeof target === 'string') throw new Error(`No entry point ${entry}.`);
      const all = [...declarations.exportsOf(join(folder, target.types))];
      const own = claim(group.page, all);
      return {
        title: entry.replace('.', manifest.name),
        own,
        again: all.filter((one) => !own.includes(one)),
      };
    });
    return { group, sections };
  });
  const pages = plans.map(({ group, sections }) => {
    const rest: Described[] = [];
    const seeds = sections.flatMap(({ own }) => own.map(([, declaration]) => declaration));
    for (let next = seeds.pop(); next; next = seeds.pop()) {
      const mentioned = declarations.mentionedBy(next).map((one) => [one.name, one] as const);
      const found = claim(group.page, mentioned);
      rest.push(...found);
      seeds.push(...found.map(([, declaration]) => declaration));
    }
    rest.sort(([a], [b]) => (a < b ? -1 : 1));
    return { group, sections, rest };
  });

  return pages.map(({ group, sections, rest }) => {
    const texts = sections.map(({ title, own, again }) => {
      const links = again.map(([name, declaration]) => `- ${linkTo(declaration, group.page, name)}`);
      const others = links.length > 0 ? ['Also exported here:', links.join('\n')] : [];
      return [`## ${title}`, ...own.map((one) => describe(one, group.page)), ...others].join('\n\n');
    });
    if (rest.length > 0) {
      const about = 'These types are not exported by name. The declarations above use them.';
      texts.push(
        ['## Types behind these', about, ...rest.map((one) => describe(one, group.page))].join('\n\n'),
      );
    }
    const described = sections.flatMap(({ own }) => own);
    return {
      page: group.page,
      text: `# ${group.title}\n\n${group.about}\n\n${texts.join('\n\n')}\n`,
      silent: described.flatMap((one) => silentIn(one, group.everyMember)),
    };
  });

  function linkTo(declaration: Declaration, page: string, name: string): string {
    const place = places.get(idOf(declaration));
    const file = place?.page === page ? '' : `${place?.page}.md`;
    return `[\`${name}\`](${file}#${(place?.name ?? name).toLowerCase()})`;
  }

  function describe([name, declaration]: Described, page: string): string {
    const mentioned = new Map(
      declarations.mentionedBy(declaration).map((one) => [linkTo(one, page, one.name), one]),
    );
    const see = mentioned.size > 0 ? [`Uses ${[...mentioned.keys()].join(', ')}.`] : [];
    const doc = declaration.doc === '' ? [] : [declaration.doc];
    return [`### ${name}`, ...doc, bodyOf(declaration), ...see].join('\n\n');
  }
}

function bodyOf(declaration: Declaration): string {
  const { head, members } = membersOf(declaration);
  if (members.length === 0) return fenced(declaration.commented);
  return [fenced(`${head} { … }`), members.map(itemOf).join('\n')].join('\n\n');
}

function itemOf({ signature, doc }: Member): string {
  const shown = `\`${signature.replaceAll(/\s+/g, ' ')}\``;
  return doc === '' ? `- ${shown}` : `- ${shown}: ${doc.replaceAll('\n', '\n  ')}`;
}

const fenced = (code: string): string =>
  [
    '```dts',
    code
      .replace(/^export (?:declare )?/gm, '')
      .replace(/^( {4})+/gm, (indent) => indent.slice(indent.length / 2)),
    '```',
  ].join('\n');

/** Members that say the same in every error, and those of a client that the driver's own documents describe, need no text. */
function silentIn([name, declaration]: Described, everyMember: boolean): readonly string[] {
  const needed = everyMember || name.endsWith('Options');
  const members = needed ? membersOf(declaration).members : [];
  const silent = members.filter(({ signature, doc }) => {
    if (doc === '') return !/^(?:code|constructor)\b/.test(signature);
    return name.endsWith('Options') && /^\w+\?/.test(signature) && !/\bdefault\b/i.test(doc);
  });
  return [
    ...(declaration.doc === '' ? [name] : []),
    ...silent.map(({ signature }) => `${name}: ${signature}`),
  ];
}
