import { describe, expect, it } from 'vitest';
import { findings } from '../code.js';
import { matching, read } from '../tree.js';

/** Words that a reader has to have explained, and what is said instead (docs/glossary.md has the vocabulary). */
const INSTEAD: Readonly<Record<string, string>> = {
  turnstile: 'key queue',
  conversation: 'retried command',
  speaker: 'retry listener',
  agenda: 'timer queue',
  appointment: 'task',
  farewell: 'background release',
  ear: 'wake listener',
  ears: 'wake listener',
  desk: 'store client',
  errand: 'pending command',
  bulletin: 'events',
  happening: 'event',
  happenings: 'events',
  census: 'gauges',
  stranger: 'unknown key',
  strangers: 'negative cache',
  residents: 'processes',
  crews: 'workloads',
  mishap: 'fault',
  mishaps: 'faults',
  weather: 'network conditions',
  dice: 'random source',
  neighbourhood: 'address group',
  vigil: 'liveness poll',
  deaf: 'without wake-ups',
  hears: 'is told, or gets wake-ups',
  'in line': 'in the queue',
  'flag day': 'all at once',
  lest: 'or',
  'so many times': 'times, with the number',
  anew: 'again',
  'unless told': 'default',
  'not to be had': 'could not acquire',
};

const texts = matching(/\.(?:[cm]?[jt]s|md|sql|lua|html|css|svg|json|yaml)$/).filter(
  (file) => file !== 'package-lock.json',
);

function search(
  where: readonly string[],
  pattern: RegExp,
  counts: (found: string) => boolean,
): readonly string[] {
  return where.flatMap((file) => {
    const source = read(file);
    return findings(file, source, source, pattern, counts);
  });
}

describe('the codes of failures', () => {
  const defined = [...read('docs/failures.md').matchAll(/^\| ([FP]\d+) \|/gm)].map(([, code = '']) => code);

  it('are each defined once, in docs/failures.md', () => {
    expect(defined.length).toBeGreaterThan(50);
    expect(defined).toEqual([...new Set(defined)]);
  });

  it('are defined there wherever they are named', () => {
    const code = /(?<![\w./%-])[FP][1-9]\d?(?![\w/-]|\.\w)/g;
    const known = new RegExp(`^(?:${defined.join('|')})$`);
    expect(search(texts, code, (found) => !known.test(found))).toEqual([]);
  });
});

describe('the glossary', () => {
  const words = [...read('docs/glossary.md').matchAll(/\*\*(.+?)\*\*/g)].map(([, word = '']) => word);

  it('defines each word once', () => {
    expect(words.length).toBeGreaterThan(40);
    expect(words).toEqual([...new Set(words)]);
  });
});

describe('documents and sources', () => {
  const published = /^(?:docs|examples|packages\/[^/]+\/(?:src|dashboard))\/|^[A-Z]+\.md$/;
  const where = texts.filter((file) => published.test(file));
  /** Documents may quote a name, as the changelog does with old ones. */
  const proseOf = (file: string): string =>
    file.endsWith('.md') ? read(file).replace(/`[^`\n]*`/g, (name) => ' '.repeat(name.length)) : read(file);

  it.each(Object.entries(INSTEAD))('do not say "%s" but "%s"', (word) => {
    const capital = `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
    const used = new RegExp(`(?<![A-Za-z])${word}(?![a-z])|${capital}(?![a-z])`, 'g');
    expect(where.flatMap((file) => findings(file, read(file), proseOf(file), used))).toEqual([]);
  });
});
