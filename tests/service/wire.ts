/** HTTP as bytes on a connection that stays open: what a polite client would never send can be sent with it. */
import { connect, type Socket } from 'node:net';

export interface Received {
  /** 0: no answer in time, or none at all. */
  readonly status: number;
  /** Status line and headers. */
  readonly head: string;
  /** Of a stream, or of what ended too soon: what had come by then. */
  readonly text: string;
}

/** One request at a time. Whatever ends the connection, the next request opens another one. */
export class Wire {
  readonly #port: number;
  #socket: Socket | null = null;
  #bytes: Buffer = Buffer.alloc(0);
  #settle: ((received: Received) => void) | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  send(request: string | Buffer, patienceMs: number): Promise<Received> {
    const socket = this.#open();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.close(), patienceMs);
      this.#settle = (received) => {
        clearTimeout(timer);
        this.#settle = null;
        resolve(received);
      };
      socket.write(request);
    });
  }

  /** The request on its way is given up. */
  close(): void {
    const socket = this.#socket;
    const received = partOf(this.#bytes);
    this.#socket = null;
    this.#bytes = Buffer.alloc(0);
    socket?.destroy();
    this.#settle?.(received);
  }

  #open(): Socket {
    if (this.#socket) return this.#socket;
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    const end = (): void => {
      if (this.#socket === socket) this.close();
    };
    // A reset is one way for the service to hang up on nonsense.
    socket.on('error', end).on('close', end);
    socket.on('data', (chunk) => {
      if (this.#socket === socket) this.#take(chunk);
    });
    return socket;
  }

  #take(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    const headEnd = this.#bytes.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const head = this.#bytes.toString('latin1', 0, headEnd);
    const status = statusOf(head);
    const bodyAt = headEnd + 4;
    if (status === 100) {
      const rest = this.#bytes.subarray(bodyAt);
      this.#bytes = Buffer.alloc(0);
      if (rest.length > 0) this.#take(rest);
      return;
    }
    const end = bodyAt + lengthOf(status, head);
    if (this.#bytes.length < end) return;
    const text = this.#bytes.toString('utf8', bodyAt, end);
    this.#bytes = this.#bytes.subarray(end);
    const settle = this.#settle;
    if (/^connection: close\r?$/im.test(head) || this.#bytes.length > 0) {
      this.#settle = null;
      this.close();
    }
    settle?.({ status, head, text });
  }
}

function partOf(bytes: Buffer): Received {
  const [head = '', ...rest] = bytes.toString('utf8').split('\r\n\r\n');
  return { status: statusOf(head), head, text: rest.join('\r\n\r\n') };
}

function statusOf(head: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
}

/** Streams have no length: they are given up when the patience is over. */
function lengthOf(status: number, head: string): number {
  if (status === 204 || status === 304) return 0;
  const length = /^content-length: (\d+)\r?$/im.exec(head)?.[1];
  return length === undefined ? Number.POSITIVE_INFINITY : Number(length);
}
