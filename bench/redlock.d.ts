/** The part of redlock 4 and 5 that is used here: the first carries no types, and the second's are not exported. */
interface RedlockSettings {
  readonly retryCount?: number;
  readonly retryDelay?: number;
  readonly retryJitter?: number;
}

declare module 'redlock' {
  export default class Redlock {
    constructor(clients: readonly object[], settings: RedlockSettings);
    lock(key: string, ttlMs: number): Promise<{ unlock(): Promise<void>; readonly expiration: number }>;
  }
}

declare module 'redlock-5' {
  export default class Redlock {
    constructor(clients: readonly object[], settings: RedlockSettings);
    acquire(keys: readonly string[], ttlMs: number): Promise<{ release(): Promise<unknown> }>;
    using(keys: string[], ttlMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<unknown>;
    on(event: 'error', listener: (error: unknown) => void): void;
  }
}
