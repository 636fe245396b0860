import { describe, expect, it } from 'vitest';
import { codeOf, findings, importsOf } from '../code.js';
import { files, matching, read } from '../tree.js';

const sources = matching(/^packages\/[^/]+\/src\/.*\.ts$/);
const simulation = matching(/^tests\/simulation\/src\/.*\.ts$/);
const code = matching(/\.(?:[cm]?[jt]s)$/);
const tests = code.filter((file) => file.startsWith('tests/') || /^packages\/[^/]+\/test\//.test(file));
const texts = files.filter((file) => !/\.(?:png|ico|gif|jpg|db)$/.test(file));

const LINES_MAX = 400;

function searchCode(where: readonly string[], pattern: RegExp): readonly string[] {
  return where.flatMap((file) => {
    const source = read(file);
    return findings(file, source, codeOf(source), pattern);
  });
}

function searchText(where: readonly string[], pattern: RegExp): readonly string[] {
  return where.flatMap((file) => {
    const source = read(file);
    return findings(file, source, source, pattern);
  });
}

/** Time and chance: what cannot be replaced cannot be simulated. */
const TIME_AND_CHANCE = [
  /\bDate\.now\b/g,
  /\bnew Date\(\s*\)/g,
  /\bDate\(\s*\)/g,
  /\b(?:setTimeout|setInterval|setImmediate)\b/g,
  /\bperformance\.(?:now|timeOrigin)\b/g,
  /\bprocess\.(?:hrtime|uptime)\b/g,
  /\bAbortSignal\.timeout\b/g,
  /\bMath\.random\b/g,
  /\b(?:randomUUID|randomBytes|randomInt|getRandomValues)\b/g,
];

interface Exception {
  readonly allows: RegExp;
  readonly why: string;
}

const EXCEPTIONS: Readonly<Record<string, Exception>> = {
  'packages/holdfast/src/clock.ts': { allows: /./, why: 'it is the clock' },
  'packages/holdfast/src/time.ts': { allows: /./, why: 'the part of the clock that needs no Node' },
  'packages/cli/src/performance.ts': {
    allows: /./,
    why: 'stands in for the clock of Node, which loads slowly',
  },
  'packages/service/src/clock.ts': { allows: /randomUUID/, why: 'ids of requests are UUIDs' },
  'packages/service/src/http/server.ts': { allows: /socket\?\.setTimeout/, why: "a socket's own limit" },
  'packages/service/src/http/unread.ts': { allows: /socket\?\.setTimeout/, why: "a socket's own limit" },
  'packages/test-servers/src/clock.ts': { allows: /./, why: 'real servers take real time' },
  'tests/simulation/src/schedule.ts': {
    allows: /setImmediate/,
    why: 'lets real promises settle between two steps of simulated time',
  },
};

describe('time and chance', () => {
  const found = TIME_AND_CHANCE.flatMap((pattern) => searchCode([...sources, ...simulation], pattern));
  const fileOf = (finding: string): string => finding.split(':')[0] as string;

  it('come from clock.ts alone, so that everything runs in simulated time', () => {
    expect(found.filter((finding) => !EXCEPTIONS[fileOf(finding)]?.allows.test(finding))).toEqual([]);
  });

  it('are not imported either', () => {
    const timed = sources.filter((file) =>
      importsOf(read(file)).some((name) => /^(?:node:)?(?:timers|perf_hooks)/.test(name)),
    );
    expect(timed).toEqual([]);
  });

  it('every exception is still needed', () => {
    const needed = new Set(found.map(fileOf));
    expect(Object.keys(EXCEPTIONS).filter((file) => !needed.has(file))).toEqual([]);
  });
});

describe('errors', () => {
  it('are never swallowed by an empty catch', () => {
    expect(searchCode(code, /\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}/g)).toEqual([]);
    expect(searchCode(code, /\.catch\(\s*(?:\([^)]*\)|\w+)\s*=>\s*(?:\{\s*\}|undefined|null)\s*\)/g)).toEqual(
      [],
    );
    expect(searchCode(code, /\.catch\(\s*\)/g)).toEqual([]);
  });

  it('are dropped by one function only, `ignore`, next to a comment that says why', () => {
    const dropped = [
      ...searchCode(sources, /\.then\(\s*undefined,\s*\([^)]*\)\s*=>\s*(?:undefined|null|\{\s*\})\s*\)/g),
      ...searchCode(sources, /\.on\('\s*',\s*\([^)]*\)\s*=>\s*(?:undefined|null|\{\s*\})\s*\)/g),
    ];
    expect(dropped).toEqual([]);
    const silent = sources
      .filter((file) => !file.endsWith('/protocol/ignore.ts'))
      .flatMap((file) => {
        const lines = read(file).split('\n');
        return lines.flatMap((line, at) => {
          if (!/\(ignore\)|, ignore\)/.test(line)) return [];
          return /\/\//.test(lines[at - 1] ?? '') ? [] : [`${file}:${at + 1}`];
        });
      });
    expect(silent).toEqual([]);
  });

  it('are looked at where they are caught, in the packages', () => {
    expect(searchCode(sources, /\bcatch\s*\{/g)).toEqual([]);
  });
});

describe('types', () => {
  it('are not switched off', () => {
    expect(searchText(code, /@ts-(?:ignore|nocheck)\b/g)).toEqual([]);
    expect(searchText(sources, /@ts-expect-error\b/g)).toEqual([]);
    expect(searchCode(code, /(?:\bas|:|<)\s*any\b/g)).toEqual([]);
  });
});

describe('tests', () => {
  it('are all run: none is singled out and none is skipped', () => {
    expect(searchCode(tests, /\b(?:it|test|describe|suite)\.(?:only|skip|todo)\b/g)).toEqual([]);
  });
});

describe('files', () => {
  it('have nothing left to do', () => {
    expect(searchText(texts, /\b(?:TO(?:DO)|FIX(?:ME)|XX(?:X))\b/g)).toEqual([]);
  });

  it(`have at most ${LINES_MAX} lines of code`, () => {
    expect(code.filter((file) => read(file).split('\n').length > LINES_MAX + 1)).toEqual([]);
  });

  it('of the packages begin by saying what they are for', () => {
    expect(sources.filter((file) => !/^(?:#!.*\n)?\/\*\*/.test(read(file)))).toEqual([]);
  });

  it('are named for what they hold', () => {
    expect(code.filter((file) => /(?:^|[/-])(?:utils?|helpers?|common|misc|manager)\b/.test(file))).toEqual(
      [],
    );
  });

  it('name no folder of one machine', () => {
    expect(searchText(texts, /(?<![\w.:$}])\/(?:work|root|tmp|home\/\w+|Users\/\w+)(?:\/|\b)/g)).toEqual([]);
  });

  it('name no package registry', () => {
    expect(searchText(texts, /https?:\/\/[^\s"'`)]*(?:registry|npmjs|artifactory|verdaccio)/gi)).toEqual([]);
    expect(files.filter((file) => /(?:^|\/)\.(?:npmrc|yarnrc)/.test(file))).toEqual([]);
  });
});

interface LockEntry {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

describe('the lockfile', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> };
  const installed = Object.entries(packages).filter(
    ([name, entry]) => !entry.link && name.includes('node_modules/'),
  );

  it('names no place that packages came from', () => {
    expect(installed.filter(([, entry]) => entry.resolved !== undefined)).toEqual([]);
  });

  it('has the hash of every package, but for parts of other platforms', () => {
    const bare = installed.filter(([, entry]) => !entry.integrity?.startsWith('sha512-'));
    expect(bare.filter(([, entry]) => !entry.os && !entry.cpu)).toEqual([]);
  });

  it('has the parts of all platforms: without them npm ci fails on a fresh clone', () => {
    const wanted = installed.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}));
    expect(
      wanted.filter((name) => !installed.some(([path]) => path.endsWith(`node_modules/${name}`))),
    ).toEqual([]);
  });
});
