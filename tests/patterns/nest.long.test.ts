/** examples/patterns/nest.ts and nest-module.ts: applications on one SQLite file. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Inject, Injectable, Module, SetMetadata } from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { build } from 'esbuild';
import {
  AcquireTimeoutError,
  assertLocked,
  createLocks,
  InvalidArgumentError,
  type Locks,
  openStore,
} from 'holdfast';
import { afterEach, describe, expect, it } from 'vitest';
import { HoldfastModule, LOCKS, Locked } from '../../examples/patterns/nest-module.js';
import { run } from '../repository/shell.js';
import { root } from '../repository/tree.js';
import { atTheEnd, clearScene, freshFile, freshFolder, until } from '../scene.js';

afterEach(clearScene);

const Role = (name: string): MethodDecorator => SetMetadata('role', name);

@Injectable()
class Reports {
  @Inject(LOCKS) readonly locks!: Locks;
  readonly written: string[] = [];

  @Locked((name: string) => `report:${name}`, { wait: 0 })
  async write(name: string, work: () => Promise<string>): Promise<string> {
    assertLocked(`report:${name}`);
    this.written.push(name);
    return work();
  }

  @Role('above')
  @Locked('reports')
  async above(): Promise<void> {
    assertLocked('reports');
  }

  @Locked('reports')
  @Role('below')
  async below(): Promise<void> {
    assertLocked('reports');
  }
}

async function startApplication(store: string): Promise<Reports & { close(): Promise<void> }> {
  @Module({ imports: [HoldfastModule.forRoot(store)], providers: [Reports] })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  atTheEnd(() => app.close());
  return Object.assign(app.get(Reports), { close: () => app.close() });
}

describe('@Locked', () => {
  it('runs a method in one application at a time, by the key of its arguments', async () => {
    const store = `sqlite:${freshFile()}`;
    const [one, other] = await Promise.all([startApplication(store), startApplication(store)]);
    expect(one.locks).not.toBe(other.locks);
    let end = (_: string): void => undefined;
    const first = one.write('may', () => new Promise<string>((resolve) => (end = resolve)));
    await expect.poll(() => one.written).toEqual(['may']);

    await expect(other.write('may', async () => 'second')).rejects.toThrow(AcquireTimeoutError);
    expect(await other.write('june', async () => 'another key')).toBe('another key');
    end('first');
    expect(await first).toBe('first');
    expect(await other.write('may', async () => 'third')).toBe('third');
    expect(other.written).toEqual(['june', 'may']);
  });

  it('gives back the lock when the method throws, and throws the same', async () => {
    const reports = await startApplication(`sqlite:${freshFile()}`);
    const error = new Error('no paper');
    await expect(reports.write('may', () => Promise.reject(error))).rejects.toBe(error);
    expect(await reports.locks.inspect('report:may')).toBeNull();
  });

  it('keeps what other decorators say of the method, above and below it', async () => {
    const reports = await startApplication('memory:');
    const reflector = new Reflector();
    expect(reflector.get('role', Reports.prototype.above)).toBe('above');
    expect(reflector.get('role', Reports.prototype.below)).toBe('below');
    await Promise.all([reports.above(), reports.below()]);
  });
});

describe('the module', () => {
  it('closes the locks when the application is closed, after running work', async () => {
    const reports = await startApplication('memory:');
    let end = (_: string): void => undefined;
    const work = reports.write('may', () => new Promise<string>((resolve) => (end = resolve)));
    await expect.poll(() => reports.written).toEqual(['may']);
    const closed = reports.close();
    await expect
      .poll(() =>
        reports.below().then(
          () => null,
          (error: unknown) => error,
        ),
      )
      .toBeInstanceOf(InvalidArgumentError);
    end('done');
    expect(await work).toBe('done');
    await closed;
  });
});

describe('the program', () => {
  it('waits for its lock, and loses no count of two processes', async () => {
    mkdirSync(join(root, '.tmp'), { recursive: true });
    const built = mkdtempSync(join(root, '.tmp', 'nest-'));
    atTheEnd(() => rmSync(built, { recursive: true, force: true }));
    await build({
      entryPoints: ['nest', 'nest-module'].map((name) => join(root, `examples/patterns/${name}.ts`)),
      outdir: built,
      outExtension: { '.js': '.js' },
      format: 'esm',
      tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    });
    const cwd = freshFolder();
    for (const name of ['visits', 'sales']) writeFileSync(join(cwd, name), '0');
    const count = (name: string): string => readFileSync(join(cwd, name), 'utf8');
    const locks = createLocks(await openStore(`sqlite:${join(cwd, 'locks.db')}`));
    atTheEnd(() => locks.close({ drain: 0 }));
    const names = ['visits', 'visits', 'sales', 'visits'];
    const program = [join(built, 'nest.js'), ...names];

    // Both are there before either may count.
    const lease = await locks.acquire('count:visits');
    const runs = [1, 2].map(() => run(process.execPath, program, { cwd, timeoutMs: 100_000 }));
    const ended = Promise.race(runs).then(() => 'ended');
    const waiting = until(
      async () => (await locks.inspect('count:visits'))?.waiters.length === 2,
      'both programs wait',
    );
    expect(await Promise.race([ended, waiting])).toBeUndefined();
    expect(count('visits')).toBe('0');
    await lease.release();
    await Promise.all(runs);
    expect([count('visits'), count('sales')]).toEqual(['6', '2']);
  });
});
