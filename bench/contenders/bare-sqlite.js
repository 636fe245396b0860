/**
 * The least that a lock in SQLite can be, on the client and with the settings that Holdfast uses: one upsert
 * that takes the key if it is free or expired, one delete that compares the token. Each is a transaction of its own.
 * It cannot wait or renew, so it runs only where nobody contends.
 */
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';

const TAKE = `INSERT INTO lock (key, token, expires_at) VALUES (?1, ?2, ?3)
  ON CONFLICT (key) DO UPDATE SET token = token + 1, expires_at = ?3 WHERE expires_at <= ?4 RETURNING token`;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ folder, ttlMs }) {
    const database = new DatabaseSync(join(folder, 'bare.db'));
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    database.exec(
      'CREATE TABLE lock (key TEXT PRIMARY KEY, token INTEGER, expires_at INTEGER) WITHOUT ROWID',
    );
    const take = database.prepare(TAKE);
    const give = database.prepare('DELETE FROM lock WHERE key = ? AND token = ?');
    return {
      cycle: (key, work) => async () => {
        const now = Date.now();
        const row = take.get(key, now, now + ttlMs, now);
        if (!row) throw new Error(`"${key}" is held.`);
        if (work) await work();
        give.run(key, Number(row.token));
      },
      close: async () => database.close(),
    };
  },
};
