import { afterEach, expect, it } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import { typeOfFileSystem } from '../../src/stores/sqlite/probe.js';
import { clearScene, freshFile, storeAt } from './sqlite-scene.js';

afterEach(clearScene);

it('says what it is, how it writes, whose clock it has, and tries push and liveness for real', async () => {
  const file = freshFile();
  const store = sqliteStore(file);
  const { server, now, findings } = await store.probe();
  expect(server).toMatch(/^SQLite 3\.\d+/);
  expect(server).toContain(file);
  expect(now).toBeGreaterThan(1_700_000_000_000);
  const text = findings.map((finding) => `${finding.level}: ${finding.text}`).join('\n');
  expect(text).toMatch(/good: Journal mode wal, synchronous NORMAL/);
  expect(text).toMatch(/good: A holder whose process died is noticed within 250 ms/);
  expect(text).toMatch(/good: .*monotonic clock/);
  expect(text).toMatch(/good: Push works: a wake-up through a file took [\d.]+ ms/);
  await store.close();
});

it('warns of a database in memory', async () => {
  const { findings } = await storeAt(':memory:').probe();
  expect(findings[0]).toMatchObject({ level: 'warning', text: expect.stringMatching(/in memory/) });
});

it('finds the file system under a path, the innermost and the last mounted first', () => {
  const mounts = () =>
    [
      '/dev/vda / ext4 rw 0 0',
      'server:/x /srv nfs4 rw 0 0',
      '/dev/vdb /srv/local xfs rw 0 0',
      'share /with\\040space cifs rw 0 0',
      'a /twice ext4 rw 0 0',
      'b /twice nfs rw 0 0',
    ].join('\n');
  expect(typeOfFileSystem('/opt/x.db', mounts)).toBe('ext4');
  expect(typeOfFileSystem('/srv/x.db', mounts)).toBe('nfs4');
  expect(typeOfFileSystem('/srvx/x.db', mounts)).toBe('ext4');
  expect(typeOfFileSystem('/srv/local/x.db', mounts)).toBe('xfs');
  expect(typeOfFileSystem('/with space/x.db', mounts)).toBe('cifs');
  expect(typeOfFileSystem('/twice/x.db', mounts)).toBe('nfs');
  expect(typeOfFileSystem('/x.db', () => '')).toBeNull();
});
