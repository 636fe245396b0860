/** Server-sent events: one open answer, kept alive, ended when the client goes, no longer reads, or we close. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { after, type Cancel } from '../clock.js';
import { Problem } from '../http/problem.js';
import type { ServiceParts } from '../http/service-parts.js';

/** One principal may have so large a part of all streams. */
const SHARES = 4;
const BEAT_MS = 15_000;
/** What is sent on top of this cuts the client off; it comes again and is told how things stand. */
const BACKLOG_BYTES_MAX = 1_024 * 1_024;

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
      throw new Problem('rate-limited', 'As many streams are open here as may. Come again later.', {
        headers,
      });
    }
    const { id, undertake } = request.principal;
    const own = this.#openOf.get(id) ?? 0;
    // Nobody takes all of them away from the others.
    if (undertake && own >= limits.streams / SHARES) {
      throw new Problem('rate-limited', `${id} has ${own} streams open: use those.`, {
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
  /** Whoever had rights and has none any more was shut out: what they hold open ends, too. */
  readonly #isShutOut: () => boolean;
  #cancel: Cancel = () => undefined;
  #ended = false;
  /** Nothing was read since the last beat. */
  #isStuck = false;

  constructor(request: FastifyRequest, reply: FastifyReply, closing: AbortSignal) {
    this.#raw = reply.raw;
    const mayLook = (): boolean => request.principal.reach('read').length > 0;
    this.#isShutOut = mayLook() ? () => !mayLook() : () => false;
    reply.hijack();
    this.#raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // A proxy that collects answers would hold every event back.
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
      'x-content-type-options': 'nosniff',
    });
    this.#raw.write('retry: 1000\n\n');
    this.#raw.once('close', () => this.#finish());
    // Told by the operating system while writing to a client that is gone: 'close' follows.
    this.#raw.on('error', () => this.end());
    const onClosing = (): void => this.end();
    closing.addEventListener('abort', onClosing, { once: true });
    this.onEnd(() => closing.removeEventListener('abort', onClosing));
    this.onDrain(() => {
      this.#isStuck = false;
    });
    this.#beat();
  }

  /** What was sent has not gone out yet. */
  get isBehind(): boolean {
    return this.#raw.writableNeedDrain;
  }

  /** Called whenever it is behind no more. */
  onDrain(run: () => void): void {
    this.#raw.on('drain', run);
  }

  send(event: string, data: object): void {
    this.#write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** The bytes are not copied: many streams may be sent the same. */
  sendJson(event: string, data: Buffer): void {
    this.#write(`event: ${event}\ndata: `, data, '\n\n');
  }

  onEnd(run: () => void): void {
    if (this.#ended) run();
    else this.#ends.push(run);
  }

  end(): void {
    if (!this.#raw.writableEnded) this.#raw.end();
    this.#finish();
  }

  #write(...pieces: readonly (string | Buffer)[]): void {
    if (this.#ended) return;
    if (this.#raw.writableLength > BACKLOG_BYTES_MAX) this.#raw.destroy();
    else for (const piece of pieces) this.#raw.write(piece);
  }

  #beat(): void {
    this.#cancel = after(BEAT_MS, () => {
      if (this.#isStuck) {
        this.#raw.destroy();
        return;
      }
      if (this.#isShutOut()) {
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
