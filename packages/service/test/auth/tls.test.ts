import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth, tlsFromFiles } from '../../src/auth/index.js';
import { clearScene, freshFile, stage } from '../scene.js';
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

describe('TLS by certificate files', () => {
  it('answers over https, to clients that trust the certificate', async () => {
    const files = certificate();
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const { url } = await stage({ tls: tlsFromFiles(files), auth: createAuth({ keys: path }) });
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

  it('says which file is wrong before it listens, and shows nothing of it', () => {
    const files = certificate();
    const other = certificate();
    expect(() => tlsFromFiles({ ...files, key: other.key })).toThrow(/is not that of/);
    expect(() => tlsFromFiles({ ...files, cert: '/no/such/cert.pem' })).toThrow(/certificate cannot be read/);
    writeFileSync(other.key, 'this-is-no-key');
    expect(() => tlsFromFiles({ ...files, key: other.key })).toThrow(/is not understood: PEM/);
    expect(() => tlsFromFiles({ cert: files.key, key: files.key })).toThrow(/is not understood: PEM/);
  });
});
