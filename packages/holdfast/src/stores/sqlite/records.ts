/** Reads and writes the table of keys and their states. Decides nothing. */
import { checkVersion, EMPTY_STATE, expendableAt, KEEP_MS, type State } from '../../protocol/index.js';
import { isFree } from '../compare-and-swap/contention.js';
import type { SqliteDatabase } from './database.js';

const ROWS_PER_PAGE = 256;

export type Records = ReturnType<typeof records>;

export function records(database: SqliteDatabase) {
  const select = database.prepare('SELECT state FROM holdfast_records WHERE key = ?');
  const upsert = database.prepare(
    `INSERT INTO holdfast_records (key, state, decided_at, expendable_at, in_use) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET state = excluded.state, decided_at = excluded.decided_at,
       expendable_at = excluded.expendable_at, in_use = excluded.in_use`,
  );
  const firstToGo = database.prepare(
    'SELECT key, expendable_at FROM holdfast_records ORDER BY expendable_at LIMIT ?',
  );
  const remove = database.prepare('DELETE FROM holdfast_records WHERE key = ?');
  // Keeps the time that a deleted record had reached: a later boot must not start below it, or tokens would fall.
  const reached = database.prepare('UPDATE holdfast_clocks SET reached_ms = max(reached_ms, ?)');
  const pageFrom = database.prepare(
    `SELECT key, state FROM holdfast_records
     WHERE in_use = 1 AND key >= max(?, ?) AND key <> ? ORDER BY key LIMIT ${ROWS_PER_PAGE}`,
  );
  const mention = database.prepare(
    'SELECT 1 FROM holdfast_records WHERE in_use = 1 AND instr(state, ?) > 0 LIMIT 1',
  );

  /** No record is expendable before this time: records written from now on are kept for longer. */
  let nextCleanUp = 0;

  return {
    load(key: string): State | null {
      const row = select.get(key) as { state: string } | undefined;
      return row ? unpack(key, row.state) : null;
    },
    save(key: string, state: State): void {
      const decidedAt = Math.floor(state.decision / 1_000);
      upsert.run(key, pack(state), decidedAt, expendableAt(state), isFree(state) ? 0 : 1);
    },
    /** Deletes up to `count` expendable records. */
    cleanUp(now: number, count: number): void {
      if (now < nextCleanUp) return;
      const rows = firstToGo.all(count + 1) as { key: string; expendable_at: number }[];
      const expendable = rows.filter(({ expendable_at }) => expendable_at <= now).slice(0, count);
      nextCleanUp = Math.min(rows[expendable.length]?.expendable_at ?? now + KEEP_MS, now + KEEP_MS);
      if (expendable.length === 0) return;
      for (const { key } of expendable) remove.run(key);
      reached.run(now);
    },
    /**
     * Keys in use, in order, from the prefix on and after this key. States are parsed on demand: a record of a newer version
     * must not hide those before it.
     */
    page(prefix: string, after: string): readonly { readonly key: string; state(): State }[] {
      const rows = pageFrom.all(prefix, after, after) as { key: string; state: string }[];
      return rows.map(({ key, state }) => ({ key, state: () => unpack(key, state) }));
    },
    /** Whether a record in use names this process. */
    mentions: (process: string) => mention.get(JSON.stringify(process)) !== undefined,
  };
}

/** Empty lists are left out: most records are of released keys, and should stay small. */
const ifAny = <T>(list: readonly T[]): readonly T[] | undefined => (list.length > 0 ? list : undefined);

/** Member by member: with spreads it takes three times as long. */
function pack({ version, token, decision, holders, rests, waiters, ended, evictions }: State): string {
  return JSON.stringify({
    version,
    token,
    decision,
    holders: ifAny(holders),
    rests: ifAny(rests),
    waiters: ifAny(waiters),
    ended: ifAny(ended),
    evictions: ifAny(evictions),
  });
}

function unpack(key: string, text: string): State {
  const stored = JSON.parse(text) as Partial<State>;
  checkVersion(stored.version, key);
  return { ...EMPTY_STATE, ...stored };
}
