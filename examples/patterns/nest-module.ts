/**
 * Holdfast as a module of Nest, with a decorator: copy this file into your project. `@Inject(LOCKS)` gives the locks to
 * any provider, and `@Locked` runs a method under a lock. The locks are closed when the application shuts down, after
 * Nest has answered the requests in hand (by `app.close()`, or at SIGTERM with `app.enableShutdownHooks()`).
 */
import 'reflect-metadata';
import { type DynamicModule, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type AcquireOptions, createLocks, type Locks, openStore, type WorkOptions } from 'holdfast';

export const LOCKS = Symbol('Holdfast locks');

@Module({})
export class HoldfastModule implements OnApplicationShutdown {
  @Inject(LOCKS) private readonly locks!: Locks;

  static forRoot(url = process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'): DynamicModule {
    const useFactory = async (): Promise<Locks> => createLocks(await openStore(url));
    return {
      module: HoldfastModule,
      global: true,
      providers: [{ provide: LOCKS, useFactory }],
      exports: [LOCKS],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.locks.close();
  }
}

/** The key may depend on the first arguments of the call. The method waits for its lock, and rejects as `withLock` does. */
export function Locked<A extends unknown[] = never[]>(
  key: string | ((...args: A) => string),
  options?: AcquireOptions & WorkOptions,
) {
  return <M extends (...args: [...A, ...never[]]) => Promise<unknown>>(
    target: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const method = descriptor.value;
    if (!method) throw new TypeError('@Locked is for methods.');
    Inject(LOCKS)(target, LOCKS);
    const locked = async function (this: { readonly [LOCKS]: Locks }, ...args: [...A, ...never[]]) {
      const name = typeof key === 'string' ? key : key(...(args as unknown as A));
      return this[LOCKS].withLock(name, () => method.apply(this, args), options);
    };
    // What other decorators said of the method: routes, guards, roles.
    for (const said of Reflect.getMetadataKeys(method)) {
      Reflect.defineMetadata(said, Reflect.getMetadata(said, method), locked);
    }
    descriptor.value = locked as unknown as M;
  };
}
