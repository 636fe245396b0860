/**
 * The ways between the members of an etcd cluster: one proxy before each member's peer port. Every request of a peer names
 * its sender, so that one member can be cut off from the others while its clients still reach it.
 */
import { connect, createServer, type Socket } from 'node:net';
import { listenSomewhere } from './listen.js';

export interface EtcdPeers {
  /** Where the peers of the member at this index reach it. */
  readonly urls: readonly string[];
  /** Nothing passes between this member (by its id, in decimal) and the others. */
  cutOff(index: number, memberId: string): void;
  /** Everything passes again. */
  heal(): void;
  stop(): Promise<void>;
}

interface Link {
  readonly sender: bigint;
  readonly receiver: number;
  readonly sockets: readonly Socket[];
}

const SENDER = /^x-server-from: ([0-9a-f]+)\r$/im;
const HEAD_BYTES_MAX = 1 << 16;

export async function startEtcdPeers(ports: readonly number[]): Promise<EtcdPeers> {
  const links = new Set<Link>();
  let isolated: { readonly index: number; readonly id: bigint } | null = null;
  const isCut = ({ sender, receiver }: Link): boolean =>
    isolated !== null && (sender === isolated.id || receiver === isolated.index);
  const end = ({ sockets }: Link): void => {
    for (const socket of sockets) socket.destroy();
  };

  const open = (client: Socket, receiver: number, head: Buffer): void => {
    const target = connect({ host: '127.0.0.1', port: ports[receiver] as number, noDelay: true });
    const sender = BigInt(`0x${SENDER.exec(head.toString('latin1'))?.[1] ?? '0'}`);
    const link: Link = { sender, receiver, sockets: [client, target] };
    links.add(link);
    for (const socket of link.sockets) {
      socket.on('error', () => end(link));
      socket.on('close', () => {
        links.delete(link);
        end(link);
      });
    }
    if (isCut(link)) {
      end(link);
      return;
    }
    target.write(head);
    client.pipe(target);
    target.pipe(client);
  };

  const proxies = await Promise.all(
    ports.map((_, receiver) =>
      listenSomewhere(() =>
        createServer({ noDelay: true }, (client) => {
          let head = Buffer.alloc(0);
          client.on('error', () => client.destroy());
          const onData = (piece: Buffer): void => {
            head = Buffer.concat([head, piece]);
            if (!head.includes('\r\n\r\n') && head.length < HEAD_BYTES_MAX) return;
            client.off('data', onData);
            client.pause();
            open(client, receiver, head);
          };
          client.on('data', onData);
        }),
      ),
    ),
  );
  return {
    urls: proxies.map(({ port }) => `http://127.0.0.1:${port}`),
    cutOff: (index, memberId) => {
      isolated = { index, id: BigInt(memberId) };
      for (const link of [...links].filter(isCut)) end(link);
    },
    heal: () => {
      isolated = null;
    },
    stop: async () => {
      for (const link of links) end(link);
      await Promise.all(proxies.map(({ close }) => close()));
    },
  };
}
