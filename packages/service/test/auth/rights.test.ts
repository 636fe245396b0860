import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allows, prefixesOf, rightOf, rightsOf } from '../../src/auth/rights.js';

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
      expect(() => rightsOf([text])).toThrow(/is not a right/);
    }
    expect(() => rightsOf(Array<string>(101).fill('read:a'))).toThrow(/at most 100/);
  });
});

describe('the prefixes of rights', () => {
  const ROLES = ['read', 'lock', 'admin'] as const;
  const prefixes = (rights: readonly string[], role: 'read' | 'lock' | 'admin' = 'read') =>
    prefixesOf(rightsOf(rights), role);

  it('is what keys begin with, in order', () => {
    expect(prefixes(['read:eve'])).toEqual(['eve/']);
    expect(prefixes(['read:team-*', 'lock:ann'])).toEqual(['ann/', 'team-']);
    expect(prefixes(['admin:*'])).toEqual(['']);
    expect(prefixes([])).toEqual([]);
    expect(prefixes(['read:eve', 'lock:ann'], 'lock')).toEqual(['ann/']);
  });

  it('names nothing twice', () => {
    expect(prefixes(['read:eve', 'lock:eve', 'read:eve*', 'read:eve-2', 'read:ev'])).toEqual(['ev/', 'eve']);
    expect(prefixes(['read:a', 'read:*', 'read:b*'])).toEqual(['']);
  });

  it('holds every key that may be had, once, and comes from a right', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '-', '.'), minLength: 1, maxLength: 3 });
    const right = fc
      .tuple(fc.constantFrom(...ROLES), fc.oneof(name, fc.constant('')), fc.boolean())
      .map(([role, begin, star]) => `${role}:${begin}${star || begin === '' ? '*' : ''}`);
    const rights = fc.array(right, { maxLength: 8 });
    fc.assert(
      fc.property(rights, fc.constantFrom(...ROLES), name, (texts, role, namespace) => {
        const begins = prefixes(texts, role);
        const key = `${namespace}/x`;
        const at = begins.filter((begin) => key.startsWith(begin));
        expect(at).toHaveLength(may(texts, role, namespace) ? 1 : 0);
        expect(begins).toEqual([...begins].sort());
        for (const begin of begins) {
          const pattern = begin.endsWith('/') ? begin.slice(0, -1) : `${begin}*`;
          expect(texts.map((text) => text.slice(text.indexOf(':') + 1))).toContain(pattern);
        }
      }),
    );
  });
});
