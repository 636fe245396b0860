/**
 * The bucket: a stream named `KV_<bucket>`, as every KV client and tool knows it. Checked on first use, created where it
 * is missing, refused where locks would not be safe in it. A failure is not kept: the next command checks again (P6).
 */
import { type Clock, systemClock } from '../../clock.js';
import { KEEP_MS, UnsupportedError } from '../../protocol/index.js';
import { SharedCall } from '../compare-and-swap/shared-call.js';
import { type ApiResponse, callApi, type NatsConnection, type StreamConfig } from './connection.js';
import { API, isRefusal, JetStreamError } from './errors.js';
import type { Layout } from './layout.js';

const NS_PER_MS = 1_000_000;
const DAY_MS = 86_400_000;
/** Records that crashed processes leave are deleted after this. Half of it is more than the day that `/v1` allows. */
const MAX_AGE_MS = 4 * DAY_MS;
/** How long the server remembers message ids (versions.ts): much longer than a request waits for its answer. */
const DUPLICATES_MS = 10_000;
/** A record has to outlive its marks by far. */
const MAX_AGE_MS_MIN = 4 * KEEP_MS;
/** How long the bucket counts as the same without a check. Checks run in the background twice as often. */
const SAME_MS = 10_000;

export interface BucketParts {
  readonly bucket: string;
  /** Undefined: one where the bucket is created, any number where it exists. */
  readonly replicas: number | undefined;
  readonly layout: Layout;
}

function streamOf(bucket: string): string {
  return `KV_${bucket}`;
}

export function subjectOf(bucket: string, kvKey: string): string {
  return `$KV.${bucket}.${kvKey}`;
}

export interface BucketConfig extends Readonly<Record<string, unknown>> {
  /** Of the stream: 'KV_' and the bucket's name. */
  readonly name: string;
}

/** The stream as it is created. Other settings are those of KV clients. */
export function configOf({ bucket, replicas, layout }: BucketParts): BucketConfig {
  return {
    name: streamOf(bucket),
    description: 'Locks',
    subjects: [subjectOf(bucket, '>')],
    retention: 'limits',
    storage: 'file',
    num_replicas: replicas ?? 1,
    max_msgs_per_subject: 1,
    max_age: layout.ownsBucket ? MAX_AGE_MS * NS_PER_MS : 0,
    max_consumers: -1,
    max_msgs: -1,
    max_bytes: -1,
    max_msg_size: -1,
    discard: 'new',
    duplicate_window: DUPLICATES_MS * NS_PER_MS,
    allow_rollup_hdrs: true,
    allow_direct: true,
    deny_delete: !layout.ownsBucket,
    deny_purge: false,
  };
}

export class Bucket {
  readonly stream: string;
  readonly #connection: NatsConnection;
  readonly #parts: BucketParts;
  #ready: Promise<StreamConfig> | null = null;
  #config: StreamConfig | null = null;
  #checking = false;
  #created: string | undefined;
  #seenMs = Number.NEGATIVE_INFINITY;
  readonly #sharedInfo: SharedCall<ApiResponse>;
  readonly #onReplaced: () => void;
  readonly #clock: Clock;

  /** `onReplaced`: the bucket was created again, so known revisions belong to other records. */
  constructor(
    connection: NatsConnection,
    parts: BucketParts,
    onReplaced: () => void = () => undefined,
    clock: Clock = systemClock,
  ) {
    this.#connection = connection;
    this.#parts = parts;
    this.#onReplaced = onReplaced;
    this.#clock = clock;
    this.#sharedInfo = new SharedCall(() => this.info(), clock);
    this.stream = streamOf(parts.bucket);
  }

  /** Null until it was checked. */
  get config(): StreamConfig | null {
    return this.#config;
  }

  /** The longest ttl: records must not be deleted by their age while a lock is held. */
  get ttlMsMax(): number {
    return this.#config === null || this.#config.max_age === 0
      ? Number.POSITIVE_INFINITY
      : this.#config.max_age / NS_PER_MS / 2;
  }

  /** Creates or checks the bucket. Concurrent callers share the answer. */
  ready(): Promise<StreamConfig> {
    this.#ready ??= this.#checkOrCreate().then(
      ({ config }) => {
        this.#config = config;
        return config;
      },
      (error: unknown) => {
        this.#ready = null;
        throw error;
      },
    );
    return this.#ready;
  }

  /**
   * The bucket may be gone: checks it in the background, and creates it again. Nobody waits for that: usually it only
   * has no leader for a while, and then a request to the server would only delay the renewals.
   */
  suspect(): void {
    if (this.#config === null || this.#checking) return;
    this.#checking = true;
    // A failure needs no report: the command that raised the suspicion is rejected anyway.
    const done = (): void => {
      this.#checking = false;
    };
    this.#checkOrCreate().then(({ config }) => {
      this.#config = config;
      done();
    }, done);
  }

  async info(): Promise<ApiResponse> {
    return this.#note(await callApi(this.#connection, `STREAM.INFO.${this.stream}`));
  }

  /**
   * Whether it is certainly the same bucket as before. One that was created again counts revisions from 1, so that a
   * known revision may be another record.
   */
  isSame(): boolean {
    const sinceMs = this.#clock.monotonicMs() - this.#seenMs;
    // In the background. Where that fails, the next command waits for the answer, and gets the error.
    if (sinceMs > SAME_MS / 2) this.#sharedInfo.run().then(undefined, () => this.distrust());
    return sinceMs <= SAME_MS;
  }

  /** Asks the server whether it is the same. Rejects without an answer. */
  async confirm(): Promise<boolean> {
    const seenMs = this.#seenMs;
    const created = this.#created;
    await this.#sharedInfo.run();
    return Number.isFinite(seenMs) && created === this.#created;
  }

  /** The bucket may have been replaced: the next command has to confirm it. */
  distrust(): void {
    this.#seenMs = Number.NEGATIVE_INFINITY;
  }

  #note(answer: ApiResponse): ApiResponse {
    const before = this.#created;
    this.#created = answer.created;
    this.#seenMs = this.#clock.monotonicMs();
    if (before !== undefined && before !== answer.created) this.#onReplaced();
    return answer;
  }

  /** Resolves with whether it had to be created. */
  async create(): Promise<boolean> {
    return (await this.#checkOrCreate()).created;
  }

  async #checkOrCreate(): Promise<{ readonly config: StreamConfig; readonly created: boolean }> {
    try {
      return { config: this.#check((await this.info()).config), created: false };
    } catch (error) {
      if (!isRefusal(error, API.noStream)) throw error;
    }
    try {
      const { config } = this.#note(
        await callApi(this.#connection, `STREAM.CREATE.${this.stream}`, configOf(this.#parts)),
      );
      return { config: this.#check(config), created: true };
    } catch (error) {
      if (!isRefusal(error, API.nameInUse)) throw this.#explained(error);
    }
    // Another process created it at the same moment, with other settings.
    return { config: this.#check((await this.info()).config), created: false };
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof JetStreamError) || !error.message.includes('replicas')) return error;
    return new UnsupportedError(
      `The bucket "${this.#parts.bucket}" could not be created with ${this.#parts.replicas ?? 1} replicas: it needs a ` +
        `cluster of at least as many servers with JetStream. ${error.message}`,
      { cause: error },
    );
  }

  #check(config: StreamConfig | undefined): StreamConfig {
    const { bucket, replicas = 1, layout } = this.#parts;
    if (!config) throw new Error(`JetStream did not describe the stream ${this.stream}.`);
    if (!layout.ownsBucket) return config;
    const wrong = wrongWith(config, replicas, bucket);
    if (wrong === null) return config;
    throw new UnsupportedError(
      `The bucket "${bucket}" is not fit for locks: ${wrong} Change it, or name another bucket, which is then created.`,
    );
  }
}

/** The setting that would lose locks or grant one twice; null for none. */
function wrongWith(config: StreamConfig, replicas: number, bucket: string): string | null {
  const stream = streamOf(bucket);
  const ageMs = config.max_age / NS_PER_MS;
  if (!config.subjects?.includes(subjectOf(bucket, '>'))) return `the stream ${stream} is not a KV bucket.`;
  if (config.max_msgs_per_subject !== 1) {
    return (
      `its history is ${config.max_msgs_per_subject}, and has to be 1: old records would come back when a new one is ` +
      `deleted. (nats stream edit ${stream} --max-msgs-per-subject 1)`
    );
  }
  if (config.storage !== 'file') {
    return `its storage is "${config.storage}": a restart would lose every lock. It has to be "file", from its creation on.`;
  }
  if (config.num_replicas < replicas) {
    return (
      `it has ${config.num_replicas === 1 ? 'one replica' : `${config.num_replicas} replicas`}, and ${replicas} are ` +
      `asked for. (nats stream edit ${stream} --replicas ${replicas})`
    );
  }
  if (ageMs > 0 && ageMs < MAX_AGE_MS_MIN) {
    return (
      `its records are deleted after ${Math.floor(ageMs / 1_000)} s (max_age), which has to be at least ` +
      `${MAX_AGE_MS_MIN / 1_000} s. (nats stream edit ${stream} --max-age 2d)`
    );
  }
  if (config.sealed === true) return 'it is sealed: nothing can be written to it.';
  return null;
}
