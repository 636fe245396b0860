/**
 * The lock of cloops.nats on a key-value bucket. It reads with direct gets and writes by revision. A renewal does not
 * keep the new revision: the second one, and a release after the first, find that "somebody changed it" (F24).
 */
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import { headers as newHeaders } from '@nats-io/transport-node';
import type { Foreign, ForeignLock, MachineClock } from './foreign.js';

const WRONG_LAST_SEQUENCE = 10_071;

interface Entry {
  readonly owner: string | null;
  readonly expiresAtUnixMs: number;
  readonly revision: number;
  readonly deleted: boolean;
}

export interface CloopsOptions {
  readonly clock?: MachineClock;
  /** Newer versions write 64-bit numbers as texts, and read both. */
  readonly numbersAsText?: boolean;
}

export class Cloops implements Foreign {
  readonly #connection: NatsConnection;
  readonly #bucket: string;
  readonly #clock: MachineClock;
  readonly #numbersAsText: boolean;

  constructor(connection: NatsConnection, bucket: string, options: CloopsOptions = {}) {
    this.#connection = connection;
    this.#bucket = bucket;
    this.#clock = options.clock ?? Date.now;
    this.#numbersAsText = options.numbersAsText ?? false;
  }

  async acquire(name: string, owner: string, leaseMs: number): Promise<ForeignLock | null> {
    const entry = await this.#get(name, { last_by_subj: this.#subject(name) });
    let revision: number | null;
    if (!entry || entry.deleted) revision = await this.#create(name, owner, leaseMs);
    else if (this.#clock() < entry.expiresAtUnixMs) return null;
    else revision = await this.#store(name, this.#document(owner, leaseMs), entry.revision);
    return revision === null ? null : this.#lock(name, owner, revision);
  }

  #lock(name: string, owner: string, revision: number): ForeignLock {
    return {
      owner,
      heartbeat: async (leaseMs) => {
        const entry = await this.#get(name, { seq: revision, next_by_subj: this.#subject(name) });
        if (!entry || entry.deleted || entry.revision !== revision || entry.owner !== owner) return false;
        return (await this.#store(name, this.#document(owner, leaseMs), revision)) !== null;
      },
      release: async () => {
        const entry = await this.#get(name, { seq: revision, next_by_subj: this.#subject(name) });
        if (!entry || entry.deleted || entry.revision !== revision || entry.owner !== owner) return true;
        return (await this.#store(name, '', revision, 'DEL')) !== null;
      },
    };
  }

  /** Where it is a deletion marker that stands in the way, on that; otherwise the original throws. */
  async #create(name: string, owner: string, leaseMs: number): Promise<number | null> {
    const created = await this.#store(name, this.#document(owner, leaseMs), 0);
    if (created !== null) return created;
    const entry = await this.#get(name, { last_by_subj: this.#subject(name) });
    return entry?.deleted ? this.#store(name, this.#document(owner, leaseMs), entry.revision) : null;
  }

  /** The new revision; null when the record is not at the old one. */
  async #store(name: string, payload: string, revision: number, operation?: 'DEL'): Promise<number | null> {
    const headers = newHeaders();
    headers.set('Nats-Expected-Last-Subject-Sequence', String(revision));
    if (operation) headers.set('KV-Operation', operation);
    const reply = await this.#connection.request(this.#subject(name), payload, { headers, timeout: 5_000 });
    const answer = reply.json<{ seq?: number; error?: { err_code: number; description: string } }>();
    if (answer.error?.err_code === WRONG_LAST_SEQUENCE) return null;
    if (answer.seq === undefined) throw new Error(`not stored: ${answer.error?.description}`);
    return answer.seq;
  }

  async #get(name: string, question: object): Promise<Entry | null> {
    const subject = `$JS.API.DIRECT.GET.KV_${this.#bucket}`;
    const reply = await this.#connection.request(subject, JSON.stringify(question), { timeout: 5_000 });
    if (reply.headers?.code === 404) return null;
    const revision = Number(headerOf(reply.headers, 'Nats-Sequence'));
    const deleted = ['DEL', 'PURGE'].includes(headerOf(reply.headers, 'KV-Operation'));
    if (deleted) return { owner: null, expiresAtUnixMs: 0, revision, deleted };
    const document = reply.json<{ owner: string; expiresAtUnixMs: number | string }>();
    if (typeof document.owner !== 'string') throw new Error(`no lock of cloops under ${name}`);
    const { owner, expiresAtUnixMs } = document;
    return { owner, expiresAtUnixMs: Number(expiresAtUnixMs), revision, deleted };
  }

  #document(owner: string, leaseMs: number): string {
    const until = this.#clock() + leaseMs;
    return JSON.stringify({ owner, expiresAtUnixMs: this.#numbersAsText ? String(until) : until });
  }

  #subject(name: string): string {
    return `$KV.${this.#bucket}.${name}`;
  }
}

function headerOf(headers: MsgHdrs | undefined, name: string): string {
  return headers?.get(name) ?? '';
}
