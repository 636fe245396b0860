/** Elections between real processes that are killed and resign, again and again. */
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { createLocks, type Leader, openStore } from 'holdfast';
import { sqlGuard } from 'holdfast/fences';
import { afterEach, describe, expect, it } from 'vitest';
import { machineMs } from '../faults/turns.js';
import { STORES } from '../handoff/stores.js';
import { isLongRun } from '../long-run.js';
import { atTheEnd, clearScene, freshFolder, until } from '../scene.js';
import { Child } from '../sqlite/child.js';

const CANDIDATE = new URL('./candidate.js', import.meta.url);
const KEY = 'chief';
const TTL_MS = 2_000;
const ROUNDS_MAX = isLongRun ? 200 : 2;
/** No round begins later. */
const ROUNDS_MS = isLongRun ? 60_000 : 20_000;
/** What a busy machine may add to the times that are measured. */
const BUSY_MS = 10_000;

const wanted = ['SQLite', 'Redis', 'PostgreSQL'];

afterEach(clearScene);

interface Term {
  readonly token: number;
  readonly atMs: number;
  readonly candidate: Child;
}

class Candidates {
  readonly all: Child[] = [];
  readonly #url: string;
  readonly #resource: string;

  constructor(url: string) {
    this.#url = url;
    this.#resource = join(freshFolder(), 'resource.db');
    const database = new DatabaseSync(this.#resource);
    database.exec('PRAGMA journal_mode = WAL');
    database.exec(sqlGuard({ dialect: 'sqlite' }).createTable);
    database.exec('CREATE TABLE written (at INTEGER PRIMARY KEY, token INTEGER NOT NULL)');
    database.close();
  }

  start(): void {
    const name = `c${this.all.length}`;
    const candidate = new Child(CANDIDATE, [this.#url, KEY, name, String(TTL_MS), this.#resource]);
    this.all.push(candidate);
    atTheEnd(() => candidate.kill());
  }

  /** Lines `WORD TOKEN TIME` of all, in the order of their times. */
  saying(word: string): readonly Term[] {
    const said = this.all.flatMap((candidate) =>
      candidate.lines
        .filter((line) => line.startsWith(`${word} `))
        .map((line) => {
          const [, token, atMs] = line.split(' ');
          return { token: Number(token), atMs: Number(atMs), candidate };
        }),
    );
    return said.sort((one, other) => one.atMs - other.atMs);
  }

  async next(after: number): Promise<Term> {
    const found = (): Term | undefined => this.saying('began').find(({ token }) => token > after);
    await until(() => found() !== undefined, `somebody leads after ${after}`);
    return found() as Term;
  }

  /** Tokens of the accepted writes, in the order in which the resource got them. */
  written(): readonly number[] {
    const database = new DatabaseSync(this.#resource, { timeout: 10_000 });
    const rows = database.prepare('SELECT token FROM written ORDER BY at').all() as { token: number }[];
    database.close();
    return rows.map(({ token }) => token);
  }
}

/** Pairs of terms whose leaders both believed to lead at one time. */
function overlaps(candidates: Candidates): readonly string[] {
  const times = new Map<number, { fromMs: number; toMs: number }>();
  for (const { token, atMs } of [...candidates.saying('began'), ...candidates.saying('beat')]) {
    const { fromMs, toMs } = times.get(token) ?? { fromMs: atMs, toMs: atMs };
    times.set(token, { fromMs: Math.min(fromMs, atMs), toMs: Math.max(toMs, atMs) });
  }
  const inOrder = [...times].sort(([one], [other]) => one - other);
  return inOrder.flatMap(([token, { fromMs }], at) => {
    const before = inOrder[at - 1];
    return before && before[1].toMs >= fromMs
      ? [`${before[0]} until ${before[1].toMs}, ${token} from ${fromMs}`]
      : [];
  });
}

function shown(times: readonly number[]): string {
  const sorted = [...times].sort((one, other) => one - other);
  const [median, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map((ms) =>
    Math.round(ms ?? 0),
  );
  return `${times.length} times, ${median} ms in the middle, ${most} ms at most`;
}

for (const { name, isHere, start } of STORES.filter((store) => wanted.includes(store.name))) {
  describe.runIf(isHere)(`an election between three processes on ${name}`, () => {
    it('never has two leaders, goes on when they are killed or resign, and is observed change by change', async () => {
      const place = await start();
      atTheEnd(() => place.stop());
      const locks = createLocks(await openStore(place.url));
      atTheEnd(() => locks.close({ drain: 0 }));
      const seen: (Leader | null)[] = [];
      const stop = new AbortController();
      const observing = (async () => {
        const changes = locks.elect(KEY).observe({ every: '25ms', signal: stop.signal });
        for await (const leader of changes) seen.push(leader);
      })();
      const candidates = new Candidates(place.url);
      for (let count = 0; count < 3; count++) candidates.start();
      let term = await candidates.next(0);
      const killedMs: number[] = [];
      const resignedMs: number[] = [];
      const beganMs = machineMs();
      for (let round = 0; round < ROUNDS_MAX && machineMs() - beganMs < ROUNDS_MS; round++) {
        const { candidate, token } = term;
        // The others wait, and the observer has seen it: what is measured is the change.
        await until(async () => (await locks.inspect(KEY))?.waiters.length === 2, 'the others wait');
        await until(() => seen.at(-1)?.token === token, `the observer sees ${token}`);
        await until(() => candidates.written().includes(token), `${token} has written`);
        const atMs = machineMs();
        if (round % 2 === 0) {
          await candidate.kill();
          candidates.start();
          term = await candidates.next(token);
          killedMs.push(term.atMs - atMs);
        } else {
          candidate.tell('resign');
          term = await candidates.next(token);
          const resigned = candidates.saying('resigned').find((said) => said.token === token);
          resignedMs.push(term.atMs - (resigned?.atMs ?? Number.NaN));
          expect(term.candidate, 'it campaigns behind the others').not.toBe(candidate);
        }
      }
      await until(() => seen.at(-1)?.token === term.token, 'the observer sees the last');
      await until(() => candidates.written().includes(term.token), 'the last has written');
      stop.abort();
      await observing;
      console.log(
        `${name}: next leader after a kill: ${shown(killedMs)}; after a resignation: ${shown(resignedMs)}`,
      );
      for (const candidate of candidates.all)
        expect(candidate.lines.filter((line) => line.startsWith('TWO'))).toEqual([]);
      expect(overlaps(candidates)).toEqual([]);
      const begun = candidates.saying('began').map(({ token }) => token);
      expect(seen.flatMap((leader) => leader?.token ?? [])).toEqual(begun);
      const written = candidates.written();
      expect(written).toEqual([...written].sort((one, other) => one - other));
      expect(new Set(written).size).toBe(begun.length);
      expect(killedMs.length).toBeGreaterThan(0);
      expect(Math.max(...killedMs)).toBeLessThan(TTL_MS + 250 + BUSY_MS);
      expect(Math.max(...resignedMs)).toBeLessThan(50 + BUSY_MS);
    });
  });
}
