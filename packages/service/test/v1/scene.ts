/** A service to speak the contract of LockServiceCentral with, on every store that needs no server. */
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import type { Authenticator } from '../../src/index.js';
import { type Answer, pause, STORES, type Stage, stage } from '../scene.js';

export interface Scene extends Stage {
  /** The store's second. */
  second(): Promise<number>;
  /** Lets time go by: at once where the store's clock is ours, else by waiting. */
  pass(ms: number): Promise<void>;
  look(lock: string): Promise<Answer>;
  acquire1(lock: string, instanceId: string, leaseDuration: number): Promise<Answer>;
  renew1(lock: string, instanceId: string, leaseDuration: number): Promise<Answer>;
  release1(lock: string, instanceId: string): Promise<Answer>;
}

interface Where {
  readonly store: Store;
  readonly auth?: Authenticator;
  pass?(ms: number): Promise<void>;
}

const NAMESPACE = 'billing';

export const WHERE: Readonly<Record<string, () => Where>> = {
  'memory, with a clock of its own': () => {
    // In the middle of a second: most acquires are.
    let now = 1_800_000_000_400;
    const advance = async (ms: number): Promise<void> => {
      now += ms;
    };
    return { store: memoryStore({ now: () => now }), pass: advance };
  },
  ...Object.fromEntries(Object.entries(STORES).map(([name, make]) => [name, () => ({ store: make() })])),
};

export async function begin({ store, auth, pass = pause }: Where): Promise<Scene> {
  const scene = await stage({ store, ...(auth && { auth }) });
  const { post, get } = scene;
  const path = (lock: string): string => `/v1/${NAMESPACE}/lock/${lock}`;
  return {
    ...scene,
    pass,
    second: async () => Math.floor((await store.probe()).now / 1_000),
    look: (lock) => get(path(lock)),
    acquire1: (lock, instanceId, leaseDuration) =>
      post(`${path(lock)}/acquire`, { instanceId, leaseDuration }),
    renew1: (lock, instanceId, leaseDuration) => post(`${path(lock)}/renew`, { instanceId, leaseDuration }),
    release1: (lock, instanceId) => post(`${path(lock)}/release`, { instanceId }),
  };
}

/** Everybody is who their `Authorization` says, as the bearer of a token would be. */
export const byName: Authenticator = {
  authenticate({ headers }) {
    const owner = String(headers.authorization ?? 'Bearer nobody').replace(/^Bearer /, '');
    return { id: owner, owner, may: () => true, prefixes: () => [''] };
  },
};

export function bearer(owner: string): Record<string, string> {
  return { authorization: `Bearer ${owner}` };
}
