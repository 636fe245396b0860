/** Reads and writes the table of keys and their states. Decides nothing. */
import { checkVersion, EMPTY_STATE, expendableAt, type State } from '../../protocol/index.js';
import type { SqliteDatabase } from './database.js';

export interface Row {
  readonly key: string;
  /** Parsed on demand: a record of a newer version must not hide those before it. */
  state(): State;
}

export interface Records {
  load(key: string): State | null;
  save(key: string, state: State): void;
  /** Deletes up to `count` expired records. */
  cleanUp(now: number, count: number): void;
  /** Keys in use, in order, from the prefix on and after this key. */
  page(prefix: string, after: string): readonly Row[];
  /** Whether a record in use names this process. */
  mentions(process: string): boolean;
}

const ROWS_PER_PAGE = 256;

export function records(database: SqliteDatabase): Records {
  const select = database.prepare('SELECT state FROM holdfast_records WHERE key = ?');
  const upsert = database.prepare(
    `INSERT INTO holdfast_records (key, state, decided_at, expendable_at, in_use) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET state = excluded.state, decided_at = excluded.decided_at,
       expendable_at = excluded.expendable_at, in_use = excluded.in_use`,
  );
  const expendable = database.prepare(
    'SELECT key FROM holdfast_records WHERE expendable_at <= ? ORDER BY expendable_at LIMIT ?',
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

  return {
    load(key) {
      const row = select.get(key) as { state: string } | undefined;
      return row ? unpack(key, row.state) : null;
    },
    save(key, state) {
      const used = state.holders.length > 0 || state.rests.length > 0 || state.waiters.length > 0;
      const decidedAt = Math.floor(state.decision / 1_000);
      upsert.run(key, pack(state), decidedAt, expendableAt(state), used ? 1 : 0);
    },
    cleanUp(now, count) {
      const rows = expendable.all(now, count) as { key: string }[];
      if (rows.length === 0) return;
      for (const { key } of rows) remove.run(key);
      reached.run(now);
    },
    page(prefix, after) {
      const rows = pageFrom.all(prefix, after, after) as { key: string; state: string }[];
      return rows.map(({ key, state }) => ({ key, state: () => unpack(key, state) }));
    },
    mentions: (process) => mention.get(JSON.stringify(process)) !== undefined,
  };
}

/** Leaves empty lists out: most records are of released keys, and should stay small. */
function pack(state: State): string {
  const { version, token, decision, holders, rests, waiters, ended } = state;
  return JSON.stringify({
    version,
    token,
    decision,
    holders: holders.length > 0 ? holders : undefined,
    rests: rests.length > 0 ? rests : undefined,
    waiters: waiters.length > 0 ? waiters : undefined,
    ended: ended.length > 0 ? ended : undefined,
  });
}

function unpack(key: string, text: string): State {
  const stored = JSON.parse(text) as Partial<State>;
  checkVersion(stored.version, key);
  return { ...EMPTY_STATE, ...stored };
}
