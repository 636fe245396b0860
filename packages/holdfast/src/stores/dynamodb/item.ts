/**
 * Items and expressions of DynamoDB's calls. Every attribute name is aliased: many words that people choose are reserved
 * (`owner`, `ttl`, `key`, `token`), and a single one written out makes every call fail (F23).
 */

export interface AttributeValue {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
  readonly BOOL?: boolean | undefined;
  readonly M?: Item | undefined;
}

export type Item = { readonly [attribute: string]: AttributeValue };

export const text = (value: string): AttributeValue => ({ S: value });
export const number = (value: number): AttributeValue => ({ N: String(value) });

/** Undefined where the attribute is missing or not a text. */
export function textIn(item: Item, attribute: string): string | undefined {
  return item[attribute]?.S;
}

/** Undefined where the attribute is missing or not a number. */
export function numberIn(item: Item, attribute: string): number | undefined {
  const digits = item[attribute]?.N;
  return digits === undefined ? undefined : Number(digits);
}

export class Aliases {
  readonly #aliases = new Map<string, string>();
  readonly #names: Record<string, string> = {};
  readonly #values: Record<string, AttributeValue> = {};
  #count = 0;

  /** The alias of an attribute. Steps of a path are aliased one by one and joined with dots. */
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

  /** Only the aliases used: DynamoDB refuses a call with unused aliases, or with an empty list. */
  get parts(): AliasParts {
    return {
      ...(this.#aliases.size > 0 && { ExpressionAttributeNames: this.#names }),
      ...(this.#count > 0 && { ExpressionAttributeValues: this.#values }),
    };
  }
}

export interface AliasParts {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Item;
}

/** An update that sets these attributes, and removes those. */
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

/** A condition: these attributes are as in `seen`, equal or absent. */
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
