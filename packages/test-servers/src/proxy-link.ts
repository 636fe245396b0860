/** One connection through the proxy: two sockets, and a queue for each direction. */
import { connect, type Socket } from 'node:net';
import { later, nowMs } from './clock.js';
import { ignore } from './system-error.js';

export type Mode =
  | { readonly kind: 'pass' }
  | { readonly kind: 'cut' }
  | { readonly kind: 'hang' }
  | { readonly kind: 'lose replies' }
  | { readonly kind: 'delay'; readonly ms: number };

export interface Link {
  change(mode: Mode): void;
}

interface Events {
  readonly onLoss: () => void;
  readonly onEnd: () => void;
}

/** Bytes, or the end of them. */
type Piece = Buffer | 'end';

interface Way {
  push(piece: Piece): void;
  /** Sends the pieces that are due, and schedules the next. */
  flush(mode: Mode): void;
  clear(): void;
}

const HELD_BYTES_MAX = 1 << 20;

/** Pieces leave in the order of their arrival, whatever modes there were meanwhile. */
function openWay(from: () => Socket | undefined, to: () => Socket | undefined): Way {
  const held: { readonly piece: Piece; readonly atMs: number }[] = [];
  let heldBytes = 0;
  let cancel = (): void => undefined;

  const send = (piece: Piece, socket: Socket): void => {
    if (piece === 'end') socket.end();
    else socket.write(piece);
  };
  const flush = (mode: Mode): void => {
    cancel();
    if (mode.kind === 'hang' || mode.kind === 'cut') return;
    const delayMs = mode.kind === 'delay' ? mode.ms : 0;
    const socket = to();
    if (socket === undefined) return;
    for (let next = held[0]; next !== undefined; next = held[0]) {
      const restMs = next.atMs + delayMs - nowMs();
      if (restMs > 0) {
        cancel = later(Math.ceil(restMs), () => flush(mode));
        return;
      }
      held.shift();
      heldBytes -= next.piece.length;
      send(next.piece, socket);
    }
    if (from()?.isPaused() === true) from()?.resume();
  };
  return {
    push: (piece) => {
      held.push({ piece, atMs: nowMs() });
      heldBytes += piece.length;
      if (heldBytes >= HELD_BYTES_MAX) from()?.pause();
    },
    flush,
    clear: () => {
      cancel();
      held.length = 0;
    },
  };
}

/**
 * Connects to the target only when something may pass: a hanging proxy opens no connection there. While it hangs, neither
 * side learns that the other one has closed.
 */
export function openLink(
  client: Socket,
  target: { host: string; port: number },
  events: Events,
  http2 = false,
): Link {
  let mode: Mode = { kind: 'hang' };
  let server: Socket | undefined;
  let ended = false;
  /** Whether replies are missing: then nothing that follows makes sense to the client. */
  let isTorn = false;
  const requests = openWay(
    () => client,
    () => server,
  );
  const answers = openWay(
    () => server,
    () => client,
  );

  const end = (): void => {
    if (ended) return;
    ended = true;
    requests.clear();
    answers.clear();
    client.resetAndDestroy();
    server?.resetAndDestroy();
    events.onEnd();
  };
  const closed = new Set<Way>();
  /** After an orderly end the other side may still be reading: a reset would drop the last bytes. */
  const gone = (way: Way, byError: boolean): void => {
    closed.add(way);
    if (mode.kind === 'hang') way.push('end');
    else if (byError || closed.size === 2) end();
  };
  /** The server's side is closed in order, so that it reads the whole request: only the reply is lost. */
  const lose = (): void => {
    server?.removeAllListeners('data');
    server?.resume();
    server?.end();
    server = undefined;
    end();
    events.onLoss();
  };
  const attach = (socket: Socket, way: Way): void => {
    socket.on('data', (piece: Buffer) => {
      if (ended) return;
      if (way === answers && mode.kind === 'lose replies') {
        if (!http2) return lose();
        isTorn = true;
        return events.onLoss();
      }
      way.push(piece);
      way.flush(mode);
    });
    socket.on('end', () => {
      way.push('end');
      way.flush(mode);
    });
    // An error is always followed by `close`, which is handled below.
    socket.on('error', ignore);
    socket.on('close', (byError) => gone(way, byError));
  };
  attach(client, requests);

  return {
    change: (next) => {
      mode = next;
      if (ended) return;
      if (next.kind === 'cut' || (isTorn && next.kind !== 'lose replies')) return end();
      if (next.kind !== 'hang' && server === undefined) {
        server = connect({ host: target.host, port: target.port, noDelay: true, allowHalfOpen: true });
        attach(server, answers);
      }
      requests.flush(next);
      answers.flush(next);
    },
  };
}
