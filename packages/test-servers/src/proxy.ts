/**
 * A TCP proxy that breaks connections as networks do. An error on one side ends the other side; nothing is thrown. A new
 * mode applies to open connections too.
 */
import { createServer, type Socket } from 'node:net';
import { listenSomewhere } from './listen.js';
import { type Link, type Mode, openLink } from './proxy-link.js';

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
}

export interface ProxyOptions {
  /**
   * For HTTP/2, where the server speaks first and many calls share a connection: lost replies are dropped, and the
   * connection is reset only when the next mode comes. Else no request of a new connection would go through.
   */
  readonly http2?: boolean;
}

export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Open connections. */
  readonly connections: number;
  /** Answers lost so far. */
  readonly lost: number;
  /** Forwards everything at once, including what was held back. */
  pass(): void;
  /** Resets every connection, and every new one. */
  cut(): void;
  /** Half-open: connections stay, new ones are accepted, and nothing is forwarded either way. */
  hang(): void;
  /**
   * Requests are forwarded; the answer is dropped and the connection reset. After `times` losses everything passes again.
   * Default: no limit.
   */
  loseReplies(times?: number): void;
  /** Delays every piece in each direction: a round trip takes twice as long. */
  delay(ms: number): void;
  stop(): Promise<void>;
}

export async function startProxy(
  target: ProxyTarget,
  { http2 = false }: ProxyOptions = {},
): Promise<TcpProxy> {
  const links = new Set<Link>();
  let mode: Mode = { kind: 'pass' };
  let lost = 0;
  let lossesLeft = Number.POSITIVE_INFINITY;

  const change = (next: Mode): void => {
    mode = next;
    for (const link of [...links]) link.change(next);
  };
  const onLoss = (): void => {
    lost += 1;
    lossesLeft -= 1;
    if (lossesLeft <= 0) change({ kind: 'pass' });
  };
  const accept = (client: Socket): void => {
    const link = openLink(client, target, { onLoss, onEnd: () => links.delete(link) }, http2);
    links.add(link);
    link.change(mode);
  };
  const { port, close } = await listenSomewhere(() =>
    createServer({ noDelay: true, allowHalfOpen: true }, accept),
  );

  return {
    host: '127.0.0.1',
    port,
    get connections() {
      return links.size;
    },
    get lost() {
      return lost;
    },
    pass: () => change({ kind: 'pass' }),
    cut: () => change({ kind: 'cut' }),
    hang: () => change({ kind: 'hang' }),
    loseReplies: (times = Number.POSITIVE_INFINITY) => {
      lossesLeft = times;
      change({ kind: 'lose replies' });
    },
    delay: (ms) => change({ kind: 'delay', ms }),
    stop: async () => {
      change({ kind: 'cut' });
      await close();
    },
  };
}
