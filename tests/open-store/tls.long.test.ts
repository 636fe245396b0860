import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import {
  available,
  type PostgresServer,
  startEtcd,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrationOf } from '../../packages/holdfast/src/open-store.js';
import { openStore as openPostgres } from '../../packages/holdfast/src/stores/postgres/from-url.js';
import { POSTGRES_CLIENTS } from '../../packages/holdfast/src/stores/postgres/open-client.js';
import { usePlace } from '../cli/holdfast.js';
import { hasCommand, run } from '../repository/shell.js';

const place = usePlace();
const folder = mkdtempSync(join(tmpdir(), 'holdfast-tls-'));
const certificate = join(folder, 'server.crt');
const key = join(folder, 'server.key');

/** A certificate for the name localhost alone, signed by itself. */
beforeAll(async () => {
  if (!hasCommand('openssl')) return;
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'];
  const files = ['-keyout', key, '-out', certificate];
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files];
  await run('openssl', args, { cwd: folder });
  // Servers may run as another user.
  for (const file of [folder, certificate, key]) chmodSync(file, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

const hasServer = (server: 'redis' | 'postgres' | 'nats' | 'etcd'): boolean =>
  available(server) && hasCommand('openssl');

/** A NATS server greets in plain text, and asks for TLS there: this one says so for a server that does without. */
async function encrypting(target: { readonly host: string; readonly port: number }): Promise<Server> {
  const listener = createServer((client) => {
    const server = connect(target.port, target.host);
    for (const socket of [client, server]) {
      socket.on('error', () => undefined);
      socket.on('close', () => [client, server].map((each) => each.destroy()));
    }
    server.once('data', (greeting) => {
      client.write(String(greeting).replace('{', '{"tls_required":true,'));
      const options = { isServer: true, cert: readFileSync(certificate), key: readFileSync(key) };
      const secured = new TLSSocket(client, options);
      secured.on('error', () => undefined);
      secured.pipe(server).pipe(secured);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return listener;
}

it.runIf(hasServer('nats'))('nats+tls: checks the certificate and the name', async () => {
  const server = await startNats();
  const listener = await encrypting(server);
  const { port } = listener.address() as AddressInfo;
  try {
    const refused = await place.run(['ls', '--store', `nats+tls://localhost:${port}`]);
    expect(refused.status).toBe(69);
    expect(refused.stderr).toMatch(/the certificate of localhost:\d+ over TLS is not trusted/);
    // Asked for by the server alone, it is checked as well.
    const plain = await place.run(['ls', '--store', `nats://localhost:${port}`]);
    expect(plain.stderr).toMatch(/the certificate of localhost:\d+ is not trusted/);
    const ours = `tlsca=${certificate}`;
    const trusted = await place.run(['ls', '--store', `nats+tls://localhost:${port}?${ours}`, '--json']);
    expect(trusted).toMatchObject({ status: 0, stdout: '[]\n' });
    const other = await place.run(['ls', '--store', `nats+tls://127.0.0.1:${port}?${ours}`]);
    expect(other.stderr).toMatch(/is not trusted/);
  } finally {
    listener.close();
    await server.stop();
  }
});

it.runIf(hasServer('etcd'))('etcds: checks the certificate and the name', async () => {
  const server = await startEtcd({ tls: { cert: certificate, key } });
  try {
    const url = `etcds://localhost:${server.port}`;
    const refused = await place.run(['ls', '--store', url]);
    expect(refused.status).toBe(69);
    expect(refused.stderr).toMatch(/is not trusted: name its authority in NODE_EXTRA_CA_CERTS/);
    const trusting = { NODE_EXTRA_CA_CERTS: certificate };
    const trusted = await place.run(['ls', '--store', url, '--json'], trusting);
    expect(trusted).toMatchObject({ status: 0, stdout: '[]\n' });
    const other = await place.run(['ls', '--store', `etcds://127.0.0.1:${server.port}`], trusting);
    expect(other.stderr).toMatch(/is not trusted/);
    const plain = await place.run(['ls', '--store', `etcd://localhost:${server.port}`]);
    expect(plain.status).toBe(69);
  } finally {
    await server.stop();
  }
});

it.runIf(hasServer('redis'))('rediss: checks the certificate', async () => {
  const port = await freePort();
  const tls = { 'tls-port': String(port), 'tls-cert-file': certificate, 'tls-key-file': key };
  const server = await startRedis({
    config: { ...tls, 'tls-ca-cert-file': certificate, 'tls-auth-clients': 'no' },
  });
  try {
    const store = `rediss://localhost:${port}`;
    const refused = await place.run(['ls', '--store', store]);
    expect(refused.status).toBe(69);
    expect(refused.stderr).toMatch(/the certificate of localhost:\d+ over TLS is not trusted/);
    const trusted = await place.run(['ls', '--store', store, '--json'], { NODE_EXTRA_CA_CERTS: certificate });
    expect(trusted).toMatchObject({ status: 0, stdout: '[]\n' });
  } finally {
    await server.stop();
  }
});

describe.runIf(hasServer('postgres'))('sslmode', () => {
  let server: PostgresServer;
  let url = '';

  beforeAll(async () => {
    server = await startPostgres({ own: true });
    url = await server.createDatabase();
    await (await migrationOf(url)).apply();
    await encrypt();
  });
  afterAll(async () => server?.stop());

  /** The server's own user has to own its key, so the server writes it. */
  async function encrypt(): Promise<void> {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    try {
      for (const [name, path] of [
        ['server.crt', certificate],
        ['server.key', key],
      ] as const) {
        const lines = readFileSync(path, 'utf8').trimEnd().replaceAll('\n', "'), ('");
        await client.query(`COPY (VALUES ('${lines}')) TO PROGRAM 'umask 077; cat > ${name}'`);
      }
      await client.query('ALTER SYSTEM SET ssl = on');
      await client.query('SELECT pg_reload_conf()');
      await vi.waitFor(
        async () => expect((await client.query('SHOW ssl')).rows).toEqual([{ ssl: 'on' }]),
        10_000,
      );
    } finally {
      await client.end();
    }
  }

  describe.each(POSTGRES_CLIENTS.map(({ name }) => name))('with %s', (name) => {
    const clients = POSTGRES_CLIENTS.filter((candidate) => candidate.name === name);

    async function reads(host: string, options: string): Promise<string> {
      const named = url.replace('127.0.0.1', host).replace('postgres:', '');
      const store = await openPostgres('postgres', `${named}?${options}`, clients);
      try {
        return await store.read('job').then(
          () => 'read',
          (error: Error) => error.message,
        );
      } finally {
        await store.close();
      }
    }

    it('require encrypts and trusts anybody', async () => {
      expect(await reads('127.0.0.1', 'sslmode=require')).toBe('read');
      expect(await reads('127.0.0.1', 'sslmode=no-verify')).toBe('read');
    });

    it('disable does not', async () => {
      expect(await reads('127.0.0.1', 'sslmode=disable')).toBe('read');
    });

    it('verify-ca checks who signed, and no name', async () => {
      expect(await reads('127.0.0.1', 'sslmode=verify-ca')).toMatch(/certificate of .* is not trusted/);
      expect(await reads('127.0.0.1', `sslmode=verify-ca&sslrootcert=${certificate}`)).toBe('read');
      expect(await reads('127.0.0.1', `sslmode=require&sslrootcert=${certificate}`)).toBe('read');
    });

    it('verify-full checks the name too', async () => {
      expect(await reads('localhost', `sslmode=verify-full&sslrootcert=${certificate}`)).toBe('read');
      expect(await reads('127.0.0.1', `sslmode=verify-full&sslrootcert=${certificate}`)).toMatch(
        /certificate of .* is not trusted/,
      );
    });
  });
});
