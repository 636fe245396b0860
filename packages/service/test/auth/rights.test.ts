import { describe, expect, it } from 'vitest';
import { allows, rightOf, rightsOf } from '../../src/auth/rights.js';

const may = (rights: readonly string[], role: 'read' | 'lock' | 'admin', namespace: string): boolean =>
  allows(rightsOf(rights), role, namespace);

describe('rights', () => {
  it('name one namespace exactly, unless they end in a star', () => {
    expect(may(['lock:bill'], 'lock', 'bill')).toBe(true);
    expect(may(['lock:bill'], 'lock', 'billing')).toBe(false);
    expect(may(['lock:bill*'], 'lock', 'billing')).toBe(true);
    expect(may(['lock:bill*'], 'lock', 'bill')).toBe(true);
    expect(may(['lock:bill*'], 'lock', 'bil')).toBe(false);
    expect(may(['lock:*'], 'lock', 'anything')).toBe(true);
  });

  it('are a ladder: admin may lock, lock may read, and never the other way', () => {
    const ladder = ['read', 'lock', 'admin'] as const;
    for (const [has, role] of ladder.entries()) {
      for (const [wants, wanted] of ladder.entries()) {
        expect(may([`${role}:a`], wanted, 'a')).toBe(has >= wants);
      }
    }
  });

  it('add up', () => {
    expect(may(['read:*', 'admin:own'], 'admin', 'own')).toBe(true);
    expect(may(['read:*', 'admin:own'], 'lock', 'other')).toBe(false);
    expect(may(['read:*', 'admin:own'], 'read', 'other')).toBe(true);
  });

  it('no rights are no rights, and keys without a namespace belong to the star alone', () => {
    expect(may([], 'read', 'a')).toBe(false);
    expect(may(['admin:a', 'admin:b*'], 'read', '')).toBe(false);
    expect(may(['read:*'], 'read', '')).toBe(true);
  });

  it('that are not understood are refused', () => {
    for (const text of [
      '',
      'lock',
      'lock:',
      ':a',
      'write:a',
      'LOCK:a',
      'lock:a b',
      'lock:a*b',
      'lock:**',
      'lock:a/b',
    ]) {
      expect(rightOf(text)).toBeNull();
      expect(() => rightsOf([text])).toThrow(/is no right/);
    }
    expect(() => rightsOf(Array<string>(101).fill('read:a'))).toThrow(/the most/);
  });
});
