/** The items of one table as a register: read, and replaced if they are still as seen. */
import type { Found, Register, Written } from '../compare-and-swap/register.js';
import { type AttributeValue, type Item, isAbsent, isAsSeen, update } from './item.js';
import type { Items } from './items.js';
import type { Layout } from './layout.js';

/** A version is the item as seen; null for none. */
export function itemRegister(items: Items, layout: Layout): Register<Item | null> {
  const { attributes, versionAttributes, ifFree, table } = layout;

  function found(key: string, item: Item | null): Found<Item | null> {
    return { state: item && layout.decode(key, item), version: item, lateMs: 0 };
  }

  function changed(key: string, item: Item | null): Written<Item | null> {
    return { kind: 'changed', found: item && found(key, item) };
  }

  return {
    absent: { state: null, version: null, lateMs: 0 },
    repeats: true,
    read: async (key) => found(key, await items.get(layout.keyOf(key), key)),
    async write(key, next, { version: seen }, now) {
      const Key = layout.keyOf(key);
      const set = layout.encode(key, next, now, seen);
      const { kind, item } = await items.change(Key, key, false, (aliases) => ({
        update: update(
          aliases,
          // Only the attributes that changed: smaller requests are faster.
          pick(set, (name, value) => !isSame(seen?.[name], value)),
          attributes.filter((name) => !(name in set) && seen?.[name] !== undefined),
        ),
        condition: seen ? isAsSeen(aliases, versionAttributes, seen) : isAbsent(aliases, table.partitionKey),
      }));
      if (kind === 'refused') return changed(key, item);
      const kept = pick(seen ?? {}, (name) => !attributes.includes(name));
      return { kind: 'written', version: { ...Key, ...kept, ...set }, lateMs: 0 };
    },
    async take(claim, next, now) {
      const { key } = claim;
      // `next` may have been decided on an old record, so its values of the kept attributes do not count.
      const isWritten = (name: string): boolean => !ifFree.keeps.includes(name);
      const set = pick(layout.encode(key, next, now, null), isWritten);
      const { kind, item } = await items.change(layout.keyOf(key), key, true, (aliases) => ({
        update: update(
          aliases,
          set,
          attributes.filter((name) => isWritten(name) && !(name in set)),
        ),
        condition: ifFree.condition(aliases, claim, next),
      }));
      if (kind === 'refused' || item === null) return changed(key, kind === 'refused' ? item : null);
      return { kind: 'written', version: item, lateMs: 0, state: layout.decode(key, item) };
    },
    ...(layout.check && { check: layout.check }),
  };
}

function pick(item: Item, isMeant: (name: string, value: AttributeValue) => boolean): Item {
  return Object.fromEntries(Object.entries(item).filter(([name, value]) => isMeant(name, value)));
}

function isSame(seen: AttributeValue | undefined, value: AttributeValue): boolean {
  if (value.S !== undefined) return seen?.S === value.S;
  return value.N !== undefined && seen?.N === value.N;
}
