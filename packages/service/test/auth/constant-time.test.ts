import type * as Crypto from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const compared = vi.hoisted(() => [] as (readonly [number, number])[]);

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof Crypto>();
  return {
    ...crypto,
    timingSafeEqual: (a: Uint8Array, b: Uint8Array) => {
      compared.push([a.length, b.length]);
      return crypto.timingSafeEqual(a, b);
    },
  };
});

// Other files of this worker have loaded them with the real module.
vi.resetModules();
const { digestIn, isKeyOf, newKey } = await import('../../src/auth/api-key.js');
const { ApiKeyRing } = await import('../../src/auth/api-key-ring.js');
const { keyFile } = await import('./issuer.js');

afterEach(() => {
  vi.useRealTimers();
});

describe('a key is compared in constant time', () => {
  beforeEach(() => {
    compared.length = 0;
  });

  it('digest with digest, whether it is right, wrong, of another length or of nobody', () => {
    const { text, hash } = newKey();
    for (const [given, kept] of [
      [text, digestIn(hash)],
      [newKey().text, digestIn(hash)],
      ['', digestIn(hash)],
      [text, null],
    ] as const) {
      isKeyOf(given, kept);
      expect(compared.splice(0)).toEqual([[32, 32]]);
    }
  });

  it('also when the ring does not know the id, or the key is revoked', async () => {
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const ring = new ApiKeyRing(path);
    const id = keys.ada.slice(4, 16);
    compared.length = 0;
    expect(ring.find(id, keys.ada)?.name).toBe('ada');
    expect(ring.find(id, newKey().text)).toBeNull();
    expect(ring.find('000000000000', keys.ada)).toBeNull();
    expect(compared).toEqual([
      [32, 32],
      [32, 32],
      [32, 32],
    ]);
  });

  it('again when the file of keys was looked at, not for every request', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const ring = new ApiKeyRing(path);
    const id = keys.ada.slice(4, 16);
    compared.length = 0;
    for (let request = 0; request < 3; request += 1) expect(ring.find(id, keys.ada)?.name).toBe('ada');
    expect(compared.splice(0)).toHaveLength(1);
    vi.advanceTimersByTime(250);
    expect(ring.find(id, keys.ada)?.name).toBe('ada');
    expect(compared.splice(0)).toHaveLength(1);
    for (let request = 0; request < 3; request += 1) expect(ring.find(id, newKey().text)).toBeNull();
    expect(compared).toHaveLength(3);
  });
});
