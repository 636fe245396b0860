import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth, tlsFromFiles } from '../../src/auth/index.js';
import { atTheEnd, clearScene, freshFile, pause, stage, until } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

/** A certificate of this moment, for 127.0.0.1. */
function certificate(days = 2): { readonly cert: string; readonly key: string } {
  const folder = dirname(freshFile());
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-days', String(days), ...kind, ...subject, ...files], {
    stdio: 'ignore',
  });
  return { cert, key };
}

/** The certificate that a new connection gets, by its fingerprint. */
function shownAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false };
    const socket = connect(options, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

describe('TLS by certificate files', () => {
  it('answers over https, to clients that trust the certificate', async () => {
    const files = certificate();
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const { url } = await stage({ tls: tlsFromFiles(files), auth: createAuth({ apiKeys: path }) });
    expect(url).toMatch(/^https:/);
    const ask = (ca?: Buffer): Promise<number> =>
      new Promise((resolve, reject) => {
        const options = { headers: bearer(keys.ada), agent: false, ...(ca ? { ca } : {}) };
        const sent = request(`${url}/v2/locks/own/a`, options, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        sent.on('error', reject);
        sent.end();
      });
    expect(await ask(readFileSync(files.cert))).toBe(200);
    await expect(ask()).rejects.toThrow(/self-signed/);
  });

  it('closing does not wait for connections on which nothing was asked', async () => {
    const files = certificate();
    const { url, service, lines } = await stage({ tls: tlsFromFiles(files), insecure: true });
    const options = { host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false };
    connect(options).on('error', () => undefined);
    await new Promise((resolve) => service.app.server.once('secureConnection', resolve));
    await service.close();
    expect(lines.join('')).not.toContain('cut off');
  });

  it('a connection whose request waits is not taken for idle', async () => {
    const limits = { connections: 1 };
    const { url, store } = await stage({ tls: tlsFromFiles(certificate()), insecure: true, limits });
    const held = { hold: { process: 'elsewhere', number: 1 }, owner: 'o', permits: 1, capacity: 1 };
    const claim = { kind: 'claim', key: 'own/a', ...held, ttlMs: 30_000 } as const;
    await Promise.all(store.apply([{ ...claim, queue: false, inbox: null, metadata: null }]));
    const answer = new Promise<number>((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const options = { method: 'POST', headers, agent: false, rejectUnauthorized: false } as const;
      const sent = request(`${url}/v2/locks/own/a/acquire`, options, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ ttl: '30s', wait: '20s' }));
    });
    await until(async () => (await store.read('own/a'))?.waiters.length === 1, 'it waits');
    await expect(shownAt(url)).rejects.toThrow();
    await Promise.all(store.apply([{ kind: 'release', key: 'own/a', hold: held.hold, minHoldMs: 0 }]));
    expect(await answer).toBe(200);
  });

  it('whoever never begins a handshake is cut off as one who never sends a request', async () => {
    const { url } = await stage({ tls: tlsFromFiles(certificate()), limits: { headersMs: 500 } });
    const socket = createConnection({ host: '127.0.0.1', port: Number(new URL(url).port) });
    atTheEnd(() => socket.destroy());
    let isClosed = false;
    socket
      .on('error', () => undefined)
      .on('close', () => {
        isClosed = true;
      });
    await until(() => isClosed, 'the connection is closed');
  }, 30_000);

  it('new files are used by new connections; half of a pair, or none, leaves the old one in use', async () => {
    const files = certificate();
    const next = certificate();
    const { url, lines } = await stage({ tls: tlsFromFiles(files), insecure: true });
    const first = await shownAt(url);
    const complaints = (): number => lines.filter((line) => line.includes('the old one stays')).length;
    copyFileSync(next.cert, files.cert);
    await until(() => complaints() === 1, 'the pair that does not fit is told');
    rmSync(files.key);
    await until(() => complaints() === 2, 'the missing key is told');
    // Once each, however often it looks.
    await pause(2_500);
    expect([await shownAt(url), complaints()]).toEqual([first, 2]);
    copyFileSync(next.key, files.key);
    await until(async () => (await shownAt(url)) !== first, 'the new one is shown');
    expect(await shownAt(url)).toBe(new X509Certificate(readFileSync(next.cert)).fingerprint256);
    expect(lines.join('')).not.toContain('PRIVATE KEY');
  });

  it('files that cannot be read when they change are read again, seldom and not for ever, and the error is told once', () => {
    const files = certificate();
    const next = certificate();
    let reads = 0;
    let atMs = 0;
    let isBroken = false;
    const read = (path: string): Buffer => {
      reads += 1;
      if (isBroken) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return readFileSync(path);
    };
    const tls = tlsFromFiles(files, { read, nowMs: () => atMs });
    const replace = (): void => {
      copyFileSync(next.cert, files.cert);
      copyFileSync(next.key, files.key);
      reads = 0;
    };
    const look = (seconds: number): unknown[] =>
      Array.from({ length: seconds }, () => {
        atMs += 1_000;
        return tls.changed?.() ?? null;
      }).filter((pair) => pair !== null);
    expect([look(10), reads]).toEqual([[], 2]);

    isBroken = true;
    replace();
    expect(() => tls.changed?.()).toThrow(/certificate cannot be read/);
    expect([look(3), reads]).toEqual([[], 3]);
    isBroken = false;
    expect(look(10)).toMatchObject([{ cert: readFileSync(next.cert) }]);

    isBroken = true;
    replace();
    expect(() => tls.changed?.()).toThrow(/certificate cannot be read/);
    expect([look(3_600), reads]).toEqual([[], 7]);
    isBroken = false;
    expect(look(3_600)).toEqual([]);
  });

  it('says which file is wrong before it listens, and shows nothing of it', () => {
    const files = certificate();
    const other = certificate();
    expect(() => tlsFromFiles({ ...files, key: other.key })).toThrow(/is not that of/);
    expect(() => tlsFromFiles({ ...files, cert: '/no/such/cert.pem' })).toThrow(/certificate cannot be read/);
    writeFileSync(other.key, 'this-is-no-key');
    expect(() => tlsFromFiles({ ...files, key: other.key })).toThrow(/is not valid PEM/);
    expect(() => tlsFromFiles({ cert: files.key, key: files.key })).toThrow(/is not valid PEM/);
  });
});
