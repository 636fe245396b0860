/** The example of a store on the page about adding one: it keeps every promise of the conformance suite. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import { conformanceSuite } from 'holdfast/testkit';
import { afterAll, describe } from 'vitest';
import { tableStore } from '../../examples/table-store.js';
import { runCases } from '../store-talk.js';

describe('the store of examples/table-store.js', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-table-store-'));
  const path = join(folder, 'locks.db');
  afterAll(() => rmSync(folder, { recursive: true }));

  function change(sql: string, key: string): void {
    const database = new DatabaseSync(path);
    database.prepare(sql).run(key);
    database.close();
  }

  const suite = conformanceSuite(
    {
      name: 'table',
      lineMax: WAITERS_MAX,
      open: async () => tableStore(path),
      forget: async (key) => change('DELETE FROM locks WHERE key = ?', key),
      spoil: async (key) =>
        change("UPDATE locks SET state = json_set(state, '$.version', 99) WHERE key = ?", key),
    },
    { sequences: 20 },
  );
  runCases(suite);
});
