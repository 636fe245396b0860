/**
 * The bucket: a stream named `KV_<bucket>`, as every KV client and tool knows it. Looked at on first use, created where it
 * is missing, refused where locks would not be safe in it. A failure is forgotten: the next command looks again (P6).
 */
import { type Clock, systemClock } from '../../clock.js';
import { KEEP_MS, UnsupportedError } from '../../protocol/index.js';
import { SharedCall } from '../compare-and-swap/shared-call.js';
import { type ApiAnswer, askApi, type NatsConnection, type StreamConfig } from './connection.js';
import type { Layout } from './layout.js';
import { API, isRefusal, JetStreamError } from './trouble.js';

const NS_PER_MS = 1_000_000;
const DAY_MS = 86_400_000;
/** Records of processes that crashed go by themselves after this. Half of it is more than the day that `/v1` may ask for. */
const MAX_AGE_MS = 4 * DAY_MS;
/** For how long message ids are remembered (versions.ts): much longer than an answer is awaited. */
const DUPLICATES_MS = 10_000;
/** A record has to outlive its marks by far. */
const MAX_AGE_MS_MIN = 4 * KEEP_MS;
/** So long it counts as the same bucket without a look. A look by the way comes twice as often. */
const SAME_MS = 10_000;

export interface BucketParts {
  readonly bucket: string;
  /** Undefined: one where it is created, and any number where it is there. */
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

/** The stream as it is created. Settings that are not named are those of KV clients. */
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
  #looking = false;
  #created: string | undefined;
  #seenMs = Number.NEGATIVE_INFINITY;
  readonly #sight: SharedCall<ApiAnswer>;
  readonly #onAnew: () => void;
  readonly #clock: Clock;

  /** `onAnew`: it is another than before, so revisions known of it are those of other records. */
  constructor(
    connection: NatsConnection,
    parts: BucketParts,
    onAnew: () => void = () => undefined,
    clock: Clock = systemClock,
  ) {
    this.#connection = connection;
    this.#parts = parts;
    this.#onAnew = onAnew;
    this.#clock = clock;
    this.#sight = new SharedCall(() => this.info(), clock);
    this.stream = streamOf(parts.bucket);
  }

  /** Null until it was looked at. */
  get config(): StreamConfig | null {
    return this.#config;
  }

  /** For how long a hold may be given at a time; records must not go while somebody counts on them. */
  get ttlMsMax(): number {
    return this.#config === null || this.#config.max_age === 0
      ? Number.POSITIVE_INFINITY
      : this.#config.max_age / NS_PER_MS / 2;
  }

  /** Created or checked; those who ask meanwhile share the answer. */
  ready(): Promise<StreamConfig> {
    this.#ready ??= this.#look().then(
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
   * It may be gone: looked at by the way, and made anew. Nothing waits for that: as a rule it has only no leader for a
   * while, and then a request to the server would only delay the renewals.
   */
  suspect(): void {
    if (this.#config === null || this.#looking) return;
    this.#looking = true;
    // A failure is told to whoever asks next: what made it suspect goes on being rejected.
    const done = (): void => {
      this.#looking = false;
    };
    this.#look().then(({ config }) => {
      this.#config = config;
      done();
    }, done);
  }

  async info(): Promise<ApiAnswer> {
    return this.#see(await askApi(this.#connection, `STREAM.INFO.${this.stream}`));
  }

  /**
   * Whether it is certainly the bucket of before. One that is made anew counts its revisions from the beginning, so
   * that a revision of old may be another's record by now.
   */
  isSame(): boolean {
    const sinceMs = this.#clock.monotonicMs() - this.#seenMs;
    // By the way. Where that fails, the next has to wait for an answer, and is told what is wrong.
    if (sinceMs > SAME_MS / 2) this.#sight.run().then(undefined, () => this.lostSight());
    return sinceMs <= SAME_MS;
  }

  /** Looks whether it is. Rejects when nobody answers. */
  async confirm(): Promise<boolean> {
    const seen = this.#seenMs;
    const created = this.#created;
    await this.#sight.run();
    return Number.isFinite(seen) && created === this.#created;
  }

  /** Nobody knows what happened to it meanwhile. */
  lostSight(): void {
    this.#seenMs = Number.NEGATIVE_INFINITY;
  }

  #see(answer: ApiAnswer): ApiAnswer {
    const before = this.#created;
    this.#created = answer.created;
    this.#seenMs = this.#clock.monotonicMs();
    if (before !== undefined && before !== answer.created) this.#onAnew();
    return answer;
  }

  /** Whether it had to be made. */
  async create(): Promise<boolean> {
    return (await this.#look()).made;
  }

  async #look(): Promise<{ readonly config: StreamConfig; readonly made: boolean }> {
    try {
      return { config: this.#check((await this.info()).config), made: false };
    } catch (error) {
      if (!isRefusal(error, API.noStream)) throw error;
    }
    try {
      const { config } = this.#see(
        await askApi(this.#connection, `STREAM.CREATE.${this.stream}`, configOf(this.#parts)),
      );
      return { config: this.#check(config), made: true };
    } catch (error) {
      if (!isRefusal(error, API.nameInUse)) throw this.#explained(error);
    }
    // Somebody else made it in the same moment, in another way.
    return { config: this.#check((await this.info()).config), made: false };
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
    if (!config) throw new Error(`JetStream told nothing of the stream ${this.stream}.`);
    if (!layout.ownsBucket) return config;
    const wrong = wrongWith(config, replicas, bucket);
    if (wrong === null) return config;
    throw new UnsupportedError(
      `The bucket "${bucket}" is not fit for locks: ${wrong} Change it, or use another bucket, which is then created.`,
    );
  }
}

/** What would lose locks, or give them to two; null for nothing. */
function wrongWith(config: StreamConfig, replicas: number, bucket: string): string | null {
  const stream = streamOf(bucket);
  const ageMs = config.max_age / NS_PER_MS;
  if (!config.subjects?.includes(subjectOf(bucket, '>'))) return `the stream ${stream} is no KV bucket.`;
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
      `its records go after ${Math.floor(ageMs / 1_000)} s (max_age), which has to be ${MAX_AGE_MS_MIN / 1_000} s at ` +
      `least. (nats stream edit ${stream} --max-age 2d)`
    );
  }
  if (config.sealed === true) return 'it is sealed: nothing can be written to it.';
  return null;
}
