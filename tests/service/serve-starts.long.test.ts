/** How the service starts: what it refuses, what it logs, on stores that are not ready, and under other settings. */
import { get } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { available, startPostgres, startRedis } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { root } from '../repository/tree.js';
import { addressOf, post, type Served, serve } from './served.js';

const place = usePlace();
const served = (args?: readonly string[], environment?: NodeJS.ProcessEnv): Promise<Served> =>
  serve(place, args, environment);

/** What a list is answered with that is addressed to this host. */
function statusAs(host: string, url: string): Promise<number | undefined> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/v2/locks', headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on('error', reject);
  });
}

describe('holdfast serve refuses in one line', () => {
  const ONE_LINE = /^holdfast: [^\n]+\n$/;

  it('the whole network, without auth', async () => {
    const { status, stderr } = await place.run(['serve', '--port', '0', '--host', '0.0.0.0']);
    expect([status, stderr]).toEqual([64, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toContain('loopback only');
  });

  it('but not when told --insecure; names of others stay refused until --allowed-hosts names them', async () => {
    const insecure = ['--host', '0.0.0.0', '--insecure'];
    const { url } = await served(insecure);
    expect((await fetch(`http://127.0.0.1:${new URL(url).port}/healthz`)).status).toBe(200);
    expect(await statusAs('evil.example', url)).toBe(403);
    const named = await served([...insecure, '--allowed-hosts', 'locks.example']);
    expect(await statusAs('locks.example', named.url)).toBe(200);
    expect(await statusAs('evil.example', named.url)).toBe(403);
  });

  it('nor with AUTHENTICATION_DISABLED, which opens no loopback service to the names of others', async () => {
    const { url } = await served([], { AUTHENTICATION_DISABLED: 'true' });
    expect([await statusAs('localhost', url), await statusAs('evil.example', url)]).toEqual([200, 403]);
  });

  it('a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { status, stderr } = await place.run(['serve', '--port', port]);
    other.close();
    expect([status, stderr]).toEqual([69, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toContain(`127.0.0.1:${port}: another program uses this port`);
  });

  it('files that are not there', async () => {
    for (const args of [
      ['--config', 'none.json'],
      ['--api-keys', 'none.json'],
      ['--tls-cert', 'none.pem', '--tls-key', 'none.key'],
    ]) {
      const { status, stderr } = await place.run(['serve', '--port', '0', ...args]);
      expect([args, status, stderr]).toEqual([args, 64, expect.stringMatching(ONE_LINE)]);
    }
  });

  it('a store that there is not, without the password in its URL', async () => {
    const { status, stderr } = await place.run(['serve', '--store', 'reddis://ann:s3cret@host']);
    expect([status, stderr]).toEqual([64, expect.stringMatching(ONE_LINE)]);
    expect(stderr).not.toContain('s3cret');
  });
});

interface LogLine {
  readonly msg: string;
  readonly [member: string]: unknown;
}

/** The line of the log with this message, once it is there. */
async function logged({ running }: Served, msg: string): Promise<LogLine> {
  const [line] = await running.said(new RegExp(`^.*"msg":"${msg}.*$`, 'm'));
  return JSON.parse(line) as LogLine;
}

describe('a start', () => {
  it('is in the log: version, address, store and auth, without secrets', async () => {
    const here = await served([], { HOLDFAST_STORE: 'redis://ann:s3cret@127.0.0.1:1' });
    expect(await logged(here, 'listening')).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      url: here.url,
      store: 'redis://***@127.0.0.1:1',
      auth: 'none',
      audit: 'log',
    });
    // A store that is down is no reason to end, and none to be silent.
    const { error } = await logged(here, 'the store cannot be used yet');
    expect(error).toMatch(/ECONNREFUSED|did not answer/);
    expect((await fetch(`${here.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${here.url}/healthz`)).status).toBe(200);
    here.running.kill('SIGTERM');
    expect((await here.running.ended).stdout).not.toContain('s3cret');
  });

  it('with an audit log that cannot be written is refused', async () => {
    const args = ['serve', '--port', '0', '--audit', join(place.folder, 'none', 'audit.jsonl')];
    const { status, stderr } = await place.run(args);
    expect([status, stderr]).toEqual([64, expect.stringMatching(/^holdfast: The audit log .* ENOENT.*\n$/)]);
  });
});

describe.runIf(available('redis'))('a start before its store', () => {
  it('says again and again that the store does not answer, and then that it does', async () => {
    const redis = await startRedis({ own: true });
    await redis.kill();
    const here = await served(['--store', redis.url]);
    await logged(here, 'the store cannot be used yet');
    await redis.restart();
    await logged(here, 'the store answers');
    expect((await fetch(`${here.url}/readyz`)).status).toBe(200);
    await redis.stop();
  });
});

describe.runIf(available('postgres'))('a start on a database that was not migrated', () => {
  it('is refused in one line that says what to run', { timeout: 60_000 }, async () => {
    const postgres = await startPostgres();
    const database = await postgres.createDatabase();
    const { status, stderr } = await place.run([
      'serve',
      '--port',
      '0',
      '--log-level',
      'silent',
      '--store',
      database,
    ]);
    expect([status, stderr]).toEqual([69, expect.stringMatching(/^holdfast: [^\n]+\n$/)]);
    expect(stderr).toContain('holdfast migrate');
    await place.run(['migrate', '--store', database]);
    const { url } = await served(['--store', database]);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await postgres.stop();
  });
});

describe('npm start', () => {
  it('in the repository serves the dashboard on loopback', { timeout: 120_000 }, async () => {
    const { url } = await addressOf(
      place.startOther('npm', ['--prefix', root, 'start', '--', '--port', '0']),
    );
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(url)).text()).toContain('Holdfast');
  });
});

describe.runIf(available('postgres'))('the environment of LockServiceCentral', () => {
  it('starts the service, which answers as that did', { timeout: 120_000 }, async () => {
    const postgres = await startPostgres();
    const database = await postgres.createDatabase();
    const { hostname, port, username, password, pathname } = new URL(database);
    const store = `${database}?layout=lock-service-central`;
    await place.run(['migrate', '--store', store]);
    const { url } = await served([], {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'postgres',
      LOCKER_POSTGRES_HOST: hostname,
      LOCKER_POSTGRES_PORT: port,
      LOCKER_POSTGRES_DATABASE: pathname.slice(1),
      LOCKER_POSTGRES_USERNAME: decodeURIComponent(username),
      LOCKER_POSTGRES_PASSWORD: decodeURIComponent(password),
      AUTHENTICATION_DISABLED: 'true',
    });
    const answer = await post(`${url}/v1/shop/lock/stock/acquire`, { instanceId: 'one', leaseDuration: 60 });
    expect([answer.status, await answer.json()]).toMatchObject([200, { success: true, owner: 'anonymous' }]);
    const { stdout } = await place.run(['ls', '--store', store, '--namespace', 'shop', '--json']);
    expect(JSON.parse(stdout)).toMatchObject([{ key: 'stock' }]);
    await postgres.stop();
  });
});
