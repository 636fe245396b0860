import { afterAll, describe } from 'vitest';
import { casesOf, sequencesOf } from '../../../../tests/long-run.js';
import { runCases } from '../../../../tests/store-talk.js';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import { conformanceSuite, type Harness } from '../../src/testkit/index.js';
import { clearScene, connection, freshFile, storeAt } from './sqlite-scene.js';

function harnessOf(name: string, file: string, open: Harness['open']): Harness {
  return {
    name,
    open,
    async forget(key) {
      connection(file).prepare('DELETE FROM holdfast_records WHERE key = ?').run(key);
    },
    async spoil(key) {
      const newer = "UPDATE holdfast_records SET state = json_set(state, '$.version', 99) WHERE key = ?";
      connection(file).prepare(newer).run(key);
    },
  };
}

const byPath = freshFile();
const injected = freshFile();
const harnesses = [
  harnessOf('SQLite by path', byPath, async () => sqliteStore(byPath)),
  harnessOf('SQLite with a connection given', injected, async () => storeAt(injected)),
];

afterAll(clearScene);

describe.concurrent.each(harnesses)('$name', (harness) => {
  runCases(casesOf(conformanceSuite(harness, { sequences: sequencesOf(100) })));
});
