/**
 * The bucket: a stream named `KV_<bucket>`, as every KV client and tool knows it. Checked on first use, created where it
 * is missing, refused where locks would not be safe in it. A failure is not kept: the next command checks again (P6).
 */
import { systemClock } from '../../clock.js';
import { TTL_MS_MAX } from '../../protocol/durations.js';
import { KEEP_MS, UnsupportedError } from '../../protocol/index.js';
import { SharedCall } from '../compare-and-swap/shared-call.js';
import {
  type ApiResponse,
  type NatsConnection,
  parseResponse,
  requestBytes,
  type StreamConfig,
} from './connection.js';
import { API, isRefusal, JetStreamError } from './errors.js';
import type { Layout } from './layout.js';
import { comparesTooEarly } from './versions.js';

const NS_PER_MS = 1_000_000;
const DAY_MS = 86_400_000;
/** Records that crashed processes leave are deleted after this. Half of it is more than the longest ttl and `minHold`. */
const MAX_AGE_MS = 2 * TTL_MS_MAX + DAY_MS;
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

function subjectOf(bucket: string, kvKey: string): string {
  return `$KV.${bucket}.${kvKey}`;
}

/** Calls of JetStream's API that name a stream. */
type ApiCall = 'INFO' | 'CREATE' | 'MSG.GET' | 'MSG.DELETE' | 'PURGE';

/** The stream behind a KV bucket, as JetStream takes it. */
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
  readonly connection: NatsConnection;
  readonly name: string;
  readonly layout: Layout;
  /** Null until it was checked. */
  config: StreamConfig | null = null;
  readonly #parts: BucketParts;
  readonly #onReplaced: () => void;
  readonly #stream: string;
  readonly #sharedInfo = new SharedCall(() => this.info());
  #ready: Promise<unknown> | null = null;
  #checking = false;
  #created: string | undefined;
  #seenMs = Number.NEGATIVE_INFINITY;

  /** `onReplaced`: the bucket was created again, so known revisions belong to other records. */
  constructor(connection: NatsConnection, parts: BucketParts, onReplaced: () => void = () => undefined) {
    this.connection = connection;
    this.name = parts.bucket;
    this.layout = parts.layout;
    this.#parts = parts;
    this.#onReplaced = onReplaced;
    this.#stream = streamOf(parts.bucket);
  }

  /** See versions.ts. */
  get comparesTooEarly(): boolean {
    return comparesTooEarly(this.connection.info, this.config?.num_replicas ?? 1);
  }

  subjectOf(kvKey: string): string {
    return subjectOf(this.name, kvKey);
  }

  /** A call of JetStream's API for the stream. Rejects with a `JetStreamError` where it is refused. */
  async call(name: ApiCall, request?: object): Promise<ApiResponse> {
    const subject = `$JS.API.STREAM.${name}.${this.#stream}`;
    const payload = request === undefined ? '' : JSON.stringify(request);
    return parseResponse(await requestBytes(this.connection, subject, payload), subject);
  }

  /** Records must not be deleted by their age while a lock is held: throws for a longer time than that allows. */
  checkTtl(askedMs: number, key: string): void {
    const maxAgeMs = (this.config?.max_age ?? 0) / NS_PER_MS;
    if (maxAgeMs === 0 || askedMs <= maxAgeMs / 2) return;
    throw new UnsupportedError(
      `${Math.ceil(askedMs / 1_000)} s are too long for this bucket: its records are deleted after ` +
        `${Math.floor(maxAgeMs / 1_000)} s (max_age), and a ttl may be half of that. ` +
        `Use a shorter ttl with renewal, or raise the limit: nats stream edit ${this.#stream} --max-age.`,
      { key },
    );
  }

  /** Creates or checks the bucket, once. Concurrent callers share the answer. */
  async ready(): Promise<void> {
    this.#ready ??= this.create().catch((error: unknown) => {
      this.#ready = null;
      throw error;
    });
    await this.#ready;
  }

  /**
   * The bucket may be gone: checks it in the background, and creates it again. Nobody waits for that: usually it only
   * has no leader for a while, and then a request to the server would only delay the renewals.
   */
  suspect(): void {
    if (this.config === null || this.#checking) return;
    this.#checking = true;
    // A failure needs no report: the command that raised the suspicion is rejected anyway.
    const done = (): void => {
      this.#checking = false;
    };
    this.create().then(done, done);
  }

  async info(): Promise<ApiResponse> {
    return this.#note(await this.call('INFO'));
  }

  /**
   * Whether it is certainly the same bucket as before. One that was created again counts revisions from 1, so that a
   * known revision may be another record.
   */
  isSame(): boolean {
    const sinceMs = systemClock.monotonicMs() - this.#seenMs;
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
    this.#seenMs = systemClock.monotonicMs();
    if (before !== undefined && before !== answer.created) this.#onReplaced();
    return answer;
  }

  /** Creates the bucket where it is missing, and checks it. Resolves with whether it had to be created. */
  async create(): Promise<boolean> {
    try {
      this.#check(await this.info());
      return false;
    } catch (error) {
      if (!isRefusal(error, API.noStream)) throw error;
    }
    try {
      this.#check(this.#note(await this.call('CREATE', configOf(this.#parts))));
      return true;
    } catch (error) {
      if (!isRefusal(error, API.nameInUse)) throw this.#explained(error);
    }
    // Another process created it at the same moment, with other settings.
    this.#check(await this.info());
    return false;
  }

  #explained(error: unknown): unknown {
    if (isRefusal(error, API.maxBytesRequired)) {
      const print = `holdfast migrate --store 'URL/${this.name}' --print`;
      return new UnsupportedError(
        `The bucket "${this.name}" could not be created, because this account only has streams of a limited size. Create it ` +
          `yourself, with max_bytes: \`${print}\` prints the rest of its configuration.`,
        { cause: error },
      );
    }
    if (!(error instanceof JetStreamError) || !error.message.includes('replicas')) return error;
    return new UnsupportedError(
      `The bucket "${this.name}" could not be created with ${this.#parts.replicas ?? 1} replicas: it needs a ` +
        `cluster of at least as many servers with JetStream. ${error.message}`,
      { cause: error },
    );
  }

  #check({ config }: ApiResponse): void {
    const { bucket, replicas = 1, layout } = this.#parts;
    if (!config) throw new Error(`JetStream did not describe the stream ${this.#stream}.`);
    const wrong = layout.ownsBucket ? wrongWith(config, replicas, bucket) : null;
    if (wrong !== null) {
      throw new UnsupportedError(
        `The bucket "${bucket}" is not fit for locks: ${wrong} Change it, or name another bucket, which is then created.`,
      );
    }
    this.config = config;
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
  if (config.retention !== undefined && config.retention !== 'limits') {
    return `its retention is "${config.retention}": records go when they were read. It has to be "limits", from its creation on.`;
  }
  // The server then makes room for one lock by deleting another.
  if (config.discard !== 'new' && [config.max_msgs, config.max_bytes].some((max = -1) => max > 0)) {
    return (
      'it discards old records when it is full, and they may be locks that are held. It has to refuse new ones. ' +
      `(nats stream edit ${stream} --discard new)`
    );
  }
  if (config.discard_new_per_subject === true) {
    return (
      'it refuses every further record of a key (discard_new_per_subject), so that no lock could be renewed or released. ' +
      'It has to replace them.'
    );
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
      `${MAX_AGE_MS_MIN / 1_000} s. (nats stream edit ${stream} --max-age 15d)`
    );
  }
  if (config.sealed === true) return 'it is sealed: nothing can be written to it.';
  return null;
}
