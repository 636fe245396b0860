/**
 * The client: the class `DynamoDB` of @aws-sdk/client-dynamodb, which has a method per call, or one that sends commands, a
 * `DynamoDBClient` or a document client. The classes of the commands are then loaded from the user's SDK, with the first call.
 */
import { systemClock } from '../../clock.js';
import { InvalidArgumentError } from '../../protocol/index.js';
import { type CommandName, commandNamed } from './sdk-commands.js';

/** Inputs and outputs differ a little between versions of the SDK, so its types are not used. */
export interface DynamodbClient {
  getItem(input: never, options?: never): PromiseLike<unknown>;
  updateItem(input: never, options?: never): PromiseLike<unknown>;
  scan(input: never, options?: never): PromiseLike<unknown>;
  describeTable(input: never, options?: never): PromiseLike<unknown>;
  describeTimeToLive(input: never, options?: never): PromiseLike<unknown>;
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/** For `createTable`. */
export interface DynamodbTableClient extends DynamodbClient {
  createTable(input: never, options?: never): PromiseLike<unknown>;
  updateTimeToLive(input: never, options?: never): PromiseLike<unknown>;
}

/** A `DynamoDBClient`, or a `DynamoDBDocumentClient` of @aws-sdk/lib-dynamodb: commands like these pass through it as they are. */
export interface DynamodbCommandClient {
  send(command: never, options?: never): PromiseLike<unknown>;
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/**
 * Without a limit, calls that hang would use up the SDK's connections. The outcome of a call given up is unknown. The
 * limit is this long because a cold Lambda takes a while to get its credentials.
 */
const ANSWER_MS_MAX = 5_000;
/** Calls that begin within this time share one timer, which gives them up to that much longer. */
const SHARED_MS = 250;

type Call = (options: never) => PromiseLike<unknown>;

/** Makes calls, and gives them up after `ANSWER_MS_MAX`. */
export class CallLimit {
  /** Of calls under way. Each has its own, as older versions of the SDK let a signal have one listener only. */
  readonly #pending = new Set<AbortController>();
  #latest: AbortController[] = [];
  #sharedUntilMs = 0;

  async call(ask: Call): Promise<unknown> {
    const controller = this.#begin();
    const { signal } = controller;
    try {
      return await ask({ abortSignal: signal } as never);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new Error(`The call to DynamoDB was given up: ${signal.reason}.`, { cause: error });
    } finally {
      this.#pending.delete(controller);
    }
  }

  /** Gives up the pending calls, so that none keeps the process alive. */
  close(): void {
    for (const controller of this.#pending) controller.abort('the store was closed');
  }

  #begin(): AbortController {
    const controller = new AbortController();
    this.#pending.add(controller);
    const nowMs = systemClock.monotonicMs();
    if (nowMs >= this.#sharedUntilMs) this.#latest = this.#startGroup(nowMs);
    this.#latest.push(controller);
    return controller;
  }

  #startGroup(nowMs: number): AbortController[] {
    const group: AbortController[] = [];
    this.#sharedUntilMs = nowMs + SHARED_MS;
    const timer = systemClock.timer(ANSWER_MS_MAX + SHARED_MS, () => {
      const pending = group.filter((controller) => this.#pending.has(controller));
      for (const controller of pending) controller.abort(`no answer came within ${ANSWER_MS_MAX / 1_000} s`);
    });
    timer.keepAlive(false);
    return group;
  }
}

/** What clients of the SDK have as `config.serviceId`: clients of other services send commands too. */
const SERVICE_ID = 'DynamoDB';
const METHODS = ['getItem', 'updateItem', 'scan', 'describeTable', 'describeTimeToLive'] as const;

/** The client by its methods. Only a `DynamodbTableClient` can make tables, and every client of the SDK is one. */
export function methodsOf(client: DynamodbClient | DynamodbCommandClient): DynamodbTableClient {
  const some = client as unknown as Partial<Record<string, unknown>> | null | undefined;
  const stack = some?.middlewareStack as Partial<Record<string, unknown>> | null | undefined;
  const { serviceId = SERVICE_ID } = (some?.config ?? {}) as { readonly serviceId?: unknown };
  if (typeof stack?.add === 'function' && serviceId === SERVICE_ID) {
    if (METHODS.every((name) => typeof some?.[name] === 'function')) return client as DynamodbTableClient;
    if (typeof some?.send === 'function') return adapterOf(client as DynamodbCommandClient);
  }
  throw new InvalidArgumentError(
    'This needs a client of the AWS SDK 3: a DynamoDB or DynamoDBClient of @aws-sdk/client-dynamodb, or a ' +
      `DynamoDBDocumentClient of @aws-sdk/lib-dynamodb.${serviceId === SERVICE_ID ? '' : ` This is a client of ${String(serviceId)}.`}`,
  );
}

function adapterOf(client: DynamodbCommandClient): DynamodbTableClient {
  const by =
    (name: CommandName) =>
    async (input: never, options?: never): Promise<unknown> => {
      const Command = await commandNamed(name);
      return client.send(new Command(input) as never, options);
    };
  return {
    getItem: by('GetItemCommand'),
    updateItem: by('UpdateItemCommand'),
    scan: by('ScanCommand'),
    describeTable: by('DescribeTableCommand'),
    describeTimeToLive: by('DescribeTimeToLiveCommand'),
    createTable: by('CreateTableCommand'),
    updateTimeToLive: by('UpdateTimeToLiveCommand'),
    middlewareStack: client.middlewareStack,
  };
}
