import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../packages/holdfast/src/open-store.js';
import { InvalidArgumentError } from '../../packages/holdfast/src/protocol/index.js';

describe('nats: logs in', () => {
  /** Connects to something that is no server but hears what a client says of itself. */
  async function introductionOf(write: (at: string) => string): Promise<Record<string, unknown>> {
    const sockets = new Set<Socket>();
    let heard: (line: string) => void = () => undefined;
    const introduced = new Promise<string>((resolve) => {
      heard = resolve;
    });
    const listener = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        const [, json] = /^CONNECT (.*)$/m.exec(String(data)) ?? [];
        if (json !== undefined) heard(json);
      });
      socket.write('INFO {"version":"2.9.10","proto":1,"headers":true,"max_payload":1024,"nonce":"abc"}\r\n');
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as AddressInfo;
    const opening = openStore(write(`127.0.0.1:${port}`));
    try {
      return JSON.parse(await introduced);
    } finally {
      listener.close();
      for (const socket of sockets) socket.destroy();
      await (await opening).close();
    }
  }

  it('with user and password, or with a token', async () => {
    const named = { user: 'a:b', pass: 'p@ss' };
    expect(await introductionOf((at) => `nats://a%3Ab:p%40ss@${at}`)).toMatchObject(named);
    const token = { auth_token: 's3cret', name: 'holdfast' };
    expect(await introductionOf((at) => `nats://s3cret@${at}`)).toMatchObject(token);
    expect(await introductionOf((at) => `nats://${at}?token=s3cret`)).toMatchObject(token);
  });

  it('with what stands in a file: a seed, or credentials', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-nats-'));
    try {
      const user = nkeys.createUser();
      const seed = new TextDecoder().decode(user.getSeed());
      writeFileSync(join(folder, 'seed'), `${seed}\n`);
      const jwt = 'aaa.bbb.ccc';
      const parts = [`-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------`];
      parts.push(`-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------`);
      writeFileSync(join(folder, 'user.creds'), `${parts.join('\n\n')}\n`);
      const signed = { sig: expect.any(String) };
      const byKey = await introductionOf((at) => `nats://${at}?nkey=${join(folder, 'seed')}`);
      expect(byKey).toMatchObject({ nkey: user.getPublicKey(), ...signed });
      const byCreds = await introductionOf((at) => `nats://${at}?creds=${join(folder, 'user.creds')}`);
      expect(byCreds).toMatchObject({ jwt, ...signed });
      for (const option of ['nkey', 'creds']) {
        writeFileSync(join(folder, 'other'), 'something else');
        const opening = openStore(`nats://127.0.0.1:1?${option}=${join(folder, 'other')}`);
        await expect(opening).rejects.toThrow(InvalidArgumentError);
        await expect(opening).rejects.toThrow(`The file that ${option} names is not a NATS ${option} file`);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
