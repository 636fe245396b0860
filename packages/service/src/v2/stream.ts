/** Server-sent events: an open response, kept alive. It ends when the client leaves, stops reading, or the service closes. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { after, type Cancel } from '../clock.js';
import { Problem } from '../http/problem.js';
import type { ServiceParts } from '../http/service-parts.js';

/** One principal may have a quarter of all streams. */
const SHARES = 4;
const BEAT_MS = 15_000;
/** A client with more unread bytes is disconnected. It connects again and gets the current state. */
const BACKLOG_BYTES_MAX = 1_024 * 1_024;
/** The end of an event. */
const END = Buffer.from('\n\n');

export class Streams {
  readonly #parts: ServiceParts;
  readonly #openOf = new Map<string, number>();
  #open = 0;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  open(request: FastifyRequest, reply: FastifyReply): Stream {
    const { limits, closing } = this.#parts;
    if (this.#open >= limits.streams) {
      const headers = { 'retry-after': '5' };
      throw new Problem('rate-limited', 'Too many streams are open on this service. Try again later.', {
        headers,
      });
    }
    const { id, undertake } = request.principal;
    const own = this.#openOf.get(id) ?? 0;
    // One principal must not use up all streams.
    if (undertake && own >= limits.streams / SHARES) {
      throw new Problem('rate-limited', `${id} has ${own} open streams, which is the limit: use those.`, {
        headers: { 'retry-after': '5' },
      });
    }
    this.#openOf.set(id, own + 1);
    this.#open += 1;
    request.note.outcome = 'streamed';
    const stream = new Stream(request, reply, closing);
    stream.onEnd(() => {
      this.#open -= 1;
      const left = (this.#openOf.get(id) ?? 1) - 1;
      if (left > 0) this.#openOf.set(id, left);
      else this.#openOf.delete(id);
    });
    return stream;
  }
}

export class Stream {
  readonly #raw: FastifyReply['raw'];
  readonly #ends: (() => void)[] = [];
  /** Whether the principal has lost all its rights: its open streams end too. */
  readonly #hasLostRights: () => boolean;
  #cancel: Cancel = () => undefined;
  #ended = false;
  /** Whether the client has read nothing since the last heartbeat. */
  #isStuck = false;

  constructor(request: FastifyRequest, reply: FastifyReply, closing: AbortSignal) {
    this.#raw = reply.raw;
    const mayRead = (): boolean => request.principal.prefixes('read').length > 0;
    this.#hasLostRights = mayRead() ? () => !mayRead() : () => false;
    reply.hijack();
    this.#raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // Otherwise a buffering proxy would hold events back.
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
      'x-content-type-options': 'nosniff',
    });
    this.#raw.write('retry: 1000\n\n');
    this.#raw.once('close', () => this.#finish());
    // A failed write to a client that has left: 'close' follows.
    this.#raw.on('error', () => this.end());
    const onClosing = (): void => this.end();
    closing.addEventListener('abort', onClosing, { once: true });
    this.onEnd(() => closing.removeEventListener('abort', onClosing));
    this.onDrain(() => {
      this.#isStuck = false;
    });
    this.#beat();
  }

  /** Whether sent data is still buffered. */
  get isBehind(): boolean {
    return this.#raw.writableNeedDrain;
  }

  /** Called when the buffer is empty again. */
  onDrain(run: () => void): void {
    this.#raw.on('drain', run);
  }

  send(event: string, data: object): void {
    this.#write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Many events in one write. */
  sendAll(events: readonly (readonly [event: string, json: Buffer])[]): void {
    if (events.length === 0) return;
    this.#write(
      Buffer.concat(events.flatMap(([event, json]) => [Buffer.from(`event: ${event}\ndata: `), json, END])),
    );
  }

  onEnd(run: () => void): void {
    if (this.#ended) run();
    else this.#ends.push(run);
  }

  end(): void {
    if (!this.#raw.writableEnded) this.#raw.end();
    this.#finish();
  }

  #write(bytes: string | Buffer): void {
    if (this.#ended) return;
    if (this.#raw.writableLength > BACKLOG_BYTES_MAX) this.#raw.destroy();
    else this.#raw.write(bytes);
  }

  #beat(): void {
    this.#cancel = after(BEAT_MS, () => {
      if (this.#isStuck) {
        this.#raw.destroy();
        return;
      }
      if (this.#hasLostRights()) {
        this.end();
        return;
      }
      this.#write(': still here\n\n');
      this.#isStuck = this.isBehind;
      this.#beat();
    });
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancel();
    for (const run of this.#ends.splice(0)) run();
  }
}
