/**
 * Limits open connections. The first request on a new connection may be a renewal, so a connection is refused only when no
 * idle one can be closed instead. The connection that was idle for the longest is closed first.
 *
 * 1. A connection belongs to its address until a request on it was authenticated, then to that principal. So clients
 *    without credentials can only close each other's connections. Connections of trusted proxies have many clients: they
 *    have no owner, and count only in the total.
 * 2. It is idle unless a request is being answered. A request that has not arrived completely does not count: a body that
 *    never ends would keep the connection. Requests that are being answered have limits of their own.
 * 3. An owner with more than `addressConnections` idle connections loses the oldest of those that were idle for at least a
 *    second: when many clients connect at once, as after a restart, each has time to send its request.
 * 4. With more than `connections` in total, the oldest idle one is closed at once. A new one is refused only when all
 *    `connections` are being answered.
 */
import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { monotonicMs } from '../clock.js';
import { addressGroup, type IsProxy } from './addresses.js';
import { Bucket } from './bucket.js';
import type { Limits } from './limits.js';

/** At most one log line per minute about closed connections. */
const LINES_PER_SECOND = 1 / 60;
const GRACE_MS = 1_000;
/** How many are closed per new connection: more than one, so that an excess shrinks. */
const CLOSED_AT_ONCE = 2;

interface Connection {
  readonly socket: Socket;
  readonly name: string;
  readonly address: string;
  owner: Owner | null;
  /** The principal of its last request, if that was authenticated. */
  principal: string | null;
  /** Requests that are being answered. */
  requests: number;
  idleSinceMs: number;
}

interface Owner {
  readonly name: string;
  count: number;
  /** Idle connections, the longest idle first. */
  readonly idle: Set<Connection>;
}

type Most = Pick<Limits, 'connections' | 'addressConnections'>;

export class Connections {
  readonly #limits: Most;
  readonly #isProxy: IsProxy;
  readonly #log: Logger;
  readonly #open = new Map<string, Connection>();
  /** The connections by socket, because names are slow to make. */
  readonly #bySocket = new WeakMap<Socket, Connection>();
  readonly #idle = new Set<Connection>();
  readonly #owners = new Map<string, Owner>();
  readonly #lines = new Bucket(LINES_PER_SECOND, 1);

  constructor(limits: Most, isProxy: IsProxy, log: Logger) {
    this.#limits = limits;
    this.#isProxy = isProxy;
    this.#log = log;
  }

  follow(server: Server): void {
    server.on('connection', (socket) => this.#add(socket));
  }

  /**
   * A request has arrived and is being answered; `principal` if it was authenticated. Returns a function to call when it
   * was answered, or its client left.
   */
  begin(socket: Socket, principal: string | null): () => void {
    const connection = this.#bySocket.get(socket) ?? this.#open.get(nameOf(socket));
    if (!connection) return () => undefined;
    this.#bySocket.set(socket, connection);
    connection.requests += 1;
    this.#setIdle(connection, false);
    if (principal !== null && connection.owner && connection.principal !== principal) {
      connection.principal = principal;
      this.#give(connection, `principal ${principal}`);
    }
    return () => {
      connection.requests -= 1;
      if (connection.requests > 0 || this.#open.get(connection.name) !== connection) return;
      this.#setIdle(connection, true);
      this.#closeIdleBeside(connection);
    };
  }

  #add(socket: Socket): void {
    const { remoteAddress } = socket;
    // A closed connection has no address.
    if (remoteAddress === undefined) return;
    const address = addressGroup(remoteAddress);
    const connection: Connection = {
      socket,
      name: nameOf(socket),
      address,
      owner: null,
      principal: null,
      requests: 0,
      idleSinceMs: 0,
    };
    this.#open.set(connection.name, connection);
    socket.once('close', () => this.#remove(connection));
    if (!this.#isProxy(remoteAddress)) this.#give(connection, `address ${address}`);
    this.#setIdle(connection, true);
    this.#closeIdleBeside(connection);
    const { connections } = this.#limits;
    if (this.#open.size <= connections) return;
    if (!this.#closeOldest(this.#idle, connection, 0)) socket.destroy();
    this.#warn({ most: connections }, 'there are too many connections: the oldest idle ones are closed');
  }

  #remove(connection: Connection): void {
    if (this.#open.get(connection.name) === connection) this.#open.delete(connection.name);
    this.#setIdle(connection, false);
    this.#give(connection, null);
  }

  #closeIdleBeside(latest: Connection): void {
    const { addressConnections: most } = this.#limits;
    const { owner, address } = latest;
    for (let count = 0; count < CLOSED_AT_ONCE && owner && owner.idle.size > most; count += 1) {
      if (!this.#closeOldest(owner.idle, latest, GRACE_MS)) return;
      this.#warn({ address, most }, 'a client has many idle connections: the oldest are closed');
    }
  }

  /** Closes the oldest idle connection, but never `latest`. Returns whether one was closed. */
  #closeOldest(idle: ReadonlySet<Connection>, latest: Connection, idleMsMin: number): boolean {
    for (const connection of idle) {
      if (connection === latest) continue;
      if (monotonicMs() - connection.idleSinceMs < idleMsMin) return false;
      // Removed now, because the socket emits its end only later.
      this.#remove(connection);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  #setIdle(connection: Connection, isIdle: boolean): void {
    const own = connection.owner?.idle;
    if (isIdle) {
      connection.idleSinceMs = monotonicMs();
      this.#idle.add(connection);
      own?.add(connection);
    } else {
      this.#idle.delete(connection);
      own?.delete(connection);
    }
  }

  #give(connection: Connection, name: string | null): void {
    const before = connection.owner;
    if (before?.name === name) return;
    if (before) {
      before.count -= 1;
      before.idle.delete(connection);
      if (before.count === 0) this.#owners.delete(before.name);
    }
    connection.owner = name === null ? null : this.#ownerOf(name);
    if (connection.owner) connection.owner.count += 1;
  }

  #ownerOf(name: string): Owner {
    const known = this.#owners.get(name);
    if (known) return known;
    const owner: Owner = { name, count: 0, idle: new Set() };
    this.#owners.set(name, owner);
    return owner;
  }

  #warn(what: object, text: string): void {
    if (this.#lines.take()) this.#log.warn(what, text);
  }
}

/** The same for a connection and for the TLS socket on it. */
function nameOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/**
 * Closes connections without a request yet, which browsers and clients open in advance. Node does not count them as idle, so
 * closing would wait for them.
 */
export function closeUnused(app: FastifyInstance): void {
  const unused = new Set<Socket>();
  app.server.on(app.server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.server.on('request', ({ socket }) => unused.delete(socket));
  app.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy();
    done();
  });
}
