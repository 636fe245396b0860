/** Items as DynamoDB's calls have them, as far as they are used. */
export interface AttributeValue {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
  readonly BOOL?: boolean | undefined;
  readonly M?: Item | undefined;
}

export type Item = { readonly [attribute: string]: AttributeValue };

export const text = (value: string): AttributeValue => ({ S: value });
export const number = (value: number): AttributeValue => ({ N: String(value) });

/** Undefined where there is no such attribute, or it is no text. */
export function textIn(item: Item, attribute: string): string | undefined {
  return item[attribute]?.S;
}

/** Undefined where there is no such attribute, or it is no number. */
export function numberIn(item: Item, attribute: string): number | undefined {
  const digits = item[attribute]?.N;
  return digits === undefined ? undefined : Number(digits);
}
