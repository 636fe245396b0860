/**
 * Names and values of one call. Every name is aliased: a good part of the words that people choose are reserved
 * (`owner`, `ttl`, `key`, `token`), and a single one written out makes every call fail (F23).
 */
import type { AttributeValue, Item } from './values.js';

export class Aliases {
  readonly #aliases = new Map<string, string>();
  readonly #names: Record<string, string> = {};
  readonly #values: Record<string, AttributeValue> = {};
  #count = 0;

  /** What stands for an attribute. Steps of a path are named one by one and joined with dots. */
  name(attribute: string): string {
    const known = this.#aliases.get(attribute);
    if (known !== undefined) return known;
    const alias = `#n${this.#aliases.size}`;
    this.#aliases.set(attribute, alias);
    this.#names[alias] = attribute;
    return alias;
  }

  value(value: AttributeValue): string {
    const alias = `:v${this.#count++}`;
    this.#values[alias] = value;
    return alias;
  }

  /** Only what was used: DynamoDB refuses a call that names more, and an empty list of names. */
  get parts(): Parts {
    return {
      ...(this.#aliases.size > 0 && { ExpressionAttributeNames: this.#names }),
      ...(this.#count > 0 && { ExpressionAttributeValues: this.#values }),
    };
  }
}

export interface Parts {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Item;
}

/** Sets what is there, and removes what is listed but not there. */
export function update(aliases: Aliases, set: Item, remove: readonly string[]): string {
  const sets = Object.entries(set).map(([name, value]) => `${aliases.name(name)} = ${aliases.value(value)}`);
  const removes = remove.map((name) => aliases.name(name));
  return [
    ...(sets.length > 0 ? [`SET ${sets.join(', ')}`] : []),
    ...(removes.length > 0 ? [`REMOVE ${removes.join(', ')}`] : []),
  ].join(' ');
}

export function isAbsent(aliases: Aliases, attribute: string): string {
  return `attribute_not_exists(${aliases.name(attribute)})`;
}

/** These attributes are as they were in `seen`: equal, or absent as there. */
export function isAsSeen(aliases: Aliases, attributes: readonly string[], seen: Item): string {
  return attributes
    .map((name) => {
      const value = seen[name];
      return value === undefined
        ? isAbsent(aliases, name)
        : `${aliases.name(name)} = ${aliases.value(value)}`;
    })
    .join(' AND ');
}
