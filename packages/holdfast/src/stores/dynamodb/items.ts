/** The items of one table: read, changed on a condition, and scanned. Refusals are explained (errors.ts). */
import { CallLimit, type DynamodbClient } from './client.js';
import { explainedError, itemOfFailedCondition, wasSentAgain } from './errors.js';
import { Aliases, type Item } from './item.js';

/** A conditional write of one item. */
export interface Change {
  readonly condition: string;
  /** '' for a write that only tests the condition. */
  readonly update: string;
}

export type Outcome =
  /** The item that is there now, where it was asked for. */
  | { readonly kind: 'written'; readonly item: Item | null }
  /**
   * The item that made the condition fail; null where there is none, or where the endpoint does not return it.
   * `isRepeated`: the SDK sent the call more than once, so an earlier attempt may have been executed.
   */
  | { readonly kind: 'refused'; readonly item: Item | null; readonly isRepeated: boolean };

interface Page {
  readonly Items?: readonly Item[];
  readonly LastEvaluatedKey?: Item;
}

export class Items {
  readonly #client: DynamodbClient;
  readonly #limit = new CallLimit();
  readonly #table: string;

  constructor(client: DynamodbClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  /** The current item, by a consistent read. `key` is the lock's, for messages. */
  async get(Key: Item, key: string): Promise<Item | null> {
    const input = { TableName: this.#table, Key, ConsistentRead: true };
    const { Item: item } = (await this.#call('getItem', input, key)) as { readonly Item?: Item };
    return item ?? null;
  }

  /** The cheapest call: half a read unit. */
  async getAnything(Key: Item): Promise<void> {
    const aliases = new Aliases();
    const ProjectionExpression = aliases.name(Object.keys(Key)[0] ?? '');
    const input = { TableName: this.#table, Key, ConsistentRead: false, ProjectionExpression };
    await this.#call('getItem', { ...input, ...aliases.parts });
  }

  /** `returnsItem`: ask for the item as it is after the write. */
  async change(
    Key: Item,
    key: string,
    returnsItem: boolean,
    changeOf: (aliases: Aliases) => Change,
  ): Promise<Outcome> {
    const aliases = new Aliases();
    const { condition, update } = changeOf(aliases);
    const input = {
      TableName: this.#table,
      Key,
      ConditionExpression: condition,
      ...(update !== '' && { UpdateExpression: update }),
      ...(returnsItem && { ReturnValues: 'ALL_NEW' }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...aliases.parts,
    };
    try {
      const answer = (await this.#call('updateItem', input, key)) as { readonly Attributes?: Item };
      return { kind: 'written', item: answer.Attributes ?? null };
    } catch (error) {
      const item = itemOfFailedCondition(error);
      if (item === undefined) throw error;
      return { kind: 'refused', item, isRepeated: wasSentAgain(error) };
    }
  }

  /** All items of the table that pass the filter, in no order. */
  async *scan(filterOf: (aliases: Aliases) => string): AsyncIterable<Item> {
    const aliases = new Aliases();
    const FilterExpression = filterOf(aliases);
    const input = { TableName: this.#table, ConsistentRead: true, FilterExpression, ...aliases.parts };
    let from = {};
    for (;;) {
      const page = (await this.#call('scan', { ...input, ...from })) as Page;
      yield* page.Items ?? [];
      if (!page.LastEvaluatedKey) return;
      from = { ExclusiveStartKey: page.LastEvaluatedKey };
    }
  }

  close(): void {
    this.#limit.close();
  }

  async #call(name: 'getItem' | 'updateItem' | 'scan', input: object, key?: string): Promise<unknown> {
    try {
      return await this.#limit.call((options) => this.#client[name](input as never, options));
    } catch (error) {
      throw explainedError(error, this.#table, key);
    }
  }
}
