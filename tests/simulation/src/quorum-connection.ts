/** A store on a quorum as one simulated process sees it: the real proposer, and every server behind an unreliable network. */
import { answersOver, type ConnectionParts, listenOver } from './connection.js';
import {
  CompareAndSwap,
  type Member,
  Quorum,
  QuorumRegister,
  type Register,
  type Snapshot,
  type Store,
  snapshotOf,
  type Version,
} from './library.js';
import type { QuorumServer } from './quorum-server.js';
import type { SimulatedMember } from './simulated-member.js';

export interface QuorumConnectionParts extends Omit<ConnectionParts, 'server'> {
  readonly server: QuorumServer;
  /** The servers that this process was given. */
  readonly given: readonly SimulatedMember[];
  /** The servers that this process cannot reach now. */
  readonly unreachable: ReadonlySet<number>;
}

export function connectToQuorum(parts: QuorumConnectionParts): Store {
  const { server, given, link, variant, onHold, unreachable } = parts;
  const { clock } = link.process;
  const ask = answersOver(parts);

  const members = given.map((member): Member => {
    const request = <T>(keys: readonly string[], work: (isOnce: boolean) => T): Promise<T> =>
      ask(keys, work, {
        isCut: () => unreachable.has(member.place),
        receive: (handle) => member.receive(handle),
      });
    const size = server.members.length;
    return {
      name: `m${member.place}`,
      greet: () =>
        request([], () => {
          return { time: member.time, quorum: 'simulated', place: member.place, size, reason: '' };
        }),
      ask: (message, seat) =>
        request([message.key], (isOnce) =>
          seat.size === size ? { ...member.handle(message), isOnce } : { isRefused: true, isOnce },
        ),
    };
  });
  const quorum = new Quorum(members, clock);
  const register = new QuorumRegister(quorum, (key, wakes) => {
    for (const wake of wakes) link.carry('request', [key], () => server.send(key, wake));
  });
  const watched: Register<Version> = {
    absent: register.absent,
    wake: register.wake,
    read: (key) => register.read(key),
    async write(key, next, seen) {
      const value = JSON.stringify(next);
      server.writes(key, value);
      const written = await register.write(key, next, seen);
      server.told(key, value, written.kind === 'written');
      return written;
    },
  };
  const swap = new CompareAndSwap(watched, quorum.time, { name: 'quorum', queue: variant.queue, clock });

  return {
    name: 'simulated quorum',
    traits: {
      clock: 'estimate',
      clockErrorMs: 0,
      shared: 'network',
      durable: true,
      livenessPollMs: null,
      ...variant,
    },
    apply(commands) {
      for (const command of commands) {
        if (command.kind === 'claim') onHold(command.hold);
        server.sent(command);
      }
      return swap.apply(commands);
    },
    ...(variant.push ? { listen: listenOver(parts) } : {}),
    async read(key): Promise<Snapshot | null> {
      const state = await register.peek(key);
      return snapshotOf(key, state, (await swap.now()).earliest);
    },
    async *list() {},
    async probe() {
      return { server: 'simulated', now: server.now, findings: [] };
    },
    async close() {
      swap.close();
    },
  };
}
