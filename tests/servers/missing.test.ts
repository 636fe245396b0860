import { afterEach, expect, it, vi } from 'vitest';
import { available } from '../../packages/test-servers/src/install.js';

vi.mock('../../packages/test-servers/src/find.js', () => ({
  find: () => undefined,
  findDynamodbJar: () => jar,
  findFirestoreJar: () => firestoreJar,
  findOnPath: () => undefined,
}));

let jar: string | undefined;
let firestoreJar: string | undefined;

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it('a missing server is skipped by name, with the command that installs it, once', () => {
  vi.stubEnv('CI', '');
  const said = vi.spyOn(console, 'warn').mockReturnValue(undefined);
  expect(available('pgbouncer')).toBe(false);
  expect(available('pgbouncer')).toBe(false);
  expect(said.mock.calls.join()).toMatch(/^skipped: pgbouncer .*apt-get install .* pgbouncer$/);
});

it('a missing server is a failure in CI', () => {
  vi.stubEnv('CI', 'true');
  expect(() => available('redis', { own: true })).toThrow(/redis is not installed.*redis-server/);
});

it('a server that the user named is not missing, but for tests that have to break it', () => {
  vi.stubEnv('CI', 'true');
  vi.stubEnv('HOLDFAST_TEST_REDIS_URL', 'redis://127.0.0.1:6379');
  expect(available('redis')).toBe(true);
  expect(() => available('redis', { own: true })).toThrow('not installed');
});

it('of DynamoDB Local either half may be missing: the jar comes from npm, Java does not', () => {
  vi.stubEnv('CI', 'true');
  jar = undefined;
  expect(() => available('dynamodb')).toThrow(/dynamodb is not installed.*: npm ci$/);
  jar = 'DynamoDBLocal.jar';
  expect(() => available('dynamodb')).toThrow(/openjdk-17-jre-headless$/);
});

it('the Firestore emulator is in no registry: without its jar it is skipped in CI too, with it Java is required', () => {
  vi.stubEnv('CI', 'true');
  const said = vi.spyOn(console, 'warn').mockReturnValue(undefined);
  expect(available('firestore')).toBe(false);
  expect(said.mock.calls.join()).toMatch(/^skipped: firestore .*google-cloud-cli-firestore-emulator/);
  firestoreJar = 'cloud-firestore-emulator.jar';
  expect(() => available('firestore')).toThrow(/openjdk-17-jre-headless$/);
});
