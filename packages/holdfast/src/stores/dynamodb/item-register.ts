/** The items of one table as a register: read, and replaced if they are still as seen. */
import type { Claim, State } from '../../protocol/index.js';
import type { Found, Register, Written } from '../compare-and-swap/register.js';
import type { Calls } from './client.js';
import { explainedError, itemOfFailedCondition } from './errors.js';
import { Aliases, type AttributeValue, type Item, isAbsent, isAsSeen, update } from './item.js';
import type { FreeCondition, Layout } from './layout.js';

/** A version is the item as seen; null for none. */
export type ItemRegister = Register<Item | null>;

export function itemRegister(calls: Calls, table: string, layout: Layout): ItemRegister {
  const { ifFree } = layout;
  const items = new Items(calls, table, layout);
  return {
    absent: { state: null, version: null, lateMs: 0 },
    repeats: true,
    read: (key) => items.read(key),
    write: (key, next, seen, now) => items.write(key, next, seen.version, now),
    ...(ifFree && { take: (claim: Claim, next: State, now: number) => items.take(ifFree, claim, next, now) }),
    ...(layout.check && { check: layout.check }),
  };
}

class Items {
  readonly #calls: Calls;
  readonly #table: string;
  readonly #layout: Layout;

  constructor(calls: Calls, table: string, layout: Layout) {
    this.#calls = calls;
    this.#table = table;
    this.#layout = layout;
  }

  async read(key: string): Promise<Found<Item | null>> {
    const input = { TableName: this.#table, Key: this.#layout.keyOf(key), ConsistentRead: true };
    try {
      const { Item: item } = await this.#calls.get(input);
      return this.#found(key, item ?? null);
    } catch (error) {
      throw explainedError(error, this.#table, key);
    }
  }

  async write(key: string, next: State, seen: Item | null, now: number): Promise<Written<Item | null>> {
    const { attributes, versionAttributes, table } = this.#layout;
    const aliases = new Aliases();
    const set = this.#layout.encode(key, next, now, seen);
    const changes = changesOf(aliases, attributes, seen ?? {}, set);
    const condition = seen
      ? isAsSeen(aliases, versionAttributes, seen)
      : isAbsent(aliases, table.partitionKey);
    const input = this.#input(key, aliases, condition);
    try {
      await this.#calls.update({ ...input, ...(changes !== '' && { UpdateExpression: changes }) });
      return { kind: 'written', version: this.#after(key, seen, set), lateMs: 0 };
    } catch (error) {
      const item = itemOfFailedCondition(error);
      if (item === undefined) throw explainedError(error, this.#table, key);
      return { kind: 'changed', found: item && this.#found(key, item) };
    }
  }

  async take(ifFree: FreeCondition, claim: Claim, next: State, now: number): Promise<Written<Item | null>> {
    const { key } = claim;
    const aliases = new Aliases();
    const isWritten = (name: string): boolean => !ifFree.keeps.includes(name);
    const encoded = Object.entries(this.#layout.encode(key, next, now, null));
    // `next` may have been decided on an old record, so its values of the kept attributes do not count.
    const set = Object.fromEntries(encoded.filter(([name]) => isWritten(name)));
    const remove = this.#layout.attributes.filter((name) => isWritten(name) && !(name in set));
    const UpdateExpression = update(aliases, set, remove);
    const input = this.#input(key, aliases, ifFree.condition(aliases, claim, next));
    try {
      const { Attributes: item } = await this.#calls.update({
        ...input,
        UpdateExpression,
        ReturnValues: 'ALL_NEW',
      });
      return item ? this.#taken(key, item) : { kind: 'changed', found: null };
    } catch (error) {
      const item = itemOfFailedCondition(error);
      if (item === undefined) throw explainedError(error, this.#table, key);
      return { kind: 'changed', found: item && this.#found(key, item) };
    }
  }

  #input(key: string, aliases: Aliases, ConditionExpression: string) {
    return {
      TableName: this.#table,
      Key: this.#layout.keyOf(key),
      ConditionExpression,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...aliases.parts,
    } as const;
  }

  #found(key: string, item: Item | null): Found<Item | null> {
    return { state: item && this.#layout.decode(key, item), version: item, lateMs: 0 };
  }

  #taken(key: string, item: Item): Written<Item | null> {
    return { kind: 'written', version: item, lateMs: 0, state: this.#layout.decode(key, item) };
  }

  #after(key: string, seen: Item | null, set: Item): Item {
    const kept = Object.entries(seen ?? {}).filter(([name]) => !this.#layout.attributes.includes(name));
    return { ...this.#layout.keyOf(key), ...Object.fromEntries(kept), ...set };
  }
}

/** Only the attributes that changed: smaller requests are faster. */
function changesOf(aliases: Aliases, attributes: readonly string[], seen: Item, set: Item): string {
  const changed = Object.entries(set).filter(([name, value]) => !isSame(seen[name], value));
  const remove = attributes.filter((name) => !(name in set) && seen[name] !== undefined);
  return update(aliases, Object.fromEntries(changed), remove);
}

function isSame(seen: AttributeValue | undefined, value: AttributeValue): boolean {
  if (value.S !== undefined) return seen?.S === value.S;
  return value.N !== undefined && seen?.N === value.N;
}
